"""A value that the source does not state: with another sign, read another way, worked out, or not there."""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal

from seatrial.guards.numbers.context import counted_nouns, direction
from seatrial.guards.numbers.derive import clause_of, derived
from seatrial.guards.numbers.quantity import COUNT, ORDINAL, Quantity
from seatrial.guards.numbers.roles import rival_count
from seatrial.guards.numbers.source import Match, Source, units_agree


def otherwise(quantity: Quantity, name: str, value: Decimal, summary: str, source: Source) -> Match:
    clock = source.timed.get(value) if name == "time" else None
    if clock is not None:
        return Match("written otherwise", clock)
    points = _points(quantity, name, value, summary, source)
    if points is not None:
        return Match("ambiguous", points)
    opposite = [q for q in source.by_value.get((name, -value), []) if value]
    if opposite:
        # A loss of 300 is -300: the word on the positive side does what the minus does on the other.
        words = [
            direction(summary, *quantity.span) if value > 0 else direction(source.folded, *q.span)
            for q in opposite
        ]
        return Match("written otherwise" if -1 in words else "other sign", opposite[0])
    if quantity.kind == COUNT and quantity.text in source.strings:
        return Match("written otherwise", source.strings[quantity.text])
    ambiguous = _second_reading(quantity, name, source)
    if ambiguous is not None:
        return Match("ambiguous", ambiguous)
    worked_out = _worked_out(quantity, name, value, summary, source)
    if worked_out is not None:
        return worked_out
    rival = (
        rival_count(quantity, counted_nouns(summary, quantity.span[1]), source)
        if quantity.kind == COUNT
        else None
    )
    same = [q for q in source.plain.get(abs(quantity.value or Decimal(0)), []) if q.kind != ORDINAL]
    if same and quantity.kind != ORDINAL:
        return Match("other unit", same[0], conflict=rival is not None)
    if rival is not None:
        return Match("not found", rival, f"the source has {rival.text!r} of them", conflict=True)
    return Match("not found", source.nearest(name, value))


_POINTS = re.compile(r"(?<! percentage)(?: points?\b|个点)")


def _points(quantity: Quantity, name: str, value: Decimal, summary: str, source: Source) -> Quantity | None:
    """Points may be percentage points: "1.5 points" for 150 bp, 2% where the source says 两个点."""
    if quantity.kind == COUNT and _POINTS.match(summary, quantity.span[1]):
        return next(iter(source.by_value.get(("points", value), [])), None)
    if name == "share":
        return next((q for q in source.by_value.get(("points", value), []) if q.text.endswith("个点")), None)
    return None


def _second_reading(quantity: Quantity, name: str, source: Source) -> Quantity | None:
    """1.234 may be a thousand, and a bracketed amount may be negative: the other reading, when the source
    has it."""
    value = quantity.value or Decimal(0)
    kinds = dict(quantity.other)
    others = ([value * 1000] if "thousands" in kinds else []) + ([-value] if "negative" in kinds else [])
    if quantity.unit == "m" and quantity.text[-2:-1].isdigit():  # 2.1m may be metres or millions
        others.append(value * 10**6)
    for other in others:
        found = source.by_value.get((name, other)) or source.plain.get(abs(other))
        if found:
            return found[0]
    thousandth = [q for q in source.plain.get(value / 1000, []) if dict(q.other).get("thousands")]
    return thousandth[0] if thousandth else None


def _worked_out(quantity: Quantity, name: str, value: Decimal, summary: str, source: Source) -> Match | None:
    """A sum, difference or ratio of figures of the same sort, where the clause speaks of one."""
    if (
        quantity.kind == ORDINAL
        or not quantity.quantum
        or abs(quantity.value or Decimal(0)) < 10 * quantity.quantum
    ):
        return None  # one digit is the sum of something in any text
    ratio = name in ("share", "times")
    names = ("money", COUNT) if ratio else (name,)
    for other in names:
        pairs = [(base, q) for base, q in source.sorted_values(other) if ratio or units_agree(quantity, q)]
        if ratio and (quantity.quantum > Decimal("0.1") or len(pairs) > 12):
            continue
        places: dict[Decimal, list[int]] = defaultdict(list)
        for base, figure in pairs:
            places[base].append(figure.span[0])
        clause = clause_of(summary, *quantity.span)
        reach = _RATIO_REACH if ratio else _REACH
        near = lambda operands, at=places, reach=reach: _close_together([at[o] for o in operands], reach)
        found = derived(value, quantity.quantum, list(places), clause, near, ratio=ratio)
        if found is not None:
            reason, operands = found
            nearest = next(q for base, q in pairs if base == operands[0])
            told = ", ".join(f"{operand.normalize():f}" for operand in operands)
            return Match(reason, nearest, f"{reason} of {told}")
    return None


_REACH, _RATIO_REACH = 200, 60  # characters of the source within which operands belong together


def _close_together(places: list[list[int]], reach: int) -> bool:
    """Whether one place of each operand lies within `reach` characters of one of the first."""
    return any(
        all(any(abs(place - first) <= reach for place in others) for others in places[1:])
        for first in places[0]
    )
