"""One figure of the summary against the figures of the source: the reason, and the nearest source figure.

Reasons, from good to bad: exact, written otherwise, rounded, approximate, range, one end, sum, difference,
ratio, ambiguous, wrong role, other unit, other sign, not found. Pure functions of extracted quantities and
the folded texts around them; severities are in `policy.py`.
"""

from __future__ import annotations

import re
from decimal import Decimal

from seatrial.guards.numbers.calendar import compare_calendar
from seatrial.guards.numbers.compare_values import compare_value
from seatrial.guards.numbers.context import words_around
from seatrial.guards.numbers.quantity import COUNT, IDENTIFIER, RATIO, TIME, UNREAD, Quantity
from seatrial.guards.numbers.source import CALENDAR, Match, Source, length_s


def compare(quantity: Quantity, summary: str, source: Source) -> Match:
    """The best thing the source says about one figure of the (folded) summary."""
    if quantity.kind == UNREAD:
        return Match("unread", None, "number words that form no number")
    if quantity.kind == IDENTIFIER:
        return _compare_named(quantity, source) or _compare_string(quantity, source)
    if quantity.kind in CALENDAR:
        shared = _Shared(quantity, summary, source)
        reason, nearest = compare_calendar(quantity, source.calendar, source.today, shared=shared)
        if reason == "not found" and quantity.kind == TIME and quantity.field("S") is not None:
            lasting = source.by_value.get(("time", length_s(quantity)))
            if lasting:
                return Match("written otherwise", lasting[0])
        if reason == "not found" and _stretch_s(quantity) is not None:
            lasting = source.by_value.get(("time", _stretch_s(quantity) or Decimal(0)))
            if lasting:
                return Match("written otherwise", lasting[0])
        return Match(reason, nearest)
    if quantity.kind == RATIO and quantity.unit == ":":
        return _compare_score(quantity, source)
    return compare_value(quantity, summary, source)


_STRETCHES = {"nD": 86400, "nW": 604800, "nMo": 2592000, "nQ": 7776000, "nY": 31104000}


def _stretch_s(quantity: Quantity) -> Decimal | None:
    """How long 前两个月 is: the last two months, or the first two of something."""
    ((name, count), *more) = quantity.fields
    return None if more or name not in _STRETCHES else Decimal(abs(count) * _STRETCHES[name])


class _Shared:
    """How many words the sentence of a figure of the source shares with the summary's; few dates ask."""

    def __init__(self, quantity: Quantity, summary: str, source: Source) -> None:
        self._span, self._summary, self._source = quantity.span, summary, source
        self._words: frozenset[str] | None = None

    def __call__(self, near: Quantity) -> int:
        if self._words is None:
            self._words = words_around(self._summary, *self._span)
        return len(self._words & self._source.words(near))


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
    if found is None and _SPACED_CODE.fullmatch(quantity.string):
        letters, digits = _SPACED_CODE.fullmatch(quantity.string).groups()  # type: ignore[union-attr]
        if re.search(rf"(?<!\w){letters}[ -]{digits}(?![\w.,]?\d)", source.folded):
            return Match("written otherwise")
    if quantity.string.isdigit():
        same = source.plain.get(Decimal(quantity.string))
        if same:
            return Match("written otherwise", same[0])
    return Match("not found", None)


_SPACED_CODE = re.compile(r"([a-z]{1,4})(\d{2,})")  # LH1834 for LH 1834
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
    apart = _said_apart(quantity, source)
    if apart is not None:
        return Match("written otherwise", apart)
    turned = source.strings.get(":".join(reversed(quantity.string.split(":"))))
    return Match("wrong role", turned) if turned is not None else Match("not found", None)


_APART = 12  # characters between the two counts of a score that is told: 218 votes to 212


def _said_apart(quantity: Quantity, source: Source) -> Quantity | None:
    """218:212 where the source says 218 to 212, or 218票对212票: the first of the two counts."""
    first, second = map(Decimal, quantity.string.split(":"))
    for left in source.by_value.get((COUNT, first), []):
        for right in source.by_value.get((COUNT, second), []):
            gap = source.folded[left.span[1] : min(right.span[0], left.span[1] + _APART + 1)]
            if 0 < right.span[0] - left.span[1] <= _APART and _TO.match(gap):
                return left
    return None


_TO = re.compile(r"[^.。;；]*(?: to |对|比)")
