# ruff: noqa: E501 (patterns and tables of names are easier to read in one piece)
"""Chinese dates, weekdays and clock times: patterns and what each states.

Digits and numerals mix freely (2026年三月5号). Where a unit is also part of other words (号线, 日元, 点多) the pattern
says what may not follow.
"""

from __future__ import annotations

import re

from seatrial.guards.numbers import zh
from seatrial.guards.numbers.blocks import at_number, row, table
from seatrial.guards.numbers.words_en import two_digit_year, valid

_Z = r"(?:\d{1,2}|[一二三四五六七八九十]{1,3})"
_ZY = r"(?:\d{4}|[零一二三四五六七八九](?: ?[零一二三四五六七八九]){3})"
_NO_DIGIT = r"(?<![\d.])"
# Behind a number no other begins, but behind a weekday one does: 周四14点.
_NO_NUMBER = (
    r"(?:(?<![\d.,/零一二三四五六七八九十百千万])|(?<=周[一二三四五六])(?=\d)|(?<=期[一二三四五六])(?=\d))"
)
_NOT_DAY = (
    r"(?![线楼院厅门馆机车店仓桌房桥码会工文令选种球通公站台航井厂泊卫列探火高元本语报圆式企系资股床位员机])"
)
_NO_COUNT = r"(?![\d.]|[个多几万千百亿名位家元%天项人点分比号])"
_WEEK = {"一": 1, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "日": 7, "天": 7} | {
    str(n): n for n in range(1, 8)
}
_PARTS_OF_DAY = {
    "凌晨": 1, "清晨": 1, "早上": 1, "早晨": 1, "清早": 1, "上午": 1, "今晨": 1, "早": 1, "晨": 1, "中午": 2, "下午": 2,
    "午后": 2, "傍晚": 3, "晚上": 3, "晚间": 3, "今晚": 3, "明晚": 3, "昨晚": 3, "夜里": 4, "夜间": 4, "深夜": 4, "半夜": 4,
    "今早": 1, "明早": 1, "晚": 3,
}  # fmt: skip
_DAY_PART = "|".join(sorted(_PARTS_OF_DAY, key=len, reverse=True))
_DAY_OF_PART = {"今": 0, "明": 1, "昨": -1}


def number_of(word: str) -> int:
    """A small number in digits or Chinese numerals; -1 for a range or no number."""
    digits = word.replace(" ", "").rstrip("日号")
    if digits.isdigit():
        return int(digits)
    parsed = zh.parse(digits)
    return -1 if parsed is None or parsed.high is not None else int(parsed.value)


def year_of(word: str) -> int:
    """二零二六, 2026, 26 or 零八 as a year."""
    digits = "".join(str(zh.DIGITS.get(c, c)) for c in word if c != " ")
    return two_digit_year(int(digits)) if len(digits) == 2 else int(digits)


def _date(found: re.Match[str]) -> dict[str, int] | None:
    groups = found.groupdict()
    fields = {name: number_of(groups[name]) for name in ("m", "d") if groups.get(name)}
    if groups.get("y"):
        fields["y"] = year_of(groups["y"])
    return valid(fields)


def _numeric(found: re.Match[str]) -> dict[str, int] | None:
    return valid({name: int(found[name]) for name in ("y", "m", "d")})


def _part(found: re.Match[str]) -> dict[str, int]:
    return {"part": {"初": 1, "上": 1, "中": 2}.get(found["part"], 3)}


def _half(found: re.Match[str]) -> dict[str, int]:
    return {"h": 1 if found[1] in "上前" else 2}


def _quarter(found: re.Match[str]) -> dict[str, int]:
    return {"q": number_of(found["q"])}


def _weekday(found: re.Match[str]) -> dict[str, int]:
    which = (found["which"] or "").replace("个", "")
    fields = {"we": 1} if found["wd"] == "末" else {"wd": _WEEK[found["wd"]]}
    if which:
        sign = {"上": -1, "下": 1}.get(which[0], 0)
        fields["W"] = sign * len(which)
    return fields


