# ruff: noqa: E501 (patterns and tables of names are easier to read in one piece)
"""What an English date, weekday or period states: a match of a rule of `dates_en` -> calendar parts, or None."""

from __future__ import annotations

import re

from seatrial.guards.numbers.units import (
    classifier_after,
    currency_before,
    unit_after,
)
from seatrial.guards.numbers.words_en import (
    MODIFIERS,
    MONTHS,
    PERIODS,
    WEEKDAYS,
    number_of,
    two_digit_year,
    valid,
    year_of,
)


def read_date(found: re.Match[str]) -> dict[str, int] | None:
    groups = found.groupdict()
    fields = {}
    if groups.get("m"):
        fields["m"] = MONTHS[groups["m"].rstrip(".")]
    if groups.get("d"):
        fields["d"] = number_of(groups["d"])
    if groups.get("y"):
        fields["y"] = year_of(groups["y"])
    return valid(fields)


def read_numeric(found: re.Match[str]) -> dict[str, int] | None:
    return valid({name: int(found[name]) for name in ("y", "m", "d")})


_QUARTERS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}


def read_quarter(found: re.Match[str]) -> dict[str, int] | None:
    number, name = _QUARTERS[found["q"]], found["unit"][0]
    return {name: number} if name == "q" or number <= 2 else None


def read_short_quarter(found: re.Match[str]) -> dict[str, int] | None:
    letter, number = found["a"] or found["b"], int(found["n"] or found["n2"])
    if letter == "h" and number > 2:
        return None
    fields = {letter: number}
    if found["fy"]:
        year = found["fy"].lstrip("'")
        fields["y"] = int(year) if len(year) == 4 else two_digit_year(int(year))
    return fields


def read_weekday(found: re.Match[str]) -> dict[str, int] | None:
    """Short names are words too (sat, sun, wed): they count only with a modifier or a cue before."""
    word, which = found["wd"].rstrip("."), found["which"]
    if word in ("sat", "sun", "mon", "wed", "fri", "thu", "tue") and not which:
        before = found.string[max(0, found.start() - 5) : found.start()]
        after = found.string[found.end() : found.end() + 6]
        cue = re.search(r"(?:\b(?:on|by|or|and|til|till)|[,(/-]) ?$|^$", before) or re.match(
            r"[, ]+(?:at|from|\d|or\b)", after
        )
        if cue is None:
            return None
    name = word.removesuffix("s") if word.endswith("days") else word
    fields = {"wd": WEEKDAYS[name]}
    if which and not re.search(
        "coming|past", which
    ):  # "the coming Friday" is the next one, whatever the week
        fields["W"] = MODIFIERS[which]
    return fields


def read_weekday_and_day(found: re.Match[str]) -> dict[str, int] | None:
    word = found["wd"]
    name = word.removesuffix("s") if word.endswith("days") else word
    return valid({"wd": WEEKDAYS[name], "d": number_of(found["d"].removeprefix("the "))})


def read_weekday_of_week(found: re.Match[str]) -> dict[str, int]:
    return {"wd": WEEKDAYS[found["wd"]], "W": MODIFIERS[found["which"]]}


def read_period(found: re.Match[str]) -> dict[str, int]:
    fields = {PERIODS[found["unit"]]: MODIFIERS[found["which"]]}
    return fields | ({"we": 1} if found["unit"] == "weekend" else {})


def read_after_next(found: re.Match[str]) -> dict[str, int]:
    return {PERIODS[found["unit"]]: 2}


def read_next_periods(found: re.Match[str]) -> dict[str, int] | None:
    """The next three days, the previous eleven quarters: a stretch of n periods."""
    count = number_of(found["n"])
    sign = MODIFIERS[found["which"]]
    return {"n" + PERIODS[found["unit"]]: count * sign} if sign and count > 0 else None


_DAYS_OF = {"today": 0, "now": 0, "tomorrow": 1, "tmrw": 1, "tmr": 1, "yesterday": -1}


def read_shifted(found: re.Match[str]) -> dict[str, int] | None:
    """Three days ago, in two weeks, two days after tomorrow."""
    groups = found.groupdict()
    count = number_of(groups["n"])
    back = groups.get("way") in ("ago", "before", "earlier", "prior to", "back")
    fields = {PERIODS[groups["unit"]]: -count if back else count}
    anchor = _DAYS_OF.get(groups.get("anchor") or "today", 0)
    if anchor:
        fields["D"] = fields.get("D", 0) + anchor
    return fields if count > 0 else None


RELATIVE = {
    "the day after tomorrow": 2, "day after tomorrow": 2, "the day before yesterday": -2, "day before yesterday": -2,
    "today": 0, "tonight": 0, "tomorrow": 1, "tmrw": 1, "tmr": 1, "yesterday": -1, "tonite": 0,
}  # fmt: skip


def read_relative(found: re.Match[str]) -> dict[str, int]:
    return {"D": RELATIVE[found[0]]} | ({"dp": 4} if found[0] in ("tonight", "tonite") else {})


_PARTS_OF_DAY = {"morning": 1, "afternoon": 2, "evening": 3, "night": 4}


