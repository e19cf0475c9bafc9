# ruff: noqa: E501 (patterns and tables of names are easier to read in one piece)
"""English dates, weekdays and clock times: patterns and what each states.

A row is (pattern, reader); the first row that takes a stretch of text keeps it. Words that are also other words
(may, march, sat, second) count only with a neighbour that shows the date.
"""

from __future__ import annotations

import re

from seatrial.guards.numbers import en
from seatrial.guards.numbers.blocks import at_number, row, table
from seatrial.guards.numbers.units import classifier_after, currency_before, unit_after

_MONTH_NAMES = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTHS = {name: n for n, name in enumerate(_MONTH_NAMES, start=1)}
_MONTHS |= {name[:3]: n for n, name in enumerate(_MONTH_NAMES, start=1)} | {"sept": 9}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAYS = {name: n for n, name in enumerate(_DAYS, start=1)}
_WEEKDAYS |= {
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
_WEEKDAYS |= {"sun": 7}

_UNITS = "|".join(list(en.UNIT_WORDS)[1:])
_TEENS = "|".join(en.TEEN_WORDS)
_TENS = "|".join(en.TEN_WORDS)
_WORD_NUMBER = rf"(?:(?:{_TENS})(?:[- ](?:{_UNITS}))?|{_TEENS}|{_UNITS})"
_COUNT = rf"(?P<n>\d{{1,3}}(?:\.\d)?|{_WORD_NUMBER}|an?|(?:a )?couple(?: of)?)"
_ORDINALS = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth"
_TEENTHS = "|".join(w for w, n in en.ORDINAL_WORDS.items() if 10 <= n < 20)
_DAY_WORD = rf"(?:(?:twenty|thirty)[- ](?:{_ORDINALS})|{_TEENTHS}|{_ORDINALS}|twentieth|thirtieth)"
DAY = rf"\d{{1,2}}(?:st|nd|rd|th)|{_DAY_WORD}"  # a day of the month that shows it is one
_DAY = rf"(?P<d>\d{{1,2}}(?:st|nd|rd|th)?|{_DAY_WORD})(?![\d:%]|[.,]\d)"
_M = "(?P<m>" + "|".join([*_MONTH_NAMES, r"sept\b\.?", *(name[:3] + r"\b\.?" for name in _MONTH_NAMES)]) + ")"
_YEAR_WORDS = (
    rf"(?:(?:nineteen|twenty) (?:{_TEENS}|{_TENS})(?:[- ](?:{_UNITS}))?"
    rf"|(?:(?:six|seven|eight|nine)teen hundred|two thousand)(?: and)?(?: {_WORD_NUMBER})?)"
)
_Y = rf"(?P<y>(?:1[5-9]|20|21)\d\d(?![\d%]|[.,]\d)|'\d\d\b|{_YEAR_WORDS})"


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


def _date(found: re.Match[str]) -> dict[str, int] | None:
    groups = found.groupdict()
    fields = {}
    if groups.get("m"):
        fields["m"] = _MONTHS[groups["m"].rstrip(".")]
    if groups.get("d"):
        fields["d"] = number_of(groups["d"])
    if groups.get("y"):
        fields["y"] = year_of(groups["y"])
    return valid(fields)


def _numeric(found: re.Match[str]) -> dict[str, int] | None:
    return valid({name: int(found[name]) for name in ("y", "m", "d")})


_QUARTERS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}


def _quarter(found: re.Match[str]) -> dict[str, int] | None:
    number, name = _QUARTERS[found["q"]], found["unit"][0]
    return {name: number} if name == "q" or number <= 2 else None


def _short_quarter(found: re.Match[str]) -> dict[str, int] | None:
    letter, number = found["a"] or found["b"], int(found["n"] or found["n2"])
    if letter == "h" and number > 2:
        return None
    fields = {letter: number}
    if found["fy"]:
        year = found["fy"].lstrip("'")
        fields["y"] = int(year) if len(year) == 4 else two_digit_year(int(year))
    return fields


