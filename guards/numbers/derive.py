"""Values that a summary may have worked out: the sum, difference or ratio of at most three source values.

Only where the clause says so (in total, 合计, by, 倍), only of figures of the same sort, and always with a
severity of its own: chance finds a pair of numbers for nearly any number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import combinations

from seatrial.guards.numbers.context import last_clause

_SUM = re.compile(
    r"\b(?:total\w*|combined|altogether|in all|sum|together|overall)\b|合计|共计|总计|一共|总共|共有|累计|总额|加起来|共"  # noqa: E501
)
_DIFFERENCE = re.compile(
    r"\b(?:difference|gap|increase\w*|decrease\w*|rose|grew|fell|dropped|more|less|fewer|up|down|sav(?:e|es|ed|ing)s?|extra|add(?:s|ed)?)\b"
    r"|差额|相差|多出|少了|多了|增加|减少|下降|上升|提高|节省|差"
)
_RATIO = re.compile(r"\b(?:times|twice|double\w*|triple\w*|half|percent|share|rate|ratio)\b|%|倍|占|比例|率")
_MOST = 60  # values; beyond that every number is the sum of some three


Near = Callable[[tuple[Decimal, ...]], bool]


def derived(
    value: Decimal, quantum: Decimal, values: list[Decimal], clause: str, near: Near, *, ratio: bool
) -> tuple[str, tuple[Decimal, ...]] | None:
    """("sum" | "difference" | "ratio", operands) when `value` can be worked out from `values`, else None.

    `quantum` is the place of the value's last digit; sums and differences must be exact, a ratio may be
    rounded to that place. `near` says whether operands stand close enough together in the source. `ratio`
    asks for ratios only (percentages, times).
    """
    known = sorted(set(values))
    if not 2 <= len(known) <= _MOST or not value:
        return None
    if ratio:
        return _ratio(value, quantum, known, near) if _RATIO.search(clause) else None
    if _SUM.search(clause):
        found = _sum(value, known, near)
        if found is not None:
            return "sum", found
    if _DIFFERENCE.search(clause):
        pool = set(known)
        pairs = ((a, a - value) for a in known if a - value in pool and a != value)
        pair = next(filter(near, pairs), None)
        if pair is not None:
            return "difference", pair
    return None


def _sum(value: Decimal, known: list[Decimal], near: Near) -> tuple[Decimal, ...] | None:
    pool = set(known)
    pairs: Iterator[tuple[Decimal, ...]] = (
        (a, value - a) for a in known if value - a in pool and a <= value - a
    )
    pair = next(filter(near, pairs), None)
    if pair is not None:
        return pair
    small = [v for v in known if 0 < v < value]
    triples = ((a, b, value - a - b) for a, b in combinations(small, 2) if value - a - b in pool)
    return next(filter(near, triples), None)


def _ratio(
    value: Decimal, quantum: Decimal, known: list[Decimal], near: Near
) -> tuple[str, tuple[Decimal, ...]] | None:
    """a / b, as a number of times or in percent, and the change from b to a in percent."""
    for a in known:
        for b in known:
            if a == b or not b or not near((a, b)):
                continue
            quotient = a / b
            if any(
                abs(found - value) * 2 <= quantum
                for found in (quotient, quotient * 100, (quotient - 1) * 100)
            ):
                return "ratio", (a, b)
    return None


def clause_of(folded: str, start: int, end: int) -> str:
    """The clause that holds [start, end), from the last mark before it, with a little behind."""
    return last_clause(folded[max(0, start - 60) : start]) + folded[start : end + 24]
