"""The faults that may explain why a graph's layer differs: each a change to the torch layer, with a kind
and a place.

Ordered from the likely to the odd; the one that leaves least unexplained wins, the earlier one on a tie.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import permutations
from typing import Any

import torch

from seatrial.export.faults import changes
from seatrial.export.faults.modules import LayerModules, matrix
from seatrial.export.faults.probe import AttentionChange, Seen

SCALES = (0.5, 0.25, 2.0, 4.0, 0.125, 8.0, 3.0, 1 / 3)
_EPSILONS = (1e-5, 1e-6, 1e-8, 1e-12, 1e-3, 1e-2, 1e-7, 0.0)


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
    parts: LayerModules, seen: Seen | None, multipliers: tuple[float, ...]
) -> Iterator[Hypothesis]:
    """Every hypothesis for one layer. `multipliers` are factors that the config itself speaks of."""
    yield Hypothesis("layer skipped", "layer", "the layer's input comes out unchanged", identity=True)
    yield from _biases(parts)
    yield from _norms(parts)
    yield from _activations(parts)
    yield from _matrices(parts)
    if seen is not None:
        yield from _attention(seen)
    yield from _scales(parts, multipliers)


def _biases(parts: LayerModules) -> Iterator[Hypothesis]:
    owners = [name for name in parts.linears() if getattr(parts.get(name), "bias", None) is not None]
    for name in owners:
        module = parts.get(name)
        bias = module.bias.detach()
        yield Hypothesis(
            "bias dropped",
            name,
            "its bias is missing",
            changes.parameter(module, "bias", torch.zeros_like(bias)),
        )
        yield from _bias_parts(name, module, bias)
    for name in owners:
        for other in owners:
            if other != name:
                yield from _bias_moved(parts, name, other)


def _bias_parts(name: str, module: Any, bias: torch.Tensor) -> Iterator[Hypothesis]:
    """Part of a bias is missing: a third of a packed one, or its end."""
    length = len(bias)
    for share in (1 / 2, 1 / 4, 3 / 4, 1 / 8, 7 / 8):
        cut = bias.clone()
        cut[int(length * share) :] = 0
        detail = f"only the first {int(length * share)} of {length} entries are there"
        yield Hypothesis("bias truncated", name, detail, changes.parameter(module, "bias", cut))
    if length % 3 == 0:
        for third in range(3):
            cut = bias.clone()
            cut[third * length // 3 : (third + 1) * length // 3] = 0
            detail = f"the {('first', 'second', 'last')[third]} third of its bias is missing"
            yield Hypothesis("bias dropped", name, detail, changes.parameter(module, "bias", cut))


def _bias_moved(parts: LayerModules, name: str, other: str) -> Iterator[Hypothesis]:
    """The bias of `name` ended on `other`: added to the one there, or in its place."""
    module, target = parts.get(name), parts.get(other)
    moved = changes.fit_length(module.bias.detach(), len(target.bias))
    gone = changes.parameter(module, "bias", torch.zeros_like(module.bias))
    detail = f"its bias is added to {other} instead"
    change = changes.both(gone, changes.parameter(target, "bias", target.bias.detach() + moved))
    yield Hypothesis("bias moved", name, detail, change)
    swapped = changes.fit_length(target.bias.detach(), len(module.bias))
    if name < other:
        change = changes.both(
            changes.parameter(module, "bias", swapped), changes.parameter(target, "bias", moved)
        )
        yield Hypothesis("bias moved", name, f"its bias and that of {other} are exchanged", change)


def _norms(parts: LayerModules) -> Iterator[Hypothesis]:
    for name in parts.norms:
        module = parts.get(name)
        for attribute in ("eps", "variance_epsilon", "epsilon"):
            if isinstance(getattr(module, attribute, None), float):
                for value in _EPSILONS:
                    if value != getattr(module, attribute):
                        detail = f"epsilon is {value:g} instead of {getattr(module, attribute):g}"
                        yield Hypothesis(
                            "epsilon wrong", name, detail, changes.attribute(module, attribute, value)
                        )
        for which, neutral in (("weight", 1.0), ("bias", 0.0), ("weight", 0.0)):
            owned = getattr(module, which, None)
            if owned is not None:
                detail = f"its {which} is taken as {neutral:g}"
                change = changes.parameter(module, which, torch.full_like(owned, neutral))
                yield Hypothesis("norm wrong", name, detail, change)


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
        for which in ("bias",):
            if getattr(module, which, None) is not None:
                both = changes.both(
                    changes.weight(module, torch.zeros_like(matrix(module))),
                    changes.parameter(module, which, torch.zeros_like(module.bias)),
                )
                yield Hypothesis("projection missing", name, "nothing comes out of it", both)
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


def _attention(seen: Seen) -> Iterator[Hypothesis]:
    head_dim, heads, kv = seen.query.shape[-1], seen.query.shape[1], seen.key.shape[1]
    if seen.window:
        for value in (0, seen.window + 1, seen.window - 1, 2 * seen.window, seen.window // 2):
            detail = f"{value or 'no'} window instead of {seen.window}"
            yield Hypothesis("window wrong", "attention", detail, attention=AttentionChange(window=value))
    else:
        for value in (4, 8, 16):
            yield Hypothesis(
                "window wrong", "attention", f"a window of {value}", attention=AttentionChange(window=value)
            )
    if seen.softcap:
        detail = f"scores are not capped at {seen.softcap:g}"
        yield Hypothesis("soft cap dropped", "attention", detail, attention=AttentionChange(softcap=0.0))
    names = {"1/sqrt(head_dim)": head_dim**-0.5, "1": 1.0, "1/head_dim": 1 / head_dim,
             "1/sqrt(heads * head_dim)": (heads * head_dim) ** -0.5}  # fmt: skip
    for label, value in names.items():
        if abs(value / seen.scaling - 1) > 1e-3:
            detail = f"scores are scaled by {label} = {value:.4g} instead of {seen.scaling:.4g}"
            yield Hypothesis(
                "attention scale wrong", "attention", detail, attention=AttentionChange(scale=value)
            )
    for factor in (*SCALES, head_dim**0.5, 2**0.5, 2**-0.5, 1.1, 0.9, 1.5):
        detail = f"scores are scaled {factor:.4g} times as much"
        yield Hypothesis(
            "attention scale wrong", "attention", detail, attention=AttentionChange(scale_factor=factor)
        )
    if kv != heads:
        for label in ("strided", "first"):
            detail = f"query heads share KV heads the wrong way ({label})"
            change = AttentionChange(grouping=label)  # type: ignore[arg-type]
            yield Hypothesis("head grouping wrong", "attention", detail, attention=change)
    yield Hypothesis(
        "not causal", "attention", "it sees later tokens", attention=AttentionChange(causal=False)
    )


def _scales(parts: LayerModules, multipliers: tuple[float, ...]) -> Iterator[Hypothesis]:
    found = [*SCALES, *(1 / m for m in multipliers if m), *multipliers]
    for name in [*parts.linears(), *parts.norms]:
        for factor in found:
            if abs(factor - 1) < 1e-6:
                continue
            change = changes.result(parts.get(name), lambda x, f=factor: x * f)  # type: ignore[misc]
            yield Hypothesis(
                "scale wrong", name, f"its result is {factor:.4g} times what it should be", change
            )
