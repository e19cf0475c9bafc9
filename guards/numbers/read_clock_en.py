# ruff: noqa: E501 (patterns and tables of names are easier to read in one piece)
"""What an English clock time states: a match of a rule of `dates_en` -> hour and minute, or None."""

from __future__ import annotations

import re

from seatrial.guards.numbers.words_en import (
    DAYS,
    number_of,
    valid,
)


def read_clock(found: re.Match[str]) -> dict[str, int] | None:
    groups = found.groupdict()
    hour = number_of(groups["hour"])
    minute = groups.get("minute") or ""
    fields = {"H": hour, "M": number_of(minute.removeprefix("oh ")) if minute else 0}
    if groups.get("sec"):
        fields["S"] = int(groups["sec"])
    half = re.sub(r"[ .]", "", groups.get("half") or "")
    if half[:1] in ("a", "p") and half:
        fields |= {"H": hour % 12 + (12 if half[0] == "p" else 0), "pm": int(half[0] == "p")}
    elif hour > 12:
        fields["pm"] = 1
    return valid(fields) if hour >= 0 else None


def read_compact_clock(found: re.Match[str]) -> dict[str, int] | None:
    hour, pm = int(found["hour"]), found["half"][0] == "p"
    return valid({"H": hour % 12 + (12 if pm else 0), "M": int(found["minute"]), "pm": int(pm)})


def read_clock_of_day(found: re.Match[str]) -> dict[str, int] | None:
    """Ten in the morning, 8 at night; the small hours belong to the night and to the morning."""
    hour = number_of(found["hour"])
    if not 1 <= hour <= 12:
        return None
    early = found["half"] == "morning" or (found["half"] == "night" and (hour <= 5 or hour == 12))
    minute = int(found["minute"] or 0)
    return {"H": hour % 12 + (0 if early else 12), "M": minute, "pm": int(not early)}


def read_clock_before(found: re.Match[str]) -> dict[str, int] | None:
    """The first time of "1-3 pm" and "11-1pm": the half of the second, unless it would lie behind it."""
    first, second = int(found["hour"]), int(found["second"])
    pm = found["half"][0] == "p"
    if first > second and first != 12:
        pm = not pm
    return (
        valid({"H": first % 12 + (12 if pm else 0), "M": int(found["minute"] or 0), "pm": int(pm)})
        if first <= 12
        else None
    )


def read_hour(found: re.Match[str]) -> dict[str, int] | None:
    """An hour without minutes after a word that shows it: "at 5", "from 7", "monday 11-4"."""
    hour = int(found["hour"])
    return {"H": hour, "M": int(found.groupdict().get("minute") or 0)} if 1 <= hour <= 12 else None


_DAY_BEFORE = re.compile(
    rf"(?:{'|'.join(DAYS)}|today|tomorrow|tonight|morning|afternoon|evening)s?,? (?:from |between |at |around )?$"
)


def read_hour_of_range(found: re.Match[str]) -> dict[str, int] | None:
    """The first hour of "monday 11-4" and "from 7 to 7:30": a day before it, or minutes behind the second."""
    text = found.string
    day = _DAY_BEFORE.search(text, max(0, found.start() - 26), found.start())
    minutes = re.match(r" ?(?:-|–|to|and|till) ?\d{1,2}:\d\d", text[found.end() : found.end() + 12])
    if day is None and (minutes is None or found["minute"]):
        return None
    return read_hour(found)


def read_noon(found: re.Match[str]) -> dict[str, int]:
    noon = found["word"] != "midnight"
    return {"H": 12 if noon else 0, "M": 0, "pm": int(noon)}


def read_past(found: re.Match[str]) -> dict[str, int] | None:
    """Half past ten, a quarter to six, ten past nine; "five to ten" is a range."""
    part = found["part"].removeprefix("a ")
    if part not in ("half", "quarter") and found["way"] == "to":
        return None
    minutes = {"half": 30, "quarter": 15}.get(part) or number_of(part)
    hour = number_of(found["hour"])
    if not 0 < hour <= 12:
        return None
    total = hour * 60 + (-minutes if found["way"] in ("to", "of") else minutes)
    return {"H": total // 60 % 24, "M": total % 60}
