"""A value of the summary against the values of the source: the same, rounded, approximate, in a range."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

from seatrial.guards.numbers.context import counted_nouns
from seatrial.guards.numbers.otherwise import otherwise
from seatrial.guards.numbers.quantity import (
    AMOUNT,
    COUNT,
    ORDINAL,
    PERCENT,
    PERCENTAGE_POINT,
    RATIO,
    Quantity,
)
from seatrial.guards.numbers.roles import in_role
from seatrial.guards.numbers.source import Match, Source, base_value, family, units_agree

_ABOUT = Decimal("0.05")  # "about" allows 5 percent, or 10 where the figure shows only one or two digits
_ABOUT_COARSE = Decimal("0.10")


def compare_value(quantity: Quantity, summary: str, source: Source) -> Match:
    name = family(quantity)
    value = base_value(quantity, quantity.value)
    if value is None:
        return Match("unread")
    if quantity.high is not None:
        return _compare_range(quantity, name, value, source)
    steps = (_same_value, _rounded, _approximate, _in_range)
    counted = quantity.kind == COUNT and bool(counted_nouns(summary, quantity.span[1]))
    for step in steps:
        found = step(quantity, name, value, source)
        if found and counted:  # 2.5 vans are not 2.5 tons: the noun is the unit
            found = (found[0], [q for q in found[1] if q.kind in (COUNT, ORDINAL)])
        if found and not found[1]:
            found = None
        if found:
            reason, candidates = found
            return in_role(quantity, reason, candidates, summary, source)
    return otherwise(quantity, name, value, summary, source)


_Found = tuple[str, list[Quantity]] | None


def _same_value(quantity: Quantity, name: str, value: Decimal, source: Source) -> _Found:
    same = [q for q in source.by_value.get((name, value), []) if units_agree(quantity, q)]
    if same:
        singles = [q for q in same if q.high is None]
        if not singles:
            return None
        exact = [q for q in singles if q.text == quantity.text]
        return (
            ("exact", exact + [q for q in singles if q not in exact])
            if exact
            else ("written otherwise", singles)
        )
    loose = [
        q
        for q in source.plain.get(abs(quantity.value or Decimal(0)), [])
        if _loosely(quantity, q) and not (q.kind == COUNT and counted_nouns(source.folded, q.span[1]))
    ]
    return ("written otherwise", loose) if loose else None


def _loosely(left: Quantity, right: Quantity) -> bool:
    """One side leaves out the unit: 35000 for 35000元, 12.50 for 12.50 euros."""
    if (
        right.value is None
        or left.value is None
        or right.value.copy_abs() != left.value.copy_abs()
        or right.high is not None
    ):
        return False
    kinds = {left.kind, right.kind}
    if left.value != right.value:
        return False
    if COUNT not in kinds or kinds & {ORDINAL, PERCENT, RATIO, PERCENTAGE_POINT}:
        return False
    bare = left if left.kind == COUNT else right
    return bare.unit is None and kinds != {COUNT}


def _rounded(quantity: Quantity, name: str, value: Decimal, source: Source) -> _Found:
    """The source's value rounds to the digits that the summary shows."""
    if quantity.quantum is None:
        return None
    scale = abs(value / quantity.value) if quantity.value else Decimal(1)
    half = quantity.quantum * scale / 2
    near = [
        q
        for other in _families(quantity, name)
        for q in source.between(other, value - half, value + half)
        if _comparable(quantity, q, source) and _finer(q, quantity)
    ]
    if near:
        return "rounded", near
    if name == "share" and abs(value) < 100:
        shares = [
            q
            for q in source.between(COUNT, (value - half) / 100, (value + half) / 100)
            if q.unit is None and q.value and abs(q.value) < 1
        ]
        return ("written otherwise", shares) if shares else None
    return None


def _finer(precise: Quantity, coarse: Quantity) -> bool:
    """Rounding loses digits: the source must show more than the summary does."""
    if precise.quantum is None or coarse.quantum is None:
        return False
    low, high = base_value(precise, precise.quantum), base_value(coarse, coarse.quantum)
    return low is not None and high is not None and abs(low) < abs(high)


