"""`seatrial plan`: how long a job takes on a device and whether it fits, before anything heavy is started."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.devices.runtime import Interval
    from seatrial.simulate.plan import Plan


def plan(
    model: str = typer.Option(
        ..., "--model", help="A folder, hub id, GGUF file, bundle, config.json or `embedded`."
    ),
    device: str = typer.Option("thin-laptop-8gb", "--device", help="A device's name, a TOML file, or `all`."),
    runtime: str | None = typer.Option(None, "--runtime", help="A runtime's name or a TOML file."),
    weights: str | None = typer.Option(
        None, "--weights", help="Weight format; the file's own where there is one."
    ),
    kv: str | None = typer.Option(None, "--kv", help="KV cache format: fp32, fp16, int8, int4."),
    prompt_tokens: int = typer.Option(4200, "--prompt-tokens", help="Length of the prompt."),
    max_tokens: int = typer.Option(400, "--max-tokens", help="Length of the summary."),
    deadline: str | None = typer.Option(None, "--deadline", help="Time the job may take, as in 20s."),
    ceiling: str | None = typer.Option(None, "--ceiling", help="Memory the job may take, as in 4GB or 4GiB."),
    other_programs: str | None = typer.Option(None, "--other-programs", help="Memory other programs hold."),
    measured_bandwidth: str | None = typer.Option(
        None, "--measured-bandwidth", help="Bandwidth measured by reading, as in 32GB/s."
    ),
    limit_tokens: int | None = typer.Option(
        None, "--limit-tokens", help="Context length the runtime is told to reserve for."
    ),
    mapped: bool = typer.Option(False, "--mapped-weights", help="Weights mapped from storage, not copied."),
    sustained: bool = typer.Option(
        False, "--sustained", help="Speeds of a hot machine, where they are known."
    ),
    html: Annotated[Path | None, typer.Option("--html", help="Also write the plan as one page.")] = None,
    lang: str = typer.Option("en", "--lang", help="Language of that page: en or zh."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    quiet: bool = typer.Option(False, "--quiet", help="No notes."),
) -> int:
    """Plan time and memory of a job on a device.

    Example: seatrial plan --model config.json --device all --weights int4
    """
    from seatrial.cli.output import print_json
    from seatrial.devices.units import parse_bytes, parse_rate, parse_time
    from seatrial.simulate.plan import Job

    job = Job(
        prompt_tokens=prompt_tokens,
        max_tokens=max_tokens,
        weights=weights,
        kv=kv,
        deadline_s=parse_time(deadline) if deadline else None,
        ceiling_bytes=parse_bytes(ceiling) if ceiling else None,
        other_programs_bytes=parse_bytes(other_programs) if other_programs else 0,
        limit_tokens=limit_tokens,
        mapped_weights=mapped,
        sustained=sustained,
    )
    measured_Bps = parse_rate(measured_bandwidth) if measured_bandwidth else None
    plans = _plans(architecture_of(model, quiet), device, runtime, job, measured_Bps)
    document = {"plans": [p.to_json() for p in plans]} if device == "all" else plans[0].to_json()
    if html is not None:
        from seatrial.report import write_document

        write_document(document, plans[0].cost.name, html, language=lang)
    if as_json:
        print_json(document)
    elif device == "all":
        _print_all(plans)
    else:
        _print_plan(plans[0], quiet)
    return 0


def _plans(
    architecture: Any, device: str, runtime: str | None, job: Any, measured_Bps: float | None
) -> list[Plan]:
    from seatrial.devices.device import device_names, load_device, with_measured_bandwidth
    from seatrial.devices.runtime import load_runtime
    from seatrial.simulate.fallbacks import rebudgeted, with_fallbacks
    from seatrial.simulate.plan import plan as make_plan

    plans = []
    for machine in map(load_device, device_names() if device == "all" else [device]):
        engine = load_runtime(runtime or machine.runtime)
        if measured_Bps is None:
            made = make_plan(architecture, machine, engine, job)
        else:
            nominal, machine = machine, with_measured_bandwidth(machine, measured_Bps)
            made = rebudgeted(architecture, nominal, machine, engine, job)
        plans.append(with_fallbacks(architecture, machine, engine, made))
    return sorted(plans, key=lambda one: one.total_s.mid)


def architecture_of(model: str, quiet: bool = True) -> Any:
    """The architecture behind `--model`: `embedded`, a local path, else the config.json of a hub id."""
    from seatrial.export.architecture import architecture_of_hub, read_architecture

    if model == "embedded":
        from seatrial.cli.progress import stage_progress
        from seatrial.export.source import resolve

        with stage_progress(quiet) as progress:
            return read_architecture(resolve(None, progress=progress).path)
    path = Path(model)
    looks_local = (
        path.exists() or model.startswith((".", "/", "~")) or path.suffix in (".gguf", ".json", ".onnx")
    )
    return read_architecture(path.expanduser()) if looks_local else architecture_of_hub(model)


def _print_plan(plan: Plan, quiet: bool) -> None:
    from rich.table import Table

    from seatrial.cli.tables import wide_console
    from seatrial.devices.units import format_bytes, format_time

    console = wide_console()
    job = plan.job
    console.print(
        f"{plan.cost.name} ({plan.cost.weights} weights, {plan.cost.kv.name} KV) on {plan.device.name} with "
        f"{plan.runtime.name}: {job.prompt_tokens} + {job.max_tokens} tokens"
    )
    table = Table("memory", "", box=None)
    for part in ("weights", "kv", "activation", "runtime", "peak"):
        table.add_row(part, format_bytes(getattr(plan.memory, f"{part}_bytes")))
    table.add_row(
        "available", format_bytes(plan.available_bytes) + (": fits" if plan.fits else ": DOES NOT FIT")
    )
    console.print(table)
    times = Table("time", "low", "mid", "high", "bound by", box=None)
    for name, interval, bound in _times(plan):
        times.add_row(name, *_cells(interval), bound)
    console.print(times)
    if plan.budget is not None:
        limit, tokens = format_time(plan.budget["limit_s"]), plan.budget["max_tokens"]
        console.print(
            f"budget at this bandwidth: {tokens} tokens instead of {plan.budget['instead_of']} keep "
            f"{plan.budget['keeps']} ({limit})"
        )
    for fallback in plan.fallbacks:
        console.print(f"fallback: {fallback['action']}: {fallback['effect']}")
    for note in () if quiet else plan.notes:
        console.print(f"note: {note}")


def _times(plan: Plan) -> list[tuple[str, Interval, str]]:
    rows = [("load from storage", plan.load_s, "storage")] if plan.load_s else []
    rows.append(("prefill", plan.prefill_s, plan.bound_prefill))
    rows += [(f"per token @{context}", seconds, "") for context, seconds in plan.decode_by_context]
    rows.append(("per token, mean", plan.decode_s, plan.bound_decode))
    rows.append(("prefill + summary", plan.total_s, ""))
    return rows


def _cells(interval: Interval) -> list[str]:
    from seatrial.devices.units import format_time

    return [format_time(seconds) for seconds in (interval.low, interval.mid, interval.high)]


def _print_all(plans: Sequence[Plan]) -> None:
    from seatrial.cli.tables import table_of_names, wide_console
    from seatrial.devices.units import format_bytes, format_time

    console = wide_console()
    columns = ("device", "runtime", "total", "90 %", "prefill", "per token", "peak", "fits")
    table, whole = table_of_names(console, *columns, droppable="runtime")
    for plan in plans:
        low, mid, high = _cells(plan.total_s)
        table.add_row(
            plan.device.id,
            *([plan.runtime.id] if whole else []),
            mid,
            f"{low} - {high}",
            format_time(plan.prefill_s.mid),
            format_time(plan.decode_s.mid),
            format_bytes(plan.memory.peak_bytes),
            "yes" if plan.fits else "no",
        )
    console.print(table)
