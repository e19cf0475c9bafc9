"""Figures that no numeral begins: 半年, 一半, 过半, 一个半小时, 翻两番, half an hour, half of, doubled."""

from __future__ import annotations

import re
from decimal import Decimal

from seatrial.guards.numbers import zh
from seatrial.guards.numbers.draft import Draft, finish
from seatrial.guards.numbers.hedges import bound_of
from seatrial.guards.numbers.quantity import DURATION, MEASURE, PERCENTAGE_POINT, RATIO, Quantity
from seatrial.guards.numbers.units import AFTER, Unit, unit_after

_HALF = re.compile(
    r"(?=[ahq\d半一二两三四五六七八九十过])"  # most characters begin no half
    r"(?:(?P<en>\bhalf(?= (?:an? )?(?:hour|year|day|month|mile|century|decade|minute|second|of|the|our|their|its|all)\b))"  # noqa: E501
    r"|(?P<most>(?<=more than )half\b|(?<=less than )half\b|(?<=over )half\b|(?<=nearly )half\b|(?<=almost )half\b)"  # noqa: E501
    r"|(?P<part>一半|半数)"
    r"|(?P<n>\d+|[一二两三四五六七八九十]+) ?个半(?= ?(?:小时|钟头|月(?!亮)|星期|礼拜|世纪|百分点))"
    r"|(?P<and>\ban? (?P<whole>hour|day|week|month|year|decade|mile|century) and a half\b)"
    r"|(?P<point>\b(?:a )?(?P<share>quarter|half)(?:[ -]| of )(?:an? )?(?:percentage[ -])?point\b)"
    r"|(?<![一大多过上下前后两数百参各])(?P<unit>半)(?= ?(?:年|个月|个小时|小时|天|个世纪|个钟头|分钟|公里|斤|里))"  # noqa: E501
    r"|(?P<over>过半(?!年|天)))"
)
_HOURS = {
    "百分点": "pp",
    "小时": "hour",
    "钟头": "hour",
    "月": "month",
    "星期": "week",
    "礼拜": "week",
    "世纪": "century",
}
_TIMES = re.compile(
    r"翻了?(?P<doublings>[一两二三四五六])?番|翻倍|翻了?(?P<more>[一两二三四五])?倍"
    r"|\b(?P<en>doubl|tripl|quadrupl)(?:ed|es|ing|e)\b"
)
_TIMES_SIGNS = ("翻", "doubl", "tripl", "quadrupl")
_HALF_VALUE = Decimal("0.5")


def read_halves(text: str, folded: str, taken: bytearray) -> list[Quantity]:
    """Halves and multiplications of a folded text; marks the halves it takes."""
    found = []
    for match in _HALF.finditer(folded) if "half" in folded or "半" in folded or "point" in folded else ():
        if any(taken[match.start() : match.end()]):
            continue
        draft = _half(folded, match)
        found.append(finish(text, draft))
        taken[draft.start : draft.end] = b"\1" * (draft.end - draft.start)
    for match in _TIMES.finditer(folded) if any(word in folded for word in _TIMES_SIGNS) else ():
        draft = Draft(*match.span(), _times(match), Decimal(1), RATIO, "x", form="zh")
        found.append(finish(text, draft))
    return found


def _half(folded: str, match: re.Match[str]) -> Draft:
    if match["n"]:
        return _one_and_a_half(folded, match)
    if match["and"]:
        whole = AFTER[match["whole"]]
        return Draft(*match.span(), 1 + _HALF_VALUE, _HALF_VALUE, whole.kind, whole.name, form="en")
    if match["point"]:
        share = _HALF_VALUE if match["share"] == "half" else _HALF_VALUE / 2
        return Draft(*match.span(), share, Decimal("0.01"), PERCENTAGE_POINT, "pp", form="en")
    unit = _unit_of_half(folded, match)
    if unit is None:
        bound = "over" if match["over"] else bound_of(folded, *match.span())
        return Draft(
            *match.span(), _HALF_VALUE, _HALF_VALUE, RATIO, "fraction", bound=bound, string="1/2", form="zh"
        )
    bound = bound_of(folded, match.start(), unit[1])
    kind, name = unit[0].kind, unit[0].name
    return Draft(match.start(), unit[1], _HALF_VALUE, _HALF_VALUE, kind, name, bound=bound, form="zh")


def _unit_of_half(folded: str, match: re.Match[str]) -> tuple[Unit, int] | None:
    """The unit of "half an hour" and 半年; None for "half of" and 一半."""
    if match["en"]:
        article = re.match(r" an?(?= )", folded[match.end() : match.end() + 4])
        found = unit_after(folded, match.end() + (article.end() if article else 0))
    else:
        found = unit_after(folded, match.end()) if match["unit"] else None
    return found if found is not None and found[0].kind in (DURATION, MEASURE) else None


def _one_and_a_half(folded: str, match: re.Match[str]) -> Draft:
    """一个半小时 = 1.5 hours."""
    number = zh.parse(match["n"])
    whole = number.value if number is not None else Decimal(1)
    after = folded[match.end() : match.end() + 8].lstrip(" ")
    name = next(word for word in _HOURS if after.startswith(word))
    end = folded.index(name, match.end()) + len(name)
    kind = PERCENTAGE_POINT if name == "百分点" else DURATION
    return Draft(match.start(), end, whole + _HALF_VALUE, _HALF_VALUE, kind, _HOURS[name], form="zh")


def _times(match: re.Match[str]) -> Decimal:
    """翻番 = 2 times, 翻两番 = 4 times, 翻一倍 = 2 times."""
    if match["en"]:
        return Decimal({"doubl": 2, "tripl": 3, "quadrupl": 4}[match["en"]])
    if match["more"]:
        return Decimal(zh.DIGITS[match["more"]] + 1)
    return Decimal(2) ** zh.DIGITS.get(match["doublings"] or "", 1)
