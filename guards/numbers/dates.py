"""Dates, clock times and weekdays of both languages, as the parts that the text states.

Reads pieces (2015年 | 上半年, March 3 | 2021) and joins neighbours whose parts do not collide. What the text does
not say stays unknown: "the 26th" is a day without a month. Relative words keep their offset ("tomorrow" is
day +1); `relative.py` turns them into calendar days when the meeting's day is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from seatrial.guards.numbers import en, zh
from seatrial.guards.numbers.quantity import DATE, TIME, WEEKDAY, Fields
from seatrial.guards.numbers.units import classifier_after, currency_before, unit_after


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of folded text and the calendar parts it states."""

    start: int
    end: int
    fields: dict[str, int]
    other: Fields = ()

    @property
    def kind(self) -> str:
        if "H" in self.fields and not {"d", "m", "y"} & self.fields.keys():
            return TIME
        return WEEKDAY if "wd" in self.fields and not {"d", "m"} & self.fields.keys() else DATE


_MONTHS = "january february march april may june july august september october november december".split()
_MONTH_NUMBERS = {m: i for i, m in enumerate(_MONTHS, start=1)} | {
    m[:3]: i for i, m in enumerate(_MONTHS, start=1)
}
_MONTH_NUMBERS["sept"] = 9
_MONTH = r"(?P<month>" + "|".join([*_MONTHS, "sept", *(m[:3] + r"\b\.?" for m in _MONTHS)]) + ")"
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_WEEKDAY_NUMBERS = {w: i for i, w in enumerate(_WEEKDAYS, start=1)}
_WEEKDAY_NUMBERS |= {
    "mon": 1,
    "tue": 2,
    "tues": 2,
    "wed": 3,
    "thu": 4,
    "thur": 4,
    "thurs": 4,
    "fri": 5,
    "sat": 6,
    "sun": 7,
}
_DAY_UNITS = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth"
_DAY_WORD = rf"(?:(?:twenty|thirty)[- ](?:{_DAY_UNITS})|{'|'.join(en._ORDINAL_TEENS)}|{_DAY_UNITS}|twentieth|thirtieth)"
_DAY_CARDINAL = rf"(?:(?:twenty|thirty)[- ](?:{'|'.join(list(en.UNIT_WORDS)[1:])})|twenty|thirty|{'|'.join([*list(en.UNIT_WORDS)[1:], *en.TEEN_WORDS])})"
_ORDINAL_END = r"(?:st|nd|rd|th)"
_DAY = rf"(?P<day>\d{{1,2}}(?:{_ORDINAL_END})?|{_DAY_WORD})(?![\d:%]|[.,]\d)"
_YEAR_WORDS = rf"(?:nineteen|twenty) (?:{'|'.join(en.TEN_WORDS)}|{'|'.join(en.TEEN_WORDS)})(?:[- ](?:{'|'.join(list(en.UNIT_WORDS)[1:])}))?"
_YEAR = rf"(?P<year>(?:1[5-9]|20|21)\d\d(?![\d%]|[.,]\d)|'\d\d\b|{_YEAR_WORDS})"
_Z = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_ZY = r"(?:\d{4}|[零一二三四五六七八九](?: ?[零一二三四五六七八九]){3})"
_ZH_WEEK = {"一": 1, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "日": 7, "天": 7, "末": 6} | {
    str(n): n for n in range(1, 8)
}
_DAY_PARTS = "凌晨|清晨|早上|早晨|上午|中午|下午|午后|傍晚|晚上|晚间|夜里|夜间|深夜|半夜|今早|今晚|明早|明晚|昨晚|早|晚"
_PM = {"中午", "下午", "午后", "傍晚", "晚上", "晚间", "夜里", "夜间", "深夜", "今晚", "明晚", "昨晚", "晚"}

Reader = Callable[[re.Match[str]], dict[str, int] | None]


