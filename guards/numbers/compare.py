"""One figure of the summary against the figures of the source: the reason, and the nearest source figure.

Reasons, from good to bad: exact, written otherwise, rounded, approximate, range, one end, sum, difference,
ratio, ambiguous, wrong role, other unit, other sign, not found. Pure functions of extracted quantities and
the folded texts around them; severities are in `policy.py`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from seatrial.guards.numbers.calendar import Calendar, compare_calendar
from seatrial.guards.numbers.context import counted_nouns, direction, words_around
from seatrial.guards.numbers.derive import clause_of, derived
from seatrial.guards.numbers.quantity import (
    AMOUNT,
    BASIS_POINT,
    COUNT,
    DATE,
    DURATION,
    IDENTIFIER,
    MEASURE,
    ORDINAL,
    PERCENT,
    PERCENTAGE_POINT,
    RATIO,
    TIME,
    UNREAD,
    WEEKDAY,
    Quantity,
)
from seatrial.guards.numbers.units import BY_NAME, CLASSIFIERS

CALENDAR = frozenset({DATE, TIME, WEEKDAY})
_ABOUT = Decimal("0.05")  # "about" allows 5 percent, or 10 where the figure shows only one or two digits
_ABOUT_COARSE = Decimal("0.10")


@dataclass(frozen=True, slots=True)
class Match:
    """What the source says about a figure."""

    reason: str
    nearest: Quantity | None = None
    detail: str = ""
    conflict: bool = False  # the source counts the same thing, with another number


def family(quantity: Quantity) -> str:
    """What a figure can be compared with: money, share, points, a physical dimension, time, count, ..."""
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
    if value is None:
        return None
    if quantity.kind == RATIO and quantity.unit == "fraction":
        return value * 100
    if quantity.kind in (MEASURE, DURATION, BASIS_POINT, PERCENTAGE_POINT):
        unit = BY_NAME[quantity.unit or ""]
        return (value + unit.offset) * unit.factor
    return value


class Source:
    """The source's figures, indexed by family and value."""

    def __init__(self, folded: str, quantities: list[Quantity], today: date | None = None) -> None:
        self.folded = folded
        self.today = today
        self.quantities = quantities
        self.calendar = Calendar(q for q in quantities if q.kind in CALENDAR)
        self.strings: dict[str, Quantity] = {}
        self.by_value: dict[tuple[str, Decimal], list[Quantity]] = defaultdict(list)
        self.plain: dict[Decimal, list[Quantity]] = defaultdict(list)
        self.ranges: dict[str, list[Quantity]] = defaultdict(list)
        self._sorted: dict[str, list[tuple[Decimal, Quantity]]] = {}
        self._nouns: dict[str, list[Quantity]] | None = None
        self._words: dict[tuple[int, int], frozenset[str]] = {}
        for quantity in quantities:
            self._add(quantity)

    def _add(self, quantity: Quantity) -> None:
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
        if quantity.high is not None:
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
            pairs = [
                (base, q)
                for (fam, base), found in self.by_value.items()
                if fam == name
                for q in found
                if q.high is None
            ]
            self._sorted[name] = sorted(pairs, key=lambda pair: (pair[0], pair[1].span))
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


def compare(quantity: Quantity, summary: str, source: Source) -> Match:
    """The best thing the source says about one figure of the (folded) summary."""
    if quantity.kind == UNREAD:
        return Match("unread", None, "number words that form no number")
    if quantity.kind == IDENTIFIER:
        return _compare_named(quantity, source) or _compare_string(quantity, source)
    if quantity.kind in CALENDAR:
        reason, nearest = compare_calendar(quantity, source.calendar, source.today)
        return Match(reason, nearest)
    if quantity.kind == RATIO and quantity.unit == ":":
        return _compare_score(quantity, source)
    return _compare_value(quantity, summary, source)


