"""The one place where an export is put together: load, trace, rewrite, write, compare with torch.

A bundle appears at its final name only when every check passed; nothing is left behind otherwise. It knows
the order of the steps and none of their insides.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx_ir as ir

from seatrial.errors import UserError
from seatrial.export.anatomy import find_anatomy
from seatrial.export.attention import install
from seatrial.export.bundle import DATA, MODEL, write_info, writing_bundle
from seatrial.export.embedded import Progress
from seatrial.export.files import make_parent, refuse_overlap, require_space
from seatrial.export.graph_file import count_nodes, read_graph_file
from seatrial.export.limits import check_config, check_safetensors
from seatrial.export.load import Loaded, load_torch, weight_bytes
from seatrial.export.parity import EXAMPLE_TOKENS, Case, Check, Reference, compare, make_cases, not_run
from seatrial.export.quiet import quiet
from seatrial.export.reference import references
from seatrial.export.release import page_out, trim_heap
from seatrial.export.rewrite import Applied, rewrite_graph
from seatrial.export.runner import GraphRunner
from seatrial.export.second_door import LOST, export_decoder, export_other, is_decoder
from seatrial.export.source import Source
from seatrial.export.texts import write_texts
from seatrial.export.trace import trace

Exporter = str  # auto | attention | optimum


@dataclass(frozen=True)
class ExportResult:
    """What was done: checks in order, notes for people, sizes. `bundle` is None when a check failed."""

    bundle: Path | None
    checks: list[Check]
    notes: list[str]
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Did any check fail? Then nothing was written."""
        return any(check.verdict == "fail" for check in self.checks)


class _ParityMiss(Exception):
    """Leaves the writing block so that the half-made bundle is removed."""


def export_bundle(
    source: Source,
    out: Path,
    *,
    exporter: Exporter = "auto",
    progress: Progress | None = None,
    allow_pickle: bool = False,
) -> ExportResult:
    """Export `source` to a bundle at `out`. Raises UserError on bad input, returns `failed` on a parity
    miss.
    """
    say = progress or (lambda _message, _share: None)
    out = Path(out).absolute()
    refuse_overlap(out, [source.path])
    make_parent(out)
    if source.kind == "hf" and not is_decoder(source.path):
        return _export_other(source, out, say)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.work-", dir=out.parent) as work:
        say(f"loading {source.name}", None)
        loaded = load_torch(source, Path(work), allow_pickle=allow_pickle)
        require_space(out.parent, weight_bytes(loaded) + (64 << 20))
        cases = make_cases(loaded.vocabulary, loaded.window, loaded.context, loaded.rope_switch)
        say("running torch for reference", 0.1)
        wanted = references(loaded.model, loaded.layers, cases)
        page_out(loaded.model)
        return _write(source, loaded, out, _Plan(cases, wanted, exporter, say))


@dataclass(frozen=True)
class _Plan:
    """What one export was asked for and is checked against."""

    cases: Sequence[Case]
    wanted: Sequence[Reference]
    exporter: Exporter
    say: Progress


def _write(source: Source, loaded: Loaded, out: Path, plan: _Plan) -> ExportResult:
    """Make the graph, save and check it inside the writing block."""
    done = ExportResult(None, [], [], {})
    try:
        with writing_bundle(out, sources=[source.path]) as folder:
            info = _make_graph(source, loaded, folder, plan, done)
            page_out(loaded.model)
            loaded.model = None
            trim_heap()
            plan.say("comparing with torch", 0.9)
            done.checks.extend(check_graph(folder / MODEL, plan.cases, plan.wanted))
            done.checks.extend(not_run(loaded.window, loaded.context, loaded.rope_switch))
            done.info.update(info, **_summary(done, folder))
            if done.failed:
                raise _ParityMiss
            write_info(folder, done.info)
    except _ParityMiss:
        return done
    return replace(done, bundle=out)


def _make_graph(
    source: Source, loaded: Loaded, folder: Path, plan: _Plan, done: ExportResult
) -> dict[str, Any]:
    """Graph and small files by the door that was asked for, or by the one that opens."""
    if plan.exporter != "optimum":
        try:
            return _first_door(source, loaded, folder, plan, done)
        except NotThroughInterface as error:
            if plan.exporter == "attention":
                raise
            done.notes.append(str(error))
    plan.say("exporting with optimum", 0.2)
    export_decoder(loaded.folder, folder)
    done.notes.extend([LOST, *write_texts(source, loaded, folder)])
    return _info(source, loaded, "optimum", {"nodes": count_nodes(folder / MODEL)})