def _number(word: str) -> int:
    """A day, month or hour in digits, Chinese numerals or English words."""
    digits = re.match(r"\d+", word)
    if digits is not None:
        return int(digits[0])
    if word[:1].isascii():
        return int(next(iter(en.parse_run(word.replace("-", " ")))).value)
    parsed = zh.parse(word)
    return -1 if parsed is None or parsed.high is not None else int(parsed.value)


def _year_number(word: str) -> int:
    word = word.replace(" ", "") if not word[:1].isalpha() or not word.isascii() else word
    if word.startswith("'"):
        return _two_digit_year(int(word[1:]))
    if word.isdigit():
        return _two_digit_year(int(word)) if len(word) == 2 else int(word)
    if word[:1].isascii():
        return int(next(iter(en.parse_run(word))).value)
    digits = "".join(str(zh.DIGITS[c]) for c in word if c in zh.DIGITS)
    return _two_digit_year(int(digits)) if len(digits) == 2 else int(digits)


def _two_digit_year(number: int) -> int:
    return number + (2000 if number < 50 else 1900)


def _valid(fields: dict[str, int]) -> dict[str, int] | None:
    inside = 1 <= fields.get("m", 1) <= 12 and 1 <= fields.get("d", 1) <= 31
    inside = inside and 0 <= fields.get("H", 0) <= 24 and 0 <= fields.get("M", 0) < 60
    return fields if inside and 1000 <= fields.get("y", 2000) < 3000 else None


# --- English -------------------------------------------------------------------------------------------------


def _month_number(word: str) -> int:
    return _MONTH_NUMBERS[word.rstrip(".")]


def _month_day(found: re.Match[str]) -> dict[str, int] | None:
    groups = found.groupdict()
    fields = {"m": _month_number(groups["month"])}
    if groups.get("day"):
        fields["d"] = _number(groups["day"])
    if groups.get("year"):
        fields["y"] = _year_number(groups["year"])
    return _valid(fields)


def _iso(found: re.Match[str]) -> dict[str, int] | None:
    return _valid({"y": int(found[1]), "m": int(found[2]), "d": int(found[3])})


def _quarter(found: re.Match[str]) -> dict[str, int] | None:
    word = found["q"]
    number = {"first": 1, "second": 2, "third": 3, "fourth": 4}.get(word) or int(word[0])
    name = "q" if found["unit"].startswith("quarter") else "h"
    return {name: number} if number <= (4 if name == "q" else 2) else None


def _weekday(found: re.Match[str]) -> dict[str, int]:
    fields = {
        "wd": _WEEKDAY_NUMBERS[found["wd"].removesuffix("s") if found["wd"].endswith("days") else found["wd"]]
    }
    offset = {"next": 1, "last": -1, "past": -1, "this": 0, "previous": -1, "coming": 1}.get(
        found["which"] or ""
    )
    if offset is not None:
        fields["W"] = offset
    return fields


_RELATIVE_WORDS = {
    "today": ("D", 0),
    "tonight": ("D", 0),
    "tomorrow": ("D", 1),
    "tmr": ("D", 1),
    "tmrw": ("D", 1),
    "yesterday": ("D", -1),
    "the day after tomorrow": ("D", 2),
    "day after tomorrow": ("D", 2),
    "the day before yesterday": ("D", -2),
    "day before yesterday": ("D", -2),
}
_PERIODS = {"day": "D", "week": "W", "month": "Mo", "quarter": "Q", "year": "Y"}
_WHICH = {
    "last": -1,
    "previous": -1,
    "past": -1,
    "prior": -1,
    "this": 0,
    "current": 0,
    "next": 1,
    "coming": 1,
}


def _relative_word(found: re.Match[str]) -> dict[str, int]:
    name, offset = _RELATIVE_WORDS[found[0]]
    return {name: offset}


def _relative_period(found: re.Match[str]) -> dict[str, int]:
    return {_PERIODS[found["unit"]]: _WHICH[found["which"]]}


def _decade(found: re.Match[str]) -> dict[str, int]:
    return {"dec": int(found[1])}


