"""Calendar parts to days: what "tomorrow", 下周三 or "the third quarter" is, seen from a given day.

A period is half open: [first day, day after the last). Weeks begin on Monday. Parts that leave the year open
give the nearest period before and the nearest after the given day.
"""

from __future__ import annotations

from calendar import monthrange
from datetime import date, timedelta

Period = tuple[date, date]

_OFFSETS = ("D", "W", "F", "Mo", "Q", "Y", "Dec")
_DAY = timedelta(days=1)


def resolve(fields: dict[str, int], today: date) -> list[Period]:
    """Periods that the parts may mean, seen from `today`; empty when they name none (a clock time alone).

    Years outside the calendar of `datetime.date` (1 to 9999) give no period.
    """
    try:
        return _resolve(fields, today)
    except (ValueError, OverflowError):
        return []


def _resolve(fields: dict[str, int], today: date) -> list[Period]:
    stretch = next((name for name in fields if len(name) > 1 and name[0] == "n"), None)
    if stretch is not None:
        return [_stretch(stretch[1:], fields[stretch], today)]
    if any(name in fields for name in _OFFSETS):
        return _relative(fields, today)
    if "wd" in fields and "d" in fields and "m" not in fields:
        return _weekday_dates(fields["wd"], fields["d"], today)
    if "wd" in fields and "m" not in fields and "y" not in fields:
        return _weekdays(fields["wd"], today)
    if "we" in fields:
        return [_weekend(today, 0)]
    if "y" in fields:
        return _within_year(fields, fields["y"])
    if "dec" in fields:
        return [(date(fields["dec"], 1, 1), date(fields["dec"] + 10, 1, 1))]
    if "cent" in fields:
        return [(date(fields["cent"] * 100 - 100, 1, 1), date(fields["cent"] * 100, 1, 1))]
    if "m" in fields or "q" in fields or "h" in fields or "wk" in fields:
        return _nearest([p for year in (-1, 0, 1) for p in _within_year(fields, today.year + year)], today)
    if "d" in fields:
        return _nearest(_days_of_months(fields["d"], today), today)
    return []


def _nearest(periods: list[Period], today: date) -> list[Period]:
    """The last period that has begun by `today` and the first that begins after it."""
    past = [p for p in periods if p[0] <= today]
    future = [p for p in periods if p[0] >= today]
    return past[-1:] + [p for p in future[:1] if p not in past[-1:]]


def _within_year(fields: dict[str, int], year: int) -> list[Period]:
    if "m" in fields and "d" in fields:
        if fields["d"] > monthrange(year, fields["m"])[1]:
            return []
        first = date(year, fields["m"], fields["d"])
        return [(first, first + _DAY)]
    if "m" in fields and "wk" in fields:
        monday = _monday(date(year, fields["m"], 1) + 6 * _DAY) + timedelta(days=7 * (fields["wk"] - 1))
        return [(monday, monday + 7 * _DAY)]
    if "m" in fields:
        return [_part_of(_months(year, fields["m"], 1), fields)]
    if "q" in fields:
        return [_months(year, fields["q"] * 3 - 2, 3)]
    if "h" in fields:
        return [_months(year, fields["h"] * 6 - 5, 6)]
    if "wk" in fields:
        monday = _week_of_year(year, fields["wk"])
        return [(monday, monday + 7 * _DAY)]
    return [_part_of(_months(year, 1, 12), fields)]


def _week_of_year(year: int, week: int) -> date:
    """The Monday of an ISO week; week 53 means the last one, which may be the 52nd."""
    last = date(year, 12, 28).isocalendar().week
    return date.fromisocalendar(year, min(week, last), 1)


def _part_of(period: Period, fields: dict[str, int]) -> Period:
    """The early, middle or late third of a period."""
    part = fields.get("part")
    if part is None:
        return period
    third = (period[1] - period[0]) / 3
    first = period[0] + (part - 1) * third
    return first, period[1] if part == 3 else first + third


def _months(year: int, month: int, count: int) -> Period:
    """A stretch of months; `month` may lie outside 1 to 12."""
    last = month + count
    return _first(year, month), _first(year, last)


