"""Two numerals that make one figure: fractions, ratios, scores, ranges, and amounts said in two parts."""

from __future__ import annotations

import re
from decimal import Decimal

from seatrial.guards.numbers.context import counted_nouns
from seatrial.guards.numbers.digits import Numeral
from seatrial.guards.numbers.draft import Draft
from seatrial.guards.numbers.hedges import bound_of
from seatrial.guards.numbers.quantity import AMOUNT, COUNT, DURATION, MEASURE, ORDINAL, PERCENT, RATIO
from seatrial.guards.numbers.single import read_sign
from seatrial.guards.numbers.units import BY_NAME, classifier_after, unit_after
from seatrial.guards.numbers.zh import DIGITS

_FRACTION_OF = re.compile(r" {0,3}分 {0,3}之 {0,3}")
_AND_FRACTION = re.compile(r" ?又 ?")
_OVER = re.compile(r" (?:over|in) ")
_COLON = re.compile(r" ?(?::|比) ?")
_OUT_OF = re.compile(r" (?:out of(?: the| every)?|in every) ")
_PAIR_SIGNS = frozenset("分:比/-–oi")  # what the gap of a pair begins with
_PER = frozenset({"百", "千", "万", "十万", "百万", "千万", "亿", "万万", "百万万"})  # 百分之, 万分之
_SCORE_WORD = re.compile(
    r"\b(?:score[ds]?|won|wins?|win|beat|beats|lost|lose|victory|defeat\w*|draw|lead)\b|比分|战胜|击败|胜|负|力克|险胜|平局|落败|领先"
)


def read_pair(folded: str, first: Numeral, second: Numeral) -> Draft | None:
    """百分之三, 四分之三, 21比15, 3:2, 6-3 (a score), 3/4, 3 out of 5; None when the two stand apart."""
    if second.start - first.end > 16:
        return None
    gap = folded[first.end : second.start]
    if gap.lstrip(" ")[:1] not in _PAIR_SIGNS:
        return None
    if _FRACTION_OF.fullmatch(gap):
        return _chinese_fraction(folded, first, second)
    if first.form not in ("digits", "zh", "en", "spelled") or first.high is not None or not second.value:
        score = _COLON.fullmatch(gap) or _is_score(folded, first, second, gap)
        return _score(first, second) if score and first.high is None else None
    if (_COLON.fullmatch(gap) and second.form != "en") or _is_score(folded, first, second, gap):
        return _score(first, second)
    whole = first.quantum == second.quantum == 1
    if gap == "/" and first.form == second.form == "digits" and whole:
        return _measured(folded, _fraction(*_signed(folded, first), second.end, second.value))
    if first.value == 1 < second.value <= 1000 and second.quantum <= 100 and _OVER.fullmatch(gap):
        return _fraction(first.start, first.value, second.end, second.value)
    if gap == " over " and _told_over(folded, first, second):
        return _fraction(first.start, first.value, second.end, second.value)
    if _OUT_OF.fullmatch(gap) and second.value >= first.value > 0:
        return _fraction(first.start, first.value, second.end, second.value)
    return None


def _told_over(folded: str, first: Numeral, second: Numeral) -> bool:
    """A blood pressure of 142 over 91: two whole numbers of two or three digits, and nothing counted."""
    if first.form != "digits" or second.form != "digits" or not first.quantum == second.quantum == 1:
        return False
    counts = unit_after(folded, second.end) is not None or bool(counted_nouns(folded, second.end))
    return 10 <= second.value < first.value < 1000 and not counts


def _signed(folded: str, numeral: Numeral) -> tuple[int, Decimal]:
    start, negative = read_sign(folded, numeral.start)
    return start, -numeral.value if negative else numeral.value


def _measured(folded: str, draft: Draft) -> Draft:
    """1/4 mile is a length."""
    unit = unit_after(folded, draft.end)
    if unit is None or unit[0].kind not in (MEASURE, DURATION) or unit[1] - draft.end < 3:
        return draft
    return draft._replace(end=unit[1], kind=unit[0].kind, unit=unit[0].name, string="")


def _fraction(
    start: int, top: Decimal, end: int, bottom: Decimal, bound: str = "", form: str = "digits"
) -> Draft:
    string = f"{top.normalize():f}/{bottom.normalize():f}"
    return Draft(start, end, top / bottom, Decimal("0.01"), RATIO, "fraction", None, bound, (), string, form)


def read_mixed(folded: str, whole: Numeral, fraction: Draft) -> Draft | None:
    """一又二分之一 = 1.5; None when no 又 stands between."""
    if fraction.kind != RATIO or _AND_FRACTION.fullmatch(folded, whole.end, fraction.start) is None:
        return None
    start, value = _signed(folded, whole)
    part = -fraction.value if value < 0 else fraction.value
    return fraction._replace(start=start, value=value + part, kind=COUNT, unit=None, string="")