_COUNT_NOUN = re.compile(
    r" (?:[a-z-]+ )?(?:people|men|women|children|[a-z]{2,}[^s\W]s|staff|feet)\b(?! (?:was|were|is|are|results|levels))"
)
_YEAR_CUE = re.compile(
    r"(?:\b(?:in|since|by|until|till|through|from|of|during|before|after|year|fiscal|fy|late|early|mid|for|and|vs|versus|over|to|than|the|end|"
    r"spring|summer|autumn|fall|winter|circa|both|ending|ended|on|with|full)[ -]?|[–/(-])$"
)
_BARE_YEAR = re.compile(r"(?<![\w.,$€£¥:+/-])(?:19[5-9]\d|20[0-4]\d)(?![\w%:/]|[.,]\d|-\d{1,3}\D)")


def _bare_year(found: re.Match[str]) -> dict[str, int] | None:
    """A four-digit number of our time that counts nothing is a year: "in 2021", "2021 results"."""
    text, end = found.string, found.end()
    if unit_after(text, end) is not None or currency_before(text, found.start()) is not None:
        return None
    if classifier_after(text, end) is not None or re.match(
        r" ?[万亿千百多余几]| (?:million|billion|thousand|hundred)\b", text[end : end + 10]
    ):
        return None
    cue = _YEAR_CUE.search(text, max(0, found.start() - 12), found.start())
    if cue is None and _COUNT_NOUN.match(text, end):
        return None
    return {"y": int(found[0])}


def _clock(found: re.Match[str]) -> dict[str, int] | None:
    groups = found.groupdict()
    hour = _number(groups["hour"])
    fields = {"H": hour, "M": int(groups.get("minute") or 0)}
    half = (groups.get("half") or "").replace(".", "").replace(" ", "")
    if half:
        fields |= {"H": hour % 12 + (12 if half.startswith("p") else 0), "pm": int(half.startswith("p"))}
    elif hour > 12:
        fields["pm"] = 1
    return _valid(fields)


def _clock_word(found: re.Match[str]) -> dict[str, int]:
    noon = found[0] in ("noon", "midday")
    return {"H": 12 if noon else 0, "M": 0, "pm": int(noon)}


def _spoken_clock(found: re.Match[str]) -> dict[str, int] | None:
    hour, minute = _number(found["hour"]), _number(found["minute"]) if found["minute"] else 0
    half = found["half"].replace(".", "").replace(" ", "")
    if half[0] in "ap":
        return _valid(
            {"H": hour % 12 + (12 if half[0] == "p" else 0), "M": minute, "pm": int(half[0] == "p")}
        )
    return _valid({"H": hour, "M": minute})


