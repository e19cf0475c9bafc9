"""Dates, times and weekdays of a summary against those of the source.

A summary may state fewer parts than the source (June for June 26th), and parts that the source states in
different places (the year once, the day later). It may not state a part that contradicts every candidate.
"""

from __future__ import annotations

from seatrial.guards.numbers.quantity import TIME, Quantity

_DAY = frozenset({"d", "m"})


def compare_calendar(quantity: Quantity, candidates: list[Quantity]) -> tuple[str, Quantity | None]:
    """The reason and the nearest candidate for one date, time or weekday."""
    wanted = dict(quantity.fields)
    best: Quantity | None = None
    best_score = -1.0
    for candidate in candidates:
        stated = dict(candidate.fields)
        if _covers(stated, wanted):
            if quantity.other and dict(quantity.other) != wanted and not candidate.other:
                return "ambiguous", candidate
            if candidate.other and not quantity.other:
                return "ambiguous", candidate
            return (
                "exact" if candidate.text.lower() == quantity.text.lower() else "written otherwise"
            ), candidate
        if candidate.other and _covers(dict(candidate.other), wanted):
            return "ambiguous", candidate
        score = _likeness(stated, wanted)
        if score > best_score and score > 0:
            best, best_score = candidate, score
    if _assembled(wanted, candidates):
        return "written otherwise", best
    return "not found", best


def _covers(stated: dict[str, int], wanted: dict[str, int]) -> bool:
    if "H" in wanted:
        return "H" in stated and _same_time(stated, wanted)
    return wanted.items() <= stated.items()


def _same_time(stated: dict[str, int], wanted: dict[str, int]) -> bool:
    if stated.get("M", 0) != wanted.get("M", 0):
        return False
    if "pm" in stated and "pm" in wanted:
        return stated["H"] % 24 == wanted["H"] % 24
    return stated["H"] % 12 == wanted["H"] % 12


def _likeness(stated: dict[str, int], wanted: dict[str, int]) -> float:
    common = stated.keys() & wanted.keys()
    return sum(1.0 if stated[name] == wanted[name] else 0.3 for name in common)


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
