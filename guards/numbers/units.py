# ruff: noqa: E501 (patterns and tables of names are easier to read in one piece)
"""Units: what may stand before or after a figure, and the measure word of a Chinese count.

One table for both languages; look-up is by dictionary, longest name first.
"""

from __future__ import annotations

import re
from decimal import Decimal

from seatrial.guards.numbers.currencies import CURRENCY_AFTER, CURRENCY_BEFORE
from seatrial.guards.numbers.measures import MEASURES, TEMPERATURES
from seatrial.guards.numbers.quantity import (
    AMOUNT,
    BASIS_POINT,
    COUNT,
    DURATION,
    PERCENT,
    PERCENTAGE_POINT,
    RATIO,
)
from seatrial.guards.numbers.unit import Unit, table

_DURATION = table(
    DURATION,
    "time",
    """
    second 1: second, seconds, sec, secs, 秒, 秒钟, 秒种
    millisecond 0.001: millisecond, milliseconds, ms, msec, 毫秒
    microsecond 0.000001: microsecond, microseconds, us, µs, μs, 微秒
    minute 60: minute, minutes, min, mins, 分钟, 分, 分种
    quarter-hour 900: 刻钟, 刻
    hour 3600: hour, hours, hr, hrs, h, 小时, 个小时, 钟头, 个钟头, 个钟, 时
    day 86400: day, days, 天, 日, business day, business days, working day, working days, 个工作日, 工作日, 天时间, 昼夜
    night 86400: night, nights, 晚, 夜
    week 604800: week, weeks, wk, wks, w, 周, 个星期, 星期, 礼拜, 个礼拜, 个周
    fortnight 1209600: fortnight, fortnights
    month 2592000: month, months, mo, mos, 个月, 月, 个自然月
    quarter 7776000: quarter, quarters, 个季度, 季度
    year 31104000: year, years, yr, yrs, y, 年, 年时间, 周年, 个年头, 载, 个财年
    decade 311040000: decade, decades, 个年代
    century 3110400000: century, centuries, 个世纪, 世纪
    """,
)
_AGE = table(COUNT, "age", "year-old 1: years old, year old, year-old, years of age, 岁, 周岁, 岁半, 多岁")

_PERCENT = {
    name: Unit("%", PERCENT, "percent")
    for name in ("%", "percent", "per cent", "percents", "pct", "percentage", "个百分比", "pc", "个%")
}
_POINTS = {
    name: Unit("pp", PERCENTAGE_POINT, "pp")
    for name in (
        "percentage points",
        "percentage point",
        "percent points",
        "pp",
        "ppt",
        "ppts",
        "pps",
        "个百分点",
        "百分点",
        "个点",
    )
} | {
    name: Unit("bp", BASIS_POINT, "pp", Decimal("0.01"))
    for name in ("basis points", "basis point", "bp", "bps", "个基点", "基点", "个bp", "个bps")
}
_RATIO = {name: Unit("x", RATIO, "times") for name in ("times", "x", "fold", "-fold", "倍", "倍以上", "×")}

AFTER: dict[str, Unit] = (
    MEASURES | TEMPERATURES | _RATIO | _DURATION | _AGE | CURRENCY_AFTER | _PERCENT | _POINTS
)
BY_NAME: dict[str, Unit] = {}
for _unit in AFTER.values():
    BY_NAME.setdefault(_unit.name, _unit)
    if _unit.kind == AMOUNT:
        BY_NAME[_unit.name] = Unit(_unit.name, AMOUNT, "money")
# Measure words of Chinese counts, by what they count; generic ones agree with all.
_CLASSIFIERS = {
    "people": "人 名 位 人次 口 员",
    "generic": "个 些 种 类 项 样 组 批 套 对 双 系列 大 号人",
    "firm": "家 所 座 间 栋 幢 处 户 厂 院 店 馆",
    "case": "件 宗 起 桩 单 笔 例 票 案",
    "document": "份 张 页 本 篇 册 封 部 幅 条 款 章 行 字 句 段 稿",
    "vehicle": "辆 台 架 艘 列 部 枚 门 艇 匹 头 只 支 根 把 块 盏 颗 粒 株 棵 朵 片",
    "time": "次 届 回 场 轮 期 局 遍 趟 场次 班 班次 节 集 季 步 盘 任 级 代 针 剂 顿 餐 圈",
    "score": "分 点 票 胜 平 负 球 环 席",
    "place": "层 楼 号 市 省 县 区 国 村 镇 乡 岛",
    "container": "箱 包 瓶 杯 盒 袋 桶 罐 吨位 排 队 床 亩次 组人",
    "side": "方面 方 岸 国 党 地 大类",
}
CLASSIFIERS: dict[str, str] = {word: group for group, words in _CLASSIFIERS.items() for word in words.split()}