def _chinese_fraction(folded: str, first: Numeral, second: Numeral) -> Draft | None:
    """百分之三 and 千分之三 are percentages, 四分之三 is a fraction."""
    if not first.value:
        return None
    start, negative = read_sign(folded, first.start)
    value = -second.value if negative else second.value
    bound = bound_of(folded, start, second.end) or second.bound
    if first.string not in _PER or first.form != "zh":
        return _fraction(start, value, second.end, first.value, bound, "zh")
    size = Decimal(100) / first.value
    high = None if second.high is None else second.high * size
    return Draft(start, second.end, value * size, second.quantum * size, PERCENT, "%", high, bound, form="zh")


def _is_score(folded: str, first: Numeral, second: Numeral, gap: str) -> bool:
    """6-3: a range rises, so two whole numbers that fall are a score; two that rise need a word like 比分."""
    if gap not in ("-", "–") or first.form != "digits" or second.form != "digits":
        return False
    if first.quantum != 1 or second.quantum != 1 or max(first.value, second.value) > 250:
        return False
    if unit_after(folded, second.end) is not None:
        return False
    if classifier_after(folded, second.end) is not None and folded[second.end] not in "胜负平":
        return False
    before = folded[max(0, first.start - 14) : first.start].rpartition("\n")[2]
    near = before + " " + folded[second.end : second.end + 14].partition("\n")[0]
    return first.value >= second.value or _SCORE_WORD.search(near) is not None


def _score(first: Numeral, second: Numeral) -> Draft:
    ratio = first.value / second.value if second.value else Decimal(0)
    string = f"{first.value.normalize():f}:{second.value.normalize():f}"
    return Draft(first.start, second.end, ratio, Decimal("0.01"), RATIO, ":", string=string)


# --- ranges ---------------------------------------------------------------------------------------

_RANGE_GAP = re.compile(r" ?(?:-|–|~|to|through|up to|至|到|或|or|and|与|和) ?")
_RANGE_CUE = re.compile(
    r"(?:\bbetween|\brange (?:of|from)(?: between)?|\branging from|介于|范围(?:在|为|是)?)[^.。;；\d\n]{0,14}$"  # noqa: E501
)
_CHANGED = re.compile(
    r"(?:(?:减少|增加|增长|提高|提升|下降|下调|上调|降低|上涨|下跌|降|升|涨|跌|减|增)了?"
    r"|\b(?:rose|fell|grew|dropped|declined|increased|decreased|climbed|slipped))[约 ]?(?:[$€£¥])?$"
)
_FROM = re.compile(r"(?:\b(?:from|by)|从|由|自) ?(?:\$|€|£|us\$|¥)?$")


def read_range(folded: str, low: Draft, high: Draft) -> Draft | None:
    """Both ends of "$90 million to $100 million", "4-7%", "三到五天", "two or three"; None for no range."""
    if low.high is not None or high.high is not None or low.kind in (ORDINAL, RATIO) or high.kind == ORDINAL:
        return None
    if high.value < 0 and folded[high.start] == "-":
        high = high._replace(value=-high.value, start=high.start + 1)  # 4-7: the hyphen is no sign
    gap = folded[low.end : high.start]
    if len(gap) > 10 or _RANGE_GAP.fullmatch(gap) is None or not _is_range(folded, low, high, gap.strip()):
        return None
    bare = low.kind == COUNT and low.unit is None
    if low.kind == AMOUNT and _takes_the_currency(folded, low, high, gap.strip()):
        high = high._replace(kind=AMOUNT, unit=low.unit)  # €80-90 million
    if not bare and (low.kind, low.unit) != (high.kind, high.unit):
        return None
    low = _inherit_scale(folded, low, high)
    if low.value >= high.value:
        return None
    quantum = min(low.quantum, high.quantum)
    return high._replace(start=low.start, value=low.value, high=high.value, quantum=quantum, bound=low.bound)


def _takes_the_currency(folded: str, low: Draft, high: Draft, word: str) -> bool:
    """A bare number behind an amount whose sign stands before it, and that counts nothing else."""
    before = folded[low.start].isdigit() is False and folded[low.end - 1].isdigit()
    bare = high.kind == COUNT and high.unit is None and not counted_nouns(folded, high.end)
    return before and bare and word in ("-", "–", "~", "to", "到", "至")


def _is_range(folded: str, low: Draft, high: Draft, word: str) -> bool:
    """ "and" needs "between" before; "or" joins neighbours only; "from 10 to 20" and "by 2 to 10" are
    changes."""
    cue = _RANGE_CUE.search(folded, max(0, low.start - 40), low.start) is not None
    if word in ("and", "与", "和"):
        return cue
    if word in ("or", "或"):
        return low.kind == COUNT and low.unit is None and high.value - low.value == 1
    if word in ("to", "到", "至"):
        far = high.value >= 5 * low.value
        if far and _CHANGED.search(folded, max(0, low.start - 8), low.start):
            return False  # 减少三千五百万至四亿: by the one, to the other
        return cue or _FROM.search(folded, max(0, low.start - 10), low.start) is None
    return True


