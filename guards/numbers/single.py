"""One numeral and its neighbours: sign, accountant's brackets, currency, unit, measure word, ordinal, hedge.

Also decides which numerals are no figures at all: 统一, 十分, the pronoun "one".
"""

from __future__ import annotations

import re
from decimal import Decimal

from seatrial.guards.numbers.context import counted_nouns
from seatrial.guards.numbers.digits import SCALES, Numeral
from seatrial.guards.numbers.draft import Draft, from_numeral
from seatrial.guards.numbers.hedges import bound_of
from seatrial.guards.numbers.quantity import AMOUNT, COUNT, DURATION, MEASURE, ORDINAL, PERCENT, RATIO
from seatrial.guards.numbers.units import AFTER, Unit, classifier_after, currency_before, unit_after

_SIGN = re.compile(r"(?:(?<![\w)%.,])-|(?:\b(?:minus|negative) )|零下|负)$")
_SIGN_ENDS = frozenset("-负下 ")
_LEXICAL = re.compile(
    r"一(?:起|些|样|方|片|步|点(?!钟|半|[零一二三四五六七八九])|头|身|路|行|番|手)|(?<=[统唯单逐之均归合专划同惟])一"
    r"|十[一二三四]五(?=规划|期间|时期|以来|末|初|开局|收官|目标|发展|纲要|[”』」])|十分(?!钟|之)|万一|十足|一一|万万|千千|百百"
    r"|千万(?=别|不|要|注|记|得)|百分(?!之)|十一(?=黄金周|假期|期间|长假|前后|国庆|节)"
)
_LEXICAL_BEGINS = frozenset("一十百千万")
_BARE_LARGE = frozenset({"百万", "十万", "千万", "百亿", "十亿", "千亿"})


def read_sign(folded: str, start: int) -> tuple[int, bool]:
    """Where the figure begins with its minus sign or word, and whether it has one."""
    if folded[start - 1 : start] not in _SIGN_ENDS:
        return start, False
    sign = _SIGN.search(folded, max(0, start - 10), start)
    return (start, False) if sign is None else (sign.start(), True)


def read_single(folded: str, numeral: Numeral) -> Draft | None:
    """One numeral with its sign, currency and unit; None when it is no figure."""
    if folded[numeral.start] in _LEXICAL_BEGINS and _LEXICAL.match(folded, numeral.start):
        return None
    draft = _bracketed(folded, from_numeral(numeral))
    currency = currency_before(folded, draft.start)
    if currency is not None:
        draft = _times(
            draft._replace(start=currency[1], kind=AMOUNT, unit=currency[0].name), currency[0].factor
        )
    start, negative = read_sign(folded, draft.start)
    if negative:
        high = None if draft.high is None else -draft.high
        draft = draft._replace(start=start, value=-draft.value, high=high)
    draft = _below_zero(folded, _with_unit(folded, _with_more(folded, draft)))
    if draft.kind == COUNT and not _counts(folded, draft):
        return None
    if (
        draft.kind == COUNT
        and draft.form == "en"
        and 2000 <= draft.value < 2050
        and _year_said(folded, draft)
    ):
        return draft._replace(form="year")
    bound = draft.bound or bound_of(folded, draft.start, draft.end)
    return draft._replace(bound=bound) if bound else draft


_YEAR_CUE = re.compile(r"\b(?:in|since|until|till|before|after) $")


def _year_said(folded: str, draft: Draft) -> bool:
    """In two thousand and fifteen: nothing is counted, and a word before says when."""
    bare = draft.unit is None and not counted_nouns(folded, draft.end) and draft.value != 2000
    return bare and _YEAR_CUE.search(folded, max(0, draft.start - 8), draft.start) is not None


def _below_zero(folded: str, draft: Draft) -> Draft:
    """机场-8度: between words, where spaces part nothing, a hyphen before degrees is a minus; before money or
    a percentage (现金流-800万元) it is one or a dash.
    """
    before = folded[draft.start - 2 : draft.start] if draft.start >= 2 else ""
    if before[1:] != "-" or draft.kind not in (AMOUNT, PERCENT, MEASURE) or draft.value < 0:
        return draft
    word = "\u4e00" <= before[0] <= "\u9fff" and before[0] not in _NUMERAL_ENDS
    if not word or draft.high is not None:
        return draft
    if draft.unit in ("degree", "C", "F"):
        return draft._replace(start=draft.start - 1, value=-draft.value)
    return draft if draft.kind == MEASURE else draft._replace(other=(("negative", 1),))


_NUMERAL_ENDS = frozenset("零一二三四五六七八九十百千万亿度至到")


# --- accountant's brackets ------------------------------------------------------------------------

_ACCOUNTING = re.compile(
    r"\b(?:loss|losses|operating|net|income|result|deficit|cash flow|ebitda|profit|margin)\b"
    r"|亏损|净利|利润|损益|现金流"
)
_OPENING = re.compile(r"\(([$€£¥]?) ?$")
_CLOSING = re.compile(r"\)(?: ?(thousand|million|billion|trillion|万|亿))?")
_SIZES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "万": 10**4, "亿": 10**8}


