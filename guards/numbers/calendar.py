"""Dates, times and weekdays of a summary against those of the source.

A summary may state fewer parts than the source (June for June 26th), and parts that the source states in
different places (the year once, the day later). It may not state a part that contradicts every candidate. With
the day of the meeting, relative words of either side are compared as calendar days.
"""

from __future__ import annotations

from datetime import date

from seatrial.guards.numbers.quantity import TIME, Quantity
from seatrial.guards.numbers.resolve import Period, resolve, shifted_day

_OFFSETS = frozenset({"D", "W", "F", "Mo", "Q", "Y", "Dec", "wd", "we"})
_NARRATIVE = frozenset({"dp", "same"})


def is_vague(quantity: Quantity) -> bool:
    """Words that carry no figure: today, this year, in the morning, 当天."""
    return all(name in _NARRATIVE or (name in _OFFSETS and part == 0) for name, part in quantity.fields)


def compare_calendar(
    quantity: Quantity, candidates: list[Quantity], today: date | None = None
) -> tuple[str, Quantity | None]:
    """The reason and the nearest candidate for one date, time or weekday."""
    wanted = dict(quantity.fields)
    same = [c for c in candidates if _covers(dict(c.fields), wanted)]
    if same:
        return _same(quantity, same)
    other = next((c for c in candidates if c.other and _covers(dict(c.other), wanted)), None)
    if other is not None:
        return "ambiguous", other
    near = _likest(wanted, candidates)
    if _assembled(wanted, candidates):
        return "written otherwise", near
    if today is not None:
        resolved = _resolved(wanted, candidates, today)
        return ("not found", near) if resolved is None else ("written otherwise", resolved)
    return ("ambiguous" if _needs_the_day(wanted, candidates) else "not found"), near


def _same(quantity: Quantity, candidates: list[Quantity]) -> tuple[str, Quantity]:
    exact = next((c for c in candidates if c.text.lower() == quantity.text.lower()), None)
    if exact is not None:
        return "exact", exact
    clear = next((c for c in candidates if bool(c.other) == bool(quantity.other)), None)
    return ("ambiguous", candidates[0]) if clear is None else ("written otherwise", clear)


def _covers(stated: dict[str, int], wanted: dict[str, int]) -> bool:
    """Every wanted part is stated; which week is not held against a source that leaves it open."""
    if "H" in wanted:
        return "H" in stated and _same_time(stated, wanted)
    if "W" in wanted and "W" not in stated and {"wd", "we"} & wanted.keys():
        wanted = {name: part for name, part in wanted.items() if name != "W"}
    return wanted.items() <= stated.items()


def _same_time(stated: dict[str, int], wanted: dict[str, int]) -> bool:
    if stated.get("M", 0) != wanted.get("M", 0):
        return False
    if "pm" in stated and "pm" in wanted:
        return stated["H"] % 24 == wanted["H"] % 24
    return stated["H"] % 12 == wanted["H"] % 12


def _likest(wanted: dict[str, int], candidates: list[Quantity]) -> Quantity | None:
    """The candidate that shares most parts, if any."""
    best, score = None, 0.0
    for candidate in candidates:
        stated = dict(candidate.fields)
        common = stated.keys() & wanted.keys()
        likeness = sum(1.0 if stated[name] == wanted[name] else 0.3 for name in common)
        if likeness > score:
            best, score = candidate, likeness
    return best


def _assembled(wanted: dict[str, int], candidates: list[Quantity]) -> bool:
    """The parts stand in the source, but apart: the year in one place, month and day in another."""
    if "y" not in wanted or len(wanted) < 2:
        return False
    rest = {name: part for name, part in wanted.items() if name != "y"}
    years = any(c.field("y") == wanted["y"] for c in candidates)
    return years and any(
        _covers(dict(c.fields), rest) and c.field("y") in (None, wanted["y"])
        for c in candidates
        if c.kind != TIME
    )


def _resolved(wanted: dict[str, int], candidates: list[Quantity], today: date) -> Quantity | None:
    """The candidate that names the same days, or days within those that the summary names."""
    periods = _periods(wanted, today)
    for candidate in candidates:
        for inner in _periods(dict(candidate.fields), today):
            if any(outer[0] <= inner[0] and inner[1] <= outer[1] for outer in periods):
                return candidate
    return None


def _periods(fields: dict[str, int], today: date) -> list[Period]:
    if "H" in fields:
        return []
    single = (
        shifted_day(fields, today) if fields.keys() <= {"D", "W", "Mo", "Y"} and len(fields) == 1 else None
    )
    found = resolve(fields, today)
    return found if single is None or "D" in fields else [*found, (single, single)]


def _needs_the_day(wanted: dict[str, int], candidates: list[Quantity]) -> bool:
    """A calendar day, where the source only has words such as tomorrow and next Friday: the meeting's day decides."""
    if "d" not in wanted:
        return False
    days = [c for c in candidates if "d" in dict(c.fields)]
    relative = [c for c in candidates if _OFFSETS & dict(c.fields).keys() and not is_vague(c)]
    return bool(relative) and not days
