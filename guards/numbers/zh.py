"""Chinese numerals to exact decimals: 万/亿 grammar, decimals, omitted last units, pairs that mean a range.

Reads one run of numeral characters that a caller has already cut out; it does not decide whether the run is a
figure at all (统一, 十分), which needs the neighbours. Digits may stand inside a run: 3万5千, 1.2万亿.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

DIGITS = {
    "零": 0,
    "一": 1,
    "二": 2,
    "两": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
    "幺": 1,
}
SMALL = {"十": 10, "百": 100, "千": 1000}
LARGE = {"万": 10**4, "亿": 10**8, "兆": 10**12}
_UNITS = SMALL | LARGE
_FORMAL = str.maketrans("壹贰叁肆伍陆柒捌玖拾佰仟参弍弌", "一二三四五六七八九十百千三二一")
_SHORT = {"廿": "二十", "卅": "三十"}
_PAIR = re.compile(
    r"(?<![零一二两三四五六七八九])([一二两三四五六七八九])([一二三四五六七八九])(?![零一二两三四五六七八九])"
)
_LONGEST = 60  # no written number is longer; keeps the recursion shallow on any text
_ARABIC = re.compile(r"\d[\d,]*(?:\.\d+)?")


class ChineseNumber(NamedTuple):
    """`value`, the upper end of a range if the run means one, and the place of the last digit shown."""

    value: Decimal
    high: Decimal | None
    quantum: Decimal
    spelled: bool = False  # digit by digit: 二零二六, 幺三八
    bound: str = ""  # "about" for 几, "over" for 多 and 余


@lru_cache(maxsize=8192)
def parse(run: str) -> ChineseNumber | None:
    """The number that a run of numeral characters means, or None when it is no well-formed number.

    >>> parse("三万五").value, parse("一万零五十").value
    (Decimal('35000'), Decimal('10050'))
    >>> parse("两三").value, parse("两三").high
    (Decimal('2'), Decimal('3'))
    """
    if len(run) > _LONGEST:
        return None
    run = re.sub(r"\s", "", run).translate(_FORMAL)
    for short, long in _SHORT.items():
        run = run.replace(short, long)
    bound = "about" if "几" in run else "over" if re.search("[多余来]", run) else ""
    run, more = _strip_approximation(run)
    if not run:
        return None
    pair = _range_pair(run)
    if pair is not None:
        low, high = _read(pair[0]), _read(pair[1])
        return None if low is None or high is None else ChineseNumber(low, high, _quantum(pair[0], low))
    value = _read(run)
    if value is None:
        return None
    quantum = _quantum(run, value)
    high = None if more is None else value + more * (_last_unit(run))
    return ChineseNumber(value, high, quantum, _is_spelled(run), bound)


def _strip_approximation(run: str) -> tuple[str, Decimal | None]:
    """Removes 几, 多, 余, 来 and says how many of the last unit they may add: 三十多 is 30 to 40."""
    if "几" in run:
        return _strip_some(run)
    stripped = re.sub("[多余来]", "", run)
    return stripped, (Decimal(1) if stripped != run else None)


def _strip_some(run: str) -> tuple[str, Decimal | None]:
    """几 is 2 to 9: 几十 = 20 to 90, 十几 = 11 to 19 (kept as 10 to 20), 几万 = 20000 to 90000."""
    bare = re.sub("[多余来]", "", run)
    if bare.startswith(("几", "好几")):
        rest = bare[bare.index("几") + 1 :]
        return ("二" + rest, Decimal(7)) if rest else ("", None)
    return bare.replace("几", ""), Decimal(1)


def _range_pair(run: str) -> tuple[str, str] | None:
    """三四十 -> (三十, 四十): two neighbouring digits that rise by one (or 三五) mean a range."""
    found = _PAIR.search(run)
    if found is None:
        return None
    low, high = DIGITS[found[1]], DIGITS[found[2]]
    if high - low != 1 and ((low, high) != (3, 5) or found.start()):
        return None
    before, after = run[: found.start()], run[found.end() :]
    if "点" in before:
        return None
    return before + found[1] + after, before + found[2] + after


def _is_spelled(run: str) -> bool:
    return len(run) >= 2 and all(character in DIGITS for character in run)


def _read(run: str) -> Decimal | None:
    """Splits at the highest unit's last occurrence: left x unit + right."""
    if not run:
        return None
    if _ARABIC.fullmatch(run):
        return Decimal(run.replace(",", ""))
    unit = max((c for c in run if c in _UNITS), key=_UNITS.__getitem__, default=None)
    if unit is None:
        return _read_digits(run)
    left, right = run[: run.rindex(unit)], run[run.rindex(unit) + 1 :]
    size = _UNITS[unit]
    factor = Decimal(1) if not left.strip("零") else _read(left.removeprefix("零"))
    rest = _read_rest(right, size)
    if factor is None or rest is None:
        return None
    return factor * size + rest


def _read_rest(right: str, size: int) -> Decimal | None:
    """What follows a unit. A single digit without a unit counts the next lower place: 三万五 = 35000."""
    if not right:
        return Decimal(0)
    if right.startswith("点"):
        return _read_digits(right)
    if right.startswith("零"):
        return _read(right.lstrip("零")) if right.strip("零") else Decimal(0)
    if len(right) == 1 and _digit(right):
        return Decimal(_digit(right)) * size / 10
    value = _read(right)
    return None if value is None or value >= size else value


def _read_digits(run: str) -> Decimal | None:
    """Digits one by one with at most one 点: 二零二四, 三点一四, 点五."""
    whole, _, fraction = run.partition("点")
    digits = [_digit(c) for c in whole], [_digit(c) for c in fraction]
    if "" in digits[0] or "" in digits[1] or ("点" in run and not fraction):
        return None
    return Decimal("".join(digits[0] or ["0"]) + ("." + "".join(digits[1]) if fraction else ""))


def _digit(character: str) -> str:
    if character in DIGITS:
        return str(DIGITS[character])
    return character if character.isdigit() and character.isascii() else ""


def _last_unit(run: str) -> Decimal:
    """The step that 多 or 几 may fill: 三十多 -> 10, 三百多万 -> 1000000, 5万多 -> 10000."""
    scale = Decimal(1)
    rest = run
    while rest and rest[-1] in LARGE:
        scale *= LARGE[rest[-1]]
        rest = rest[:-1]
    return scale * (SMALL[rest[-1]] if rest and rest[-1] in SMALL else 1)


def _quantum(run: str, value: Decimal) -> Decimal:
    """The place of the last digit shown: 1.2万亿 -> 1000 亿, 三千 -> 1000, 一百二 -> 10."""
    scale = _last_unit(run)
    rest = run.rstrip("十百千万亿兆")
    arabic = re.search(r"(\d[\d,]*)(?:\.(\d+))?$", rest)
    if arabic is not None:
        return scale.scaleb(-len(arabic[2] or ""))
    if "点" in rest:
        return scale.scaleb(-len(rest) + rest.rindex("点") + 1)
    if rest == run and len(run) >= 2 and run[-2] in _UNITS and run[-1] in DIGITS:
        return Decimal(_UNITS[run[-2]]) / 10
    return min(scale, abs(value)) if value else scale
