"""Finished pages -> rates: reference and candidate paired, by kind, context, depth and distractors.

Probes of one page share its text and what the models made of it, so pages are what is resampled: a verdict
needs McNemar's test, which takes probes as independent, and an interval over pages that excludes nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seatrial.quantize.stats import (
    ClusterBootstrap,
    Interval,
    holm,
    mcnemar,
    minimum_detectable,
    minimum_detectable_pairs,
    percentile_interval,
    wilson,
)

# What a cell needs before anything is said of it: pairs, and right copies by the reference.
LEAST_PAIRS = 30
LEAST_RIGHT = 10
_SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Pair:
    """One probe with both answers."""

    page: str
    language: str
    context: int
    distractors: int
    kind: str
    depth: float
    reference: dict[str, Any]
    candidate: dict[str, Any]
    guard: str


def pairs_of(pages: Sequence[dict[str, Any]]) -> list[Pair]:
    """The probes of some pages, one by one."""
    return [
        Pair(
            page["page"],
            page["language"],
            page["context"],
            page["distractors"],
            f"{page['language']}:{probe['kind']}",
            probe["depth"],
            probe["reference"],
            probe["candidate"],
            probe["guard"],
        )
        for page in pages
        for probe in page["probes"]
    ]


_CUTS: dict[str, Callable[[Pair], str]] = {
    "language": lambda pair: pair.language,
    "kind": lambda pair: pair.kind,
    "context": lambda pair: str(pair.context),
    "depth": lambda pair: str(pair.depth),
    "distractors": lambda pair: str(pair.distractors),
}


def summarize(pages: Sequence[dict[str, Any]], plan: str) -> dict[str, Any]:
    """The `probes` part of the report."""
    pairs = pairs_of(pages)
    cells = {
        cut: {value: _cell([p for p in pairs if of(p) == value]) for value in _ordered(pairs, of)}
        for cut, of in _CUTS.items()
    }
    for values in cells.values():
        adjusted = holm({value: cell["mcnemar_p"] for value, cell in values.items()})
        for value, cell in values.items():
            cell["p_adjusted"] = adjusted[value]
            cell["verdict"] = _verdict(cell, adjusted[value])
    overall = _cell(pairs)
    overall["verdict"] = _verdict(overall, overall["mcnemar_p"])
    return {"plan": plan, "pages": len(pages), "all": overall, **cells, "guard": _guard(pairs)}


def _ordered(pairs: Sequence[Pair], of: Callable[[Pair], str]) -> list[str]:
    """The values of a cut; contexts, depths and counts by size, kinds and languages by name."""

    def key(value: str) -> tuple[float, str]:
        return (float(value), "") if value[0].isdigit() else (0.0, value)

    return sorted({of(pair) for pair in pairs}, key=key)


def _cell(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Rates of both bundles, what changed, and the errors of the candidate (and of the reference)."""
    n = len(pairs)
    right = [(p.reference["normalized"], p.candidate["normalized"]) for p in pairs]
    harms = sum(r and not c for r, c in right)
    repairs = sum(c and not r for r, c in right)
    difference, error = _difference(pairs)
    return {
        "n": n,
        "reference": _rates([p.reference for p in pairs]),
        "candidate": _rates([p.candidate for p in pairs]),
        "harms": harms,
        "repairs": repairs,
        "difference": difference.to_json(),
        "mcnemar_p": mcnemar(harms, repairs),
        "minimum_detectable": _detectable(harms + repairs, n, error),
    }


def _detectable(changed: int, n: int, standard_error: float) -> float | None:
    """The smallest change of the copy rate that would have shown; None where none would at this size.

    The larger of what McNemar's test and the interval over pages would have needed.
    """
    found = minimum_detectable_pairs(max(changed / n, 1 / n), n)
    return max(found, minimum_detectable(standard_error)) if math.isfinite(found) else None


def _rates(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    n = len(answers)
    wrong = [a for a in answers if not a["normalized"]]
    return {
        "exact": wilson(sum(a["exact"] for a in answers), n).to_json(),
        "normalized": wilson(n - len(wrong), n).to_json(),
        "distance": sum(a["distance"] for a in answers) / n if n else None,
        "errors": dict(Counter(a["error"] for a in wrong).most_common()),
    }


def _difference(pairs: Sequence[Pair]) -> tuple[Interval, float]:
    """Candidate's copy rate minus the reference's, its interval over pages, and its standard error."""
    pages: dict[str, list[int]] = {}
    for pair in pairs:
        sums = pages.setdefault(pair.page, [0, 0])
        sums[0] += int(pair.candidate["normalized"]) - int(pair.reference["normalized"])
        sums[1] += 1
    bootstrap = ClusterBootstrap([len(pages)], (2,))
    for sums in pages.values():
        bootstrap.add(np.asarray(sums, np.float64))
    drawn = bootstrap.draws[:, 0] / bootstrap.draws[:, 1]
    value = float(bootstrap.totals[0] / bootstrap.totals[1])
    return percentile_interval(value, drawn), float(drawn.std())


def _verdict(cell: dict[str, Any], p: float) -> str:
    """ "harmed", "repaired", "none" (no copy differs) or "cannot tell"."""
    right = round(cell["reference"]["normalized"]["value"] * cell["n"]) if cell["n"] else 0
    if cell["n"] < LEAST_PAIRS or right < LEAST_RIGHT:
        return "cannot tell"
    if cell["harms"] == cell["repairs"] == 0:
        return "none"
    low, high = cell["difference"]["low"], cell["difference"]["high"]
    if p < _SIGNIFICANCE and (high < 0 or low > 0):
        return "harmed" if high < 0 else "repaired"
    return "cannot tell"


def _guard(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Of the candidate's wrong figures, what the number guard says."""
    counts = Counter(pair.guard for pair in pairs if pair.guard)
    wrong = sum(counts.values())
    return {
        "wrong_figures": wrong,
        "caught": counts["caught"],
        "escaped": counts["escaped"],
        "no_figure": counts["no figure"],
        "caught_share": wilson(counts["caught"], wrong).to_json(),
        "escaped_share": wilson(counts["escaped"], wrong).to_json(),
    }
