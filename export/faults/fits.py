"""Faults with a figure in them that no list holds: the figure is searched for.

A family is a fault with one free number (a factor, an epsilon, a cap). A coarse grid finds the families that
come nearest to what the graph computes, then the best ones are refined. Used where no plain hypothesis
explains a layer.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from seatrial.export.faults import changes
from seatrial.export.faults.hypotheses import Hypothesis
from seatrial.export.faults.modules import LayerModules
from seatrial.export.faults.norm_hypotheses import EPSILON_NAMES
from seatrial.export.faults.probe import AttentionChange, Seen

_REFINED = 3  # families that are looked at closely
_ROUNDS = 40  # of golden section: the width shrinks below a rounding error
_GOLDEN = (5**0.5 - 1) / 2
_EPSILONS = tuple(10.0**power for power in range(-12, 1))
_FACTORS = tuple(2.0 ** (step / 2) for step in range(-10, 11) if step)


@dataclass(frozen=True)
class Family:
    """A fault with one free, positive number; `grid` is ascending."""

    make: Callable[[float], Hypothesis]
    grid: tuple[float, ...]


def families(parts: LayerModules, seen: Seen | None) -> Iterator[Family]:
    """Every fault with a free number that the layer can have."""
    if seen is not None:
        yield Family(_attention_scale, _FACTORS)
        if seen.softcap:
            yield Family(partial(_cap, seen.softcap), tuple(seen.softcap * factor for factor in _FACTORS))
    for name in [*parts.linears(), *parts.norms]:
        yield Family(partial(_result_scale, parts, name), _FACTORS)
        if getattr(parts.get(name), "bias", None) is not None:
            yield Family(partial(_bias_scale, parts, name), _FACTORS)
    for name in parts.norms:
        for which in EPSILON_NAMES:
            if isinstance(getattr(parts.get(name), which, None), float):
                yield Family(
                    partial(_epsilon, parts, name, which), tuple(10.0**power for power in range(-12, 1))
                )


def _attention_scale(factor: float) -> Hypothesis:
    detail = f"scores are scaled {factor:.4g} times as much"
    return Hypothesis(
        "attention scale wrong", "attention", detail, attention=AttentionChange(scale_factor=factor)
    )


def _cap(own: float, value: float) -> Hypothesis:
    detail = f"scores are capped at {value:.4g} instead of {own:g}"
    return Hypothesis("soft cap wrong", "attention", detail, attention=AttentionChange(softcap=value))


def _result_scale(parts: LayerModules, name: str, factor: float) -> Hypothesis:
    change = changes.result(parts.get(name), partial(operator.mul, factor))
    return Hypothesis("scale wrong", name, f"its result is {factor:.4g} times what it should be", change)


def _bias_scale(parts: LayerModules, name: str, factor: float) -> Hypothesis:
    module = parts.get(name)
    change = changes.parameter(module, "bias", module.bias.detach() * factor)
    return Hypothesis("scale wrong", name, f"its bias is {factor:.4g} times what it should be", change)


def _epsilon(parts: LayerModules, name: str, which: str, value: float) -> Hypothesis:
    detail = f"epsilon is {value:.3g} instead of {getattr(parts.get(name), which):g}"
    return Hypothesis("epsilon wrong", name, detail, changes.attribute(parts.get(name), which, value))


def best_fit(found: Iterator[Family], left: Callable[[Hypothesis], float]) -> tuple[float, Hypothesis] | None:
    """What is left with the best family at its best figure, and that fault; None without families.

    `left(hypothesis)` is what remains unexplained.
    """
    coarse = []
    for family in found:
        values = [left(family.make(value)) for value in family.grid]
        coarse.append((min(values), int(np.argmin(values)), family))
    coarse.sort(key=lambda entry: entry[0])
    fitted = [_refined(family, at, left) for _, at, family in coarse[:_REFINED]]
    return min(fitted, key=lambda entry: entry[0]) if fitted else None


def _refined(family: Family, at: int, left: Callable[[Hypothesis], float]) -> tuple[float, Hypothesis]:
    """Golden section over the logarithm of the figure, between the neighbours of the best grid point."""
    low = np.log(family.grid[max(0, at - 1)])
    high = np.log(family.grid[min(len(family.grid) - 1, at + 1)])
    inner = [high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)]
    values = [left(family.make(float(np.exp(point)))) for point in inner]
    for _ in range(_ROUNDS):
        if values[0] < values[1]:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - _GOLDEN * (high - low)
            values[0] = left(family.make(float(np.exp(inner[0]))))
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + _GOLDEN * (high - low)
            values[1] = left(family.make(float(np.exp(inner[1]))))
    best = float(np.exp(inner[int(np.argmin(values))]))
    return min(values), family.make(best)