def _bracketed(folded: str, draft: Draft) -> Draft:
    """(4.2) million: negative with an accounting word in the clause, else possibly so; (4) in prose is 4."""
    if "(" not in folded[max(0, draft.start - 3) : draft.start]:
        return draft
    opening = _OPENING.search(folded, max(0, draft.start - 3), draft.start)
    closing = _CLOSING.match(folded, draft.end) if opening is not None else None
    if opening is None or closing is None:
        return draft
    clause = max(opening.start() - 60, 0, *(folded.rfind(m, 0, opening.start()) + 1 for m in ".;。；\n"))
    cue = _ACCOUNTING.search(folded, clause, opening.start()) is not None
    bare = draft.quantum == 1 and not opening[1]
    if not closing[1] and (bare or not cue):
        return draft
    size = Decimal(_SIZES.get(closing[1] or "", 1))
    value = -draft.value if cue else draft.value
    draft = draft._replace(
        start=opening.start(), end=closing.end(), value=value * size, quantum=draft.quantum * size
    )
    if opening[1]:
        currency = currency_before(folded, opening.end())
        draft = draft if currency is None else draft._replace(kind=AMOUNT, unit=currency[0].name)
    return draft if cue else draft._replace(other=(("negative", 1),))


# --- units ----------------------------------------------------------------------------------------

_CHENG = re.compile(r" ?成(?P<more>[一二三四五六七八九半])?(?![为立功员本都熟长果绩就交效品型语分])")
_ZHE = re.compile(r" ?折(?![合叠腾旧磨中返断算])")
_MORE = re.compile(r"[多余](?! ?[百千万亿])")
_MORE_CHENG = {word: Decimal(n) for n, word in enumerate("一二三四五六七八九", start=1)} | {"半": Decimal(5)}


def _with_unit(folded: str, draft: Draft) -> Draft:
    share = _chinese_share(folded, draft) if draft.kind == COUNT else None
    if share is not None:
        return share
    ordinal = _ordinal(folded, draft)
    if ordinal is not None:
        return ordinal
    found = unit_after(folded, draft.end)
    if found is not None and draft.kind == COUNT:
        return _with_found_unit(folded, draft, *found)
    if found is not None and found[0].kind == draft.kind == AMOUNT:
        return draft._replace(end=found[1])  # $5 dollars, 人民币300元
    return _with_classifier(folded, draft)


def _chinese_share(folded: str, draft: Draft) -> Draft | None:
    """三成五 = 35 %, 八折 = 80 %, 八五折 = 85 %."""
    if draft.form not in ("zh", "digits", "spelled") or draft.value <= 0:
        return None
    near = folded[draft.end : draft.end + 2]
    if "成" not in near and "折" not in near:
        return None
    cheng = _CHENG.match(folded, draft.end)
    if cheng is not None and draft.value <= 10:
        more = _MORE_CHENG.get(cheng["more"] or "", Decimal(0))
        draft = _as_percent(draft, cheng.end(), Decimal(10))
        return draft._replace(value=draft.value + more, quantum=Decimal(1)) if more else draft
    zhe = _ZHE.match(folded, draft.end)
    if zhe is not None and draft.value < 100:
        return _as_percent(draft, zhe.end(), Decimal(10) if draft.value < 10 else Decimal(1))
    return None


def _as_percent(draft: Draft, end: int, size: Decimal) -> Draft:
    high = None if draft.high is None else draft.high * size
    quantum = draft.quantum * size
    return draft._replace(
        end=end, value=draft.value * size, high=high, quantum=quantum, kind=PERCENT, unit="%"
    )


def _with_more(folded: str, draft: Draft) -> Draft:
    """300多名: at least 300, less than the next step of its last place."""
    if draft.form != "digits" or draft.high is not None or _MORE.match(folded, draft.end) is None:
        return draft
    if unit_after(folded, draft.end + 1) is None and classifier_after(folded, draft.end + 1) is None:
        return draft
    step = draft.quantum
    while draft.value and draft.value % (step * 10) == 0:
        step *= 10
    return draft._replace(end=draft.end + 1, high=draft.value + step, bound="over")


_ORDINAL_END = re.compile(r"(?:st|nd|rd|th)(?![a-z0-9])")


def _ordinal(folded: str, draft: Draft) -> Draft | None:
    if draft.form == "ordinal":
        return draft._replace(kind=ORDINAL)
    end = _ORDINAL_END.match(folded, draft.end) if draft.form == "digits" and draft.quantum == 1 else None
    if end is not None:
        return draft._replace(end=end.end(), kind=ORDINAL)
    if folded[draft.start - 1 : draft.start] != "第" or draft.form not in ("digits", "zh", "spelled"):
        return None
    found = classifier_after(folded, draft.end)
    unit, stop = (None, draft.end) if found is None else found
    return draft._replace(start=draft.start - 1, kind=ORDINAL, unit=unit, end=stop)


