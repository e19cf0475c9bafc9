"""The one place where an export is put together: load, trace, rewrite, write, compare with torch.

A bundle appears at its final name only when every check passed; nothing is left behind otherwise. It knows
the order of the steps and none of their insides.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import onnx_ir as ir

from seatrial.errors import UserError
from seatrial.export.anatomy import find_anatomy
from seatrial.export.attention import install
from seatrial.export.bundle import DATA, MODEL, write_info, writing_bundle
from seatrial.export.embedded import Progress
from seatrial.export.files import refuse_overlap, require_space
from seatrial.export.graph_file import read_graph_file
from seatrial.export.load import Loaded, load_torch
from seatrial.export.parity import Case, Check, Reference, compare, make_cases
from seatrial.export.quiet import quiet
from seatrial.export.reference import references
from seatrial.export.rewrite import Applied, rewrite_graph
from seatrial.export.runner import GraphRunner
from seatrial.export.source import Source
from seatrial.export.texts import write_texts
from seatrial.export.trace import EXAMPLE_TOKENS, trace

Exporter = Literal["auto", "attention", "optimum"]


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
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.work-", dir=out.parent) as work:
        say(f"loading {source.name}", None)
        loaded = load_torch(source, Path(work), allow_pickle=allow_pickle)
        weight_bytes = sum(p.numel() for p in loaded.model.parameters()) * 4
        require_space(out.parent, int(weight_bytes * 1.05) + (64 << 20))
        cases = make_cases(
            loaded.config.get_text_config().vocab_size, _window(loaded), loaded.context, EXAMPLE_TOKENS
        )
        say("running torch for reference", 0.1)
        wanted = references(loaded.model, loaded.layers, cases)
        return _write(source, loaded, out, cases, wanted, say)


def _write(
    source: Source,
    loaded: Loaded,
    out: Path,
    cases: Sequence[Case],
    wanted: Sequence[Reference],
    say: Progress,
) -> ExportResult:
    """Trace, rewrite, save and check inside the writing block."""
    checks: list[Check] = []
    notes: list[str] = []
    info: dict[str, Any] = {}
    try:
        with writing_bundle(out, sources=[source.path]) as folder:
            say("tracing the model", 0.2)
            graph = trace_loaded(loaded)
            say("fusing and rewriting", 0.7)
            with quiet():
                applied = rewrite_graph(graph, loaded.context)
            notes += [*_rewrite_notes(applied), *write_texts(source, loaded, folder)]
            say("writing weights", 0.8)
            save_graph(graph, folder)
            info = _info(source, loaded, applied)
            loaded.model = None
            del graph
            gc.collect()
            say("comparing with torch", 0.9)
            checks += check_graph(folder / MODEL, cases, wanted)
            if any(check.verdict == "fail" for check in checks):
                raise _ParityMiss
            info |= {"checks": [check.to_json() for check in checks], "notes": notes, "sizes": _sizes(folder)}
            write_info(folder, info)
    except _ParityMiss:
        return ExportResult(None, checks, notes, info)
    return ExportResult(out, checks, notes, info)


def trace_loaded(loaded: Loaded) -> ir.Model:
    """The graph of a loaded model, through the swapped attention. Raises UserError when it cannot be taken."""
    from torch.onnx.errors import OnnxExporterError

    name = install()
    try:
        with quiet():
            loaded.model.set_attn_implementation(name)
            return trace(loaded.model, loaded.layers, loaded.kv_heads, loaded.head_dim)
    except (OnnxExporterError, ValueError, KeyError, NotImplementedError) as error:
        raise UserError(
            f"{type(loaded.model).__name__} does not go through transformers' attention interface "
            f"({_cause(error)}); try --exporter optimum"
        ) from error
    finally:
        loaded.model.set_attn_implementation("eager")


def _cause(error: BaseException) -> str:
    """The innermost reason, in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:160] if lines else 'no reason given'}"


def save_graph(graph: ir.Model, folder: Path) -> None:
    """`model.onnx` and `model.onnx.data`, tensor by tensor."""
    graph.producer_name, graph.producer_version = "seatrial", version("seatrial")
    ir.save(graph, folder / MODEL, external_data=DATA, size_threshold_bytes=1024)


def check_graph(model: Path, cases: Sequence[Case], wanted: Sequence[Reference]) -> list[Check]:
    """Parity of a written graph with torch's results."""
    graph = read_graph_file(model)
    residuals = find_anatomy(graph.proto).residuals()
    return compare(GraphRunner(graph, residuals), cases, wanted)


def _window(loaded: Loaded) -> int | None:
    text = loaded.config.get_text_config()
    return getattr(text, "sliding_window", None) if getattr(text, "use_sliding_window", True) else None


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


def _info(source: Source, loaded: Loaded, applied: Applied) -> dict[str, Any]:
    names = ("seatrial", "torch", "transformers", "onnx", "onnxruntime", "onnxscript", "onnx-ir")
    return {
        "kind": "export",
        "source": {"kind": source.kind, "name": source.name, "sha256": source.sha256},
        "versions": {name: version(name) for name in names},
        "exporter": "attention",
        "example_tokens": EXAMPLE_TOKENS,
        "graph": {
            "nodes": applied.nodes_after,
            "attention_nodes": applied.attention_nodes,
            "rotary_absorbed": applied.rotary_absorbed,
            "projections_packed": applied.projections_packed,
            "logits": "every position",
        },
        "kv": {
            "layers": loaded.layers,
            "kv_heads": loaded.kv_heads,
            "head_dim": loaded.head_dim,
            "dtype": "float32",
        },
    }


def _sizes(folder: Path) -> dict[str, int]:
    return {name: (folder / name).stat().st_size for name in (MODEL, DATA) if (folder / name).is_file()}
