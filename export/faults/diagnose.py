"""From "the graph differs" to "this is what is wrong with it, here": every layer judged alone, then
explained.

Each torch layer is run on what the graph's layer was given. Where the results differ, changes to the torch
layer are tried until one of them makes it compute what the graph does; that change is the fault's name. A
difference that no change explains is still reported, with its layer and the part that differs first.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from seatrial.export.anatomy import Anatomy
from seatrial.export.faults.fault import Fault
from seatrial.export.faults.forced import ForcedModel, LayerResult
from seatrial.export.faults.hidden import NormInput, hidden_faults
from seatrial.export.faults.hypotheses import SCALES, Hypothesis, hypotheses
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
        faults += _embedding(forced, ran.taps[anatomy.embedding])
        hidden = ran.taps[anatomy.embedding].reshape(forced.first_hidden.shape)
        for number in range(layer_count):
            hiddens.append(hidden)
            wanted = _wanted(forced, number, hidden, ran, anatomy)
            misfits[number] = wanted.misfit(forced.run_layer(number, hidden))
            if any(value > _EXPLAINED for value in misfits[number].values()):
                faults.append(_explain(forced, number, hidden, wanted, misfits[number]))
            hidden = wanted.graph.out
        faults += _head(forced, hidden, ran.logits)
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
    multipliers = tuple(
        float(value)
        for name, value in forced.model.config.to_dict().items()
        if isinstance(value, float) and "multiplier" in name
    )
    if seen is not None and wanted.graph.key is not None:
        bare = forced.seen_in(number, hidden, no_rotary=True)
        if bare is not None and wanted.graph.key.shape == tuple(bare.key.shape):
            yield from rotary_hypotheses(bare.key.numpy(), wanted.graph.key, seen)
    yield from hypotheses(parts, seen, multipliers)


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


def _embedding(forced: ForcedModel, graph: np.ndarray) -> list[Fault]:
    """What goes into the first layer: a factor, or something else altogether."""
    right = forced.first_hidden
    limit = np.asarray(FLOORS * RELATIVE_FLOOR * float(np.abs(right).max()))
    if (misfit := _misfit(graph, right, limit)) <= _EXPLAINED:
        return []
    graph = graph.reshape(right.shape) if graph.size == right.size else right * np.nan
    factor = float((graph * right).sum() / (right * right).sum())
    if np.isfinite(factor) and factor and _misfit(graph / factor, right, limit) <= 10:
        return [Fault("embedding scale missing", "embedding", f"{factor:.4g} times what it should be", 0.0)]
    if np.isfinite(graph).all():
        wrong = np.abs(graph - right).max(-1)[0] > limit
        first = int(np.flatnonzero(wrong)[0])
        detail = f"differs {misfit:.3g} times the limit, first at token {first}"
        return [Fault("embedding wrong", "embedding", detail)]
    return [Fault("not finite", "embedding", "values are not finite or have another shape")]


def _head(forced: ForcedModel, hidden: np.ndarray, logits: np.ndarray) -> list[Fault]:
    """Final norm and head on the graph's own last residual."""
    if not np.isfinite(hidden).all():
        return []
    right = forced.logits_from(hidden)
    with OtherKernels(3 / 7):
        floor = float(np.abs(forced.logits_from(hidden) - right).max())
    limit = np.asarray(FLOORS * max(floor, RELATIVE_FLOOR * float(np.abs(right).max())))
    if (misfit := _misfit(logits, right, limit)) <= _EXPLAINED:
        return []
    for kind, detail, change in _head_changes(forced):
        with change:
            left = _misfit(logits, forced.logits_from(hidden), limit)
        if left <= _EXPLAINED or left < misfit * 0.01:
            return [Fault(kind, "head", detail, round(left, 4))]
    return [
        Fault(
            "head wrong",
            "head",
            f"logits differ {misfit:.3g} times the limit from those of the last residual",
        )
    ]


def _head_changes(forced: ForcedModel) -> Sequence[tuple[str, str, Any]]:
    """Changes to what follows the last layer."""
    import torch

    from seatrial.export.faults import changes
    from seatrial.export.faults.modules import matrix

    model = forced.model
    found: list[tuple[str, str, Any]] = []
    head = model.get_output_embeddings()
    if getattr(head, "bias", None) is not None:
        zero = changes.parameter(head, "bias", torch.zeros_like(head.bias))
        found.append(("bias dropped", "its bias is missing", zero))
        for share in (1 / 2, 1 / 4, 3 / 4):
            cut = head.bias.detach().clone()
            cut[int(len(cut) * share) :] = 0
            found.append(
                ("bias truncated", f"{share:.0%} of its bias is there", changes.parameter(head, "bias", cut))
            )
    for name in ("final_logit_softcapping",):
        if getattr(model.config, name, None):
            detail = f"logits are not capped at {getattr(model.config, name):g}"
            found.append(("soft cap dropped", detail, changes.attribute(model.config, name, None)))
    for factor in SCALES:
        scaled = changes.result(head, partial(operator.mul, factor))
        found.append(
            ("scale wrong", f"logits are {factor:.4g} times what they should be before the cap", scaled)
        )
    if scaling := getattr(model.config, "logits_scaling", None):
        scaled = changes.result(head, partial(operator.mul, scaling))
        found.append(("scale wrong", f"logits are not divided by {scaling:g}", scaled))
    columns = matrix(head).shape[1]
    for label, start, stop in (("second", columns // 2, columns), ("first", 0, columns // 2)):
        change = changes.without_inputs(head, start, stop)
        found.append(("half of a sum missing", f"the {label} half of its input channels is missing", change))
    found += _final_norm_changes(forced)
    return found


def _final_norm_changes(forced: ForcedModel) -> list[tuple[str, str, Any]]:
    """The last norm module of the model outside its layers."""
    import torch

    from seatrial.export.faults import changes

    inside = {module for layer in forced.layers for module in layer.modules()}
    norms = [m for m in forced.model.modules() if "norm" in type(m).__name__.lower() and m not in inside]
    found: list[tuple[str, str, Any]] = []
    for module in norms[-1:]:
        for name in ("eps", "variance_epsilon"):
            if isinstance(getattr(module, name, None), float):
                for value in (1e-5, 1e-6, 1e-8, 1e-12, 1e-3, 1e-2):
                    detail = f"final norm: epsilon is {value:g} instead of {getattr(module, name):g}"
                    found.append(("epsilon wrong", detail, changes.attribute(module, name, value)))
        for which, neutral in (("weight", 1.0), ("bias", 0.0), ("weight", 0.0)):
            if getattr(module, which, None) is not None:
                change = changes.parameter(module, which, torch.full_like(getattr(module, which), neutral))
                found.append(("norm wrong", f"final norm: its {which} is taken as {neutral:g}", change))
    return found
