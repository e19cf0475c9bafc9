"""Check a graph made by anyone against the model that it says it is, and name what is wrong with it.

Parity first; then lengths, layers, norms and parameters each get a look of their own, because some faults
do not show in the outputs. It writes nothing.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seatrial.errors import UserError
from seatrial.export.anatomy import Anatomy, BareLayer, find_anatomy
from seatrial.export.audit import AuditRow, audit
from seatrial.export.bundle import open_bundle
from seatrial.export.embedded import Progress
from seatrial.export.faults.diagnose import diagnose
from seatrial.export.faults.fault import Fault
from seatrial.export.faults.hidden import NormInput, norm_inputs
from seatrial.export.graph_file import GraphFile, read_graph_file
from seatrial.export.load import load_torch
from seatrial.export.parity import Case, Check, Reference, compare, make_cases, ratio
from seatrial.export.reference import references
from seatrial.export.runner import GraphFailed, GraphRunner
from seatrial.export.source import Source

_QUANTIZED = (
    "MatMulNBits",
    "GatherBlockQuantized",
    "MatMulInteger",
    "DynamicQuantizeMatMul",
    "QLinearMatMul",
)


@dataclass(frozen=True)
class Verification:
    """What was found. `faults` is empty exactly when every check passed."""

    checks: list[Check]
    faults: list[Fault]
    audit: list[AuditRow]

    def to_json(self) -> dict[str, Any]:
        odd = [row for row in self.audit if row.status != "used"]
        return {
            "checks": [check.to_json() for check in self.checks],
            "faults": [fault.to_json() for fault in self.faults],
            "audit": [{"name": row.name, "status": row.status, "detail": row.detail} for row in odd],
            "notes": [f"parameters used: {len(self.audit) - len(odd)} of {len(self.audit)}"],
        }


def verify_bundle(source: Source, bundle: Path, *, progress: Progress | None = None) -> Verification:
    """Verify the bundle or foreign folder at `bundle` against `source`. Raises UserError on bad input."""
    say = progress or (lambda _message, _share: None)
    graph = read_graph_file(open_bundle(bundle).model_path)
    quantized = [node.op_type for node in graph.proto.graph.node if node.op_type in _QUANTIZED]
    if quantized:
        kinds = ", ".join(sorted(set(quantized)))
        raise UserError(
            f"{bundle} is quantized ({len(quantized)} nodes: {kinds}), so it differs from its source on "
            "purpose and parity says nothing: verify the float graph it was made from, and measure what the "
            f"quantization did with `seatrial damage FLOAT_BUNDLE {bundle}`"
        )
    with tempfile.TemporaryDirectory() as work:
        say(f"loading {source.name}", None)
        loaded = load_torch(source, Path(work))
        say("comparing with torch", 0.3)
        cases = make_cases(loaded.vocabulary, loaded.window, loaded.context, loaded.rope_switch)
        wanted = references(loaded.model, loaded.layers, cases)
        return verify_graph(loaded.model, loaded.layers, graph, cases, wanted)


def verify_graph(
    model: Any, layers: int, graph: GraphFile, cases: list[Case], wanted: list[Reference]
) -> Verification:
    """Verify one graph against one torch model whose results for `cases` are `wanted`."""
    rows = audit(model, graph)
    faults = _stored_twice(model, rows)
    try:
        anatomy = find_anatomy(graph.proto)
        taps = [anatomy.embedding, *(join for layer in anatomy.layers for join in layer.joins)]
        norms = norm_inputs(graph.proto, graph.path.parent)
        runner = GraphRunner(graph, list(dict.fromkeys([*taps, *(norm.value for norm in norms)])), threads=1)
    except BareLayer as error:
        faults.append(Fault("layer skipped", f"layer {error.layer}", str(error)))
        return Verification([Check("layers", "fail", None, None, str(error))], faults, rows)
    except UserError as error:
        faults.append(Fault("unexplained", "graph", str(error)))
        return Verification([Check("graph", "fail", None, None, str(error))], faults, rows)
    checks = compare(runner, cases, wanted, anatomy.residuals())
    if len(anatomy.layers) != layers:
        detail = f"{len(anatomy.layers)} layers instead of {layers}"
        return Verification(checks, [*faults, Fault("layer skipped", "graph", detail)], rows)
    faults += _frozen(checks, cases) or _by_layer(model, layers, runner, anatomy, norms, cases, checks)
    faults = [_placed_by_audit(fault, rows) for fault in faults]
    if any(check.verdict == "fail" for check in checks) and not faults:
        failed = next(check for check in checks if check.verdict == "fail")
        faults.append(_by_run(failed))
    return Verification([*checks, _audit_row(rows, checks), *_fault_rows(faults, checks)], faults, rows)


def _placed_by_audit(fault: Fault, rows: list[AuditRow]) -> Fault:
    """A scale on one factor of a product, or in front of a norm, looks the same wherever it is: the values of
    the parameters tell where."""
    if fault.kind != "scale wrong":
        return fault
    for row in rows:
        parts = row.name.split(".")
        layer = next((index for index, part in enumerate(parts) if part.isdigit()), None)
        if row.status == "scaled" and layer is not None and fault.place.startswith(f"layer {parts[layer]},"):
            module = ".".join(parts[layer + 1 : -1])
            return replace(
                fault, place=f"layer {parts[layer]}, {module}", detail=f"its weight is {row.detail}"
            )
    return fault


def _audit_row(rows: list[AuditRow], checks: list[Check]) -> Check:
    """How many parameters are not simply used; a fault only where outputs differ too (folding moves
    parameters).
    """
    odd = [row for row in rows if row.status != "used"]
    failed = any(check.verdict == "fail" for check in checks)
    detail = "; ".join(f"{row.name} {row.status}" for row in odd[:3])
    return Check(
        "parameters", "ok" if not odd else "fail" if failed else "note", float(len(odd)), 0.0, detail
    )


def _by_layer(
    model: Any,
    layers: int,
    runner: GraphRunner,
    anatomy: Anatomy,
    norms: list[NormInput],
    cases: list[Case],
    checks: list[Check],
) -> list[Fault]:
    """Every layer on its own, at the longest length that the graph runs."""
    ids = max((case.ids for case in cases if len(case.ids) == 1), key=lambda ids: ids.shape[1])
    try:
        found = diagnose(model, layers, runner, anatomy, ids, norms)
    except GraphFailed as error:
        return [Fault("frozen length", "graph", f"fails at {ids.shape[1]} tokens: {error}")]
    detail = (
        ""
        if found.norms_judged == found.norms
        else f"{found.norms_judged} of {found.norms} norms could be judged"
    )
    hidden = [
        fault for fault in found.faults if fault.kind == "epsilon wrong" or "norm hides" in fault.detail
    ]
    checks.append(Check("norms", "fail" if hidden else "ok", float(len(hidden)), 0.0, detail))
    return found.faults


def _frozen(checks: list[Check], cases: list[Case]) -> list[Fault]:
    """Right at one length of several tokens and wrong at a shorter one, or not runnable at others."""
    verdicts = {
        check.name.removeprefix("logits, "): check for check in checks if check.name.startswith("logits, ")
    }
    whole = {
        case.ids.shape[1]: verdicts[case.name]
        for case in cases
        if not case.pieces and case.lengths is None and case.name in verdicts
    }
    right = [length for length, check in whole.items() if check.verdict == "ok"]
    # A frozen branch is wrong by far; a slight miss has another cause.
    wrong = [length for length, check in whole.items() if check.verdict == "fail" and ratio(check) > 100]
    if not right or not wrong:
        return []
    fails_to_run = any("cannot run" in whole[length].detail for length in wrong)
    if max(right) > 1 and (min(wrong) < max(right) or fails_to_run):
        detail = f"right at {max(right)} tokens, wrong at {', '.join(map(str, wrong))}"
        return [Fault("frozen length", "graph", detail)]
    return []


def _stored_twice(model: Any, rows: list[AuditRow]) -> list[Fault]:
    twice = [row for row in rows if row.status == "twice"]
    tied = model.get_output_embeddings() is not None and (
        model.get_output_embeddings().weight is model.get_input_embeddings().weight
    )
    return [Fault("tied embedding stored twice", "head", row.detail, 0.0) for row in twice if tied]


def _by_run(failed: Check) -> Fault:
    """A miss that no single layer shows on a whole run: it comes with pieces, padding or the cache."""
    if "cannot run" in failed.detail:
        return Fault("frozen length", "graph", failed.detail)
    return Fault("cache wrong", "graph", f"{failed.name}: right in one piece, wrong otherwise")


def _fault_rows(faults: list[Fault], checks: list[Check]) -> list[Check]:
    """A failed row for faults that no other check shows."""
    if not faults or any(check.verdict == "fail" for check in checks):
        return []
    return [Check(fault.kind, "fail", None, None, f"{fault.place}: {fault.detail}") for fault in faults]
