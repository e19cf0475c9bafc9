"""ROC, precision-recall and their intervals by document: plain statistics of scores and labels.

Runs of one document are alike, so intervals draw documents with replacement, never runs. An area is NaN
where one of the two classes is missing; a draw that lacks one is drawn again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Interval:
    """A figure and its 95 % interval; NaN where it cannot be told."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, float | None]:
        told = {"value": self.value, "low": self.low, "high": self.high}
        return {name: v if math.isfinite(v) else None for name, v in told.items()}


def auroc(scores: Floats, bad: Bools) -> float:
    """Probability that a bad run scores above a good one, ties counting half (Mann and Whitney)."""
    n_bad, n_good = int(bad.sum()), int((~bad).sum())
    if not n_bad or not n_good:
        return math.nan
    _, place, times = np.unique(scores, return_inverse=True, return_counts=True)
    rank = (np.cumsum(times) - (times - 1) / 2.0)[place]  # the mean rank of equals
    return float((rank[bad].sum() - n_bad * (n_bad + 1) / 2.0) / (n_bad * n_good))


@dataclass(frozen=True)
class Curve:
    """One point for each threshold, from the highest down; a run is stopped when its score is above it."""

    thresholds: Floats
    caught: Floats  # share of the bad runs that are stopped
    false_stops: Floats  # share of the good runs that are stopped
    precision: Floats  # share of the stopped runs that are bad; NaN where none is stopped


def curve(scores: Floats, bad: Bools) -> Curve:
    """ROC and precision over every threshold that tells two runs apart, ends included."""
    values = np.unique(scores)[::-1]
    thresholds = np.concatenate([[math.inf], np.nextafter(values, -math.inf)])
    stopped = scores[None, :] > thresholds[:, None]
    true_stops, wrong_stops = stopped[:, bad].sum(axis=1), stopped[:, ~bad].sum(axis=1)
    with np.errstate(invalid="ignore"):
        return Curve(
            thresholds,
            true_stops / bad.sum() if bad.any() else np.full(len(thresholds), math.nan),
            wrong_stops / (~bad).sum() if (~bad).any() else np.full(len(thresholds), math.nan),
            true_stops / (true_stops + wrong_stops),
        )


def average_precision(scores: Floats, bad: Bools) -> float:
    """Area under precision-recall as the sum of precision times the step in recall."""
    if not bad.any():
        return math.nan
    found = curve(scores, bad)
    steps = np.diff(found.caught, prepend=0.0)
    return float(np.sum(np.where(steps > 0, steps * found.precision, 0.0)))


def by_document(
    statistic: Callable[[NDArray[np.intp]], float], documents: Sequence[str], *, draws: int, seed: int = 0
) -> Interval:
    """`statistic(rows)` over all rows, and its 95 % percentile interval with documents drawn with
    replacement.
    """
    rows = np.arange(len(documents))
    value = statistic(rows)
    names, place = np.unique(np.asarray(documents, dtype=object).astype(str), return_inverse=True)
    groups = [rows[place == i] for i in range(len(names))]
    if len(groups) < 2 or not math.isfinite(value):
        return Interval(value, math.nan, math.nan)
    rng = np.random.default_rng(seed)
    drawn: list[float] = []
    for _ in range(4 * draws):  # some draws hold one class only
        picked = np.concatenate([groups[i] for i in rng.integers(0, len(groups), len(groups))])
        figure = statistic(picked)
        if math.isfinite(figure):
            drawn.append(figure)
        if len(drawn) == draws:
            break
    if len(drawn) < draws // 2:
        return Interval(value, math.nan, math.nan)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(value, float(low), float(high))