_MODIFIERS = {
    "next": 1, "coming": 1, "upcoming": 1, "following": 1, "last": -1, "past": -1, "previous": -1, "prior": -1,
    "this": 0, "current": 0, "the following": 1, "the coming": 1,
}  # fmt: skip
_MODIFIERS |= {"this upcoming": 1, "this past": -1, "this coming": 1}
_MODIFIER = "|".join(sorted(_MODIFIERS, key=len, reverse=True))
_PERIODS = {
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
_PERIOD = "|".join(sorted(_PERIODS, key=len, reverse=True))


def _weekday(found: re.Match[str]) -> dict[str, int] | None:
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
    fields = {"wd": _WEEKDAYS[name]}
    if which and not re.search(
        "coming|past", which
    ):  # "the coming Friday" is the next one, whatever the week
        fields["W"] = _MODIFIERS[which]
    return fields


def _weekday_and_day(found: re.Match[str]) -> dict[str, int] | None:
    word = found["wd"]
    name = word.removesuffix("s") if word.endswith("days") else word
    return valid({"wd": _WEEKDAYS[name], "d": number_of(found["d"].removeprefix("the "))})


def _weekday_of_week(found: re.Match[str]) -> dict[str, int]:
    return {"wd": _WEEKDAYS[found["wd"]], "W": _MODIFIERS[found["which"]]}


def _period(found: re.Match[str]) -> dict[str, int]:
    fields = {_PERIODS[found["unit"]]: _MODIFIERS[found["which"]]}
    return fields | ({"we": 1} if found["unit"] == "weekend" else {})


def _after_next(found: re.Match[str]) -> dict[str, int]:
    return {_PERIODS[found["unit"]]: 2}


def _next_periods(found: re.Match[str]) -> dict[str, int] | None:
    """The next three days, the previous eleven quarters: a stretch of n periods."""
    count = number_of(found["n"])
    sign = _MODIFIERS[found["which"]]
    return {"n" + _PERIODS[found["unit"]]: count * sign} if sign and count > 0 else None


_DAYS_OF = {"today": 0, "now": 0, "tomorrow": 1, "tmrw": 1, "tmr": 1, "yesterday": -1}


def _shifted(found: re.Match[str]) -> dict[str, int] | None:
    """Three days ago, in two weeks, two days after tomorrow."""
    groups = found.groupdict()
    count = number_of(groups["n"])
    back = groups.get("way") in ("ago", "before", "earlier", "prior to", "back")
    fields = {_PERIODS[groups["unit"]]: -count if back else count}
    anchor = _DAYS_OF.get(groups.get("anchor") or "today", 0)
    if anchor:
        fields["D"] = fields.get("D", 0) + anchor
    return fields if count > 0 else None


_RELATIVE = {
    "the day after tomorrow": 2, "day after tomorrow": 2, "the day before yesterday": -2, "day before yesterday": -2,
    "today": 0, "tonight": 0, "tomorrow": 1, "tmrw": 1, "tmr": 1, "yesterday": -1, "tonite": 0,
}  # fmt: skip


def _relative(found: re.Match[str]) -> dict[str, int]:
    return {"D": _RELATIVE[found[0]]} | ({"dp": 4} if found[0] in ("tonight", "tonite") else {})


_PARTS_OF_DAY = {"morning": 1, "afternoon": 2, "evening": 3, "night": 4}


def _part_of_day(found: re.Match[str]) -> dict[str, int]:
    fields = {"dp": _PARTS_OF_DAY[found["dp"]]}
    return fields | ({"D": 0} if found["this"] else {})


def _early(found: re.Match[str]) -> dict[str, int]:
    return {
        "part": {"e": 1, "b": 1, "s": 1, "m": 2, "l": 3}[found["part"][0]] if found["part"] != "end of" else 3
    }


def _century(found: re.Match[str]) -> dict[str, int]:
    return {"cent": number_of(found[1])}


def _week_number(found: re.Match[str]) -> dict[str, int] | None:
    fields = {"wk": int(found[1])}
    if found["y"]:
        fields["y"] = int(found["y"])
    return fields if 1 <= fields["wk"] <= 53 else None


def _ordinal_period(found: re.Match[str]) -> dict[str, int] | None:
    """The first week of 2015, the third month of next year."""
    if found["n"] == "last":
        return {"wk": 53} if found["unit"] == "week" else {"m": 12}
    number = number_of(found["n"])
    return {"wk": number} if found["unit"] == "week" else valid({"m": number})


def _day_of_month(found: re.Match[str]) -> dict[str, int] | None:
    return valid({"d": number_of(found["d"])})


def _clock(found: re.Match[str]) -> dict[str, int] | None:
    groups = found.groupdict()
    hour = number_of(groups["hour"])
    minute = groups.get("minute") or ""
    fields = {"H": hour, "M": number_of(minute.removeprefix("oh ")) if minute else 0}
    half = re.sub(r"[ .]", "", groups.get("half") or "")
    if half[:1] in ("a", "p") and half:
        fields |= {"H": hour % 12 + (12 if half[0] == "p" else 0), "pm": int(half[0] == "p")}
    elif hour > 12:
        fields["pm"] = 1
    return valid(fields) if hour >= 0 else None


def _compact_clock(found: re.Match[str]) -> dict[str, int] | None:
    hour, pm = int(found["hour"]), found["half"][0] == "p"
    return valid({"H": hour % 12 + (12 if pm else 0), "M": int(found["minute"]), "pm": int(pm)})


def _clock_before(found: re.Match[str]) -> dict[str, int] | None:
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


def _hour(found: re.Match[str]) -> dict[str, int] | None:
    """An hour without minutes after a word that shows it: "at 5", "from 7", "monday 11-4"."""
    hour = int(found["hour"])
    return {"H": hour, "M": int(found.groupdict().get("minute") or 0)} if 1 <= hour <= 12 else None


_DAY_BEFORE = re.compile(
    rf"(?:{'|'.join(_DAYS)}|today|tomorrow|tonight|morning|afternoon|evening)s?,? (?:from |between |at |around )?$"
)


def _hour_of_range(found: re.Match[str]) -> dict[str, int] | None:
    """The first hour of "monday 11-4" and "from 7 to 7:30": a day before it, or minutes behind the second."""
    text = found.string
    day = _DAY_BEFORE.search(text, max(0, found.start() - 26), found.start())
    minutes = re.match(r" ?(?:-|–|to|and|till) ?\d{1,2}:\d\d", text[found.end() : found.end() + 12])
    if day is None and (minutes is None or found["minute"]):
        return None
    return _hour(found)


def _noon(found: re.Match[str]) -> dict[str, int]:
    noon = found["word"] != "midnight"
    return {"H": 12 if noon else 0, "M": 0, "pm": int(noon)}


def _past(found: re.Match[str]) -> dict[str, int] | None:
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


_MONTH_CUE = re.compile(
    r"\b(in|of|by|since|until|till|from|to|mid|early|late|last|next|this|through|for|before|after|during|every|and|or)[ -]$"
)


def _month_alone(found: re.Match[str]) -> dict[str, int] | None:
    """ "may" and "march" are words too, and short names need a cue."""
    word = found["m"].rstrip(".")
    cue = _MONTH_CUE.search(found.string, max(0, found.start() - 9), found.start())
    if cue is None and re.match(
        rf" ?(?:-|to) ?(?:{'|'.join(_MONTHS)})\b", found.string[found.end() : found.end() + 14]
    ):
        return {"m": _MONTHS[word]}
    if (len(word) <= 3 or word in ("march", "august")) and cue is None:
        return None
    if (
        word == "may"
        and cue is not None
        and cue[1] in ("this", "or", "and", "to", "from", "for", "before", "after")
    ):
        return None
    return {"m": _MONTHS[word]}


_COUNTED = re.compile(
    r" (?:[a-z-]+ )?(?:people|men|women|children|staff|feet|[a-z]{2,}[^s\W]s)\b(?! (?:was|were|is|are|results|levels))"
)
_YEAR_CUE = re.compile(
    r"(?:\b(?:in|since|by|until|till|through|from|of|during|before|after|year|fiscal|fy|late|early|mid|for|and|vs|versus"
    r"|over|to|than|the|end|spring|summer|autumn|fall|winter|circa|both|ending|ended|on|with|full)[ -]?|[–/(-])$"
)


def _bare_year(found: re.Match[str]) -> dict[str, int] | None:
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
_FEASTS = {
    "christmas eve": (12, 24), "christmas day": (12, 25), "christmas": (12, 25), "xmas": (12, 25), "boxing day": (12, 26),
    "new year's eve": (12, 31), "new years eve": (12, 31), "new year's day": (1, 1), "new years day": (1, 1),
    "valentine's day": (2, 14), "halloween": (10, 31), "juneteenth": (6, 19), "earth day": (4, 22),
    "international workers' day": (5, 1), "st patrick's day": (3, 17), "april fools' day": (4, 1),
}  # fmt: skip


def _feast(found: re.Match[str]) -> dict[str, int]:
    month, day = _FEASTS[found[0].replace(" the ", " ")]
    return {"m": month, "d": day}


_HALF_DAY = r"(?P<half>[ap] ?\.? ?m\b\.?|(?<=\d)[ap](?![a-z]))"
_MINUTE_WORDS = rf"oh (?:{_UNITS})|(?:{_TENS})(?:[- ](?:{_UNITS}))?|{_TEENS}"
_WEEKDAY = "(?P<wd>" + "|".join([*(d + "s?" for d in _DAYS), r"mon|tues?|weds?|thurs?|thu|fri|sat|sun"]) + ")"
# A number, and the sign or the first letter of the word that makes it part of a date or a time; or a date in eight
# digits.
_LIKELY = r"\d+ ?[-/.:–aptu]|\d{8}"
ENGLISH = table(
    at_number(
        "digit",
        r"(?<![a-z0-9_./])(?<!(?<!\d\d)\d-)(?P<y>\d{4})(?P<by>[-/.])(?P<m>\d{1,2})(?P=by)(?P<d>\d{1,2})(?!\d)(?!\.\d)",
        _numeric,
    ),
    at_number(
        "year",
        r"(?<![a-z0-9_./])(?P<y>19\d\d|20\d\d)(?P<m>0[1-9]|1[0-2])(?P<d>0[1-9]|[12]\d|3[01])(?![\d.,%])",
        _numeric,
    ),
    at_number("month year", rf"(?<![a-z0-9_])(?P<y>(?:19|20)\d\d)-{_M}-(?P<d>\d{{1,2}})(?![a-z0-9_])", _date),
    at_number("month year", rf"(?<![a-z0-9_])(?P<d>\d{{1,2}})-{_M}-(?P<y>(?:19|20)\d\d)(?![a-z0-9_])", _date),
    row("month year", rf"\b{_M}-(?P<d>\d{{1,2}})-(?P<y>(?:19|20)\d\d)(?![a-z0-9_])", _date),
    row("month", rf"\b{_M}[ /-](?:the )?{_DAY}(?: ?,? ?(?:of )?{_Y})?(?![a-z0-9_])", _date),
    row(
        "month",
        rf"(?<![a-z0-9_.])(?:the )?{_DAY}(?: day)?(?: of)?[ -/]{_M}(?:[,. -]{{0,2}}{_Y})?(?![a-z0-9_])",
        _date,
    ),
    row(
        "month",
        rf"\b{_M} (?P<d>{_WORD_NUMBER})(?:,? {_Y})?(?![a-z0-9_])(?![ -](?:hundred|thousand|million|percent|{_UNITS}))",
        _date,
    ),
    row("month", rf"\b(?P<d>{_WORD_NUMBER}) (?:of )?(?!may|march){_M}(?:,? {_Y})?(?![a-z0-9_])", _date),
    row("month", rf"\b{_M},? ?(?:of |in )?(?:the year )?{_Y}(?![a-z0-9_])", _date),
    row(
        "half",
        r"(?<![a-z0-9_.])(?P<q>first|second|third|fourth|1st|2nd|3rd|4th)[ -](?:fiscal |calendar )?(?P<unit>quarter|half)"
        r"(?: of the year)?(?![a-z0-9_])(?! (?:an? )?(?:hour|mile|million|dozen))",
        _quarter,
    ),
    row(
        "half digit",
        r"(?<![a-z0-9_.])(?:(?P<a>[qh])(?P<n>[1-4])|(?P<n2>[1-4])(?P<b>[qh]))(?:[ -]?(?:fy ?)?(?P<fy>20\d\d|'?\d\d(?![\d%.,])))?(?![a-z0-9_])",
        _short_quarter,
    ),
    row("century digit", r"(?<![a-z0-9_.])(?:the )?(\d{1,2})(?:st|nd|rd|th) {1,2}century\b", _century),
    row("century", rf"\b({_DAY_WORD}) century\b", _century),
    row(
        "year",
        r"(?<![a-z0-9_.])(?:the )?(?P<dec>(?:1[5-9]|20)\d0)'?s\b",
        lambda found: {"dec": int(found["dec"])},
    ),
    row(
        "week digit",
        r"\bweek (\d{1,2})(?: of (?P<y>(?:19|20)\d\d))?(?![\d%]|[.:]\d| ?[ap]\.?m)",
        _week_number,
    ),
    row(
        "period nth",
        rf"\b(?:the )?(?P<n>\d{{1,2}}(?:st|nd|rd|th)|{_ORDINALS}|last) (?P<unit>week|month) (?:of|in)(?= )",
        _ordinal_period,
    ),
    row("period", rf"\b(?:the )?(?P<unit>{_PERIOD}) after next\b", _after_next),
    row("period", rf"\b(?P<which>{_MODIFIER}) {_COUNT} (?P<unit>{_PERIOD})s?\b", _next_periods),
    row(
        "period",
        rf"\b{_COUNT} (?P<which>next|past|coming|last|previous|following) (?P<unit>{_PERIOD})s\b",
        _next_periods,
    ),
    row(
        "period",
        rf"\b{_COUNT} (?P<unit>{_PERIOD})s? (?P<way>ago|later|from|after|before|hence|earlier|back)"
        rf"(?: (?P<anchor>today|now|tomorrow|tmrw|yesterday))?(?! (?:the|that|this|a|his|her|i|we|they|it)\b)\b",
        _shifted,
    ),
    row(
        "period", rf"\b(?:with)?in (?:the next |next )?{_COUNT} (?P<unit>{_PERIOD})s?(?:' time)?\b", _shifted
    ),
    row("relative", "|".join(rf"\b{word}\b" for word in sorted(_RELATIVE, key=len, reverse=True)), _relative),
    row(
        "weekday week",
        rf"\b{_WEEKDAY} (?:of )?(?:the )?(?P<which>next|following|this|last|coming) week\b",
        _weekday_of_week,
    ),
    row(
        "weekday",
        rf"\b{_WEEKDAY}\.?,? (?:the )?(?P<d>\d{{1,2}}(?:st|nd|rd|th)|(?:the )?{_DAY_WORD}|\d\d(?=[.,;!?]?(?:\s|$)))(?![:/%-]|[.,]\d)",
        _weekday_and_day,
    ),
    row("weekday", rf"\b(?:(?P<which>{_MODIFIER}) (?:week(?: on)? |week's )?)?{_WEEKDAY}\b(?!')", _weekday),
    row("period", rf"\b(?P<which>{_MODIFIER}) (?P<unit>{_PERIOD})\b", _period),
    row("weekend", r"\b(?:the |over the |at the )?weekend\b", lambda _: {"we": 1}),
    row(
        "early",
        rf"\b(?:the )?(?P<part>early|mid|late|beginning of|start of|middle of|end of)[ -](?:the )?"
        rf"(?=(?:19|20)\d\d|{'|'.join(_MONTH_NAMES)}|(?:this|next|last) (?:year|month))",
        _early,
    ),
    at_number(
        "halfday digit",
        r"(?<![a-z0-9_.:/-])(?P<hour>\d{1,2})(?:[:.](?P<minute>\d\d))?"
        r"(?= ?(?:-|–|to|and|till|until) ?(?P<second>\d{1,2})(?:[:.]\d\d)? ?(?P<half>[ap]) ?\.? ?m\b)",
        _clock_before,
    ),
    at_number(
        "halfday digit",
        rf"(?<![a-z0-9_.:])(?P<hour>\d{{1,2}})(?:[:.](?P<minute>\d\d))?(?::\d\d)? ?{_HALF_DAY}",
        _clock,
    ),
    at_number(
        "digit",
        r"(?<![a-z0-9_.:/$€£-])(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?= ?(?:-|–|to|and|till) ?\d{1,2}(?::\d\d|[.,;!?]?(?:\s|$)))",
        _hour_of_range,
    ),
    at_number(
        "halfday digit",
        r"(?<![a-z0-9_.:])(?P<hour>\d{1,2})(?P<minute>\d\d) ?(?P<half>[ap] ?\.? ?m\b\.?)",
        _compact_clock,
    ),
    row(
        "past",
        rf"\b(?P<part>half|(?:a )?quarter|twenty[- ]five|twenty|ten|five|\d{{1,2}}) (?P<way>past|to|after|of) "
        rf"(?P<hour>{_WORD_NUMBER}|\d{{1,2}})\b(?: ?o ?'? ?clock)?(?! (?:percent|million|thousand|hundred|of))",
        _past,
    ),
    row("noon", r"\b(?:12 )?(?P<word>noon|midday|midnight)\b", _noon),
    row(
        "at",
        r"(?:(?<=\bat )|(?<=\baround ))(?P<hour>\d{1,2})(?:\.(?P<minute>[0-5]\d))?"
        r"(?=[.,;!?)]?(?:\s|$))(?! ?(?:%|percent|[a-z]{3,}s\b|million|thousand|per\b|year|month|euro|dollar|usd|eur))",
        _hour,
    ),
    row(
        "fifteen",
        rf"\b(?P<hour>{_UNITS}|ten|eleven|twelve) (?P<minute>fifteen|thirty(?:[- ](?:{_UNITS}))?|forty[- ]five)"
        r"(?=[.,;!?]|$| (?:so|in|on|at|to|and|or|tomorrow|today|tonight|sharp|same|until|till)\b)",
        _clock,
    ),
    row(
        "fifteen",
        rf"(?:(?<=\bat )|(?<=\bfrom )|(?<=\bto )|(?<=\btill )|(?<=\buntil )|(?<=\baround )|(?<=eenth )|(?<=ieth ))"
        rf"(?P<hour>{_UNITS}|ten|eleven|twelve) (?P<minute>fifteen|twenty|thirty|forty[- ]five|forty|fifty)\b(?! (?:[a-z]+ )?[a-z]+s\b)",
        _clock,
    ),
    row("clock", rf"(?<![a-z0-9_.:])(?P<hour>\d{{1,2}}|{_WORD_NUMBER}) ?(?P<minute>)o ?'? ?clock\b", _clock),
    row(
        "halfday",
        rf"\b(?P<hour>{_WORD_NUMBER})(?:[ -](?P<minute>{_MINUTE_WORDS}))? ?(?P<half>[ap] ?\.? ?m\b\.?)",
        _clock,
    ),
    at_number(
        "colon",
        r"(?<![a-z0-9_.:])(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::[0-5]\d)?(?![\d:%])(?!\.\d)",
        _clock,
    ),
    row(
        "dayparts",
        r"(?:(?:\b(?P<this>this )|\bin (?:the )?|\bat |(?<=day )|(?<=morrow )|(?<=th )|(?<=\blast )|(?<=\bnext ))"
        r"(?P<dp>morning|afternoon|evening|night))s?\b",
        _part_of_day,
    ),
    row("feast", "|".join(rf"\b{name}\b" for name in sorted(_FEASTS, key=len, reverse=True)), _feast),
    row("month", rf"\b{_M}(?![a-z0-9_])", _month_alone),
    row(
        "nth",
        rf"(?<=\bon )the (?P<d>\d{{1,2}}(?:st|nd|rd|th)|{_DAY_WORD})\b(?! [a-z]*(?:floor|day|time|place|century|quarter|half|of))",
        _day_of_month,
    ),
    row(
        "nth",
        rf"\b(?:the )?(?P<d>\d{{1,2}}(?:st|nd|rd|th)|{_DAY_WORD})(?: day)?(?= (?:of )?(?:this|next|last|the) month\b)",
        _day_of_month,
    ),
    row(
        "nth period",
        r"(?:\b(?:by|until|till|around|since|from|before|after) )the (?P<d>\d{1,2}(?:st|nd|rd|th))\b(?! [a-z]{3,})",
        _day_of_month,
    ),
    likely=_LIKELY,
)
# Bare years come after dates in digits.
YEARS = table(
    row("year", YEAR_RANGE.pattern, lambda found: {"y": int(found[0])}),
    row("year", YEAR_RANGE_END.pattern, lambda found: {"y": int(found[0])}),
    row("year", BARE_YEAR.pattern, _bare_year),
    likely="",
)