_CLASSIFIER_FIRST = frozenset("位节票分")
_HALF_MORE = re.compile(r"半(?!导|岛|径)")
_SCALE_AFTER = re.compile(r" (thousand|million|billion|trillion)\b")
# Pounds are money unless something is weighed.
_WEIGHT = re.compile(
    r"\b(?:weigh\w*|heav\w*|kilos?|kg|tons?|ounces?|oz|baby|babies|lb|lbs|of (?:meat|flour|sugar|rice))\b"
)


def _with_found_unit(folded: str, draft: Draft, unit: Unit, end: int) -> Draft:
    word = folded[draft.end : end].strip(" -")
    if word in _CLASSIFIER_FIRST or not _unit_allowed(folded, draft, word, end):
        return _with_classifier(folded, draft)
    if word in ("pound", "pounds") and _weighed(folded, draft.start, end):
        unit = AFTER["lb"]
    factor = unit.factor if unit.kind == AMOUNT else Decimal(1)  # cents become dollars, metres stay metres
    scale = _SCALE_AFTER.match(folded, end) if unit.kind == AMOUNT else None
    if scale is not None:  # 75 USD million
        factor, end = factor * SCALES[scale[1]], scale.end()
    draft = _times(draft._replace(kind=unit.kind, unit=unit.name), factor)
    if unit.kind in (DURATION, MEASURE, AMOUNT) and _HALF_MORE.match(folded, end) and draft.quantum >= 1:
        return draft._replace(end=end + 1, value=draft.value + factor / 2, quantum=factor / 2)
    return draft._replace(end=end)


def _weighed(folded: str, start: int, end: int) -> bool:
    before = folded[max(0, start - 40) : start].rpartition("\n")[2]
    return _WEIGHT.search(before + " " + folded[end : end + 40].partition("\n")[0]) is not None


def _times(draft: Draft, factor: Decimal) -> Draft:
    high = None if draft.high is None else draft.high * factor
    return draft._replace(value=draft.value * factor, high=high, quantum=draft.quantum * factor)


# One-character units that begin other words, and the characters that show it: 块头, 里面, 时候.
_OTHER_WORD = {
    "块": "头面地儿",
    "里": "面边头的有就",
    "时": "候间代期而",
    "日": "本元",
    "年": "级轻纪",
    "月": "亮饼",
    "分": "别布析成为公开类享之子手配",
    "度": "假过",
    "周": "边围",
    "天": "津然空下气",
    "平": "均台安衡时等",
    "卡": "车片通",
    "方": "面式法案向便",
    "码": "头",
    "升": "级至到高",
    "夜": "间里",
    "两": "个次名位家种项条天年会岸者方地国人边",
    "点": "多几",
    "元": "旦素件",
    "秒": "杀",
    "欧": "洲盟",
    "米": "饭粒",
    "角": "度色落",
    "克": "服",
    "桶": "装",
}
_ENGLISH_WORDS = frozenset(
    {"in", "us", "pt", "x", "a", "mi", "no", "am", "c", "pc", "m", "g", "t", "l", "b", "h", "w", "y"}
)


def _unit_allowed(folded: str, draft: Draft, word: str, end: int) -> bool:
    """Short units are words too: "5 in", "10 us", "one m"; a quotation mark may close a quotation."""
    if folded[end : end + 1] and folded[end] in _OTHER_WORD.get(word, ""):
        return False
    if draft.form == "en" and word.isascii() and len(word) <= 2 and word != "%":
        return False
    if word == '"':
        return folded.count('"', max(0, draft.start - 200), draft.start) % 2 == 0
    spaced = folded[draft.end : draft.end + 1] == " "
    return not (spaced and word in _ENGLISH_WORDS and word not in ("m", "g", "t", "l", "c"))


def _with_classifier(folded: str, draft: Draft) -> Draft:
    if draft.form == "fraction":
        return draft._replace(kind=RATIO, unit="fraction")
    if draft.kind != COUNT or draft.form in ("en", "ordinal"):
        return draft
    found = classifier_after(folded, draft.end)
    return draft if found is None else draft._replace(end=found[1], unit=found[0])


def _counts(folded: str, draft: Draft) -> bool:
    """Whether a bare numeral is a figure at all."""
    written = folded[draft.start : draft.end]
    if draft.form == "en":
        return written not in ("one", "a", "oh")
    if (
        draft.form not in ("zh", "spelled")
        or draft.unit is not None
        or draft.high is not None
        or draft.value < 0
    ):
        return True
    if draft.form == "spelled":
        return len(written) >= 3
    if written == folded.strip():
        return True
    digits = any(c in "一二两三四五六七八九壹贰叁肆伍陆柒捌玖" for c in written)
    return written in _BARE_LARGE or any(c.isdigit() for c in written) or (len(written) >= 2 and digits)
