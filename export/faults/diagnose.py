"""From "the graph differs" to "this is what is wrong with it, here": every layer judged alone, then
explained.

Each torch layer is run on what the graph's layer was given. Where the results differ, changes to the torch
layer are tried until one of them makes it compute what the graph does; that change is the fault's name. A
difference that no change explains is still reported, with its layer and the part that differs first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from seatrial.export.anatomy import Anatomy
from seatrial.export.faults.embedding import embedding_faults
from seatrial.export.faults.fault import Fault
from seatrial.export.faults.fits import best_fit, families
from seatrial.export.faults.forced import ForcedModel, LayerResult
from seatrial.export.faults.head import head_faults
from seatrial.export.faults.hidden import NormInput, hidden_faults
from seatrial.export.faults.hypotheses import Hypothesis, hypotheses, other_layers
from seatrial.export.faults.modules import LayerModules, modules_of
from seatrial.export.faults.rotary import rotary_hypotheses
from seatrial.export.other_kernels import OtherKernels
from seatrial.export.parity import FLOORS, RELATIVE_FLOOR
from seatrial.export.runner import GraphRunner, Ran

# A single layer from the same input: its own rounding only, so the promise of fp32 is taken tighter than
# end to end.
_EXPLAINED = 1.0


@dataclass
class Wanted:
    """What the graph's layer gave, and per part how far it may be from torch (a number per part)."""

    graph: LayerResult
    limits: dict[str, np.ndarray]

    def misfit(self, other: LayerResult) -> dict[str, float]:
        """Per part, the largest distance as a multiple of what is allowed."""
        found = {}
        for (name, mine), (_, theirs) in zip(self.graph.parts(), other.parts(), strict=True):
            if mine is not None and theirs is not None:
                found[name] = _misfit(mine, theirs, self.limits[name])
        return found


@dataclass
class Diagnosis:
    """Faults in order of layers, per layer the misfit of each part, and how many norm inputs were judged."""

    faults: list[Fault]
    misfits: dict[int, dict[str, float]]
    norms_judged: int
    norms: int


def diagnose(
    model: Any,
    layer_count: int,
    runner: GraphRunner,
    anatomy: Anatomy,
    ids: np.ndarray,
    norms: list[NormInput],
) -> Diagnosis:
    """What is wrong with the graph on `ids` (1, T).

    The runner must tap the embedding and every join of `anatomy`, and the inputs of `norms`.
    """
    ran = runner.run(ids)
    faults: list[Fault] = []
    misfits: dict[int, dict[str, float]] = {}
    hiddens: list[np.ndarray] = []
    with ForcedModel(model, layer_count, ids) as forced:
        faults += embedding_faults(forced, ran.taps[anatomy.embedding])
        hidden = ran.taps[anatomy.embedding].reshape(forced.first_hidden.shape)
        for number in range(layer_count):
            hiddens.append(hidden)
            wanted = _wanted(forced, number, hidden, ran, anatomy)
            misfits[number] = wanted.misfit(forced.run_layer(number, hidden))
            if any(value > _EXPLAINED for value in misfits[number].values()):
                faults.append(_explain(forced, number, hidden, wanted, misfits[number]))
            hidden = wanted.graph.out
        faults += head_faults(forced, hidden, ran.logits)
        scales, judged, total = hidden_faults(forced, [*hiddens, hidden], norms, ran.taps)
    return Diagnosis(_merged(faults, scales), misfits, judged, total)


def _merged(faults: list[Fault], scales: list[Fault]) -> list[Fault]:
    """A scale in front of a norm shows faintly as another epsilon: then what was seen at the norm counts."""

    def layer(fault: Fault) -> str:
        return fault.place.split(",")[0]

    hidden = {layer(fault) for fault in scales}
    kept = [f for f in faults if not (layer(f) in hidden and f.kind in ("epsilon wrong", "unexplained"))]
    named = {layer(fault) for fault in kept}
    return kept + [fault for fault in scales if layer(fault) not in named]