_RELATIVE = {
    "大前天": ("D", -3), "前天": ("D", -2), "前日": ("D", -2), "昨天": ("D", -1), "昨日": ("D", -1), "今天": ("D", 0),
    "今日": ("D", 0), "当天": ("same", 0), "当日": ("same", 0), "明天": ("D", 1), "明日": ("D", 1), "后天": ("D", 2),
    "大后天": ("D", 3), "前年": ("Y", -2), "去年": ("Y", -1), "今年": ("Y", 0), "本年": ("Y", 0), "明年": ("Y", 1),
    "后年": ("Y", 2), "上月": ("Mo", -1), "上个月": ("Mo", -1), "本月": ("Mo", 0), "这个月": ("Mo", 0), "当月": ("Mo", 0),
    "下月": ("Mo", 1), "下个月": ("Mo", 1), "上周": ("W", -1), "上个星期": ("W", -1), "上星期": ("W", -1), "上个周": ("W", -1),
    "本周": ("W", 0), "这周": ("W", 0), "这个星期": ("W", 0), "下周": ("W", 1), "下星期": ("W", 1), "下个星期": ("W", 1),
    "下下周": ("W", 2), "上上周": ("W", -2), "上季度": ("Q", -1), "上个季度": ("Q", -1), "本季度": ("Q", 0),
    "这个季度": ("Q", 0), "下季度": ("Q", 1), "下个季度": ("Q", 1),
}  # fmt: skip


def _relative(found: re.Match[str]) -> dict[str, int]:
    name, offset = _RELATIVE[found[0]]
    return {name: offset}


_PERIODS = {
    "天": "D",
    "日": "D",
    "周": "W",
    "个星期": "W",
    "星期": "W",
    "个礼拜": "W",
    "个月": "Mo",
    "年": "Y",
    "个季度": "Q",
}
_PERIOD = "|".join(sorted(_PERIODS, key=len, reverse=True))


def _shifted(found: re.Match[str]) -> dict[str, int] | None:
    """三天前, 两周后, 5年之前."""
    count = number_of(found["n"])
    return {_PERIODS[found["unit"]]: -count if "前" in found["way"] else count} if count > 0 else None


def _next_periods(found: re.Match[str]) -> dict[str, int] | None:
    """未来三天, 过去5年, 后1年."""
    count = number_of(found["n"])
    sign = -1 if found["which"] in ("过去", "最近", "近", "前") else 1
    return {"n" + _PERIODS[found["unit"]]: sign * count} if count > 0 else None


def _decade(found: re.Match[str]) -> dict[str, int]:
    century = number_of(found["c"]) if found["c"] else 20
    return {"dec": (century - 1) * 100 + number_of(found["d"])}


def _part_of_day(found: re.Match[str]) -> dict[str, int]:
    word = found["dp"]
    fields = {"dp": _PARTS_OF_DAY[word]}
    return fields | ({"D": _DAY_OF_PART[word[0]]} if word[0] in _DAY_OF_PART else {})


def _clock(found: re.Match[str]) -> dict[str, int] | None:
    hour, part = number_of(found["hour"]), found["dp"] or ""
    fields = {"H": hour, "M": _minute(found["tail"] or "")}
    if part:
        afternoon = _PARTS_OF_DAY[part] >= 2 and not (part == "中午" and hour in (10, 11))
        night = part in ("半夜", "深夜", "夜里") and hour <= 5
        pm = afternoon and not night
        fields |= {"H": hour + 12 if pm and hour < 12 else hour, "pm": int(pm)}
        if part[0] in _DAY_OF_PART and part != "晚":
            fields["D"] = _DAY_OF_PART[part[0]]
    elif hour > 12:
        fields["pm"] = 1
    return valid(fields)


def _to(found: re.Match[str]) -> dict[str, int] | None:
    """差一刻九点, 九点差五分."""
    hour, left = number_of(found["hour"] or found["hour2"]), found["to"] or found["to2"]
    minutes = 15 if "刻" in left else number_of(left.rstrip("分 "))
    return {"H": hour - 1, "M": 60 - minutes} if 1 < hour <= 24 and 0 < minutes < 60 else None


def _minute(tail: str) -> int:
    if "半" in tail:
        return 30
    if "刻" in tail:
        return 45 if "三" in tail or "3" in tail else 15
    digits = re.search(r"\d{1,2}|[一二三四五六七八九十]{1,3}", tail)
    return number_of(digits[0]) if digits else 0


