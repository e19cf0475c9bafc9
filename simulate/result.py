"""The result of a run put together: status, guard reports, memory, sizes.

Reads what `setup`, `writer` and `course` kept; decides nothing but the status.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from seatrial.devices.device import Device
from seatrial.devices.runtime import Runtime
from seatrial.export.architecture import Architecture, read_architecture
from seatrial.export.session_graph import read_decoder
from seatrial.guards.verdict import Finding, GuardReport, Verdict
from seatrial.simulate.alternatives import alternatives, planned_as_run
from seatrial.simulate.course import Course, Delivered
from seatrial.simulate.job import MemoryResult, RunResult, Status, refusal
from seatrial.simulate.output import SOURCE
from seatrial.simulate.plan import Job
from seatrial.simulate.setup import Basis, Setup
from seatrial.simulate.trace import TraceWriter
from seatrial.simulate.writer import Writer, bundle_bytes


def _status(course: Course, delivered: Delivered) -> Status:
    """Judged on the text that is delivered."""
    if course.stopped:
        return "partial"
    if refusal([report for report in delivered.reports if report.guard != "breakdown"]) or not delivered.text:
        return "failed"
    return "fallback" if course.fallbacks else "ok"


def _memory_report(setup: Setup, writer: Writer) -> GuardReport:
    """The guard's forecast, and what really happened where a child died."""
    died = [
        Finding(
            "memory",
            "",
            (0, 0),
            "memory",
            Verdict.WARN,
            death["kind"],
            None,
            None,
            None,
            f"{death['way']}: {death['detail']}",
        )
        for death in writer.deaths
    ]
    report = setup.memory.report
    if not died:
        return report
    worst = Verdict.FAIL if report.verdict is Verdict.FAIL else Verdict.WARN
    return GuardReport("memory", worst, (*report.findings, *died))


def build_result(
    setup: Setup, writer: Writer, course: Course, delivered: Delivered, trace: TraceWriter
) -> RunResult:
    basis, opened = setup.basis, writer.opened
    timing = writer.timing or setup.ways[0].timing(basis.bundle)
    context = max((len(basis.ids(part.text, part.budget)) for part in setup.parts), default=0)
    notes = [*basis.notes, *([trace.problem] if trace.problem else [])]
    breakdown = [] if any(r.guard == "breakdown" for r in delivered.reports) else [course.breakdown]
    sampled = writer.peak.samples > 0
    return RunResult(
        status=_status(course, delivered),
        summary=delivered.text,
        summary_kind=delivered.kind,
        device=basis.device.id,
        model=basis.source.name,
        weights=basis.weights,
        kv=writer.way.kv,
        pace=setup.job.pace,
        prefill=writer.prefill,
        decode=writer.decode,
        first_token_device_s=writer.first_token[0] if writer.first_token else None,
        first_token_host_s=writer.first_token[1] if writer.first_token else None,
        weight_bytes_per_token=round(timing.cost.weight_bytes_per_token),
        kv_bytes_per_token=round(timing.cost.kv_read_bytes(context)),
        kv_allocated_bytes=opened.kv_allocated_bytes if opened else 0,
        memory=MemoryResult(
            ceiling_bytes=basis.ceiling_bytes,
            mechanism=writer.mechanism or "accounting",
            peak_private_bytes=writer.peak.private_bytes if sampled else None,
            peak_mapped_bytes=writer.peak.mapped_bytes if sampled else None,
            mapped_weights=writer.way.mapped,
            peak_ceiling_bytes=writer.peak_ceiling_bytes,
            samples=writer.peak.samples,
            source=writer.peak.source,
            stand_in=_stand_in(setup),
            notes=tuple(writer.notes),
        ),
        guards=(_memory_report(setup, writer), *breakdown, *delivered.reports),
        fallbacks=tuple(course.fallbacks),
        attempts=tuple(course.attempts),
        trace=trace.path,
        bandwidth_Bps=basis.curve.rates_Bps[0],
        runtime=basis.runtime.id,
        sizes=_sizes(basis),
        windows=len(setup.parts),
        windows_read=len(course.read),
        deaths=tuple(writer.deaths),
        would_fit_bytes=round(setup.would_fit_bytes),
        execution=_execution(writer),
        stand_in=basis.stand_in.name if basis.stand_in else None,
        plan=planned_as_run(*_planned(setup, writer)),
        planned=tuple(alternatives(*_planned(setup, writer))),
        thresholds=asdict(basis.thresholds.breakdown),
        source=setup.job.out / SOURCE,
        notes=tuple(notes),
    )


def _planned(setup: Setup, writer: Writer) -> tuple[Architecture, Device, Runtime, Job]:
    """The job as it was run, in the terms of a plan."""
    basis = setup.basis
    job = Job(
        prompt_tokens=max(writer.prefill.tokens, 1),
        max_tokens=max(writer.decode.tokens, 1),
        weights=basis.weights,
        kv=writer.way.kv,
        ceiling_bytes=basis.ceiling_bytes,
        mapped_weights=writer.way.mapped,
    )
    return basis.stand_in or read_architecture(basis.bundle.folder), basis.device, basis.runtime, job


def _stand_in(setup: Setup) -> dict[str, Any] | None:
    """Bytes that the model meant would take: counted against the ceiling, the ballast really taken."""
    if setup.basis.stand_in is None:
        return None
    need, way = setup.needs[setup.first_way], setup.ways[setup.first_way]
    return {
        "model": setup.basis.stand_in.name,
        "weights_bytes": round(need.weights_bytes),
        "kv_bytes": round(need.kv_bytes),
        "activation_bytes": round(need.activation_bytes),
        "runtime_bytes": round(need.runtime_bytes),
        "private_bytes": round(need.private_bytes),
        "mapped_bytes": round(need.mapped_bytes),
        "ballast_bytes": way.ballast_bytes,
    }


def _execution(writer: Writer) -> dict[str, Any]:
    """Which providers ran the graph on this machine, and how many of its nodes each.

    A session with one provider has no choice; with several the split is not known here and is null.
    """
    if writer.opened is None or writer.bundle is None:
        return {"providers": [], "nodes": None}
    providers = writer.opened.providers
    nodes = len(read_decoder(writer.bundle.model_path).model.graph.node)
    return {"providers": providers, "nodes": {providers[0]: nodes} if len(providers) == 1 else None}


def _sizes(basis: Basis) -> dict[str, int]:
    """Bytes of the fp32 model and of the one that ran."""
    sizes = {"bundle_bytes": bundle_bytes(basis.bundle.folder)}
    given = (
        basis.source.path if basis.source.kind in ("bundle", "onnx") else basis.bundle.folder.parent / "fp32"
    )
    fp32 = given.parent if given.is_file() else given
    if basis.weights == "fp32":
        sizes["fp32_bytes"] = sizes["bundle_bytes"]
    elif fp32.is_dir() and basis.bundle.folder != fp32:
        sizes["fp32_bytes"] = bundle_bytes(fp32)
    return sizes
