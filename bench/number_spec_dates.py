"""Days, clock times and durations of the published cases against ours, seen from a case's reference day."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Any

from seatrial.guards.numbers import Quantity
from seatrial.guards.numbers.resolve import resolve, shifted_day
from seatrial.guards.numbers.units import BY_NAME


def judge_datetime(figures: list[Quantity], row: dict[str, Any]) -> bool:
    """Days and clock times are those of the cases, seen from their reference day.

    Each expected result is compared with our figures inside its span: the first day and the last day (or
    the day after it), the first and last clock time. Where the cases give several values, one must agree.
    """
    today = datetime.fromisoformat(row["reference"] or "2016-11-07T00:00:00")
    calendar = [q for q in figures if q.kind in ("date", "time", "weekday", "duration")]
    if not row["results"]:
        return not [q for q in calendar if q.kind != "duration"]
    return all(_agrees_datetime(result, calendar, today) for result in row["results"])


def _agrees_datetime(result: dict[str, Any], figures: list[Quantity], today: datetime) -> bool:
    start, end = result["start"], result["end"] + 1
    inside = [q for q in figures if q.span[0] < end and start < q.span[1]]
    return any(_agrees_value(value, inside, today) for value in result["values"])


def _agrees_value(value: dict[str, Any], figures: list[Quantity], today: datetime) -> bool:
    if value["type"] in ("duration", "set"):
        return _agrees_duration(value, figures)
    wanted = [value[name] for name in ("value", "start", "end") if name in value]
    days = [date.fromisoformat(w[:10]) for w in wanted if re.match(r"\d{4}-\d\d-\d\d", w)]
    clocks = [w[-8:-3] for w in wanted if re.search(r"\d\d:\d\d:\d\d$", w)]
    return (
        bool(wanted)
        and _agrees_days(days, value, figures, today)
        and _agrees_clocks(clocks, value, figures, today)
    )


def _agrees_days(days: list[date], value: dict[str, Any], figures: list[Quantity], today: datetime) -> bool:
    if not days or value["type"] in ("time", "timerange"):
        return True
    periods = [p for q in figures if q.fields for p in _periods(q, today.date())]
    edges = {day for period in periods for day in (*period, period[1] - timedelta(days=1))}
    if not periods:
        edges = {
            (today + timedelta(seconds=sign * seconds)).date()
            for seconds in _seconds(figures)
            for sign in (1, -1)
        }
        edges |= {today.date()} if value["type"].startswith("datetime") and _clock_texts(figures) else set()
    if value["type"] == "daterange":
        edges |= {today.date()} if periods else set()  # "from March to date", "later this week"
    return all(day in edges for day in days)


def _periods(figure: Quantity, today: date) -> list[tuple[date, date]]:
    fields = dict(figure.fields)
    found = resolve(fields, today)
    if "part" in fields:  # the cases keep "the end of 2000" as the whole year with a remark
        found += resolve({name: part for name, part in fields.items() if name != "part"}, today)
    shifted = shifted_day(fields, today)
    if shifted is not None and not fields.keys() - {"D", "W", "F", "Mo", "Q", "Y"}:
        found = [*found, (shifted, shifted + timedelta(days=1))]
        if "D" not in fields:
            found.append((min(shifted, today), max(shifted, today)))
    return found


def _seconds(figures: list[Quantity]) -> list[float]:
    return [
        float(q.value * BY_NAME[q.unit or ""].factor)
        for q in figures
        if q.kind == "duration" and q.value is not None
    ]


def _clock_texts(figures: list[Quantity]) -> set[str]:
    clocks = set()
    for q in figures:
        fields = dict(q.fields)
        if "H" in fields:
            hours = [fields["H"] % 24] if "pm" in fields else [fields["H"] % 24, (fields["H"] + 12) % 24]
            clocks |= {f"{hour:02d}:{fields.get('M', 0):02d}" for hour in hours}
    return clocks


_PARTS_OF_DAY = {"TMO": 1, "TAF": 2, "TEV": 3, "TNI": 4}


def _agrees_clocks(
    clocks: list[str], value: dict[str, Any], figures: list[Quantity], today: datetime
) -> bool:
    part = next((name for name in _PARTS_OF_DAY if name in value["timex"]), None)
    if part is not None:
        return any(
            dict(q.fields).get("dp") in (_PARTS_OF_DAY[part], 3 if part == "TNI" else None) for q in figures
        )
    ours = _clock_texts(figures)
    for seconds in _seconds(figures):
        ours |= {(today + timedelta(seconds=sign * seconds)).strftime("%H:%M") for sign in (1, -1)}
        if value["type"].endswith("range"):
            ours |= {_later(clock, seconds) for clock in set(ours)} | {today.strftime("%H:%M")}
    return all(clock in ours or clock in ("00:00", "23:59") for clock in clocks)


def _later(clock: str, seconds: float) -> str:
    return (datetime.strptime(clock, "%H:%M") + timedelta(seconds=seconds)).strftime("%H:%M")


def _agrees_duration(value: dict[str, Any], figures: list[Quantity]) -> bool:
    """A duration by its seconds; months and years are 30 and 360 days to us, 30 and 365 to the cases."""
    if value["type"] == "set":
        weekday = re.search(r"WXX-(\d)", value["timex"])
        if weekday:
            return any(dict(q.fields).get("wd") == int(weekday[1]) for q in figures)
        clock = re.fullmatch(r"T(\d\d)(?::(\d\d))?", value["timex"])
        return clock is not None and f"{clock[1]}:{clock[2] or '00'}" in _clock_texts(figures)
    expected = float(value["value"])
    ours = _seconds(figures)
    years = [s * 365 / 360 for s in ours]
    return any(abs(expected - s) < 1 for s in ours + years)
