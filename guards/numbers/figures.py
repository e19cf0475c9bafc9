"""From a numeral and its neighbours to a figure: sign, currency, unit, hedge, range, ratio, ordinal.

Also decides which numerals are no figures at all: 统一, 十分, the pronoun "one", "a second".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from decimal import Decimal

from seatrial.guards.numbers import zh
from seatrial.guards.numbers.hedges import bound_of
from seatrial.guards.numbers.numerals import Numeral
from seatrial.guards.numbers.quantity import (
    AMOUNT,
    COUNT,
    DATE,
    DURATION,
    IDENTIFIER,
    MEASURE,
    ORDINAL,
    PERCENT,
    RATIO,
    Fields,
    Quantity,
)
from seatrial.guards.numbers.units import CLASSIFIERS, Unit, classifier_after, currency_before, unit_after


@dataclass(frozen=True, slots=True)
class _Draft:
    """A figure under construction; offsets in the folded text."""

    start: int
    end: int
    value: Decimal
    quantum: Decimal
    kind: str = COUNT
    unit: str | None = None
    high: Decimal | None = None
    bound: str = ""
    fields: Fields = ()
    other: Fields = ()
    string: str = ""
    form: str = "digits"
    scaled: bool = field(default=False)


_MINUS = re.compile(r"(?:(?<![\w)%.,])-|(?:\b(?:minus|negative) )|零下|负)$")
_ACCOUNTING = re.compile(
    r"\b(?:loss|losses|operating|net|income|result|deficit|cash flow|ebitda|profit|margin)\b|亏损|净利|利润|损益|现金流"
)
_BRACKET_SCALE = re.compile(r"\) ?(thousand|million|billion|trillion|万|亿)?")
_BRACKET_SIZES = {
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "万": 10**4,
    "亿": 10**8,
}
_FRACTION_OF = re.compile(r" ?分 ?之 ?")
_CHENG = re.compile(r" ?成(?P<more>[一二三四五六七八九半])?(?![为立功员本都熟长果绩就交效品为型人语分])")
_ZHE = re.compile(r" ?折(?![合叠腾旧磨中返断算])")
_COLON = re.compile(r" ?(?::|比) ?")
_SLASH = re.compile(r"/")
_OUT_OF = re.compile(r" (?:out of(?: the| every)?|in every) ")
_ORDINAL_END = re.compile(r"(?:st|nd|rd|th)(?![a-z0-9])")
_HALF_AFTER = re.compile(r"半(?!导|岛|径|年|天|夜|月|场)")
_HALF = re.compile(
    r"(?P<en>\bhalf(?= (?:an? )?(?:hour|year|day|month|mile|century|decade|minute|second|of|the|our|their|its|all)\b))"
    r"|(?P<zh>一半|半数|(?P<n>\d+|[一二两三四五六七八九十]+) ?个半(?= ?(?:小时|钟头|月(?!亮)|星期|礼拜|世纪))|(?<![一大多过上下前后两数百参各])半(?= ?(?:年|个月|个小时|小时|天|个世纪|个钟头|分钟|公里|斤|里)))|(?P<over>过半(?!年|天))"
)
_DOUBLING = re.compile(
    r"翻(?:了)?(?P<n>[一两二三四五六])?番|翻倍|翻(?:了)?(?P<m>[一两二三四五])?倍|\b(?:doubl|tripl|quadrupl)(?:ed|es|ing|e)\b"
)
_NEXT_WORD = re.compile(r"[ -]([a-z]+)")
_RANGE_GAP = re.compile(r"\s?(?:-|–|~|to|through|up to|至|到|或|or|and|与|和)\s?")
_RANGE_CUE = re.compile(
    r"(?:\bbetween|\brange (?:of|from)(?: between)?|\branging from|介于|范围(?:在|为|是)?)[^.。;；\d]{0,14}$"
)
_FROM = re.compile(r"(?:\b(?:from)|从|由|自) ?(?:\$|€|£|us\$|¥)?$")
_LEXICAL = re.compile(
    r"十[一二三四]五(?=规划|期间|时期|以来|末|初|开局|收官|目标|发展|纲要|[”』」])|十分(?!钟|之)|万一|千万(?=别|不|要|注|记|得)|百分(?!之)|十足|一一|万万|千千|百百|十一(?=黄金周|假期|期间|长假|前后|国庆|节)"
)
_WEAK_ENGLISH = {"one", "a", "zero", "oh"}
_NOT_SECOND = re.compile(r"(?:\b(?:a|per|every|each|split|one|half a) )$")


def read_figures(text: str, folded: str, numerals: list[Numeral]) -> list[Quantity]:
    """Figures of a folded text in order, each numeral used once."""
    figures: list[Quantity] = []
    index = 0
    while index < len(numerals):
        if figures and numerals[index].start < figures[-1].span[1]:
            index += 1  # already inside a figure: the scale of a bracketed amount
            continue
        draft, used = _read(folded, numerals, index)
        index += used
        if draft is not None:
            figures.append(_finish(text, draft))
    return figures


def read_halves(text: str, folded: str, taken: bytearray) -> list[Quantity]:
    """Halves and doublings, which no numeral begins: 半年, 一半, 过半, 翻番, half of, doubled."""
    found = []
    for match in _HALF.finditer(folded):
        if any(taken[match.start() : match.end()]):
            continue
        found.append(_finish(text, _half(folded, match)))
        taken[match.start() : match.end()] = b"\1" * (match.end() - match.start())
    for match in _DOUBLING.finditer(folded):
        times = _doubling(match)
        draft = _Draft(match.start(), match.end(), times, Decimal(1), RATIO, "x", form="zh")
        found.append(_finish(text, draft))
    return found


def _doubling(match: re.Match[str]) -> Decimal:
    word = match[0]
    digits = {"一": 1, "两": 2, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6}
    if word[0] == "翻":
        if match["m"]:
            return Decimal(digits[match["m"]] + 1)
        return Decimal(2) ** digits.get(match["n"] or "", 1)
    return Decimal({"d": 2, "t": 3, "q": 4}[word[0]])


_HALF_NAMES = {"小": "hour", "钟": "hour", "月": "month", "星": "week", "礼": "week", "世": "century"}


def _half(folded: str, match: re.Match[str]) -> _Draft:
    half = Decimal("0.5")
    end = match.end()
    if match["n"]:
        whole = zh.parse(match["n"])
        unit = unit_after(folded, end) or unit_after("个" + folded[end : end + 3], 0)
        if whole is not None and unit is not None:
            length = 2 if folded[end : end + 2] in ("小时", "钟头", "星期", "礼拜", "世纪") else 1
            return _Draft(
                match.start(),
                end + length,
                whole.value + half,
                half,
                DURATION,
                _HALF_NAMES[folded[end]],
                form="zh",
            )
    if match["en"]:
        article = re.match(r" an? ", folded[end : end + 4])
        unit = unit_after(folded, end + (article.end() - 1 if article else 0))
    else:
        unit = unit_after(folded, end) if match["zh"] == "半" else None
    if unit is None or unit[0].kind not in (DURATION, MEASURE):
        bound = "over" if match["over"] else ""
        return _Draft(match.start(), end, half, half, RATIO, "fraction", bound=bound, form="zh")
    return _Draft(
        match.start(),
        unit[1],
        half,
        half,
        unit[0].kind,
        unit[0].name,
        form="zh",
        bound=bound_of(folded, match.start(), unit[1]),
    )


def _read(folded: str, numerals: list[Numeral], index: int) -> tuple[_Draft | None, int]:
    numeral = numerals[index]
    following = numerals[index + 1] if index + 1 < len(numerals) else None
    if following is not None:
        pair = _pair(folded, numeral, following)
        if pair is not None:
            return pair, 2
    draft = _single(folded, numeral)
    if draft is None:
        return None, 1
    if following is not None:
        ranged = _range(folded, draft, following)
        if ranged is not None:
            return ranged, 2
    return draft, 1


def _pair(folded: str, first: Numeral, second: Numeral) -> _Draft | None:
    """Two numerals that make one figure: 百分之三, 四分之三, 21比15, 3:2, 3/4, 3 out of 5."""
    gap = folded[first.end : second.start]
    if len(gap) > 16:
        return None
    if _FRACTION_OF.fullmatch(gap):
        return _chinese_fraction(folded, first, second)
    if first.form not in ("digits", "zh", "en", "spelled") or first.high is not None:
        return None
    if _COLON.fullmatch(gap) and second.form in ("digits", "zh", "spelled"):
        ratio = first.value / second.value if second.value else Decimal(0)
        string = f"{first.value.normalize():f}:{second.value.normalize():f}"
        return _Draft(first.start, second.end, ratio, Decimal("0.01"), RATIO, ":", string=string)
    if (
        _SLASH.fullmatch(gap)
        and first.form == second.form == "digits"
        and second.value
        and first.quantum == second.quantum == 1
    ):
        string = f"{first.value}/{second.value}"
        return _Draft(
            first.start,
            second.end,
            first.value / second.value,
            Decimal("0.01"),
            RATIO,
            "fraction",
            string=string,
        )
    if _OUT_OF.fullmatch(gap) and second.value >= first.value > 0:
        string = f"{first.value.normalize():f}/{second.value.normalize():f}"
        return _Draft(
            first.start,
            second.end,
            first.value / second.value,
            Decimal("0.01"),
            RATIO,
            "fraction",
            string=string,
        )
    return None


def _chinese_fraction(folded: str, first: Numeral, second: Numeral) -> _Draft | None:
    if not first.value:
        return None
    start, negative = _sign(folded, first.start)
    value = -second.value if negative else second.value
    bound = bound_of(folded, start, second.end)
    if first.value in (100, 1000, 10000):
        size = Decimal(100) / first.value
        high = None if second.high is None else second.high * size
        return _Draft(
            start, second.end, value * size, second.quantum * size, PERCENT, "%", high, bound, form="zh"
        )
    string = f"{second.value.normalize():f}/{first.value.normalize():f}"
    return _Draft(
        start,
        second.end,
        value / first.value,
        Decimal("0.01"),
        RATIO,
        "fraction",
        None,
        bound,
        string=string,
        form="zh",
    )


def _sign(folded: str, start: int) -> tuple[int, bool]:
    sign = _MINUS.search(folded, max(0, start - 10), start)
    return (start, False) if sign is None else (sign.start(), True)


def _single(folded: str, numeral: Numeral) -> _Draft | None:
    """One numeral with its sign, currency and unit; None when it is no figure."""
    draft = _Draft(
        numeral.start,
        numeral.end,
        numeral.value,
        numeral.quantum,
        high=numeral.high,
        form=numeral.form,
        string=numeral.string,
    )
    if _LEXICAL.match(folded, numeral.start):
        return None
    draft = _bracketed(folded, draft)
    currency = currency_before(folded, draft.start)
    if currency is not None:
        draft = replace(
            draft,
            start=currency[1],
            kind=AMOUNT,
            unit=currency[0].name,
            value=draft.value * currency[0].factor,
        )
    start, negative = _sign(folded, draft.start)
    if negative and start >= 0:
        draft = replace(
            draft, start=start, value=-draft.value, high=None if draft.high is None else -draft.high
        )
    draft = _with_unit(folded, _with_more(folded, draft))
    if draft.kind == COUNT and not _counts(folded, draft):
        return None
    return replace(draft, bound=draft.bound or bound_of(folded, draft.start, draft.end))


def _bracketed(folded: str, draft: _Draft) -> _Draft:
    """(4.2) million: negative with an accounting word near by, else possibly so; (4) in prose is 4."""
    if folded[draft.start - 1 : draft.start] not in ("(", "$") or draft.start == 0:
        return draft
    opened = draft.start - 1 if folded[draft.start - 1] == "(" else draft.start - 2
    if opened < 0 or folded[opened] != "(":
        return draft
    closed = _BRACKET_SCALE.match(folded, draft.end)
    if closed is None:
        return draft
    clause = max(opened - 60, *(folded.rfind(mark, 0, opened) + 1 for mark in ".;。；\n"), 0)
    cue = _ACCOUNTING.search(folded, clause, opened) is not None
    bare = draft.quantum == 1 and folded[opened + 1] != "$" and not closed[1]
    if bare or (not cue and not closed[1]):
        return draft
    size = _BRACKET_SIZES.get(closed[1] or "", 1)
    value, quantum = draft.value * size, draft.quantum * size
    draft = replace(
        draft,
        start=opened,
        end=closed.end() if closed[1] else closed.start() + 1,
        value=value,
        quantum=quantum,
    )
    if folded[opened + 1] == "$":
        draft = replace(draft, kind=AMOUNT, unit="USD")
    return replace(draft, value=-value) if cue else replace(draft, other=(("negative", 1),))


def _with_unit(folded: str, draft: _Draft) -> _Draft:
    end = draft.end
    cheng = _CHENG.match(folded, end)
    if (
        cheng is not None
        and draft.form in ("zh", "digits", "spelled")
        and 0 < draft.value <= 10
        and draft.kind == COUNT
    ):
        more = {"半": 5}.get(
            cheng["more"] or "", "一二三四五六七八九".find(cheng["more"]) + 1 if cheng["more"] else 0
        )
        return _as_percent(draft, cheng.end(), Decimal(10), Decimal(more))
    zhe = _ZHE.match(folded, end)
    if zhe is not None and draft.kind == COUNT and 0 < draft.value < 100:
        return _as_percent(draft, zhe.end(), Decimal(10) if draft.value < 10 else Decimal(1), Decimal(0))
    ordinal = _ordinal(folded, draft)
    if ordinal is not None:
        return ordinal
    found = unit_after(folded, end)
    if found is not None and draft.kind == COUNT:
        return _with_found_unit(folded, draft, *found)
    if found is not None and found[0].kind == AMOUNT and draft.kind == AMOUNT:
        return replace(draft, end=found[1])  # $5 dollars, 人民币300元
    return _with_classifier(folded, draft)


_MORE = re.compile(r"[多余](?! ?[百千万亿])")


def _with_more(folded: str, draft: _Draft) -> _Draft:
    """300多名: at least 300, less than the next step of its last place."""
    if draft.form != "digits" or draft.high is not None or _MORE.match(folded, draft.end) is None:
        return draft
    if unit_after(folded, draft.end + 1) is None and classifier_after(folded, draft.end + 1) is None:
        return draft
    step = draft.quantum
    while draft.value and draft.value % (step * 10) == 0:
        step *= 10
    return replace(draft, end=draft.end + 1, high=draft.value + step, bound="over")


def _as_percent(draft: _Draft, end: int, size: Decimal, more: Decimal) -> _Draft:
    high = None if draft.high is None else draft.high * size
    return replace(
        draft,
        end=end,
        value=draft.value * size + more,
        high=high,
        quantum=draft.quantum * size if not more else Decimal(1),
        kind=PERCENT,
        unit="%",
    )


def _ordinal(folded: str, draft: _Draft) -> _Draft | None:
    if draft.form == "ordinal":
        return replace(draft, kind=ORDINAL)
    end = _ORDINAL_END.match(folded, draft.end)
    if end is not None and draft.form == "digits" and draft.quantum == 1:
        return replace(draft, end=end.end(), kind=ORDINAL)
    before = folded[draft.start - 1 : draft.start] if draft.start else ""
    if before == "第" and draft.form in ("digits", "zh", "spelled"):
        found = classifier_after(folded, draft.end)
        unit = None if found is None else found[0]
        return replace(
            draft,
            start=draft.start - 1,
            kind=ORDINAL,
            unit=unit,
            end=draft.end if found is None else found[1],
        )
    return None


_CLASSIFIER_FIRST = frozenset("位节票分")
_HALF_UNITS = re.compile(r"半(?!导|岛|径)")


def _with_found_unit(folded: str, draft: _Draft, unit: Unit, end: int) -> _Draft:
    word = folded[draft.end : end].strip(" -")
    if word in _CLASSIFIER_FIRST or not _unit_allowed(folded, draft, unit, word, end):
        return _with_classifier(folded, draft)
    factor = unit.factor if unit.kind == AMOUNT else Decimal(1)
    value, quantum = draft.value * factor, draft.quantum * factor
    if unit.kind in (DURATION, MEASURE, AMOUNT) and _HALF_UNITS.match(folded, end) and draft.quantum >= 1:
        value, quantum, end = value + factor / 2, factor / 2, end + 1
    high = None if draft.high is None else draft.high * factor
    return replace(draft, end=end, value=value, high=high, quantum=quantum, kind=unit.kind, unit=unit.name)


_FORBIDDEN_AFTER = {
    "块": "[头面地儿]",
    "里": "[面边头的有就]",
    "时": "[候间代期而]",
    "日": "[本元]",
    "年": "[级轻纪]",
    "月": "[亮饼]",
    "分": "[别布析成为公开类享之子手配]",
    "度": "[假过]",
    "周": "[边围]",
    "天": "[津然空下气]",
    "平": "[均台安衡时等]",
    "卡": "[车片通]",
    "方": "[面式法案向便]",
    "码": "[头]",
    "升": "[级至到高]",
    "夜": "[间里]",
    "两": "[个次名位家种项条天年会岸者方地国人边]",
    "点": "[多几]",
    "元": "[旦素件]",
    "斤": "[斤]",
    "秒": "[杀]",
    "欧": "[洲盟]",
    "米": "[饭粒]",
    "位": "[于置]",
    "刀": "[具]",
    "角": "[度色落]",
    "克": "[服]",
    "桶": "[装]",
}


def _unit_allowed(folded: str, draft: _Draft, unit: Unit, word: str, end: int) -> bool:
    """Short units are words too: "5 in", "3 m", "10 us"; and Chinese ones begin other words (块头, 里面)."""
    forbidden = _FORBIDDEN_AFTER.get(word)
    if forbidden is not None and re.match(forbidden, folded[end : end + 1]):
        return False
    if draft.form == "en" and word.isascii() and len(word) <= 2 and word != "%":
        return False
    if word in ("in", "us", "pt", "x", "a", "mi", "no", "am") and folded[draft.end : draft.end + 1] == " ":
        return False
    if word == '"' and folded[: draft.start].count('"') % 2:
        return False  # a closing quotation mark, not inches
    return not (word == "c" or word == "pc")


def _with_classifier(folded: str, draft: _Draft) -> _Draft:
    if draft.kind != COUNT or draft.form in ("en", "ordinal", "fraction"):
        return replace(draft, kind=RATIO, unit="fraction") if draft.form == "fraction" else draft
    found = classifier_after(folded, draft.end)
    if found is None:
        return draft
    word, end = found
    return replace(draft, end=end, unit=word)


def _counts(folded: str, draft: _Draft) -> bool:
    """Whether a bare numeral is a figure at all."""
    written = folded[draft.start : draft.end]
    if draft.form in ("zh", "spelled"):
        if draft.unit is not None or draft.high is not None or draft.value < 0:
            return True
        if draft.form == "spelled":
            return len(written) >= 3
        if any(c.isdigit() for c in written):
            return True
        return (
            len(written) >= 2
            and any(c in "一二两三四五六七八九" for c in written)
            or written in ("百万", "十万", "千万", "百亿", "十亿", "千亿")
        )
    if draft.form == "en":
        return written not in _WEAK_ENGLISH
    return True


def _range(folded: str, draft: _Draft, following: Numeral) -> _Draft | None:
    """low and high of "$90 million to $100 million", "4-7%", "三到五天", "two or three"."""
    other = _single(folded, following)
    if other is None or draft.high is not None or other.high is not None or draft.kind in (ORDINAL, RATIO):
        return None
    start = other.start if other.value >= 0 or following.value < 0 else other.start
    gap = folded[draft.end : max(draft.end, start)]
    if start < draft.end or following.start - draft.end > 12:
        return None
    gap = folded[draft.end : other.start]
    if other.value < 0 and folded[other.start] == "-" and other.start == draft.end:
        other = replace(other, value=-other.value, start=other.start + 1)  # 4-7: the hyphen is no sign
        gap = "-"
    elif other.value < 0 and folded[other.start] == "-" and gap == " ":
        other, gap = replace(other, value=-other.value), " -"
    if _RANGE_GAP.fullmatch(gap) is None:
        return None
    return _joined_range(folded, draft, other, gap.strip())


def _joined_range(folded: str, low: _Draft, high: _Draft, word: str) -> _Draft | None:
    before = folded[max(0, low.start - 40) : low.start]
    cue = _RANGE_CUE.search(before) is not None
    bare = low.kind == COUNT and low.unit is None
    if word in ("and", "与", "和") and not cue:
        return None
    if word in ("or", "或") and not (bare and high.value - low.value == 1):
        return None
    if word in ("to", "到", "至") and not cue and _FROM.search(before):
        return None
    if not bare and (low.kind, low.unit) != (high.kind, high.unit):
        return None
    if bare and high.kind == ORDINAL:
        return None
    low = _inherit_scale(folded, low, high) if bare or low.quantum < high.quantum else low
    if low.value >= high.value:
        return None
    return replace(
        high,
        start=low.start,
        value=low.value,
        high=high.value,
        quantum=min(low.quantum, high.quantum),
        bound=low.bound,
    )


_SCALE_END = re.compile(r"(?:thousand|million|billion|trillion|[kmb万亿千百])")


def _inherit_scale(folded: str, low: _Draft, high: _Draft) -> _Draft:
    """In "3到5万" and "4-7 million" the first number has the scale of the second."""
    written_low, written_high = folded[low.start : low.end], folded[high.start : high.end]
    if _SCALE_END.search(written_low) or not _SCALE_END.search(written_high):
        return low
    ratio = Decimal(1)
    for size in (10**12, 10**9, 10**8, 10**6, 10**4, 10**3, 100):
        if high.quantum >= size or high.value % size == 0 and high.value >= size:
            ratio = Decimal(size)
            break
    found = re.search(r"(thousand|million|billion|trillion|万亿|万|亿|千万|百万|千|百|k|m|b)", written_high)
    sizes = {
        "thousand": 10**3,
        "million": 10**6,
        "billion": 10**9,
        "trillion": 10**12,
        "万亿": 10**12,
        "万": 10**4,
        "亿": 10**8,
        "千万": 10**7,
        "百万": 10**6,
        "千": 10**3,
        "百": 100,
        "k": 10**3,
        "m": 10**6,
        "b": 10**9,
    }
    ratio = Decimal(sizes[found[1]]) if found else ratio
    return replace(low, value=low.value * ratio, quantum=low.quantum * ratio)


_SECOND_SINGLE = re.compile(r"second")


def _finish(text: str, draft: _Draft) -> Quantity:
    kind, unit, fields, string = draft.kind, draft.unit, draft.fields, draft.string
    folded_value: Decimal | None = draft.value
    if draft.form == "spelled" and kind == COUNT and unit is None:
        kind, folded_value = IDENTIFIER, None
        string = string if string.isdigit() else format(draft.value, "f")
    elif draft.form == "year" and kind == COUNT:
        kind, folded_value, fields = DATE, None, (("y", int(draft.value)),)
    elif kind not in (RATIO, IDENTIFIER):
        string = ""
    if kind == COUNT and draft.form == "fraction":
        kind, unit = RATIO, "fraction"
    return Quantity(
        text[draft.start : draft.end],
        (draft.start, draft.end),
        kind,
        folded_value,
        unit,
        draft.high if kind not in (DATE, IDENTIFIER) else None,
        draft.quantum,
        draft.bound,
        fields,
        draft.other,
        string,
        draft.form not in ("digits", "eu"),
    )
