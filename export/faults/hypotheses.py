"""The faults that may explain why a graph's layer differs: each a change to the torch layer, with a kind
and a place.

Ordered from the likely to the odd; the one that leaves least unexplained wins, the earlier one on a tie.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import permutations
from typing import Any

import numpy as np
import torch

from seatrial.export.faults import changes
from seatrial.export.faults.attention_hypotheses import attention_changes
from seatrial.export.faults.bias_hypotheses import bias_changes
from seatrial.export.faults.modules import LayerModules, matrix
from seatrial.export.faults.norm_hypotheses import norm_changes
from seatrial.export.faults.probe import AttentionChange, Seen

SCALES = (0.5, 0.25, 2.0, 4.0, 0.125, 8.0, 3.0, 1 / 3)


@dataclass
class Hypothesis:
    """A change and its name. `part` is the first thing that it can touch: key, value, mid or out."""

    kind: str
    place: str
    detail: str
    change: Any = field(default_factory=nullcontext)
    attention: AttentionChange | None = None
    no_rotary: bool = False
    identity: bool = False  # the layer does nothing at all


def hypotheses(
    parts: LayerModules,
    seen: Seen | None,
    multipliers: dict[str, float],
    cache: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
) -> Iterator[Hypothesis]:
    """Every hypothesis for one layer. `multipliers` are factors that the config itself speaks of, by name;
    `cache` the graph's keys and values.
    """
    yield Hypothesis("layer skipped", "layer", "the layer's input comes out unchanged", identity=True)
    for kind, place, detail, change in bias_changes(parts, seen):
        yield Hypothesis(kind, place, detail, change)
    for name in parts.norms:
        for kind, detail, change in norm_changes(parts.get(name)):
            yield Hypothesis(kind, name, detail, change)
    yield from _norms_exchanged(parts)
    yield from _activations(parts)
    yield from _matrices(parts)
    if seen is not None:
        for kind, detail, attention in attention_changes(seen, *cache, SCALES):
            yield Hypothesis(kind, "attention", detail, attention=attention)
    yield from _branches(parts, multipliers)
    yield from _scales(parts, multipliers)


def _norms_exchanged(parts: LayerModules) -> Iterator[Hypothesis]:
    """Two norms of a layer have each other's weights, or one has the other's too."""
    for a, b in permutations(parts.norms, 2):
        one, two = parts.get(a), parts.get(b)
        if getattr(one, "weight", None) is None or tuple(one.weight.shape) != tuple(two.weight.shape):
            continue
        yield Hypothesis("norm wrong", a, f"it has the weights of {b}", changes.weights_of(one, two))
        if a < b:
            change = changes.exchanged(one, two)
            yield Hypothesis("norm wrong", a, f"its weights and those of {b} are exchanged", change)


def other_layers(layers: Sequence[Any], number: int) -> Iterator[Hypothesis]:
    """The layer has the weights of another one."""
    shapes = {name: tuple(p.shape) for name, p in layers[number].named_parameters()}
    for other, layer in enumerate(layers):
        if other != number and {n: tuple(p.shape) for n, p in layer.named_parameters()} == shapes:
            change = changes.weights_of(layers[number], layer)
            yield Hypothesis("layers swapped", "layer", f"it has the weights of layer {other}", change)


def _activations(parts: LayerModules) -> Iterator[Hypothesis]:
    for name in parts.activations:
        module = parts.get(name)
        for label, function in changes.ACTIVATIONS.items():
            detail = f"{label} instead of {type(module).__name__}"
            yield Hypothesis("activation differs", name, detail, changes.forward(module, function))
        yield from _activation_moved(parts, name)


def _activation_moved(parts: LayerModules, name: str) -> Iterator[Hypothesis]:
    module = parts.get(name)
    original = module.forward

    def nothing(x: torch.Tensor) -> torch.Tensor:
        return x

    if parts.mlp:
        last = parts.get(parts.mlp[-1])
        change = changes.both(changes.forward(module, nothing), changes.given(last, original))
        yield Hypothesis("activation after the product", name, "applied to gate x up, not to gate", change)
    for linear in parts.mlp[:-1]:
        change = changes.both(changes.forward(module, nothing), changes.given(parts.get(linear), original))
        yield Hypothesis(
            "activation before the projection", linear, "applied to its input, not output", change
        )


def _matrices(parts: LayerModules) -> Iterator[Hypothesis]:
    for name in [*parts.output, *parts.mlp[-1:], *parts.before, *parts.mlp[:-1]]:
        module = parts.get(name)
        rows, columns = matrix(module).shape
        for label, start, stop in (("second", columns // 2, columns), ("first", 0, columns // 2)):
            detail = f"the {label} half of its input channels is missing"
            yield Hypothesis(
                "half of a sum missing", name, detail, changes.without_inputs(module, start, stop)
            )
            detail = f"the {label} half of its outputs is missing"
            yield Hypothesis("projection missing", name, detail, changes.without_outputs(module, rows, label))
        if rows == columns:
            flipped = changes.weight(module, matrix(module).detach().T)
            yield Hypothesis("weight transposed", name, "its square matrix is transposed", flipped)
        nothing = changes.result(module, lambda x: x * 0)
        yield Hypothesis("projection missing", name, "nothing comes out of it", nothing)
    yield from _swaps(parts)


def _swaps(parts: LayerModules) -> Iterator[Hypothesis]:
    for a, b in permutations([*parts.before, *parts.mlp], 2):
        one, two = parts.get(a), parts.get(b)
        if a < b and matrix(one).shape == matrix(two).shape:
            swap = [changes.weight(one, matrix(two).detach()), changes.weight(two, matrix(one).detach())]
            if getattr(one, "bias", None) is not None and getattr(two, "bias", None) is not None:
                with_bias = [
                    changes.parameter(one, "bias", two.bias.detach()),
                    changes.parameter(two, "bias", one.bias.detach()),
                ]
                yield Hypothesis(
                    "projections swapped", a, f"exchanged with {b}", changes.both(*swap, *with_bias)
                )
                swap = [changes.weight(one, matrix(two).detach()), changes.weight(two, matrix(one).detach())]
            yield Hypothesis("projections swapped", a, f"weights exchanged with {b}", changes.both(*swap))
    for name in parts.mlp[:-1]:
        module = parts.get(name)
        half = matrix(module).shape[0] // 2
        rolled = changes.weight(module, matrix(module).detach().roll(half, 0))
        yield Hypothesis("projections swapped", name, "its two halves (gate and up) are exchanged", rolled)


def _branches(parts: LayerModules, multipliers: dict[str, float]) -> Iterator[Hypothesis]:
    """The factor on what a branch adds to the residual stream is missing, in one branch or in both."""
    ends = [names[-1] for names in (parts.output, parts.mlp) if names]
    for name, factor in multipliers.items():
        if "residual" in name and factor not in (0.0, 1.0):
            detail = f"what it adds is not multiplied by {factor:g}"
            undone = {end: changes.result(parts.get(end), partial(operator.mul, 1 / factor)) for end in ends}
            for end, change in undone.items():
                yield Hypothesis("residual scale missing", end, detail, change)
            undone = {end: changes.result(parts.get(end), partial(operator.mul, 1 / factor)) for end in ends}
            change = changes.both(*undone.values())
            yield Hypothesis("residual scale missing", ends[0], f"{detail}, in both branches", change)


def _scales(parts: LayerModules, multipliers: dict[str, float]) -> Iterator[Hypothesis]:
    own = [value for value in multipliers.values() if value]
    for name in [*parts.linears(), *parts.norms]:
        for factor in (*SCALES, *(1 / value for value in own), *own):
            if abs(factor - 1) > 1e-6:
                change = changes.result(parts.get(name), partial(operator.mul, factor))
                yield Hypothesis(
                    "scale wrong", name, f"its result is {factor:.4g} times what it should be", change
                )