_HALF = r"(?P<half>[ap] ?\.? ?m\b\.?)"
_TENS_MINUTE = (
    rf"(?:{'|'.join(en.TEN_WORDS)})(?:[- ](?:{'|'.join(list(en.UNIT_WORDS)[1:])}))?|{'|'.join(en.TEEN_WORDS)}"
)
_ENGLISH: list[tuple[re.Pattern[str], Reader]] = [
    (
        re.compile(r"(?<![\w./-])(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?![\d])(?!\.\d)"),
        lambda f: _valid({"y": int(f[1]), "m": int(f[3]), "d": int(f[4])}),
    ),
    (re.compile(rf"\b{_MONTH} (?:the )?{_DAY}(?:,? (?:of )?{_YEAR})?(?!\w)"), _month_day),
    (
        re.compile(rf"(?<![\w.])(?:the )?{_DAY}(?: day)?(?: of)?[ -]{_MONTH}(?:[,. -]{{0,2}}{_YEAR})?(?!\w)"),
        _month_day,
    ),
    (
        re.compile(
            rf"\b{_MONTH} (?P<day>{_DAY_CARDINAL})(?:,? {_YEAR})?(?!\w)(?! (?:hundred|thousand|million|percent))"
        ),
        _month_day,
    ),
    (re.compile(rf"\b{_MONTH},? (?:of )?{_YEAR}(?!\w)"), _month_day),
    (
        re.compile(
            r"(?<![\w.])(?P<q>first|second|third|fourth|1st|2nd|3rd|4th)[ -](?:fiscal |calendar )?(?P<unit>quarter|half)(?: of the year)?(?![\w])(?! (?:a |an )?(?:hour|mile|million|dozen))"
        ),
        _quarter,
    ),
    (
        re.compile(
            r"(?<![\w.])(?:(?P<letter>[qh])(?P<n>[1-4])|(?P<n2>[1-4])(?P<letter2>[qh]))(?:[ -]?(?:fy ?)?(?P<fy>20\d\d|'?\d\d))?(?![\w])"
        ),
        lambda f: _short_quarter_any(f),
    ),
    (
        re.compile(
            rf"\b(?:(?P<which>next|last|this|past|previous|coming) )?(?P<wd>{'|'.join(w + 's?' for w in _WEEKDAYS)}|mon|tues?|wed|thurs?|thu|fri|sat|sun)\b(?!')"
        ),
        lambda f: _weekday_guarded(f),
    ),
    (
        re.compile("|".join(rf"\b{w}\b" for w in sorted(_RELATIVE_WORDS, key=len, reverse=True))),
        _relative_word,
    ),
    (re.compile(rf"\b(?P<which>{'|'.join(_WHICH)}) (?P<unit>{'|'.join(_PERIODS)})\b"), _relative_period),
    (re.compile(r"(?<![\w.])(?:the )?((?:1[5-9]|20)\d0)'?s\b"), _decade),
    (re.compile(rf"(?<![\w.:])(?P<hour>\d{{1,2}})(?:[:.](?P<minute>\d\d))?(?::\d\d)? ?{_HALF}"), _clock),
    (re.compile(r"(?<![\w.:])(?P<hour>\d{1,2}) ?(?P<minute>)o ?'? ?clock\b"), _clock),
    (
        re.compile(r"(?<![\w.:])(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::[0-5]\d)?(?![\d:%])(?!\.\d)"),
        _clock,
    ),
    (re.compile(r"\b(?:noon|midday|midnight)\b"), _clock_word),
    (
        re.compile(
            rf"\b(?P<part>half|(?:a )?quarter|twenty[- ]five|twenty|ten|five|\d{{1,2}}) (?P<way>past|to|after) (?P<hour>{_DAY_CARDINAL}|\d{{1,2}})\b(?! (?:percent|million|thousand|hundred|of))"
        ),
        lambda f: _past_guarded(f),
    ),
    (
        re.compile(
            rf"\b(?P<hour>{_DAY_CARDINAL})(?:[ -](?:oh )?(?P<minute>{_TENS_MINUTE}|{'|'.join(en.UNIT_WORDS)}))? ?(?P<half>[ap] ?\.? ?m\b\.?|o ?'? ?clock\b)"
        ),
        _spoken_clock,
    ),
    (re.compile(rf"\b{_MONTH}(?!\w)"), lambda f: _month_alone(f)),
]


def _short_quarter_any(found: re.Match[str]) -> dict[str, int] | None:
    letter, number = found["letter"] or found["letter2"], int(found["n"] or found["n2"])
    if letter == "h" and number > 2:
        return None
    fields = {letter: number}
    if found["fy"]:
        fields["y"] = _year_number(found["fy"].lstrip("'"))
    return fields


def _weekday_guarded(found: re.Match[str]) -> dict[str, int] | None:
    """Short names are words too (sat, sun, wed): they count only with a modifier or "on" before."""
    word = found["wd"]
    if len(word) <= 5 and word not in ("thurs",) and not found["which"]:
        before = found.string[max(0, found.start() - 4) : found.start()]
        if word in ("sat", "sun", "mon", "wed", "fri") and not re.search(r"(?:on|by|,|\() $", before):
            return None
    return _weekday(found)