def read_part_of_day(found: re.Match[str]) -> dict[str, int]:
    fields = {"dp": _PARTS_OF_DAY[found["dp"]]}
    return fields | ({"D": 0} if found["this"] else {})


def read_early(found: re.Match[str]) -> dict[str, int]:
    return {
        "part": {"e": 1, "b": 1, "s": 1, "m": 2, "l": 3}[found["part"][0]] if found["part"] != "end of" else 3
    }


def read_part_of_period(found: re.Match[str]) -> dict[str, int]:
    """The end of the year is that of this year."""
    part = {"end": 3, "middle": 2}.get(found["part"], 1)
    return {PERIODS[found["unit"]]: 0, "part": part}


def read_century(found: re.Match[str]) -> dict[str, int]:
    return {"cent": number_of(found[1])}


def read_week_number(found: re.Match[str]) -> dict[str, int] | None:
    fields = {"wk": int(found[1])}
    if found["y"]:
        fields["y"] = int(found["y"])
    return fields if 1 <= fields["wk"] <= 53 else None


def read_ordinal_period(found: re.Match[str]) -> dict[str, int] | None:
    """The first week of 2015, the third month of next year."""
    if found["n"] == "last":
        return {"wk": 53} if found["unit"] == "week" else {"m": 12}
    number = number_of(found["n"])
    return {"wk": number} if found["unit"] == "week" else valid({"m": number})


def read_day_of_month(found: re.Match[str]) -> dict[str, int] | None:
    return valid({"d": number_of(found["d"])})


_MONTH_CUE = re.compile(
    r"\b(in|of|by|since|until|till|from|to|mid|early|late|last|next|this|through|for|before|after|during|every|and|or)[ -]$"
)


def read_month_alone(found: re.Match[str]) -> dict[str, int] | None:
    """ "may" and "march" are words too, and short names need a cue."""
    word = found["m"].rstrip(".")
    cue = _MONTH_CUE.search(found.string, max(0, found.start() - 9), found.start())
    if re.match(rf" ?(?:-|to) ?(?:{'|'.join(MONTHS)})\b", found.string[found.end() : found.end() + 14]):
        return {"m": MONTHS[word]}
    if (len(word) <= 3 or word in ("march", "august")) and cue is None:
        return None
    if (
        word == "may"
        and cue is not None
        and cue[1] in ("this", "or", "and", "to", "from", "for", "before", "after")
    ):
        return None
    return {"m": MONTHS[word]}


_COUNTED = re.compile(
    r" (?:[a-z-]+ )?(?:people|men|women|children|staff|feet|[a-z]{2,}[^s\W]s)\b(?! (?:was|were|is|are|results|levels))"
)
_YEAR_CUE = re.compile(
    r"(?:\b(?:in|since|by|until|till|through|from|of|during|before|after|year|fiscal|fy|late|early|mid|for|and|vs|versus"
    r"|over|to|than|the|end|spring|summer|autumn|fall|winter|circa|both|ending|ended|on|with|full)[ -]?|[–/(-])$"
)


def read_bare_year(found: re.Match[str]) -> dict[str, int] | None:
    """A four-digit number of our time that counts nothing is a year: "in 2021", "2021 results"."""
    text, end = found.string, found.end()
    if unit_after(text, end) is not None or currency_before(text, found.start()) is not None:
        return None
    if classifier_after(text, end) is not None or _SCALE_NEXT.match(text, end):
        return None
    cue = _YEAR_CUE.search(text, max(0, found.start() - 12), found.start())
    return None if cue is None and _COUNTED.match(text, end) else {"y": int(found[0])}


_SCALE_NEXT = re.compile(r" ?[万亿千百多余几]| (?:million|billion|thousand|hundred)\b")
BARE_YEAR = re.compile(r"(?<![a-z0-9_.,$€£¥:+/-])(?:19[5-9]\d|20[0-4]\d)(?![\w%:/]|[.,]\d|-\d{1,3}\D)")
YEAR_RANGE = re.compile(
    r"(?<![a-z0-9_.,$€£¥:+/-])(?:19[5-9]\d|20[0-4]\d)(?= ?[-–~] ?(?:19[5-9]\d|20[0-4]\d)(?!\d|[.,]\d|%))"
)
YEAR_RANGE_END = re.compile(
    r"(?<=\d[-–~])(?:19[5-9]\d|20[0-4]\d)(?!\d|[.,]\d|%)|(?<=\d [-–~] )(?:19[5-9]\d|20[0-4]\d)(?!\d|[.,]\d|%)"
)

# Feasts whose day never moves.
FEASTS = {
    "christmas eve": (12, 24), "christmas day": (12, 25), "christmas": (12, 25), "xmas": (12, 25), "boxing day": (12, 26),
    "new year's eve": (12, 31), "new years eve": (12, 31), "new year's day": (1, 1), "new years day": (1, 1),
    "valentine's day": (2, 14), "halloween": (10, 31), "juneteenth": (6, 19), "earth day": (4, 22),
    "international workers' day": (5, 1), "st patrick's day": (3, 17), "april fools' day": (4, 1),
}  # fmt: skip


def read_feast(found: re.Match[str]) -> dict[str, int]:
    month, day = FEASTS[found[0].replace(" the ", " ")]
    return {"m": month, "d": day}
