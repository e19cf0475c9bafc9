"""Dates, times and weekdays of a summary against those of the source.

A summary may state fewer parts than the source (June for June 26th), and parts that the source states in
different places (the year once, the day later). It may not state a part that contradicts every candidate.
With the day of the meeting, relative words of either side are compared as calendar days.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import date

from seatrial.guards.numbers.quantity import TIME, Quantity
from seatrial.guards.numbers.resolve import Period, resolve, shifted_day

_OFFSETS = frozenset({"D", "W", "F", "Mo", "Q", "Y", "Dec", "wd", "we"})
_NARRATIVE = frozenset({"dp", "same"})


def is_vague(quantity: Quantity) -> bool:
    """Words that carry no figure: today, this year, in the morning, 当天."""
    return all(name in _NARRATIVE or (name in _OFFSETS and part == 0) for name, part in quantity.fields)


Candidates = list[tuple[dict[str, int], Quantity]]  # the parts of a figure of the source, and the figure


class Calendar:
    """The dates and times of a source, to be found by any part."""

    def __init__(self, quantities: Iterable[Quantity]) -> None:
        self.all: Candidates = [(dict(q.fields), q) for q in quantities]
        self._by_part: dict[tuple[str, int], Candidates] = defaultdict(list)
        for entry in self.all:
            for name, part in entry[0].items():
                self._by_part[name, part % 12 if name == "H" else part].append(entry)

    def like(self, wanted: dict[str, int]) -> Candidates:
        """Those that share the rarest part of `wanted`; which week and which half day are left aside."""
        parts = [(n, p % 12 if n == "H" else p) for n, p in wanted.items() if n not in ("W", "pm", "M", "S")]
        lists = [self._by_part.get(part, []) for part in parts]
        return min(lists, key=len) if lists else self.all


def compare_calendar(
    quantity: Quantity,
    calendar: Calendar,
    today: date | None = None,
    *,
    shared: Callable[[Quantity], int],
) -> tuple[str, Quantity | None]:
    """The reason and the nearest candidate for one date, time or weekday.

    `shared` counts the words that the sentence of a candidate shares with the summary's.
    """
    wanted = dict(quantity.fields)
    same = [c for stated, c in calendar.like(wanted) if _covers(stated, wanted)]
    if same:
        return _same(quantity, same, wanted)
    candidates = calendar.all
    other = next((c for _, c in candidates if c.other and _covers(dict(c.other), wanted)), None)
    if other is not None:
        return "ambiguous", other
    near = _likest(wanted, candidates)
    if _assembled(wanted, candidates):
        return "written otherwise", near
    if today is not None:
        resolved = _resolved(wanted, candidates, today)
        return ("not found", near) if resolved is None else ("written otherwise", resolved)
    relative = _needs_the_day(wanted, candidates, shared)
    if relative is not None:
        return "ambiguous", relative
    return ("ambiguous" if _month_unsaid(wanted, candidates) else "not found"), near


def _same(quantity: Quantity, candidates: list[Quantity], wanted: dict[str, int]) -> tuple[str, Quantity]:
    exact = next((c for c in candidates if c.text.lower() == quantity.text.lower()), None)
    if exact is not None:
        return "exact", exact
    clear = next((c for c in candidates if _one_reading(quantity, c, wanted)), None)
    return ("ambiguous", candidates[0]) if clear is None else ("written otherwise", clear)


def _one_reading(quantity: Quantity, candidate: Quantity, wanted: dict[str, int]) -> bool:
    """Neither side leaves open which is the day and which the month, or what is wanted holds in both
    readings."""
    if candidate.other and not _covers(dict(candidate.other), wanted):
        return bool(quantity.other)
    return not quantity.other or bool(candidate.other)


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
    if "S" in stated and "S" in wanted and stated["S"] != wanted["S"]:
        return False
    if "pm" in stated and "pm" in wanted:
        return stated["H"] % 24 == wanted["H"] % 24
    return stated["H"] % 12 == wanted["H"] % 12


def _likest(wanted: dict[str, int], candidates: Candidates) -> Quantity | None:
    """The candidate that shares most parts, if any."""
    best, score = None, 0.0
    for stated, candidate in candidates:
        common = stated.keys() & wanted.keys()
        likeness = sum(1.0 if stated[name] == wanted[name] else 0.3 for name in common)
        if likeness > score:
            best, score = candidate, likeness
    return best


def _assembled(wanted: dict[str, int], candidates: Candidates) -> bool:
    """The parts stand in the source, but apart: the year in one place, month and day in another; or the
    weekday beside the day.
    """
    if "wd" in wanted and len(wanted) > 1:
        return _beside(wanted, candidates)
    if "y" not in wanted or len(wanted) < 2:
        return False
    rest = {name: part for name, part in wanted.items() if name != "y"}
    years = any(stated.get("y") == wanted["y"] for stated, _ in candidates)
    return years and any(
        _covers(stated, rest) and stated.get("y") in (None, wanted["y"])
        for stated, candidate in candidates
        if candidate.kind != TIME
    )


_BESIDE = 24  # characters between a weekday and the day that it is


def _beside(wanted: dict[str, int], candidates: Candidates) -> bool:
    rest = {name: part for name, part in wanted.items() if name != "wd"}
    weekdays = [c for stated, c in candidates if stated.get("wd") == wanted["wd"]]
    days = [
        c for stated, c in candidates if _covers(stated, rest) and stated.get("wd") in (None, wanted["wd"])
    ]
    return any(
        0 <= max(day.span[0], weekday.span[0]) - min(day.span[1], weekday.span[1]) <= _BESIDE
        for weekday in weekdays
        for day in days
    )


def _resolved(wanted: dict[str, int], candidates: Candidates, today: date) -> Quantity | None:
    """The candidate that names the same days, or days within those that the summary names."""
    periods = _periods(wanted, today)
    for stated, candidate in candidates:
        for inner in _periods(stated, today):
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


def _needs_the_day(
    wanted: dict[str, int], candidates: Candidates, shared: Callable[[Quantity], int]
) -> Quantity | None:
    """Tomorrow or next Friday, where the summary has a calendar day: only the meeting's day decides.

    None when the source names a day itself where it speaks of the same: that day contradicts.
    """
    if "d" not in wanted:
        return None
    relative = [
        c for stated, c in candidates if _OFFSETS & stated.keys() and "d" not in stated and not is_vague(c)
    ]
    if not relative:
        return None
    likest = max(relative, key=shared)
    said = max((shared(c) for stated, c in candidates if "d" in stated), default=0)
    return likest if said == 0 or said < shared(likest) else None


def _month_unsaid(wanted: dict[str, int], candidates: Candidates) -> bool:
    """Monday the sixteenth, where the summary says 16 March: only the meeting's day decides the month."""
    if not {"d", "m"} <= wanted.keys():
        return False
    rest = {name: part for name, part in wanted.items() if name not in ("m", "y")}
    return any("d" in stated and stated.items() <= rest.items() for stated, _ in candidates)