def _wanted(forced: ForcedModel, number: int, hidden: np.ndarray, ran: Ran, anatomy: Anatomy) -> Wanted:
    """The graph's side of one layer, with limits from other kernels on the same input."""
    joins = anatomy.layers[number].joins
    graph = LayerResult(
        key=ran.present.get(f"present.{number}.key"),
        value=ran.present.get(f"present.{number}.value"),
        mid=ran.taps[joins[0]].reshape(hidden.shape) if len(joins) == 2 else None,
        out=ran.taps[joins[-1]].reshape(hidden.shape),
    )
    right = forced.run_layer(number, hidden)
    with OtherKernels(3 / 7):
        other = forced.run_layer(number, hidden)
    limits = {}
    for (name, a), (_, b) in zip(right.parts(), other.parts(), strict=True):
        if a is not None and b is not None:
            # A layer's rounding is that of its largest inner values: the stream's size counts for every part.
            size = max(float(np.abs(a).max()), float(np.abs(hidden).max()) if name in ("mid", "out") else 0.0)
            limits[name] = np.asarray(FLOORS * max(float(np.abs(a - b).max()), RELATIVE_FLOOR * size))
    return Wanted(graph, limits)


def _misfit(found: np.ndarray, wanted: np.ndarray, limit: np.ndarray) -> float:
    if found.size != wanted.size:
        return float("inf")
    gap = np.abs(found.reshape(wanted.shape) - wanted).max()
    return float(gap / limit) if np.isfinite(gap) else float("inf")


def _explain(
    forced: ForcedModel, number: int, hidden: np.ndarray, wanted: Wanted, misfit: dict[str, float]
) -> Fault:
    """The hypothesis that leaves least, if it leaves much less than there was."""
    parts = modules_of(forced, number, hidden)
    first = next(name for name, value in misfit.items() if value > _EXPLAINED)
    best: tuple[float, Hypothesis] | None = None
    for hypothesis in _candidates(forced, number, hidden, wanted, parts):
        left = _left(forced, number, hidden, wanted, hypothesis)
        if best is None or left < best[0] * 0.7:
            best = (left, hypothesis)
        if left <= _EXPLAINED / 4:
            break
    if best is None or best[0] > _EXPLAINED:
        seen = forced.seen_in(number, hidden)
        fitted = best_fit(families(parts, seen), partial(_left, forced, number, hidden, wanted))
        if fitted is not None and (best is None or fitted[0] < best[0] * 0.7):
            best = fitted
    before = max(misfit.values())
    if best is not None and (best[0] <= _EXPLAINED or best[0] < before * 0.05):
        left, hypothesis = best
        place = f"layer {number}" + ("" if hypothesis.place == "layer" else f", {hypothesis.place}")
        return Fault(hypothesis.kind, place, hypothesis.detail, round(left, 4))
    where = {"key": "keys", "value": "values", "mid": "attention", "out": "feed-forward part"}[first]
    if first == "out" and wanted.graph.mid is None:
        where = "attention or feed-forward part"
    detail = f"differs {before:.3g} times the limit, first in its {where}; nothing that was tried explains it"
    return Fault("unexplained", f"layer {number}, {where}", detail, None if best is None else best[0])


def _candidates(
    forced: ForcedModel, number: int, hidden: np.ndarray, wanted: Wanted, parts: LayerModules
) -> Iterator[Hypothesis]:
    """One at a time: each may hold a changed copy of a matrix."""
    seen = forced.seen_in(number, hidden)
    multipliers = {
        name: value
        for name, value in forced.model.config.to_dict().items()
        if isinstance(value, float) and "multiplier" in name
    }
    if seen is not None and wanted.graph.key is not None:
        bare = forced.seen_in(number, hidden, no_rotary=True)
        if bare is not None and wanted.graph.key.shape == tuple(bare.key.shape):
            yield from rotary_hypotheses(bare.key.numpy(), wanted.graph.key, seen)
    yield from hypotheses(parts, seen, multipliers, (wanted.graph.key, wanted.graph.value))
    yield from other_layers(forced.layers, number)


def _left(
    forced: ForcedModel, number: int, hidden: np.ndarray, wanted: Wanted, hypothesis: Hypothesis
) -> float:
    """What remains unexplained of the layer when the hypothesis is made true in torch."""
    if hypothesis.identity:
        right = forced.run_layer(number, hidden)
        return max(wanted.misfit(LayerResult(right.key, right.value, None, hidden)).values())
    with hypothesis.change:
        result = forced.run_layer(number, hidden, hypothesis.attention, hypothesis.no_rotary)
    return max(wanted.misfit(result).values())