def _first_door(
    source: Source, loaded: Loaded, folder: Path, plan: _Plan, done: ExportResult
) -> dict[str, Any]:
    """Trace through the swapped attention, rewrite, save."""
    plan.say("tracing the model", 0.2)
    graph = trace_loaded(loaded)
    plan.say("fusing and rewriting", 0.7)
    with quiet():
        applied = rewrite_graph(graph, loaded.context)
    done.notes.extend([*_rewrite_notes(applied), *write_texts(source, loaded, folder)])
    plan.say("writing weights", 0.8)
    save_graph(graph, folder, loaded.model)
    figures = {
        "nodes": applied.nodes_after,
        "attention_nodes": applied.attention_nodes,
        "rotary_absorbed": applied.rotary_absorbed,
        "projections_packed": applied.projections_packed,
    }
    return _info(source, loaded, "attention", figures)


def _export_other(source: Source, out: Path, say: Progress) -> ExportResult:
    """An encoder or encoder-decoder model: optimum's files, parity, no KV cache of ours."""
    say("exporting with optimum", None)
    check_config(source.path)
    check_safetensors(source.path)
    done = ExportResult(
        None, [], ["no decoder: exported by optimum, for the graph alone; it cannot be run here"], {}
    )
    try:
        with writing_bundle(out, sources=[source.path]) as folder:
            done.checks.extend(export_other(source.path, folder))
            done.info.update(_origin(source, "optimum"), **_summary(done, folder))
            if done.failed:
                raise _ParityMiss
            write_info(folder, done.info)
    except _ParityMiss:
        return done
    return replace(done, bundle=out)


class NotThroughInterface(UserError):
    """The model's attention cannot be swapped; another exporter may still take it."""


def trace_loaded(loaded: Loaded) -> ir.Model:
    """The graph of a loaded model, through the swapped attention. Raises NotThroughInterface when it cannot
    be taken.
    """
    from torch.onnx.errors import OnnxExporterError

    name = install()
    try:
        with quiet():
            loaded.model.set_attn_implementation(name)
            return trace(loaded.model, loaded.layers, loaded.kv_heads, loaded.head_dim)
    except (OnnxExporterError, ValueError, KeyError, NotImplementedError, RuntimeError) as error:
        raise NotThroughInterface(
            f"{type(loaded.model).__name__} does not go through the attention interface ({_cause(error)}); "
            "optimum's exporter is the second door"
        ) from error
    finally:
        loaded.model.set_attn_implementation("eager")


def _cause(error: BaseException) -> str:
    """The innermost reason, in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:120] if lines else 'no reason given'}"


def save_graph(graph: ir.Model, folder: Path, model: Any = None) -> None:
    """`model.onnx` and its data, tensor by tensor; pages of `model` are let go as they are written."""

    def written(_tensor: Any, info: Any) -> None:
        if model is not None and info.index % 32 == 0:
            page_out(model)

    graph.producer_name, graph.producer_version = "seatrial", version("seatrial")
    # One tensor at a time: in parallel, transposed copies of all weights would be in memory together.
    ir.save(
        graph,
        folder / MODEL,
        external_data=DATA,
        size_threshold_bytes=1024,
        max_workers=1,
        max_in_flight_bytes=32 << 20,
        callback=written,
    )


def check_graph(model: Path, cases: Sequence[Case], wanted: Sequence[Reference]) -> list[Check]:
    """Parity of a written graph with torch's results."""
    graph = read_graph_file(model)
    residuals = find_anatomy(graph.proto).residuals()
    return compare(GraphRunner(graph, residuals), cases, wanted, residuals)


def _rewrite_notes(applied: Applied) -> list[str]:
    n = applied.attention_nodes
    found = [f"{applied.nodes_after} nodes (traced: {applied.nodes_before})"]
    for what, count in (
        ("rotary embedding", applied.rotary_absorbed),
        ("packed q/k/v", applied.projections_packed),
    ):
        found.append(
            f"{what} in {count} of {n} attention nodes" + ("" if count == n else "; the rest left as it was")
        )
    return found


def _origin(source: Source, exporter: str) -> dict[str, Any]:
    names = ("seatrial", "torch", "transformers", "optimum", "onnx", "onnxruntime", "onnxscript", "onnx-ir")
    return {
        "kind": "export",
        "source": {"kind": source.kind, "name": source.name, "sha256": source.sha256},
        "versions": {name: version(name) for name in names},
        "exporter": exporter,
    }


def _info(source: Source, loaded: Loaded, exporter: str, graph: dict[str, int]) -> dict[str, Any]:
    kv = {
        "layers": loaded.layers,
        "kv_heads": loaded.kv_heads,
        "head_dim": loaded.head_dim,
        "dtype": "float32",
    }
    origin = _origin(source, exporter)
    return {
        **origin,
        "example_tokens": EXAMPLE_TOKENS,
        "graph": {**graph, "logits": "every position"},
        "kv": kv,
    }


def _summary(done: ExportResult, folder: Path) -> dict[str, Any]:
    return {
        "checks": [check.to_json() for check in done.checks],
        "notes": done.notes,
        "sizes": _sizes(folder),
    }


def _sizes(folder: Path) -> dict[str, int]:
    return {file.name: file.stat().st_size for file in sorted(folder.iterdir()) if ".onnx" in file.name}
