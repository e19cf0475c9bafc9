"""The source's figures, indexed by what they can be compared with; and what is said about a figure.

Pure data and look-ups: what a look-up means is decided in `compare_values` and `roles`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from seatrial.guards.numbers.calendar import Calendar
from seatrial.guards.numbers.context import counted_nouns, words_around
from seatrial.guards.numbers.quantity import (
    AMOUNT,
    BASIS_POINT,
    COUNT,
    DATE,
    DURATION,
    MEASURE,
    PERCENT,
    PERCENTAGE_POINT,
    RATIO,
    TIME,
    WEEKDAY,
    Quantity,
)
from seatrial.guards.numbers.units import BY_NAME, CLASSIFIERS

CALENDAR = frozenset({DATE, TIME, WEEKDAY})


@dataclass(frozen=True, slots=True)
class Match:
    """What the source says about a figure."""

    reason: str
    nearest: Quantity | None = None
    detail: str = ""
    conflict: bool = False  # the source counts the same thing, with another number


def family(quantity: Quantity) -> str:
    """What a figure can be compared with: money, share, points, a physical dimension, time, count, ..."""
    if quantity.kind == COUNT:
        return COUNT
    if quantity.kind == AMOUNT:
        return "money"
    if quantity.kind == PERCENT or (quantity.kind == RATIO and quantity.unit == "fraction"):
        return "share"
    if quantity.kind in (PERCENTAGE_POINT, BASIS_POINT):
        return "points"
    if quantity.kind in (MEASURE, DURATION):
        return BY_NAME[quantity.unit or ""].dimension
    if quantity.kind == RATIO:
        return "score" if quantity.unit == ":" else "times"
    return quantity.kind


def base_value(quantity: Quantity, value: Decimal | None) -> Decimal | None:
    """`value` in the base unit of its family; fractions become percent."""
    if value is None or quantity.kind == COUNT:
        return value
    if quantity.kind == RATIO and quantity.unit == "fraction":
        return value * 100
    if quantity.kind in (MEASURE, DURATION, BASIS_POINT, PERCENTAGE_POINT):
        unit = BY_NAME[quantity.unit or ""]
        return (value + unit.offset) * unit.factor
    return value


def length_s(quantity: Quantity) -> Decimal:
    """A clock time with seconds, read as a length of time."""
    parts = dict(quantity.fields)
    return Decimal(parts["H"] * 3600 + parts.get("M", 0) * 60 + parts["S"])


class Source:
    """The source's figures, indexed by family and value."""

    def __init__(self, folded: str, quantities: list[Quantity], today: date | None = None) -> None:
        self.folded = folded
        self.today = today
        self.quantities = quantities
        self.calendar = Calendar(q for q in quantities if q.kind in CALENDAR)
        self.strings: dict[str, Quantity] = {}
        self.timed: dict[Decimal, Quantity] = {}  # 2:18:47 may also be how long something took, in seconds
        self.by_value: dict[tuple[str, Decimal], list[Quantity]] = defaultdict(list)
        self.plain: dict[Decimal, list[Quantity]] = defaultdict(list)
        self.ranges: dict[str, list[Quantity]] = defaultdict(list)
        self._single: dict[str, list[tuple[Decimal, Quantity]]] = defaultdict(list)  # those that are no range
        self._sorted: dict[str, list[tuple[Decimal, Quantity]]] = {}
        self._nouns: dict[str, list[Quantity]] | None = None
        self._words: dict[tuple[int, int], frozenset[str]] = {}
        for quantity in quantities:
            self._add(quantity)

    def _add(self, quantity: Quantity) -> None:
        if quantity.kind == TIME and quantity.field("S") is not None:
            self.timed.setdefault(length_s(quantity), quantity)
        if quantity.string:
            self.strings.setdefault(quantity.string, quantity)
        if quantity.value is None:
            return
        name = family(quantity)
        base = base_value(quantity, quantity.value)
        if base is None:
            return
        self.plain[abs(quantity.value)].append(quantity)
        self.by_value[name, base].append(quantity)
        if quantity.high is None:
            self._single[name].append((base, quantity))
        else:
            self.ranges[name].append(quantity)
            self.plain[abs(quantity.high)].append(quantity)

    def nouns(self) -> dict[str, list[Quantity]]:
        """Counted noun -> the counts of it, made when first asked for."""
        if self._nouns is None:
            self._nouns = defaultdict(list)
            for quantity in self.quantities:
                if quantity.kind == COUNT:
                    for noun in counted_nouns(self.folded, quantity.span[1]):
                        self._nouns[noun].append(quantity)
        return self._nouns

    def words(self, quantity: Quantity) -> frozenset[str]:
        """Content words around a figure of the source, kept."""
        if quantity.span not in self._words:
            self._words[quantity.span] = words_around(self.folded, *quantity.span)
        return self._words[quantity.span]

    def sorted_values(self, name: str) -> list[tuple[Decimal, Quantity]]:
        """(value, figure) of one family in order of value, made when first asked for."""
        if name not in self._sorted:
            self._sorted[name] = sorted(self._single[name], key=lambda pair: (pair[0], pair[1].span))
        return self._sorted[name]

    def between(self, name: str, low: Decimal, high: Decimal) -> list[Quantity]:
        """Figures of a family whose value lies in [low, high]."""
        pairs = self.sorted_values(name)
        first = bisect_left(pairs, low, key=lambda pair: pair[0])
        last = bisect_right(pairs, high, key=lambda pair: pair[0])
        return [q for _, q in pairs[first:last]]

    def nearest(self, name: str, value: Decimal) -> Quantity | None:
        """The figure of a family that is closest in value."""
        pairs = self.sorted_values(name)
        at = bisect_left(pairs, value, key=lambda pair: pair[0])
        near = pairs[max(0, at - 1) : at + 1]
        return min(near, key=lambda pair: abs(pair[0] - value))[1] if near else None


def units_agree(left: Quantity, right: Quantity) -> bool:
    """Same currency; measure words that count the same sort of thing, or a general one."""
    if left.kind == AMOUNT and right.kind == AMOUNT:
        return left.unit == right.unit
    if left.kind == COUNT and right.kind == COUNT and left.unit and right.unit:
        groups = CLASSIFIERS.get(left.unit), CLASSIFIERS.get(right.unit)
        return groups[0] == groups[1] or "generic" in groups
    return True