def _past_guarded(found: re.Match[str]) -> dict[str, int] | None:
    """ "five to ten" is a range, "quarter to ten" and "half past ten" are times."""
    part = found["part"].removeprefix("a ")
    if part not in ("half", "quarter") and (found["way"] != "past"):
        return None
    minutes = {"half": 30, "quarter": 15}.get(part) or _number(part)
    hour = _number(found["hour"])
    if not 0 < hour <= 12:
        return None
    total = hour * 60 + (minutes if found["way"] in ("past", "after") else -minutes)
    return {"H": total // 60 % 24, "M": total % 60}


def _month_alone(found: re.Match[str]) -> dict[str, int] | None:
    """A month's name alone; "may" and "march" are words too and need a preposition or a modifier."""
    word = found["month"]
    before = found.string[max(0, found.start() - 9) : found.start()]
    if len(word.rstrip(".")) <= 3 or word in ("march", "august"):
        cue = re.search(
            r"\b(?:in|of|by|since|until|till|from|to|mid|early|late|last|next|this|through|for|before|after|during)[ -]$",
            before,
        )
        if cue is None:
            return None
    return {"m": _month_number(word)}


# --- Chinese -------------------------------------------------------------------------------------------------


def _zh_date(found: re.Match[str]) -> dict[str, int] | None:
    groups = found.groupdict()
    fields = {}
    if groups.get("y"):
        fields["y"] = _year_number(groups["y"])
    for name, key in (("m", "m"), ("d", "d")):
        if groups.get(name):
            fields[key] = _number(groups[name].replace(" ", ""))
    return _valid(fields)


def _zh_part(found: re.Match[str]) -> dict[str, int]:
    return {"part": {"初": 1, "上": 1, "中": 2, "底": 3, "末": 3, "下": 3, "终": 3}[found["part"]]}


def _zh_half(found: re.Match[str]) -> dict[str, int]:
    return {"h": {"上": 1, "下": 2, "前": 1, "后": 2}[found[1]]}


def _zh_quarter(found: re.Match[str]) -> dict[str, int]:
    return {"q": _number(found[1])}


def _zh_weekday(found: re.Match[str]) -> dict[str, int]:
    fields = {"wd": _ZH_WEEK[found["wd"]]}
    which = found["which"] or ""
    if which:
        sign = {"上": -1, "下": 1}.get(which[0], 0)
        fields["W"] = sign * (len(which.replace("个", "")) if sign else 1)
    return fields


_ZH_RELATIVE = {
    "大前天": ("D", -3), "前天": ("D", -2), "前日": ("D", -2), "昨天": ("D", -1), "昨日": ("D", -1), "今天": ("D", 0),
    "今日": ("D", 0), "当天": ("same", 0), "当日": ("same", 0), "明天": ("D", 1), "明日": ("D", 1), "后天": ("D", 2),
    "大后天": ("D", 3), "前年": ("Y", -2), "去年": ("Y", -1), "今年": ("Y", 0), "本年": ("Y", 0), "明年": ("Y", 1),
    "后年": ("Y", 2), "上月": ("Mo", -1), "上个月": ("Mo", -1), "本月": ("Mo", 0), "这个月": ("Mo", 0), "当月": ("Mo", 0),
    "下月": ("Mo", 1), "下个月": ("Mo", 1), "上周": ("W", -1), "上个星期": ("W", -1), "上星期": ("W", -1),
    "本周": ("W", 0), "这周": ("W", 0), "这个星期": ("W", 0), "下周": ("W", 1), "下星期": ("W", 1), "下个星期": ("W", 1),
    "下下周": ("W", 2), "上上周": ("W", -2), "上季度": ("Q", -1), "上个季度": ("Q", -1), "本季度": ("Q", 0),
    "这个季度": ("Q", 0), "下季度": ("Q", 1), "下个季度": ("Q", 1),
    "今早": ("D", 0), "今晚": ("D", 0), "明早": ("D", 1), "明晚": ("D", 1), "昨晚": ("D", -1),
}  # fmt: skip


def _zh_relative(found: re.Match[str]) -> dict[str, int]:
    name, offset = _ZH_RELATIVE[found[0]]
    return {name: offset}


def _zh_decade(found: re.Match[str]) -> dict[str, int]:
    century = _number(found["c"]) if found["c"] else 20
    return {"dec": (century - 1) * 100 + _number(found["d"])}


def _zh_clock(found: re.Match[str]) -> dict[str, int] | None:
    hour = _number(found["hour"])
    tail = found["tail"] or ""
    if "半" in tail:
        minute = 30
    elif "刻" in tail:
        minute = 45 if "三" in tail or "3" in tail else 15
    else:
        digits = re.search(_Z, tail.replace("零", ""))
        minute = _number(digits[0]) if digits else 0
    fields = {"H": hour, "M": minute}
    part = found["part"] or ""
    if part:
        pm = part in _PM and not (part == "中午" and hour in (10, 11))
        fields |= {
            "H": hour + 12 if pm and hour < 12 and not (part == "中午" and hour >= 10) else hour,
            "pm": int(pm),
        }
    elif hour > 12:
        fields["pm"] = 1
    return _valid(fields)


_NO_COUNT = r"(?![\d.]|[个多几万千百亿名位家元%天项人点])"
_NOT_DAY = r"(?!线|楼|院|厅|门|馆|机|车|店|仓|桌|房|桥|码|会|工|文|令|选|种|球|通|公|站|台|航|井|厂|泊|地块|卫|列|探|火|高|元|本|语|报|圆|式|企|系|资|企|股)"
_CHINESE: list[tuple[re.Pattern[str], Reader]] = [
    (
        re.compile(r"(?<![\w./-])(\d{4})([-/.])(\d{1,2})\2(\d{1,2})[日号]?(?![\d])(?!\.\d)"),
        lambda f: _valid({"y": int(f[1]), "m": int(f[3]), "d": int(f[4])}),
    ),
    (
        re.compile(
            rf"(?<![\d.])(?P<y>{_ZY}|\d\d(?=年 ?\d{{1,2}}月)) ?年度? ?(?P<m>{_Z}) ?月份? ?(?P<d>{_Z}(?: ?[日号])|{_Z}{_NO_COUNT})"
        ),
        _zh_date,
    ),
    (
        re.compile(rf"(?<![\d.])(?P<y>{_ZY}|\d\d(?=年 ?\d{{1,2}}月)) ?年度? ?(?P<m>{_Z}) ?月份?(?!\d)"),
        _zh_date,
    ),
    (
        re.compile(
            rf"(?<![\d.,]|[零一二三四五六七八九十百千万个])(?P<m>{_Z}) ?月份? ?(?P<d>{_Z}(?: ?[日号]){_NOT_DAY}|{_Z}{_NO_COUNT})"
        ),
        _zh_date,
    ),
    (re.compile(r"(?<![\d./-])(?P<m>\d{1,2})[./-](?P<d>\d{1,2}) ?[日号]"), _zh_date),
    (
        re.compile(
            rf"(?<![\d.,]|[零一二三四五六七八九十百千万个])(?P<m>{_Z}) ?月(?:份|(?!亮|饼|色|球|子|薪|租|供))"
        ),
        _zh_date,
    ),
    (re.compile(rf"(?<![\d.])(?P<y>{_ZY}) ?年(?:度|(?!来|间|前|后|代|之久|以|级|内))"), _zh_date),
    (
        re.compile(
            r"(?<![\d.])(?P<y>0\d|[5-9]\d|[零九八][零一二三四五六七八九]) ?年(?!来|间|前|后|代|之|以|多|级|内)"
        ),
        _zh_date,
    ),
    (
        re.compile(
            rf"(?<![\d.,第a-z]|[零一二三四五六七八九十百千万])(?P<d>{_Z}) ?(?:日(?!元|本|圆|语|报|系|企|后|益|均|夜|式|资|军|子)|号{_NOT_DAY})"
        ),
        _zh_date,
    ),
    (
        re.compile(
            r"(?<=[年月])(?P<part>初|底|末|终|中(?=[，。、,.;；:的时将会需要完前后）)]|$|\s|旬))(?!级|中学)"
        ),
        _zh_part,
    ),
    (re.compile(r"(?P<part>上|中|下)旬"), _zh_part),
    (re.compile(r"([上下])半年(?!度?报)"), _zh_half),
    (
        re.compile(r"第?([一二三四1-4]) ?季度?(?=[度报])?"),
        lambda f: _zh_quarter(f) if f[0].endswith("季度") or f[0].startswith("第") else None,
    ),
    (re.compile(r"(?<![a-z0-9])q([1-4])(?![a-z0-9])"), _zh_quarter),
    (
        re.compile(
            r"(?P<which>上上个?|下下个?|上个?|下个?|本|这个?)?(?:周|星期|礼拜)(?P<wd>[一二三四五六日天1-7末])(?!个|年|期|天|次|\d|月)"
        ),
        _zh_weekday,
    ),
    (re.compile("|".join(sorted(_ZH_RELATIVE, key=len, reverse=True))), _zh_relative),
    (re.compile(rf"(?:(?P<c>{_Z}|二十一?) ?世纪)?(?P<d>\d0|[一二三四五六七八九]十) ?年代"), _zh_decade),
    (
        re.compile(
            rf"(?P<part>{_DAY_PARTS}) ?(?P<hour>{_Z}) ?[点时:](?P<tail>钟|整|半|[一三]刻|零?{_Z} ?分?)?"
        ),
        _zh_clock,
    ),
    (
        re.compile(
            rf"(?<![\d.第零一二三四五六七八九十百千万几两])(?P<part>)(?P<hour>{_Z}|两) ?点(?P<tail>钟|整|半|[一三]刻|零?{_Z} ?分)(?!之)"
        ),
        _zh_clock,
    ),
    (
        re.compile(
            rf"(?<![\d.第零一二三四五六七八九十百千万几两])(?P<part>)(?P<hour>{_Z}) ?[点时](?P<tail>)(?=之?[前后]|以[前后]|左右|开|到|至)(?!后腿)"
        ),
        _zh_clock,
    ),
    (
        re.compile(
            r"(?<![\d.])(?P<part>)(?P<hour>[01]?\d|2[0-4]) ?时(?P<tail>[0-5]?\d ?分)?(?!间|代|期|尚|速|装|长|段)"
        ),
        _zh_clock,
    ),
    (
        re.compile(
            rf"(?<![\w.:])(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?::[0-5]\d)?(?![\d:%])(?!\.\d)(?: ?{_HALF})?"
        ),
        _clock,
    ),
]
_HAS_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_HAS_LATIN_OR_CLOCK = re.compile(r"[a-z]{3}|\d[:/]\d|\d ?[ap]m|[qh]\d|\dq")
_NUMERIC = re.compile(r"(?<![\w./:$€£-])(\d{1,2})([/.-])(\d{1,2})(?:\2(\d{4}|\d{2}))?(?![\d%:]|[./-]\d|\.\d)")


def find_pieces(text: str, taken: bytearray) -> list[Piece]:
    """Date and time pieces of a folded text, joined where they belong together; marks what it takes."""
    pieces: list[Piece] = []
    tables = []
    if _HAS_CHINESE.search(text):
        tables.append(_CHINESE)
    if _HAS_LATIN_OR_CLOCK.search(text):
        tables.append(_ENGLISH)
    for table in tables:
        for pattern, read in table:
            pieces.extend(_scan(text, pattern, read, taken))
    pieces.extend(_numeric_dates(text, taken))
    pieces.extend(_scan(text, _BARE_YEAR, _bare_year, taken))
    pieces.sort(key=lambda piece: piece.start)
    return _join(text, pieces)


def _scan(text: str, pattern: re.Pattern[str], read: Reader, taken: bytearray) -> Iterator[Piece]:
    for found in pattern.finditer(text):
        if any(taken[found.start() : found.end()]):
            continue
        fields = read(found)
        if fields is not None and -1 not in (fields.get("d"), fields.get("m"), fields.get("H")):
            taken[found.start() : found.end()] = b"\1" * (found.end() - found.start())
            yield Piece(found.start(), found.end(), fields)


def _numeric_dates(text: str, taken: bytearray) -> Iterator[Piece]:
    """15/4/2026 and 2/5: the order of day and month is taken from the unambiguous dates of the same text.

    Without a neighbour to tell, both readings are kept. Two numbers without a year are a date only when the
    text has dates of that form with a year, or a word like "on" or "by" stands before.
    """
    found = [f for f in _NUMERIC.finditer(text) if not any(taken[f.start() : f.end()])]
    full = [f for f in found if f[4] and _numeric_orders(f)]
    order = _order(full)
    for match in found:
        if not match[4] and not _short_date_allowed(text, match, full):
            continue
        piece = _numeric_piece(match, order)
        if piece is not None:
            taken[match.start() : match.end()] = b"\1" * (match.end() - match.start())
            yield piece


def _numeric_orders(found: re.Match[str]) -> set[str]:
    first, second = int(found[1]), int(found[3])
    orders = set()
    if 1 <= first <= 31 and 1 <= second <= 12:
        orders.add("dm")
    if 1 <= first <= 12 and 1 <= second <= 31:
        orders.add("md")
    return orders


def _order(full: list[re.Match[str]]) -> str | None:
    """The order that every clear date of the text shares, or None."""
    clear = {next(iter(orders)) for orders in map(_numeric_orders, full) if len(orders) == 1}
    return clear.pop() if len(clear) == 1 else None


def _short_date_allowed(text: str, found: re.Match[str], full: list[re.Match[str]]) -> bool:
    if found[2] != "/" or not _numeric_orders(found):
        return False
    before = text[max(0, found.start() - 12) : found.start()]
    if re.search(
        r"(?:\bon|\bby|\buntil|\bsince|\bfrom|\bfor|\bdue|\bbefore|\bafter|于|在|至|到)(?: the| date)? ?$",
        before,
    ):
        return True
    return any(match[2] == found[2] for match in full)


def _numeric_piece(found: re.Match[str], order: str | None) -> Piece | None:
    orders = _numeric_orders(found)
    first, second = int(found[1]), int(found[3])
    year = {"y": _year_number(found[4])} if found[4] else {}
    readings = {"dm": {"d": first, "m": second} | year, "md": {"m": first, "d": second} | year}
    chosen = order if order in orders else None
    if chosen is None and len(orders) == 1:
        chosen = next(iter(orders))
    if chosen is not None:
        return Piece(found.start(), found.end(), readings[chosen])
    if len(orders) == 2 and first != second:
        other = tuple(sorted(readings["dm"].items()))
        return Piece(found.start(), found.end(), readings["md"], other)
    return Piece(found.start(), found.end(), readings["md"]) if orders else None


_GAP = re.compile(r"(?:,? ?(?:of|in|the|on|的|\()? ?(?:the )?)?,? ?")
_JOINABLE = {"y", "m", "d", "q", "h", "part", "wd", "Y"}


def _join(text: str, pieces: list[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and _belong(text, last, piece):
            joined[-1] = replace(
                last, end=piece.end, fields=last.fields | piece.fields, other=last.other or piece.other
            )
        else:
            joined.append(piece)
    return joined


def _belong(text: str, left: Piece, right: Piece) -> bool:
    """Parts of one date: no part twice, only calendar parts, and no more than "of", "the" or a comma between."""
    keys = left.fields.keys() | right.fields.keys()
    if len(keys) < len(left.fields) + len(right.fields) or not keys <= _JOINABLE:
        return False
    gap = text[left.end : right.start]
    if "," in gap and "wd" not in left.fields and right.fields.keys() != {"y"}:
        return False
    return len(gap) <= 8 and _GAP.fullmatch(gap) is not None
