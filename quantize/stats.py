"""Statistics of paired measurements: intervals, tests, and what a sample is too small to show.

Documents are the independent things, not tokens: intervals come from resampling whole documents (Cameron,
Gelbach & Miller 2008), 2,000 draws. The resampling is done while documents stream past, with the exact
multinomial counts of an ordinary cluster bootstrap, so its memory does not depend on how many there are.
Nothing here knows about models, tokens or classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import UserError

DRAWS = 2000
LEVEL = 0.95
POWER = 0.8
_NORMAL = NormalDist()

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """A figure with the ends of its interval; the ends are NaN where the sample gives none."""

    value: float
    low: float
    high: float

    def to_json(self) -> dict[str, Any]:
        return {"value": self.value, "low": self.low, "high": self.high}


def wilson(successes: int, of: int, level: float = LEVEL) -> Interval:
    """Wilson's score interval of a rate (Wilson 1927); of nothing it is [0, 1] around NaN."""
    if not 0 <= successes <= of:
        raise UserError(f"a rate needs 0 <= successes <= of, got {successes} of {of}")
    if of == 0:
        return Interval(float("nan"), 0.0, 1.0)
    z = _NORMAL.inv_cdf(0.5 + level / 2)
    rate, share = successes / of, z * z / of
    centre = (rate + share / 2) / (1 + share)
    half = z * sqrt(rate * (1 - rate) / of + share / (4 * of)) / (1 + share)
    # Rounding must not push the ends past what the formula gives exactly at 0 and 1.
    low = 0.0 if successes == 0 else centre - half
    return Interval(rate, low, 1.0 if successes == of else centre + half)


def mcnemar(harms: int, repairs: int) -> float:
    """Exact two-sided p of McNemar's test: are the discordant pairs split evenly? 1 when there are none."""
    if harms < 0 or repairs < 0:
        raise UserError(f"counts of pairs cannot be negative, got {harms} and {repairs}")
    pairs = harms + repairs
    # By logarithms: 2**pairs overflows a float, and whole numbers of that size take seconds to add.
    counts = np.arange(min(harms, repairs) + 1)
    steps = np.log(pairs - counts[:-1]) - np.log(counts[1:])  # of log C(pairs, count), from count 0 on
    logs = np.concatenate([[0.0], np.cumsum(steps)]) - pairs * log(2)
    return min(1.0, 2 * float(np.exp(logs).sum()))


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down adjustment over a family of tests: p values that may be read one by one."""
    adjusted: dict[str, float] = {}
    floor = 0.0
    ordered = sorted(p_values, key=p_values.__getitem__)
    for rank, name in enumerate(ordered):
        floor = max(floor, min(1.0, (len(ordered) - rank) * p_values[name]))
        adjusted[name] = floor
    return {name: adjusted[name] for name in p_values}


def minimum_detectable(standard_error: float, *, level: float = LEVEL, power: float = POWER) -> float:
    """The smallest true difference that a two-sided test at `level` would see with this power."""
    return (_NORMAL.inv_cdf(0.5 + level / 2) + _NORMAL.inv_cdf(power)) * standard_error


def minimum_detectable_pairs(
    discordant: float, pairs: int, *, level: float = LEVEL, power: float = POWER
) -> float:
    """The smallest difference of two paired rates that McNemar's test would see.

    `discordant` is the share of pairs that differ (Connor 1987, solved for the difference by iteration); NaN
    where no difference up to that share is seen.
    """
    if pairs < 1:
        return float("nan")
    z_level, z_power = _NORMAL.inv_cdf(0.5 + level / 2), _NORMAL.inv_cdf(power)
    low, high = 0.0, discordant
    for _ in range(60):
        middle = (low + high) / 2
        spread = sqrt(max(0.0, discordant - middle * middle))
        seen = z_level * sqrt(discordant) + z_power * spread <= middle * sqrt(pairs)
        low, high = (low, middle) if seen else (middle, high)
    return high if high < discordant * (1 - 1e-12) else float("nan")


def percentile_interval(value: float, draws: Floats, level: float = LEVEL) -> Interval:
    """The percentile interval of a statistic from its bootstrap draws; draws without a value are left out."""
    finite = draws[np.isfinite(draws)]
    if len(finite) < len(draws) / 2 or not np.isfinite(value):
        return Interval(value, float("nan"), float("nan"))
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(finite, [tail, 100 - tail])
    return Interval(value, float(low), float(high))


def p_not_above(draws: Floats, null: float = 0.0) -> float:
    """One-sided bootstrap p of "the statistic is not above `null`", never below 1 / (draws + 1)."""
    finite = draws[np.isfinite(draws)]
    return float((1 + np.count_nonzero(finite <= null)) / (len(finite) + 1))


class ClusterBootstrap:
    """Sums over documents, and the same sums over resampled documents, while they stream past.

    Documents are resampled within their stratum (a language), as many as there are. `totals` has the shape of
    one document's sums, `draws` one more axis in front, (draws, ...). The count of a document in a draw is
    binomial given the counts of those before it: the multinomial, one document at a time.
    """

    def __init__(self, sizes: Sequence[int], shape: tuple[int, ...], *, draws: int = DRAWS, seed: int = 0):
        self.totals = np.zeros(shape)
        self.draws = np.zeros((draws, *shape))
        self._left = list(sizes)
        self._open = [np.full(draws, size, np.int64) for size in sizes]
        self._random = np.random.default_rng(seed)

    def counts(self, stratum: int = 0) -> NDArray[np.int64]:
        """How often the next document of a stratum is in each draw, (draws,)."""
        if self._left[stratum] < 1:
            raise UserError("more documents came than the bootstrap was told of")
        counts = self._random.binomial(self._open[stratum], 1 / self._left[stratum])
        self._open[stratum] -= counts
        self._left[stratum] -= 1
        return counts

    def add(self, sums: Floats, stratum: int = 0) -> None:
        """Count a document's sums; every document must come once, also one whose sums are zero."""
        self.totals += sums
        counts = self.counts(stratum).astype(np.float64)
        # Most cells of one document are empty: add only the others.
        full = np.flatnonzero(sums)
        flat = self.draws.reshape(len(self.draws), -1)
        flat[:, full] += counts[:, None] * sums.reshape(-1)[full]
