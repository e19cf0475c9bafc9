"""The two doors to a graph: the swapped attention, traced and rewritten, and optimum's exporter.

The first door can be taken in steps: with every rewrite, with the library's fusions only, or as traced. It
writes a graph with its data and the small files; it compares nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx_ir as ir

from seatrial.errors import UserError
from seatrial.export.attention import install
from seatrial.export.bundle import DATA, MODEL
from seatrial.export.embedded import Progress
from seatrial.export.graph_file import count_nodes
from seatrial.export.load import Loaded, reload_torch
from seatrial.export.quiet import quiet
from seatrial.export.release import page_out
from seatrial.export.rewrite import Applied, rewrite_graph, tidy_graph
from seatrial.export.second_door import LOST, export_decoder
from seatrial.export.source import Source
from seatrial.export.texts import write_texts
from seatrial.export.trace import trace


@dataclass(frozen=True)
class Step:
    """How far a traced graph is rewritten, and what that is called."""

    name: str
    rewrite: Callable[[ir.Model, int], Applied]


def _fused_only(graph: ir.Model, context: int) -> Applied:
    return rewrite_graph(graph, context, absorb=False, pack=False)


# From the fastest graph to the one that nothing was done to: the first that computes what torch does is kept.
STEPS: tuple[Step, ...] = (
    Step("rewritten", rewrite_graph),
    Step("fused only", _fused_only),
    Step("as traced", lambda graph, _context: tidy_graph(graph)),
)


def step_called(name: str) -> Step:
    """One of STEPS."""
    return next(step for step in STEPS if step.name == name)


@dataclass(frozen=True)
class Made:
    """What came through a door: its name, figures of the graph for seatrial.json, notes for people."""

    exporter: str
    graph: dict[str, int]
    notes: list[str] = field(default_factory=list)


class NotThroughInterface(UserError):
    """The model's attention cannot be swapped; another exporter may still take it."""


def first_door(source: Source, loaded: Loaded, folder: Path, step: Step, say: Progress) -> Made:
    """Trace through the swapped attention, rewrite as far as `step` goes, save. Raises
    NotThroughInterface.
    """
    say("tracing the model", 0.2)
    graph = trace_loaded(loaded)
    say("fusing and rewriting", 0.7)
    with quiet():
        applied = step.rewrite(graph, loaded.context)
    notes = [*_rewrite_notes(applied), *write_texts(source, loaded, folder)]
    say("writing weights", 0.8)
    save_graph(graph, folder, loaded.model)
    figures = {
        "nodes": applied.nodes_after,
        "attention_nodes": applied.attention_nodes,
        "rotary_absorbed": applied.rotary_absorbed,
        "projections_packed": applied.projections_packed,
    }
    return Made("attention", figures, notes)


def first_door_apart(source: Source, loaded: Loaded, folder: Path, step: str, *, say: Progress) -> Made:
    """The first door in a process of its own, which reads the weights itself; `step` is the name of one of
    STEPS.
    """
    reload_torch(loaded)
    return first_door(source, loaded, folder, step_called(step), say)


def second_door(source: Source, loaded: Loaded, folder: Path, say: Progress) -> Made:
    """optimum's graph. Raises UserError when optimum cannot either."""
    say("exporting with optimum", 0.2)
    export_decoder(loaded.folder, folder)
    notes = [LOST, *write_texts(source, loaded, folder)]
    return Made("optimum", {"nodes": count_nodes(folder / MODEL)}, notes)


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
    for name in (MODEL, DATA):
        (folder / name).unlink(missing_ok=True)
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


def kept_note(step: Step, misses: Sequence[str]) -> list[str]:
    """The line that says why a slower graph was kept; none when nothing missed."""
    if not misses:
        return []
    return [f"{'; '.join(misses)}: the graph is kept {step.name}, so decoding is slower than it could be"]