def _approximate(quantity: Quantity, name: str, value: Decimal, source: Source) -> _Found:
    """A hedged figure, or a hedged source."""
    if quantity.bound:
        tolerance = _ABOUT_COARSE if _digits_shown(quantity) <= 2 else _ABOUT
        room = abs(value) * tolerance
        low, high = value - room, value + room
        if quantity.bound == "over":
            low = value
        elif quantity.bound in ("under", "near"):
            high = value
        near = [
            q
            for other in _families(quantity, name)
            for q in source.between(other, low, high)
            if _comparable(quantity, q, source)
        ]
        if near:
            return "approximate", near
    return None


def _families(quantity: Quantity, name: str) -> tuple[str, ...]:
    """Where to look: a bare number may be an amount whose currency was left out, and the other way round."""
    if quantity.kind == COUNT and quantity.unit is None:
        return (name, "money")
    return (name, COUNT) if quantity.kind == AMOUNT else (name,)


def _comparable(left: Quantity, right: Quantity, source: Source) -> bool:
    """Of one kind, or one side leaves out its unit: 52.3 overs are no $52."""
    if left.kind == right.kind:
        return units_agree(left, right)
    if right.kind == COUNT and any(noun.isascii() for noun in counted_nouns(source.folded, right.span[1])):
        return False
    bare = left if left.kind == COUNT else right
    return bare.kind != COUNT or bare.unit is None


def _digits_shown(quantity: Quantity) -> int:
    digits = (quantity.value or Decimal(0)).normalize().as_tuple().digits
    return len(digits)


def _in_range(quantity: Quantity, name: str, value: Decimal, source: Source) -> _Found:
    """The best that any range of the source says about a single value."""
    found: dict[str, list[Quantity]] = defaultdict(list)
    for candidate in source.ranges.get(name, []):
        reason = _place_in_range(quantity, value, candidate)
        if reason is not None and units_agree(quantity, candidate):
            found[reason].append(candidate)
    best = next((reason for reason in ("approximate", "range", "one end") if reason in found), None)
    return None if best is None else (best, found[best])


def _place_in_range(quantity: Quantity, value: Decimal, candidate: Quantity) -> str | None:
    low, high = base_value(candidate, candidate.value), base_value(candidate, candidate.high)
    if low is None or high is None:
        return None
    if value == low and candidate.bound:
        return "approximate"
    if value in (low, high) and not candidate.bound:
        return "one end"
    inside = low < value < high and (quantity.bound or candidate.bound == "about")
    return "range" if inside else None


def _overlap(candidate: Quantity, low: Decimal, high: Decimal) -> bool:
    """Whether a range of the source and an approximation share values."""
    ends = base_value(candidate, candidate.value), base_value(candidate, candidate.high)
    return ends[0] is not None and ends[1] is not None and ends[0] < high and low < ends[1]


def _compare_range(quantity: Quantity, name: str, value: Decimal, source: Source) -> Match:
    high = base_value(quantity, quantity.high)
    loose = [r for r in source.ranges.get(COUNT, []) if r.unit is None] if quantity.kind == AMOUNT else []
    same = [
        candidate
        for candidate in [*source.ranges.get(name, []), *loose]
        if units_agree(quantity, candidate)
        and (base_value(candidate, candidate.value), base_value(candidate, candidate.high)) == (value, high)
    ]
    exact = next((candidate for candidate in same if candidate.text == quantity.text), None)
    if same:
        return Match("written otherwise", same[0]) if exact is None else Match("exact", exact)
    if high is not None and quantity.bound in ("over", "about"):
        inside = [q for q in source.between(name, value, high) if units_agree(quantity, q)]
        inside += [
            q for q in source.ranges.get(name, []) if _overlap(q, value, high) and units_agree(quantity, q)
        ]
        if inside:
            return Match("approximate", inside[0])
    lows, highs = (
        source.by_value.get((name, value)),
        source.by_value.get((name, high)) if high is not None else None,
    )
    if lows and highs:
        return Match("range", lows[0])
    return Match("not found", source.nearest(name, value))
