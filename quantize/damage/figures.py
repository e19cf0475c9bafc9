"""The figures of a report: plain data made from a tally, the same for people and for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seatrial.quantize.damage.classes import CLASSES, OTHER
from seatrial.quantize.damage.concentration import Concentration, concentration
from seatrial.quantize.damage.documents import LANGUAGES
from seatrial.quantize.damage.tally import METRICS, Tally
from seatrial.quantize.damage.verdicts import (
    LEAST_DOCUMENTS,
    LEAST_TOKENS,
    Evidence,
    Verdict,
    decide,
)
from seatrial.quantize.stats import Interval, holm, mcnemar, percentile_interval, wilson

Floats = NDArray[np.float64]
# Below the KL that float32 sums of a whole vocabulary can show.
LEAST_FLOOR = 2e-7


@dataclass(frozen=True)
class ClassFigures:
    """Everything about one class. Rates are per token of the class; KL and NLL in nats per token.

    The interval of a rate is the wider of the bootstrap's and Wilson's: resampled documents without a single
    harm have none in any draw, which is not certainty.
    """

    label: str
    tokens: int
    documents: int
    kl: Interval
    kl_spread: Mapping[str, float]  # median, p95, p99, max
    nll_delta: Interval
    flips: Interval
    kinds: Mapping[str, Interval]  # harm, repair, other
    mcnemar_p: float
    compared: Concentration | None
    p_adjusted: float
    verdict: Verdict
    reason: str

    @property
    def enough(self) -> bool:
        """Whether there are documents and tokens enough for an interval that can be relied on."""
        return self.documents >= LEAST_DOCUMENTS and self.tokens >= LEAST_TOKENS

    def figure(self, name: str) -> Interval:
        """The interval that `--fail-on` names: harm, flips, kl or nll."""
        known = {"harm": self.kinds["harm"], "flips": self.flips, "kl": self.kl, "nll": self.nll_delta}
        return known[name]

    def to_json(self) -> dict[str, Any]:
        return {
            "n": self.tokens,
            "documents": self.documents,
            "kl": {**self.kl.to_json(), **self.kl_spread},
            "flips": {
                **self.flips.to_json(),
                **{name: found.to_json() for name, found in self.kinds.items()},
                "mcnemar_p": self.mcnemar_p,
            },
            "nll_delta": self.nll_delta.to_json(),
            "concentration": None if self.compared is None else _compared(self.compared, self.p_adjusted),
            "verdict": str(self.verdict),
            "reason": self.reason,
        }


def _compared(found: Concentration, p_adjusted: float) -> dict[str, Any]:
    return {
        "difference": found.difference.to_json(),
        "nll_difference": found.nll_difference.to_json(),
        "ratio": found.ratio.to_json(),
        "p": found.p,
        "p_adjusted": p_adjusted,
        "covered": found.covered,
        "minimum_detectable": found.detectable,
    }


def class_figures(found: Tally, floor: float, language: int | None = None) -> dict[str, ClassFigures]:
    """Figures of all classes, of one language or of both; Holm's adjustment is over those that are tested.

    A class with too few documents or tokens has its figures, but no p and no smallest effect: a bootstrap of
    a handful of documents is surer of both than it may be.
    """
    chosen = slice(None) if language is None else slice(language, language + 1)
    totals = _strata(found.tokens.totals[chosen])
    draws = _strata(found.tokens.draws[:, chosen])
    documents = found.documents[chosen].sum(axis=0)
    sizes = sum(found.sizes[chosen])
    tokens = totals[:, :, 0].sum(0)
    enough = (documents >= LEAST_DOCUMENTS) & (tokens >= LEAST_TOKENS)
    named = [place for place, name in enumerate(CLASSES) if name != OTHER]
    tests = int(enough[named].sum())
    compared = {CLASSES[place]: concentration(totals, draws, CLASSES[place], tests) for place in named}
    adjusted = holm({name: c.p for name, c in compared.items() if enough[CLASSES.index(name)]})
    return {
        name: _one_class(
            name,
            totals[:, place].sum(0),
            draws[:, :, place].sum(1),
            int(documents[place]),
            sizes,
            found,
            floor,
            _tested(compared.get(name), bool(enough[place]), int(documents[place])),
            adjusted.get(name, math.nan),
            pooled=language is None,
        )
        for place, name in enumerate(CLASSES)
    }


def _tested(found: Concentration | None, enough: bool, documents: int) -> Concentration | None:
    """A comparison without what its sample cannot carry."""
    if found is None or enough:
        return found
    return replace(
        found,
        difference=of_several(found.difference, documents),
        nll_difference=of_several(found.nll_difference, documents),
        ratio=of_several(found.ratio, documents),
        p=math.nan,
        detectable=math.nan,
    )


def of_several(found: Interval, documents: int) -> Interval:
    """The interval, without ends when it comes from one document: resampling that gives itself every time."""
    return found if documents > 1 else Interval(found.value, math.nan, math.nan)


def _with_wilson(found: Interval, count: int, of: int) -> Interval:
    """The wider of a bootstrap's interval and Wilson's; without ends where the bootstrap has none."""
    if not of or not math.isfinite(found.low):
        return found
    other = wilson(count, of)
    return Interval(found.value, min(found.low, other.low), max(found.high, other.high))


def _strata(sums: Floats) -> Floats:
    """(..., languages, deciles, classes, metrics) -> (..., strata, classes, metrics)."""
    return sums.reshape(*sums.shape[:-4], -1, *sums.shape[-2:])


def _one_class(
    name: str,
    totals: Floats,
    draws: Floats,
    documents: int,
    all_documents: int,
    found: Tally,
    floor: float,
    compared: Concentration | None,
    p_adjusted: float,
    *,
    pooled: bool,
) -> ClassFigures:
    n = int(totals[0])
    rates = {metric: of_several(_rate(totals, draws, metric), documents) for metric in METRICS[1:6]}
    flips = of_several(rate_of(totals[3:6].sum(), totals[0], draws[:, 3:6].sum(1), draws[:, 0]), documents)
    if not found.identical:  # two equal bundles are equal on other documents too
        flips = _with_wilson(flips, int(totals[3:6].sum()), n)
        for place, kind in enumerate(METRICS[3:6], 3):
            rates[kind] = _with_wilson(rates[kind], int(totals[place]), n)
    verdict, reason = decide(
        Evidence(n, documents, all_documents, found.identical, rates["kl"], floor, compared, p_adjusted)
    )
    return ClassFigures(
        label=name,
        tokens=n,
        documents=documents,
        kl=rates["kl"],
        kl_spread=_spread(found, CLASSES.index(name)) if pooled else {},
        nll_delta=rates["delta"],
        flips=flips,
        kinds={"harm": rates["harm"], "repair": rates["repair"], "other": rates["other"]},
        mcnemar_p=mcnemar(int(totals[3]), int(totals[4])),
        compared=compared,
        p_adjusted=p_adjusted,
        verdict=verdict,
        reason=reason,
    )


def _rate(totals: Floats, draws: Floats, metric: str) -> Interval:
    place = METRICS.index(metric)
    return rate_of(totals[place], totals[0], draws[:, place], draws[:, 0])


def rate_of(total: float, of: float, drawn: Floats, drawn_of: Floats) -> Interval:
    """A mean with its bootstrap interval; NaN of nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(np.float64(total) / of) if of else float("nan")
        return percentile_interval(value, np.where(drawn_of > 0, drawn / drawn_of, np.nan))


def _spread(found: Tally, place: int) -> dict[str, float]:
    shares = {"median": 0.5, "p95": 0.95, "p99": 0.99}
    spread = {name: found.kl_quantile(place, share) for name, share in shares.items()}
    return {**spread, "max": float(found.kl_max[place])}


def languages_of(found: Tally) -> list[int]:
    """Places of the languages that have documents."""
    return [place for place, _ in enumerate(LANGUAGES) if found.sizes[place]]