_UNIT_BEGINS = frozenset(name[0] for name in AFTER) | frozenset("([{<°")  # what can begin a unit
# First character of a Chinese unit -> how long the units are that it begins, longest first.
_LENGTHS = {
    first: tuple(sorted({len(name) for name in AFTER if name[0] == first and len(name) <= 5}, reverse=True))
    for first in {name[0] for name in AFTER}
    if "\u4e00" <= first <= "\u9fff"
}

_WORD = re.compile(r"[ -]?([a-zµμ°][a-zµμ/]*(?:[²³]|\d(?!\d))?)(?![a-z0-9])")
_NEXT_WORD = re.compile(r"[ -]([a-z]+)(?![\w])")
_SYMBOLS = re.compile(r" ?(%|℃|℉|° ?[cf](?![a-z])|°|\$|€|£|¥|￥|₩|₹|₽|₿|₡|₪|¢|㎡|㎏|㎢|×|\")(?! ?\d)")
_BRACKETED = re.compile(r" ?[(\[{<]([a-z%°/]{1,8}[²³]?)[)\]}>]")


def unit_after(text: str, end: int) -> tuple[Unit, int] | None:
    """The unit that begins at `end` of a folded text (a space or hyphen may stand between) and where it ends."""
    sign = text[end : end + 1]
    if sign in (" ", "-"):
        sign = text[end + 1 : end + 2]
    if sign not in _UNIT_BEGINS:
        return None
    if "\u4e00" <= sign <= "\u9fff":
        return _chinese_unit(text, end)
    word = _WORD.match(text, end)
    if word is not None:
        return _latin_unit(text, word)
    for pattern in (_SYMBOLS, _BRACKETED):
        found = pattern.match(text, end)
        if found is not None:
            unit = AFTER.get(found[1])
            return None if unit is None else (unit, found.end())
    return None


def _latin_unit(text: str, word: re.Match[str]) -> tuple[Unit, int] | None:
    """Tries one to three words, longest first: "per cent", "square feet", "hong kong dollars"."""
    names, ends = [word[1]], [word.end()]
    while len(names) < 3:
        following = _NEXT_WORD.match(text, ends[-1])
        if following is None:
            break
        names.append(f"{names[-1]} {following[1]}")
        ends.append(following.end())
    for name, end in zip(reversed(names), reversed(ends), strict=True):
        unit = AFTER.get(name)
        if unit is not None:
            return unit, end
    return None


def _chinese_unit(text: str, end: int) -> tuple[Unit, int] | None:
    start = end + 1 if text[end : end + 1] == " " else end
    for length in _LENGTHS.get(text[start : start + 1], ()):
        unit = AFTER.get(text[start : start + length])
        if unit is not None and start + length <= len(text):
            return unit, start + length
    return None


# Measure words that begin other words: 回购, 包括.
_OTHER_WORDS = {"回": "购收报复归应顾", "包": "括含", "批": "准评复", "支": "付持出援", "排": "除放"}


def classifier_after(text: str, end: int) -> tuple[str, int] | None:
    """The Chinese measure word at `end` and where it ends."""
    start = end + 1 if text[end : end + 1] == " " else end
    for length in (2, 1):
        word = text[start : start + length]
        if word in CLASSIFIERS:
            other = text[start + length : start + length + 1]
            return None if other and other in _OTHER_WORDS.get(word, "") else (word, start + length)
    return None


_BEFORE_ENDS = frozenset(name[-1] for name in CURRENCY_BEFORE)
_BEFORE_LONGEST = max(map(len, CURRENCY_BEFORE))


def currency_before(text: str, start: int) -> tuple[Unit, int] | None:
    """The currency that ends right before `start` ("$", "HK$ ", "人民币") and where it begins."""
    end = start - 1 if text[start - 1 : start] == " " else start
    if end <= 0 or text[end - 1] not in _BEFORE_ENDS:
        return None
    for length in range(min(_BEFORE_LONGEST, end), 0, -1):
        unit = CURRENCY_BEFORE.get(text[end - length : end])
        if unit is not None and _stands_alone(text, end - length):
            return unit, end - length
    return None


_OWNED = re.compile(r"\d ?$")


def _stands_alone(text: str, at: int) -> bool:
    """A code in letters is a word of its own, and does not belong to a number before it: 10 rmb 20 usd."""
    if not (text[at].isalpha() and text[at].isascii()):
        return True
    if at and text[at - 1].isalnum():
        return False
    return _OWNED.search(text, max(0, at - 2), at) is None