def _first(year: int, month: int) -> date:
    return date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1)


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())


def _weekend(today: date, offset: int) -> Period:
    saturday = _monday(today) + timedelta(days=5 + 7 * offset)
    return saturday, saturday + 2 * _DAY


def _weekdays(weekday: int, today: date) -> list[Period]:
    """The nearest such day before and after."""
    ahead = (weekday - today.isoweekday()) % 7
    future = today + timedelta(days=ahead or 7)
    past = future - timedelta(days=7)
    days = [past, future] if ahead else [past - timedelta(days=7), today, future]
    return [(day, day + _DAY) for day in days]


def _weekday_dates(weekday: int, day: int, today: date) -> list[Period]:
    """Friday the 26th: the nearest days before and after that are both."""
    found = []
    for offset in range(-24, 25):
        first = _first(today.year, today.month + offset)
        if day <= monthrange(first.year, first.month)[1] and first.replace(day=day).isoweekday() == weekday:
            found.append((first.replace(day=day), first.replace(day=day) + _DAY))
    return _nearest(found, today)


def _days_of_months(day: int, today: date) -> list[Period]:
    periods = []
    for offset in range(-2, 3):
        first = _first(today.year, today.month + offset)
        if day <= monthrange(first.year, first.month)[1]:
            periods.append((first.replace(day=day), first.replace(day=day) + _DAY))
    return periods


def _relative(fields: dict[str, int], today: date) -> list[Period]:
    if "W" in fields:
        return [_week(fields, today)]
    if "F" in fields:
        monday = _monday(today) + timedelta(days=14 * fields["F"])
        return [(monday, monday + 14 * _DAY)]
    if "Mo" in fields:
        first = _first(today.year, today.month + fields["Mo"])
        if "d" in fields:
            day = first.replace(day=fields["d"])
            return [(day, day + _DAY)]
        return [_part_of(_months(first.year, first.month, 1), fields)]
    if "Q" in fields:
        return [_months(today.year, (today.month - 1) // 3 * 3 + 1 + 3 * fields["Q"], 3)]
    if "Y" in fields:
        return _within_year(fields, today.year + fields["Y"])
    if "Dec" in fields:
        begin = today.year // 10 * 10 + 10 * fields["Dec"]
        return [(date(begin, 1, 1), date(begin + 10, 1, 1))]
    day = today + timedelta(days=fields["D"])
    return [(day, day + _DAY)]


def _week(fields: dict[str, int], today: date) -> Period:
    monday = _monday(today) + timedelta(days=7 * fields["W"])
    if "wd" in fields:
        day = monday + timedelta(days=fields["wd"] - 1)
        return day, day + _DAY
    if "we" in fields:
        return _weekend(today, fields["W"])
    return monday, monday + 7 * _DAY


def _stretch(unit: str, count: int, today: date) -> Period:
    """The next three days, the past two quarters."""
    if unit in ("D", "W", "F"):
        span = timedelta(days=count * {"D": 1, "W": 7, "F": 14}[unit])
        return (today + _DAY, today + _DAY + span) if count > 0 else (today + span, today)
    months = {"Mo": 1, "Q": 3, "Y": 12}[unit]
    if unit == "Q":
        now = (today.month - 1) // 3 * 3 + 1
        return _months(today.year, now + 3, 3 * count) if count > 0 else (
            _first(today.year, now + 3 * count), _first(today.year, now)
        )  # fmt: skip
    if count > 0:
        return today + _DAY, _shift(today + _DAY, months * count)
    return _shift(today, months * count), today


def _shift(day: date, months: int) -> date:
    first = _first(day.year, day.month + months)
    return first.replace(day=min(day.day, monthrange(first.year, first.month)[1]))


def shifted_day(fields: dict[str, int], today: date) -> date | None:
    """The single day of "two months ago" and "in three weeks": `today` moved by the offsets."""
    try:
        day = today + timedelta(days=fields.get("D", 0) + 7 * fields.get("W", 0) + 14 * fields.get("F", 0))
        return _shift(day, fields.get("Mo", 0) + 3 * fields.get("Q", 0) + 12 * fields.get("Y", 0))
    except (ValueError, OverflowError):
        return None
