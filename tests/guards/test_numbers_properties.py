"""What holds for every text and every value: no raise, exact spans, the same value in any form, and no other.

The forms are written by plain reference functions that know nothing of the guard.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from text_to_num import text2num

from seatrial.guards.numbers import check_numbers, extract_quantities
from seatrial.guards.numbers.normalize import fold
from seatrial.guards.verdict import Verdict

PIECES = st.sampled_from(
    "0 7 12 1.5 3,000 % ％ ２０ 五 两 百 万 亿 千 点 零 半 第 年 月 日 号 元 块 个 分之 翻番 周三 下午 成 折 几 多 $ € - – ( ) . , ： : / "  # noqa: E501
    "half a dozen twenty hundred million point second quarter May may Monday next 3pm Q3 2024-05-06 v2.1 +86 13800138000 ² ½ ١٢ 𝟙 壹 拾 "  # noqa: E501
    "kg km °C x 倍 and to from between about 约 超过 \n".split(" ")
)
NOISE = st.lists(PIECES | st.text(max_size=4), max_size=30).map("".join)


@given(NOISE, NOISE)
@settings(max_examples=300, deadline=None)
def test_no_text_makes_it_raise_and_spans_are_exact(summary: str, source: str) -> None:
    for quantity in extract_quantities(summary):
        assert summary[slice(*quantity.span)] == quantity.text != ""
    report = check_numbers(summary, source)
    for finding in report.findings:
        assert summary[slice(*finding.span)] == finding.text
        if finding.nearest is not None:
            assert source[slice(*finding.nearest.span)] == finding.nearest.text


@given(NOISE)
@settings(max_examples=200, deadline=None)
def test_figures_do_not_overlap_and_folding_keeps_the_length(text: str) -> None:
    spans = [quantity.span for quantity in extract_quantities(text)]
    assert all(left[1] <= right[0] for left, right in pairwise(spans))
    assert len(fold(text)) == len(text)
    assert fold(fold(text)) == fold(text)


# --- reference writers ----------------------------------------------------------------------------

ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()  # noqa: E501
ONES += "seventeen eighteen nineteen".split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()


def english(number: int) -> str:
    """A number below a billion in English words."""
    for size, word in ((10**6, "million"), (10**3, "thousand"), (100, "hundred")):
        if number >= size:
            rest = f" {english(number % size)}" if number % size else ""
            return f"{english(number // size)} {word}{rest}"
    if number < 20:
        return ONES[number]
    return TENS[number // 10] + (f"-{ONES[number % 10]}" if number % 10 else "")


def chinese(number: int) -> str:
    """A number below 10**16 in Chinese numerals, with every unit and zero written."""
    for size, unit in ((10**8, "亿"), (10**4, "万")):
        if number >= size:
            rest = number % size
            zero = "零" if 0 < rest < size // 10 else ""
            return chinese(number // size) + unit + (zero + chinese(rest) if rest else "")
    text, zero = "", False
    for size, unit in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit = number // size % 10
        if digit:
            text += ("零" if zero and text else "") + "零一二三四五六七八九"[digit] + unit
        zero = not digit if text else False
    return text or "零"


def scaled(number: int, size: int) -> str:
    """`number` / `size` as a decimal without trailing zeros."""
    return f"{(Decimal(number) / size).normalize():f}"


def dollars(number: int) -> list[str]:
    return [
        f"${number:,}",
        f"USD {number}",
        f"{number} dollars",
        f"{english(number)} dollars",
        f"${scaled(number, 10**6)} million",
        f"{scaled(number, 1000)} thousand dollars",
    ]


def yuan(number: int) -> list[str]:
    return [
        f"{number}元",
        f"{number:,}元",
        f"{chinese(number)}元",
        f"{scaled(number, 10**4)}万元",
        f"人民币{number}元",
        "".join(chr(ord(c) + 0xFEE0) if c.isdigit() else c for c in f"{number}元"),
    ]


AMOUNTS = st.integers(min_value=11, max_value=999_999_999)


@given(st.integers(min_value=0, max_value=999_999_999))
@settings(max_examples=200, deadline=None)
def test_english_words_are_read_as_text2num_reads_them(number: int) -> None:
    words = english(number)
    assert int(text2num(words, "en")) == number
    values = [q.value for q in extract_quantities(f"{words} dollars")]
    assert values == [number]


@given(st.integers(min_value=1, max_value=10**16 - 1))
@settings(max_examples=300, deadline=None)
def test_chinese_numerals_are_read_exactly(number: int) -> None:
    assert [q.value for q in extract_quantities(f"{chinese(number)}元")] == [number]


@given(AMOUNTS, st.data())
@settings(max_examples=200, deadline=None)
def test_a_value_written_in_any_form_is_accepted(number: int, data: st.DataObject) -> None:
    for forms in (dollars(number), yuan(number)):
        one, other = data.draw(st.sampled_from(forms)), data.draw(st.sampled_from(forms))
        report = check_numbers(f"it is {one}.", f"we said {other} then.")
        assert [f.verdict for f in report.findings] == [Verdict.OK], (one, other)


@given(AMOUNTS, st.data())
@settings(max_examples=200, deadline=None)
def test_one_changed_digit_is_flagged(number: int, data: st.DataObject) -> None:
    digits = str(number)
    place = data.draw(st.integers(0, len(digits) - 1))
    digit = data.draw(st.sampled_from([d for d in "0123456789" if d != digits[place]]))
    changed = int(digits[:place] + digit + digits[place + 1 :])
    assume(changed > 10 and changed % 10)  # 0.12198 million for 121,981 is rounded, not wrong
    for write in (dollars, yuan):
        one = data.draw(st.sampled_from(write(changed)))
        other = data.draw(st.sampled_from(write(number)))
        assert check_numbers(f"it is {one}.", f"we said {other} then.").verdict == Verdict.FAIL, (one, other)


@given(st.integers(11, 99_999), st.data())
@settings(max_examples=150, deadline=None)
def test_another_scale_sign_or_unit_is_flagged(number: int, data: st.DataObject) -> None:
    number += number % 10 == 0  # no trailing zero: 1.2 million is not 0.0012 billion rounded
    pairs = [
        (f"${number} million", f"${number} billion"),
        (f"{number}万元", f"{number}亿元"),
        (f"{chinese(number)}万元", f"{number}亿元"),
        (f"-${number}", f"${number}"),
        (f"minus {number} degrees", f"{number} degrees"),
        (f"负{number}元", f"{number}元"),
        (f"{number} dollars", f"{number} euros"),
        (f"{number}%", f"{number} percentage points"),
        (f"{number}公斤", f"{number}公里"),
        (f"{number}美元", f"{number}元"),
        (f"{number} hours", f"{number} days"),
    ]
    one, other = data.draw(st.sampled_from(pairs))
    for summary, source in ((one, other), (other, one)):
        assert check_numbers(f"it is {summary}.", f"we said {source} then.").verdict == Verdict.FAIL


SENTENCES = [
    "Churn was 85.19 percent last week.",
    "We found three bugs in 12 features.",
    "Delivery takes between 6 and 8 weeks.",
    "The licence costs 1,200,000 dollars.",
    "The review is on June 3rd at half past two.",
    "Call extension 4471 in room 1204.",
    "预算三万五，来了一百二十人。",
    "营收272.4亿元，客流下降5%。",
    "评审会定在六月三号下午两点半。",
    "甲方出500万元，乙方出1,000万元。",
]
SUMMARY = "85.2% churn, 12 bugs in 3 features, 8 weeks, $1.3 million, 3 June, 14:30, extension 4417. 预算35000元，120份，客流上升5%，合计1,500万元。"  # noqa: E501


@given(st.permutations(SENTENCES))
@settings(max_examples=60, deadline=None)
def test_the_order_of_the_sources_sentences_does_not_matter(sentences: list[str]) -> None:
    def told(source: str) -> list[tuple[str, str, Verdict]]:
        return [(f.text, f.reason, f.verdict) for f in check_numbers(SUMMARY, source).findings]

    assert told("\n".join(sentences)) == told("\n".join(SENTENCES))
