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

from seatrial.errors import UserError
from seatrial.export.apart import call_apart
from seatrial.export.bundle import MODEL, write_info, writing_bundle
from seatrial.export.doors import (
    STEPS,
    Made,
    NotThroughInterface,
    Step,
    first_door,
    first_door_apart,
    kept_note,
    second_door,
)
from seatrial.export.embedded import Progress
from seatrial.export.files import make_parent, refuse_overlap, require_space
from seatrial.export.graph_check import check_graph
from seatrial.export.limits import check_config, check_safetensors
from seatrial.export.load import Loaded, load_torch, reload_torch, weight_bytes
from seatrial.export.parity import EXAMPLE_TOKENS, Case, Check, Reference, make_cases, not_run, ratio
from seatrial.export.reference import references
from seatrial.export.release import page_out, trim_heap
from seatrial.export.second_door import export_other, is_decoder
from seatrial.export.source import Source

# Below this a process of its own costs more than the memory that it saves.
_APART_FROM_BYTES = 64 << 20
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
    steps: Sequence[Step] = STEPS,
) -> ExportResult:
    """Export `source` to a bundle at `out`. Raises UserError on bad input, returns `failed` on a parity
    miss.

    `steps` are the graphs to try, the fastest first: the first one that computes what torch does is kept.
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
        apart = weight_bytes(loaded) >= _APART_FROM_BYTES
        return _write(source, loaded, out, _Plan(cases, wanted, exporter, steps, apart, say))


@dataclass(frozen=True)
class _Plan:
    """What one export was asked for and is checked against."""

    cases: Sequence[Case]
    wanted: Sequence[Reference]
    exporter: Exporter
    steps: Sequence[Step]
    apart: bool  # large steps in processes of their own
    say: Progress


def _write(source: Source, loaded: Loaded, out: Path, plan: _Plan) -> ExportResult:
    """Make the graph, save and check it inside the writing block."""
    done = ExportResult(None, [], [], {})
    try:
        with writing_bundle(out, sources=[source.path]) as folder:
            made, checks = _make_and_check(source, loaded, folder, plan)
            done.notes.extend(made.notes)
            done.checks.extend([*checks, *not_run(loaded.window, loaded.context, loaded.rope_switch)])
            done.info.update(_info(source, loaded, made), **_summary(done, folder))
            if done.failed:
                raise _ParityMiss
            write_info(folder, done.info)
    except _ParityMiss:
        return done
    return replace(done, bundle=out)


def _make_and_check(source: Source, loaded: Loaded, folder: Path, plan: _Plan) -> tuple[Made, list[Check]]:
    """A graph by the door that was asked for, or by the one that opens, with its parity."""
    if plan.exporter == "optimum":
        return _checked(second_door(source, loaded, folder, plan.say), loaded, folder, plan)
    try:
        return _first_right_step(source, loaded, folder, plan)
    except NotThroughInterface as error:
        if plan.exporter == "attention":
            raise
        made = second_door(source, loaded, folder, plan.say)
        return _checked(replace(made, notes=[str(error), *made.notes]), loaded, folder, plan)


def _first_right_step(source: Source, loaded: Loaded, folder: Path, plan: _Plan) -> tuple[Made, list[Check]]:
    """The furthest rewritten graph that computes what torch does; it is said when that is not the first."""
    misses: list[str] = []
    for step in plan.steps:
        made = _take_first_door(source, loaded, folder, step, plan)
        try:
            made, checks = _checked(made, loaded, folder, plan)
        except UserError as error:  # onnxruntime refuses the graph
            checks = [Check("graph", "fail", None, None, str(error))]
        failed = [check for check in checks if check.verdict == "fail"]
        if not failed:
            return replace(made, notes=[*kept_note(step, misses), *made.notes]), checks
        misses.append(f"parity fails on the graph {step.name} ({_worst(failed)})")
    return made, checks


def _take_first_door(source: Source, loaded: Loaded, folder: Path, step: Step, plan: _Plan) -> Made:
    """In a process of its own where the model is large enough for its memory to matter."""
    if plan.apart and step in STEPS:
        _let_go(loaded)
        return call_apart(first_door_apart, source, loaded, folder, step.name, say=plan.say)
    if loaded.model is None:
        reload_torch(loaded)
    return first_door(source, loaded, folder, step, plan.say)


def _let_go(loaded: Loaded) -> None:
    """Torch's weights out of memory."""
    if loaded.model is not None:
        page_out(loaded.model)
        loaded.model = None
        trim_heap()


def _worst(failed: Sequence[Check]) -> str:
    """The check that misses its limit by most, in words."""
    worst = max(failed, key=ratio)
    if worst.figure is None:
        return f"{worst.name}: {worst.detail}"
    return f"{worst.name}: {worst.figure:.2e} where {worst.limit:.2e} is allowed"


def _checked(made: Made, loaded: Loaded, folder: Path, plan: _Plan) -> tuple[Made, list[Check]]:
    """Parity of what was just written, without torch's memory."""
    _let_go(loaded)
    arguments = folder / MODEL, plan.cases, plan.wanted
    if plan.apart:
        return made, call_apart(check_graph, *arguments, say=plan.say)
    return made, check_graph(*arguments, say=plan.say)


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


def _origin(source: Source, exporter: str) -> dict[str, Any]:
    names = ("seatrial", "torch", "transformers", "optimum", "onnx", "onnxruntime", "onnxscript", "onnx-ir")
    return {
        "kind": "export",
        "source": {"kind": source.kind, "name": source.name, "sha256": source.sha256},
        "versions": {name: version(name) for name in names},
        "exporter": exporter,
    }


def _info(source: Source, loaded: Loaded, made: Made) -> dict[str, Any]:
    kv = {
        "layers": loaded.layers,
        "kv_heads": loaded.kv_heads,
        "head_dim": loaded.head_dim,
        "dtype": "float32",
    }
    return {
        **_origin(source, made.exporter),
        "example_tokens": EXAMPLE_TOKENS,
        "graph": {**made.graph, "logits": "every position"},
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