def _compare_string(quantity: Quantity, source: Source) -> Match:
    found = source.strings.get(quantity.string)
    if found is None:
        digits = "".join(c for c in quantity.string if c.isdigit())
        found = next(
            (
                q
                for s, q in source.strings.items()
                if digits and "".join(c for c in s if c.isdigit()).endswith(digits) and len(digits) >= 4
            ),
            None,
        )
    if found is not None:
        return Match("exact" if found.text == quantity.text else "written otherwise", found)
    if quantity.string.isdigit():
        same = source.plain.get(Decimal(quantity.string))
        if same:
            return Match("written otherwise", same[0])
    return Match("not found", None)


_NAMED_CODE = re.compile(r"([a-z]{4,})-?\d{1,3}")  # covid-19: a name with a number, not a number


def is_named_code(text: str) -> bool:
    """Whether an identifier is a word of at least four letters with a short number behind it."""
    return _NAMED_CODE.fullmatch(text.lower()) is not None


def _compare_named(quantity: Quantity, source: Source) -> Match | None:
    """COVID-19 agrees with a source that says COVID, unless the source gives the word another number."""
    named = _NAMED_CODE.fullmatch(quantity.text.lower())
    if named is None or quantity.string in source.strings:
        return None
    word = named[1]
    rival = next((q for string, q in source.strings.items() if string.rstrip("0123456789") == word), None)
    if rival is not None:
        return Match("not found", rival, f"the source has {rival.text!r}", conflict=True)
    return Match("written otherwise") if re.search(rf"\b{word}\b", source.folded) else None


def _compare_score(quantity: Quantity, source: Source) -> Match:
    found = source.strings.get(quantity.string)
    if found is not None:
        return Match("exact" if found.text == quantity.text else "written otherwise", found)
    turned = source.strings.get(":".join(reversed(quantity.string.split(":"))))
    return Match("wrong role", turned) if turned is not None else Match("not found", None)


def _compare_value(quantity: Quantity, summary: str, source: Source) -> Match:
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
            return _bound(quantity, reason, candidates, summary, source)
    return _other(quantity, name, value, summary, source)


_Found = tuple[str, list[Quantity]] | None


def _same_value(quantity: Quantity, name: str, value: Decimal, source: Source) -> _Found:
    same = [q for q in source.by_value.get((name, value), []) if _units_agree(quantity, q)]
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


def _units_agree(left: Quantity, right: Quantity) -> bool:
    """Same currency; measure words that count the same sort of thing, or a general one."""
    if left.kind == AMOUNT and right.kind == AMOUNT:
        return left.unit == right.unit
    if left.kind == COUNT and right.kind == COUNT and left.unit and right.unit:
        groups = CLASSIFIERS.get(left.unit), CLASSIFIERS.get(right.unit)
        return groups[0] == groups[1] or "generic" in groups
    return True


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
        if _comparable(quantity, q) and _finer(q, quantity)
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
            if _comparable(quantity, q)
        ]
        if near:
            return "approximate", near
    return None


def _families(quantity: Quantity, name: str) -> tuple[str, ...]:
    """Where to look: a bare number may be an amount whose currency was left out, and the other way round."""
    if quantity.kind == COUNT and quantity.unit is None:
        return (name, "money")
    return (name, COUNT) if quantity.kind == AMOUNT else (name,)


