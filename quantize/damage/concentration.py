"""Does damage fall on a class more than on other tokens that were as hard to predict?

A raw ratio misleads: figures are less predictable than other tokens, and any perturbation shows more where a
prediction is open. So a class is compared with `other` within deciles of the reference's entropy. KL is a
difference (candidate against reference); what is reported is the difference of that between the class and
`other`, weighted by where the class's tokens are, and the ratio to what `other` would have had there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from seatrial.quantize.damage.classes import CLASSES, OTHER
from seatrial.quantize.damage.tally import METRICS
from seatrial.quantize.stats import Interval, minimum_detectable, p_not_above, percentile_interval

Floats = NDArray[np.float64]
# An excess over `other` below a quarter is of no consequence, however sure it is.
MARGIN: Final = 0.25
SIGNIFICANCE: Final = 0.05
_N = METRICS.index("n")
_OTHER = CLASSES.index(OTHER)


@dataclass(frozen=True)
class Concentration:
    """A class against `other` at the same entropy.

    `difference` in nats of KL per token, `nll_difference` in nats of added NLL; `ratio` to what `other` has
    there, 1 when damage is spread evenly; `p` one-sided, of "not more than `other`"; `covered` the share of
    the class's tokens that had `other` tokens to compare with; `detectable` the smallest excess of the ratio
    that would have been called a concentration four times out of five.
    """

    difference: Interval
    nll_difference: Interval
    ratio: Interval
    p: float
    covered: float
    detectable: float


def differences(sums: Floats, place: int, metric: str = "kl") -> tuple[Floats, Floats, Floats]:
    """Difference in differences, expected figure, and share covered, of sums (..., strata, classes, metrics).

    Strata are language x decile; `metric` is "kl" or "delta". Difference and expectation are means over the
    class's tokens in strata where there are `other` tokens, NaN where there are none.
    """
    column = METRICS.index(metric)
    n, kl = sums[..., place, _N], sums[..., place, column]
    n_other, kl_other = sums[..., _OTHER, _N], sums[..., _OTHER, column]
    comparable = (n_other > 0) & (n > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = np.where(comparable, n * (kl_other / np.where(n_other > 0, n_other, 1)), 0).sum(-1)
        found = np.where(comparable, kl, 0).sum(-1)
        used = np.where(comparable, n, 0).sum(-1)
        return (found - expected) / used, expected / used, used / n.sum(-1)


def concentration(totals: Floats, draws: Floats, name: str, tests: int = 1) -> Concentration:
    """The comparison for one class; `totals` (strata, classes, metrics), `draws` one axis more in front.

    `tests`: how many classes are tested together, of which the smallest p must stand Holm's first step.
    """
    place = CLASSES.index(name)
    difference, expected, covered = (float(figure) for figure in differences(totals, place))
    drawn_difference, drawn_expected, _ = differences(draws, place)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = float(np.float64(difference) / expected) + 1 if expected > 0 else float("nan")
        drawn_ratio = np.where(drawn_expected > 0, drawn_difference / drawn_expected + 1, np.nan)
    finite = drawn_ratio[np.isfinite(drawn_ratio)]
    return Concentration(
        difference=percentile_interval(difference, drawn_difference),
        nll_difference=percentile_interval(
            float(differences(totals, place, "delta")[0]), differences(draws, place, "delta")[0]
        ),
        ratio=percentile_interval(ratio, drawn_ratio),
        p=p_not_above(drawn_difference),
        covered=covered,
        detectable=_detectable(float(finite.std()), tests) if len(finite) > 1 else float("nan"),
    )


def _detectable(standard_error: float, tests: int) -> float:
    """The excess whose p is small enough, and which is found to reach the margin, with a power of 80 %."""
    by_p = minimum_detectable(standard_error, level=1 - 2 * SIGNIFICANCE / max(1, tests))  # p is one-sided
    return max(by_p, MARGIN + minimum_detectable(standard_error, level=0.0))