_SCALE = re.compile(r"(thousand|million|billion|trillion|万亿|千万|百万|万|亿|千|百|(?<=\d)[kmb](?![a-z]))")
_SIZES = {
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "万亿": 10**12,
    "千万": 10**7,
    "百万": 10**6,
    "万": 10**4,
    "亿": 10**8,
    "千": 10**3,
    "百": 100,
    "k": 10**3,
    "m": 10**6,
    "b": 10**9,
}


def _inherit_scale(folded: str, low: Draft, high: Draft) -> Draft:
    """In "3到5万" and "4-7 million" the first number has the scale of the second."""
    found = _SCALE.search(folded[high.start : high.end])
    if found is None or _SCALE.search(folded[low.start : low.end]):
        return low
    size = Decimal(_SIZES[found[1]])
    return low._replace(value=low.value * size, quantum=low.quantum * size)


# --- said in two parts ----------------------------------------------------------------------------

_JOIN = re.compile(r"(?: | and |零)?")
_STOP = re.compile(r"\s*(?:$|[.,;:!?)。，；：！？）、]|\s)")


def read_compound(folded: str, first: Draft, second: Draft) -> Draft | None:
    """2小时32分, 5 feet 10 inches, 12 euros and 50 cents, 15 dollars 50, 三块五, 2米28 as one figure."""
    gap = folded[first.end : second.start]
    if len(gap) > 7 or _JOIN.fullmatch(gap) is None or first.high is not None:
        return None
    if first.unit == "m" and not gap and _spoken_digits(second):
        value = first.value + Decimal(_spoken_digits(second)) / 100  # 七十一米三五, where 三五 is no range
        return first._replace(end=second.end, value=value, quantum=Decimal("0.01"))
    if second.high is not None:
        return None
    if first.kind in (DURATION, MEASURE) and second.form == "fraction" and "and" in gap:
        value = first.value + second.value  # one hour and a half
        return first._replace(end=second.end, value=value, quantum=second.quantum)
    if first.kind == AMOUNT:
        return _compound_amount(folded, first, second, gap)
    if first.kind == COUNT and first.unit == "分" and second.kind == DURATION and not gap:
        first = first._replace(kind=DURATION, unit="minute")
    if first.kind == DURATION and second.kind == COUNT and second.unit == "分" and not gap:
        second = second._replace(kind=DURATION, unit="minute")
    if first.unit == "ft" and second.kind == COUNT and folded.startswith(" in", second.end):
        second = second._replace(kind=MEASURE, unit="in", end=second.end + 3)
    if first.kind == second.kind and first.kind in (DURATION, MEASURE):
        return _smaller_unit(first, second)
    if first.unit in ("degree", "C") and not gap and _decimal_said(second):
        return first._replace(
            end=second.end, value=first.value + second.value / 10, quantum=Decimal("0.1"), unit=first.unit
        )
    if first.unit == "m" and not gap and _two_digits(second) and second.kind == COUNT and second.unit is None:
        return second._replace(
            start=first.start, value=first.value + second.value / 100, kind=MEASURE, unit="m"
        )
    return None


def _smaller_unit(first: Draft, second: Draft) -> Draft | None:
    large, small = BY_NAME[first.unit or ""], BY_NAME[second.unit or ""]
    if large.dimension != small.dimension or large.factor <= small.factor or second.value < 0:
        return None
    if second.value * small.factor >= large.factor:
        return None
    return second._replace(
        start=first.start, value=first.value * (large.factor / small.factor) + second.value
    )


def _decimal_said(second: Draft) -> bool:
    """The 四 of 三十八度四."""
    bare = second.kind == COUNT and second.unit is None
    return bare and second.end - second.start == 1 and 0 < second.value < 10


def _spoken_digits(draft: Draft) -> str:
    """35 for 三五; nothing for what is more or less than two digits said one by one."""
    bare = draft.kind == COUNT and draft.unit is None and len(draft.string) == 2
    digits = [str(DIGITS[c]) for c in draft.string if c in DIGITS] if bare else []
    return "".join(digits) if len(digits) == 2 else ""


def _two_digits(draft: Draft) -> bool:
    return draft.end - draft.start == 2 and draft.quantum == 1 and 0 < draft.value < 100


def _compound_amount(folded: str, first: Draft, second: Draft, gap: str) -> Draft | None:
    if second.kind == AMOUNT and 0 < second.value < 1 and second.quantum < first.quantum:
        return second._replace(start=first.start, value=first.value + second.value, unit=first.unit)
    if (
        second.kind != COUNT
        or second.unit is not None
        or folded[first.end - 1].isdigit()
        or first.quantum > 1
    ):
        return None
    if not gap and second.end - second.start == 1 and second.form in ("zh", "spelled"):
        return _with_cents(first, second, first.quantum / 10)  # 三块五, 两块三毛五
    spoken = second.form == "en" and 10 <= second.value < 100
    if gap and (spoken or _two_digits(second)) and _STOP.match(folded, second.end):
        return _with_cents(first, second, Decimal("0.01"))
    return None


def _with_cents(first: Draft, second: Draft, place: Decimal) -> Draft:
    return first._replace(end=second.end, value=first.value + second.value * place, quantum=place)