def _ordinal_part(found: re.Match[str]) -> dict[str, int] | None:
    """第三个月, 第二周 of a year or month."""
    number = number_of(found["n"])
    return valid({"m": number}) if found["unit"] == "个月" else {"wk": number}


# Feasts whose day never moves; 国庆 and 五一 as days, not as the weeks off around them.
_FEASTS = {
    "元旦": (1, 1), "情人节": (2, 14), "妇女节": (3, 8), "劳动节": (5, 1), "五一": (5, 1), "儿童节": (6, 1), "建党节": (7, 1),
    "建军节": (8, 1), "教师节": (9, 10), "国庆节": (10, 1), "国庆": (10, 1), "双十一": (11, 11), "双11": (11, 11),
    "平安夜": (12, 24), "圣诞节": (12, 25), "圣诞": (12, 25),
}  # fmt: skip
_FEAST = "|".join(sorted(_FEASTS, key=len, reverse=True))

# A number, with a space between its digits or not, and the unit or sign that makes it part of a date.
_LIKELY = r"[\d零一二两三四五六七八九十](?: ?[\d零一二两三四五六七八九十])* ?[年月日号点时天周星个季礼./-]"
_TENS = r"[二三四五]?十[一二三四五六七八九]?(?![几多个余万])"  # 五点五十: no decimal has a 十
CHINESE = table(
    row(
        "节",
        rf"(?P<f>{_FEAST})(?!期间|假期|长假|黄金周|[档路街区村广])",
        lambda f: {"m": _FEASTS[f["f"]][0], "d": _FEASTS[f["f"]][1]},
    ),
    at_number(
        "digit",
        r"(?<![\d./])(?P<y>\d{4})(?P<by>[-/.])(?P<m>\d{1,2})(?P=by)(?P<d>\d{1,2})[日号]?(?!\d)(?!\.\d)",
        _numeric,
    ),
    at_number(
        "年 月",
        rf"{_NO_DIGIT}(?P<y>{_ZY}|\d\d(?= ?年 ?\d{{1,2}} ?月)) ?年度?[ 的]?(?P<m>{_Z}) ?月份? ?"
        rf"(?P<d>{_Z}(?: ?[日号])|初?{_Z}{_NO_COUNT})",
        _date,
    ),
    at_number(
        "年 月",
        rf"{_NO_DIGIT}(?P<y>{_ZY}|\d\d(?= ?年 ?\d{{1,2}} ?月)) ?年度?[ 的]?(?P<m>{_Z}) ?月份?(?!\d)",
        _date,
    ),
    at_number(
        "月",
        rf"{_NO_NUMBER}(?<!个)(?P<m>{_Z}) ?月份? ?(?P<d>{_Z}(?: ?[日号]){_NOT_DAY}|{_Z}{_NO_COUNT})",
        _date,
    ),
    row(
        "月",
        r"(?<![零一二三四五六七八九十百])(?P<a>[一二三四五六七八])(?P<b>[二三四五六七八九])月",
        lambda f: (
            {"m": zh.DIGITS[f["a"]], "m2": zh.DIGITS[f["b"]]}
            if zh.DIGITS[f["b"]] == zh.DIGITS[f["a"]] + 1
            else None
        ),
    ),
    at_number("digit 日", r"(?<![\d./-])(?P<m>\d{1,2})[./-](?P<d>\d{1,2}) ?[日号]", _date),
    at_number("月", rf"{_NO_NUMBER}(?<!个)(?P<m>{_Z}) ?月(?:份|(?![亮饼色球子薪租供]))", _date),
    at_number("年", rf"{_NO_DIGIT}(?P<y>{_ZY}) ?年(?:度|(?!来|间|之久|以来|级|内))", _date),
    at_number(
        "年",
        rf"{_NO_DIGIT}(?P<y>0\d|[5-9]\d|[零九八][零一二三四五六七八九]) ?年(?![来间后代多级内]|之后|前后)",
        _date,
    ),
    at_number(
        "前",
        rf"(?P<n>{_Z}|两) ?(?P<unit>{_PERIOD}) ?(?P<way>之前|以前|前|之后|以后|后)(?![期面台卫继续的])",
        _shifted,
    ),
    row(
        "未来",
        rf"(?P<which>过去|最近|未来|今后|接下来|后|前)的? ?(?P<n>{_Z}|两) ?(?P<unit>{_PERIOD})(?!前|后|级)",
        _next_periods,
    ),
    row("第", rf"(?<=[年的月])第(?P<n>{_Z})(?P<unit>个月|周)", _ordinal_part),
    at_number(
        "日",
        rf"(?<![\d.,/第a-z零一二三四五六七八九十百千万])(?P<d>{_Z}) ?"
        rf"(?:日(?![元本圆语报系企后益均夜式资军子游])|号{_NOT_DAY})",
        _date,
    ),
    row("旬", r"(?P<part>[上中下])旬", _part),
    row(
        "部分",
        r"(?<![\d零一二三四五六七八九十个年去今明后前本上下这])(?P<unit>[月年])(?P<part>[初底末])(?!级)",
        lambda f: {("Mo" if f["unit"] == "月" else "Y"): 0} | _part(f),
    ),
    row("部分", r"(?<=[年月])年?(?P<part>[初底末])(?!级)", _part),
    row(
        "部分",
        r"(?<=[年月])(?P<part>初|底|末|终|中(?=[，。、,.;；:的时将会需要完前后）)]|$|\s|旬))(?!级)",
        _part,
    ),
    row("半年", r"([上下])(?:个)?半年(?!度?报)", _half),
    row(
        "季",
        r"(?=[第一二三四1-4])第(?P<q>[一二三四1-4]) ?季度?|(?P<q2>[一二三四1-4]) ?季度",
        lambda f: {"q": number_of(f["q"] or f["q2"])},
    ),
    row("digit", r"(?=q)(?<![a-z0-9])q(?P<q>[1-4])(?![a-z0-9])", _quarter),
    row(
        "周",
        r"(?=[上下本这周星礼])(?P<which>上上个?|下下个?|上个?|下个?|本|这个?)?(?<![\d一二两三四五六七八九十几]个)(?<!\d)(?:周|星期|礼拜)(?P<wd>[一二三四五六日天末]|[1-7](?![\d.]))"
        r"(?![个年期天次月]|小时)",
        _weekday,
    ),
    row("相对", "|".join(sorted(_RELATIVE, key=len, reverse=True)), _relative),
    row("年代", rf"(?:(?P<c>{_Z}|二十一?) ?世纪)?(?P<d>\d0|[一二三四五六七八九]十) ?年代", _decade),
    row(
        "点 差",
        rf"差(?P<to>一刻|{_Z} ?分) ?(?P<hour>{_Z}|两) ?点|(?P<hour2>{_Z}|两) ?点 ?差(?P<to2>一刻|{_Z} ?分)",
        _to,
    ),
    row(
        "时段 点",
        rf"(?P<dp>{_DAY_PART}) ?(?P<hour>{_Z}|两) ?[点时:](?P<tail>钟|整|半|[一三]刻|零?{_Z} ?分?)?(?!之)",
        _clock,
    ),
    at_number(
        "点",
        rf"{_NO_NUMBER}(?<![第几两])(?P<dp>)(?P<hour>{_Z}|两) ?点(?P<tail>钟|整|半|[一三]刻|零?{_Z} ?分|{_TENS})(?!之)",
        _clock,
    ),
    at_number(
        "点",
        rf"{_NO_NUMBER}(?<![第几两])(?P<dp>)(?P<hour>{_Z}|两) ?[点时](?P<tail>)(?=之?[前后]|以[前后]|左右|开|到|至|和|之间|$|[，。、；！？)）])(?!后腿)",
        _clock,
    ),
    at_number(
        "时 digit",
        r"(?<![\d.])(?P<dp>)(?P<hour>[01]?\d|2[0-4]) ?时(?P<tail>[0-5]?\d ?分)?(?:[0-5]?\d ?秒)?"
        r"(?![间代期尚速装长段])(?!\d* ?[分秒])",
        _clock,
    ),
    row(
        "时段",
        rf"(?<=[天日号今明昨周一二三四五六末在的])(?P<dp>{_DAY_PART})(?![餐饭安会报班])|(?P<dp2>今早|今晚|明早|明晚|昨晚|今晨)",
        lambda f: (
            _part_of_day(f) if f["dp"] else {"dp": _PARTS_OF_DAY[f["dp2"]], "D": _DAY_OF_PART[f["dp2"][0]]}
        ),
    ),
    likely=_LIKELY,
)
