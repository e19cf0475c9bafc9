"""Finished pages -> rates: reference and candidate paired, by kind, context, depth and distractors.

Probes of one page share its text and what the models made of it, so pages are what is resampled: a verdict
needs McNemar's test, which takes probes as independent, and an interval over pages that excludes nothing.
Pages are resampled within their language, as the plan sets how many there are of each.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seatrial.quantize.stats import (
    DRAWS,
    LEVEL,
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
# A bootstrap over fewer clusters gives intervals that are too short.
LEAST_PAGES = 12
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


@dataclass(frozen=True)
class _Resampling:
    seed: int
    draws: int


def summarize(
    pages: Sequence[dict[str, Any]], plan: str, *, seed: int = 0, draws: int = DRAWS
) -> dict[str, Any]:
    """The `probes` part of the report; `draws` resamples of the pages, drawn with `seed`."""
    pairs, how = pairs_of(pages), _Resampling(seed, draws)
    cells = {cut: _cut(pairs, of, how) for cut, of in _CUTS.items()}
    overall = _cell(pairs, how, LEVEL)
    overall["verdict"] = _verdict(overall, overall["mcnemar_p"], _enough(pairs))
    return {"plan": plan, "pages": len(pages), "all": overall, **cells, "guard": _guard(pairs)}


def _cut(pairs: Sequence[Pair], of: Callable[[Pair], str], how: _Resampling) -> dict[str, dict[str, Any]]:
    """The cells of one cut, with Holm's adjustment over them."""
    members = {value: [p for p in pairs if of(p) == value] for value in _ordered(pairs, of)}
    # What the first step of Holm's procedure asks of the smallest p.
    level = 1 - _SIGNIFICANCE / max(1, len(members))
    cells = {value: _cell(mine, how, level) for value, mine in members.items()}
    adjusted = holm({value: cell["mcnemar_p"] for value, cell in cells.items()})
    for value, cell in cells.items():
        cell["p_adjusted"] = adjusted[value]
        cell["verdict"] = _verdict(cell, adjusted[value], _enough(members[value]))
    return cells


def _ordered(pairs: Sequence[Pair], of: Callable[[Pair], str]) -> list[str]:
    """The values of a cut; contexts, depths and counts by size, kinds and languages by name."""

    def key(value: str) -> tuple[float, str]:
        return (float(value), "") if value[0].isdigit() else (0.0, value)

    return sorted({of(pair) for pair in pairs}, key=key)


def _cell(pairs: Sequence[Pair], how: _Resampling, level: float) -> dict[str, Any]:
    """Rates of both bundles, what changed, and the errors of the candidate (and of the reference)."""
    n = len(pairs)
    right = [(p.reference["normalized"], p.candidate["normalized"]) for p in pairs]
    harms = sum(r and not c for r, c in right)
    repairs = sum(c and not r for r, c in right)
    difference, error = _difference(pairs, how)
    return {
        "n": n,
        "reference": _rates([p.reference for p in pairs]),
        "candidate": _rates([p.candidate for p in pairs]),
        "harms": harms,
        "repairs": repairs,
        "difference": difference.to_json(),
        "mcnemar_p": mcnemar(harms, repairs),
        "minimum_detectable": _detectable(harms + repairs, n, error, level) if _enough(pairs) else None,
    }


def _enough(pairs: Sequence[Pair]) -> bool:
    """Whether there is enough for a verdict: without, even a change of every copy would not show."""
    right = sum(bool(pair.reference["normalized"]) for pair in pairs)
    pages = len({pair.page for pair in pairs})
    return len(pairs) >= LEAST_PAIRS and right >= LEAST_RIGHT and pages >= LEAST_PAGES


def _detectable(changed: int, n: int, standard_error: float, level: float) -> float | None:
    """The smallest change of the copy rate that would have shown; None where not even 1.0 would.

    The larger of what McNemar's test and the interval over pages would have needed.
    """
    by_test = _detectable_by_test(changed, n, level)
    if by_test is None:
        return None
    found = max(by_test, minimum_detectable(standard_error, level=level))
    return found if found <= 1 else None


def _detectable_by_test(changed: int, n: int, level: float) -> float | None:
    """The smallest change that McNemar's test at `level` sees among `n` pairs, of which `changed` differ.

    A change needs as many pairs that differ as it is large, also where few differed: the share that differs
    is the observed one or the change itself, whichever is larger.
    """
    if not n or mcnemar(n, 0) >= 1 - level:
        return None
    found = minimum_detectable_pairs(changed / n, n, level=level) if changed else math.nan
    if math.isfinite(found):
        return found
    # No change up to the observed share is seen, so from here on the change is the share.
    low, high = changed / n, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        seen = math.isfinite(minimum_detectable_pairs(middle, n, level=level))
        low, high = (low, middle) if seen else (middle, high)
    return high


def _rates(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    n = len(answers)
    wrong = [a for a in answers if not a["normalized"]]
    return {
        "exact": wilson(sum(a["exact"] for a in answers), n).to_json(),
        "normalized": wilson(n - len(wrong), n).to_json(),
        "distance": sum(a["distance"] for a in answers) / n if n else None,
        "errors": dict(Counter(a["error"] for a in wrong).most_common()),
    }


def _difference(pairs: Sequence[Pair], how: _Resampling) -> tuple[Interval, float]:
    """Candidate's copy rate minus the reference's, its interval over pages, and its standard error.

    NaN ends and error where no language has two pages: resampling gives such a sample itself every time.
    """
    pages: dict[tuple[str, str], list[int]] = {}
    for pair in pairs:
        sums = pages.setdefault((pair.language, pair.page), [0, 0])
        sums[0] += int(pair.candidate["normalized"]) - int(pair.reference["normalized"])
        sums[1] += 1
    sizes = Counter(language for language, _ in pages)
    strata = {language: place for place, language in enumerate(sizes)}
    bootstrap = ClusterBootstrap(list(sizes.values()), (2,), draws=how.draws, seed=how.seed)
    for (language, _), sums in pages.items():
        bootstrap.add(np.asarray(sums, np.float64), strata[language])
    value = float(bootstrap.totals[0] / bootstrap.totals[1]) if pages else math.nan
    if max(sizes.values(), default=0) < 2:
        return Interval(value, math.nan, math.nan), math.nan
    drawn = bootstrap.draws[:, 0] / bootstrap.draws[:, 1]
    return percentile_interval(value, drawn), float(drawn.std())


def _verdict(cell: dict[str, Any], p: float, enough: bool) -> str:
    """ "harmed", "repaired", "none" (no copy differs) or "cannot tell"."""
    if not enough:
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
        "no_figure_share": wilson(counts["no figure"], wrong).to_json(),
    }