def _comparable(left: Quantity, right: Quantity) -> bool:
    if left.kind == right.kind:
        return _units_agree(left, right)
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
        if reason is not None and _units_agree(quantity, candidate):
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
    same = [
        candidate
        for candidate in source.ranges.get(name, [])
        if _units_agree(quantity, candidate)
        and (base_value(candidate, candidate.value), base_value(candidate, candidate.high)) == (value, high)
    ]
    exact = next((candidate for candidate in same if candidate.text == quantity.text), None)
    if same:
        return Match("written otherwise", same[0]) if exact is None else Match("exact", exact)
    if high is not None and quantity.bound in ("over", "about"):
        inside = [q for q in source.between(name, value, high) if _units_agree(quantity, q)]
        inside += [
            q for q in source.ranges.get(name, []) if _overlap(q, value, high) and _units_agree(quantity, q)
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


def _bound(
    quantity: Quantity, reason: str, candidates: list[Quantity], summary: str, source: Source
) -> Match:
    """Checks direction, counted noun and sentence of every candidate: one that does not contradict is
    enough."""
    up = direction(summary, *quantity.span)
    if up:
        agreeing = [q for q in candidates if direction(source.folded, *q.span) != -up]
        if not agreeing:
            return Match("other sign", candidates[0], "the source says the opposite direction")
        candidates = agreeing
    rival = _counted_otherwise(quantity, candidates, summary, source)
    rival = rival or _said_of_other(quantity, candidates, summary, source)
    if rival is not None:
        return Match("wrong role", rival, f"the source has this value, but says {rival.text!r} here")
    return Match(reason, candidates[0])


def _counted_otherwise(
    quantity: Quantity, candidates: list[Quantity], summary: str, source: Source
) -> Quantity | None:
    """A count of the same noun with another value, where no candidate counts that noun: 12 bugs in 3
    features."""
    if quantity.kind != COUNT:
        return None
    wanted = counted_nouns(summary, quantity.span[1])
    if not wanted:
        return None
    for candidate in candidates:
        found = counted_nouns(source.folded, candidate.span[1])
        if candidate.kind != COUNT or not found or found & wanted:
            return None
    return _rival(quantity, wanted, source)


def _rival(quantity: Quantity, nouns: frozenset[str], source: Source) -> Quantity | None:
    """A figure of the source that counts one of `nouns`, when all that do have another value."""
    rivals = [q for noun in sorted(nouns) for q in source.nouns().get(noun, [])]
    return rivals[0] if rivals and not any(_admits(q, quantity.value) for q in rivals) else None


def _admits(candidate: Quantity, value: Decimal | None) -> bool:
    if candidate.value is None or value is None:
        return True
    return candidate.value <= value <= (candidate.value if candidate.high is None else candidate.high)


_ROLE_WORDS = 3  # shared words that make another figure's sentence the one that the summary speaks of


def _said_of_other(
    quantity: Quantity, candidates: list[Quantity], summary: str, source: Source
) -> Quantity | None:
    """A figure of the same family whose sentence shares words with the summary's where no candidate's
    does."""
    wanted = words_around(summary, *quantity.span)
    if len(wanted) < _ROLE_WORDS or quantity.kind == COUNT:
        return None
    if any(wanted & source.words(q) for q in candidates):
        return None
    best, shared = None, _ROLE_WORDS - 1
    for _, rival in source.sorted_values(family(quantity)):
        common = len(wanted & source.words(rival))
        if common > shared and rival.value != quantity.value:
            best, shared = rival, common
    return best


def _other(quantity: Quantity, name: str, value: Decimal, summary: str, source: Source) -> Match:
    opposite = [q for q in source.by_value.get((name, -value), []) if value]
    if opposite:
        # A loss of 300 is -300: the word on the positive side does what the minus does on the other.
        words = [
            direction(summary, *quantity.span) if value > 0 else direction(source.folded, *q.span)
            for q in opposite
        ]
        return Match("written otherwise" if -1 in words else "other sign", opposite[0])
    ambiguous = _second_reading(quantity, name, source)
    if ambiguous is not None:
        return Match("ambiguous", ambiguous)
    worked_out = _worked_out(quantity, name, value, summary, source)
    if worked_out is not None:
        return worked_out
    rival = (
        _rival(quantity, counted_nouns(summary, quantity.span[1]), source) if quantity.kind == COUNT else None
    )
    same = [q for q in source.plain.get(abs(quantity.value or Decimal(0)), []) if q.kind != ORDINAL]
    if same and quantity.kind != ORDINAL:
        return Match("other unit", same[0], conflict=rival is not None)
    if rival is not None:
        return Match("not found", rival, f"the source has {rival.text!r} of them", conflict=True)
    return Match("not found", source.nearest(name, value))


def _second_reading(quantity: Quantity, name: str, source: Source) -> Quantity | None:
    """1.234 may be a thousand, and a bracketed amount may be negative: the other reading, when the source
    has it."""
    value = quantity.value or Decimal(0)
    kinds = dict(quantity.other)
    others = ([value * 1000] if "thousands" in kinds else []) + ([-value] if "negative" in kinds else [])
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
        pairs = [(base, q) for base, q in source.sorted_values(other) if ratio or _units_agree(quantity, q)]
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
