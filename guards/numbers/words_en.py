# ruff: noqa: E501 (patterns and tables of names are easier to read in one piece)
"""English names of the calendar as patterns, and small numbers and years in words."""

from __future__ import annotations

import re

from seatrial.guards.numbers import en

MONTH_NAMES = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
MONTHS = {name: n for n, name in enumerate(MONTH_NAMES, start=1)}
MONTHS |= {name[:3]: n for n, name in enumerate(MONTH_NAMES, start=1)} | {"sept": 9}
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WEEKDAYS = {name: n for n, name in enumerate(DAYS, start=1)}
WEEKDAYS |= {
    "mon": 1,
    "tue": 2,
    "tues": 2,
    "wed": 3,
    "weds": 3,
    "thu": 4,
    "thur": 4,
    "thurs": 4,
    "fri": 5,
    "sat": 6,
}
WEEKDAYS |= {"sun": 7}

UNITS = "|".join(list(en.UNIT_WORDS)[1:])
TEENS = "|".join(en.TEEN_WORDS)
TENS = "|".join(en.TEN_WORDS)
WORD_NUMBER = rf"(?:(?:{TENS})(?:[- ](?:{UNITS}))?|{TEENS}|{UNITS})"
COUNT = rf"(?P<n>\d{{1,3}}(?:\.\d)?|{WORD_NUMBER}|an?|(?:a )?couple(?: of)?)"
ORDINALS = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth"
TEENTHS = "|".join(w for w, n in en.ORDINAL_WORDS.items() if 10 <= n < 20)
DAY_WORD = rf"(?:(?:twenty|thirty)[- ](?:{ORDINALS})|{TEENTHS}|{ORDINALS}|twentieth|thirtieth)"
DAY = rf"\d{{1,2}}(?:st|nd|rd|th)|{DAY_WORD}"  # a day of the month that shows it is one
DAY_OF_MONTH = rf"(?P<d>\d{{1,2}}(?:st|nd|rd|th)?|{DAY_WORD})(?![\d:%]|[.,]\d)"
MONTH = (
    "(?P<m>" + "|".join([*MONTH_NAMES, r"sept\b\.?", *(name[:3] + r"\b\.?" for name in MONTH_NAMES)]) + ")"
)
YEAR_WORDS = (
    rf"(?:(?:nineteen|twenty) (?:{TEENS}|{TENS})(?:[- ](?:{UNITS}))?"
    rf"|(?:(?:six|seven|eight|nine)teen hundred|two thousand)(?: and)?(?: {WORD_NUMBER})?)"
)
YEAR = rf"(?P<y>(?:1[5-9]|20|21)\d\d(?![\d%]|[.,]\d)|'\d\d\b|{YEAR_WORDS})"


def two_digit_year(number: int) -> int:
    """24 -> 2024, 98 -> 1998."""
    return number + (2000 if number < 50 else 1900)


def valid(fields: dict[str, int]) -> dict[str, int] | None:
    """The parts, or None when no calendar has them."""
    inside = 1 <= fields.get("m", 1) <= 12 and 1 <= fields.get("d", 1) <= 31
    inside = inside and 0 <= fields.get("H", 0) <= 24 and 0 <= fields.get("M", 0) < 60
    return fields if inside and 1000 <= fields.get("y", 2000) < 3000 else None


def number_of(word: str) -> int:
    """A small number in digits or English words; an article counts one, a couple two."""
    digits = re.match(r"\d+", word)
    if digits is not None:
        return int(digits[0])
    if word.strip() in ("a", "an"):
        return 1
    found = next(iter(en.parse_run(word.replace("-", " "))), None)
    return -1 if found is None else int(found.value)


def year_of(word: str) -> int:
    """A year in four digits, two digits with an apostrophe, or English words."""
    if word.startswith("'"):
        return two_digit_year(int(word[1:]))
    return int(word) if word.isdigit() else number_of(word)


MODIFIERS = {
    "next": 1, "coming": 1, "upcoming": 1, "following": 1, "last": -1, "past": -1, "previous": -1, "prior": -1,
    "this": 0, "current": 0, "the following": 1, "the coming": 1,
}  # fmt: skip
MODIFIERS |= {"this upcoming": 1, "this past": -1, "this coming": 1}
MODIFIER = "|".join(sorted(MODIFIERS, key=len, reverse=True))
PERIODS = {
    "day": "D",
    "week": "W",
    "month": "Mo",
    "quarter": "Q",
    "year": "Y",
    "decade": "Dec",
    "weekend": "W",
    "fortnight": "F",
    "working week": "W",
    "workweek": "W",
}
PERIOD = "|".join(sorted(PERIODS, key=len, reverse=True))
