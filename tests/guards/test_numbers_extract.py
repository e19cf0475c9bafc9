"""Extraction: each kind of figure in both languages, its value, unit and exact text."""

from __future__ import annotations

from decimal import Decimal

import pytest

from seatrial.guards.numbers import Quantity, extract_quantities
from seatrial.guards.numbers.quantity import KINDS


def only(text: str, locale: str | None = None) -> Quantity:
    (quantity,) = extract_quantities(text, locale=locale)
    assert text[slice(*quantity.span)] == quantity.text
    return quantity


VALUES = [
    # amounts and currencies
    ("$1.2 million", "amount", "1200000", "USD"),
    ("US$ 1MM", "amount", "1000000", "USD"),
    ("HK$ 10.05 billion", "amount", "10050000000", "HKD"),
    ("12 euros and 50 cents", "amount", "12.5", "EUR"),
    ("15 dollars 50", "amount", "15.5", "USD"),
    ("75 USD million", "amount", "75000000", "USD"),
    ("三块五", "amount", "3.5", "CNY"),
    ("两块三毛五", "amount", "2.35", "CNY"),
    ("人民币300元", "amount", "300", "CNY"),
    ("１，２００元", "amount", "1200", "CNY"),
    ("1.2万亿元", "amount", "1200000000000", "CNY"),
    ("壹拾贰万叁仟元", "amount", "123000", "CNY"),
    # percentages and their relatives
    ("59 . 2 %", "percent", "59.2", "%"),
    ("百分之三十五", "percent", "35", "%"),
    ("千分之三", "percent", "0.3", "%"),
    ("三成五", "percent", "35", "%"),
    ("八五折", "percent", "85", "%"),
    ("25个基点", "basis_point", "25", "bp"),
    ("1.5 percentage points", "percentage_point", "1.5", "pp"),
    ("四分之三", "ratio", "0.75", "fraction"),
    ("3 out of 5", "ratio", "0.6", "fraction"),
    ("一又二分之一", "count", "1.5", None),
    ("翻了两番", "ratio", "4", "x"),
    ("3.5倍", "ratio", "3.5", "x"),
    # counts
    ("half a million", "count", "500000", None),
    ("two and a half million", "count", "2500000", None),
    ("5M", "count", "5000000", None),
    ("four dozen", "count", "48", None),
    ("3 lakh crore", "count", "3000000000000", None),
    ("一百二十人", "count", "120", "人"),
    ("minus ten", "count", "-10", None),
    ("2.5e3", "count", "2500.0", None),
    # measures and durations
    ("24703 m²", "measure", "24703", "m2"),
    ("5 feet 10 inches", "measure", "70", "in"),
    ("2米28", "measure", "2.28", "m"),
    ("两米半", "measure", "2.5", "m"),
    ("零下五度", "measure", "-5", "degree"),
    ("98°F", "measure", "98", "F"),
    ("1/4 mile", "measure", "0.25", "mi"),
    ("一个半小时", "duration", "1.5", "hour"),
    ("2小时32分30秒", "duration", "9150", "second"),
    ("half a year", "duration", "0.5", "year"),
    # ordinals
    ("第十三届", "ordinal", "13", "届"),
    ("twenty-first", "ordinal", "21", None),
]


@pytest.mark.parametrize(("text", "kind", "value", "unit"), VALUES)
def test_value_and_unit(text: str, kind: str, value: str, unit: str | None) -> None:
    quantity = extract_quantities(text)[-1]
    assert (quantity.kind, quantity.value, quantity.unit) == (kind, Decimal(value), unit)


CALENDAR = [
    ("June 26th, 2024", "date", {"y": 2024, "m": 6, "d": 26}),
    ("the 4th of July", "date", {"m": 7, "d": 4}),
    ("third quarter of 2021", "date", {"q": 3, "y": 2021}),
    ("H1 2016", "date", {"h": 1, "y": 2016}),
    ("twenty nineteen", "date", {"y": 2019}),
    ("the 1990s", "date", {"dec": 1990}),
    ("2026-03-18", "date", {"y": 2026, "m": 3, "d": 18}),
    ("二零二六年三月十八日", "date", {"y": 2026, "m": 3, "d": 18}),
    ("一月二十三", "date", {"m": 1, "d": 23}),
    ("11/3号", "date", {"m": 11, "d": 3}),
    ("明年一季度", "date", {"Y": 1, "q": 1}),
    ("10月中旬", "date", {"m": 10, "part": 2}),
    ("next Friday", "weekday", {"wd": 5, "W": 1}),
    ("下下周三", "weekday", {"wd": 3, "W": 2}),
    ("6:55 pm", "time", {"H": 18, "M": 55, "pm": 1}),
    ("half past ten", "time", {"H": 10, "M": 30}),
    ("下午三点半", "time", {"H": 15, "M": 30, "pm": 1}),
    ("十一点半", "time", {"H": 11, "M": 30}),
]


@pytest.mark.parametrize(("text", "kind", "fields"), CALENDAR)
def test_calendar_parts(text: str, kind: str, fields: dict[str, int]) -> None:
    quantity = only(text)
    assert (quantity.kind, dict(quantity.fields)) == (kind, fields)


RANGES = [
    ("$90 million to $100 million", "90000000", "100000000", "USD"),
    ("4-7%", "4", "7", "%"),
    ("3到5万元", "30000", "50000", "CNY"),
    ("六到八周", "6", "8", "week"),
    ("两三个", "2", "3", "个"),
    ("三四十人", "30", "40", "人"),
    ("十几个", "10", "20", "个"),
    ("三百多万元", "3000000", "4000000", "CNY"),
    ("two or three", "2", "3", None),
]


@pytest.mark.parametrize(("text", "low", "high", "unit"), RANGES)
def test_ranges(text: str, low: str, high: str, unit: str | None) -> None:
    quantity = only(text)
    assert (quantity.value, quantity.high, quantity.unit) == (Decimal(low), Decimal(high), unit)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("about 8,000 users", "about"),
        ("more than 50 people", "over"),
        ("nearly 500 shops", "near"),
        ("不超过三万元", "under"),
        ("近500名", "near"),
        ("大约三成", "about"),
        ("30人以上", "over"),
        ("约了23个客户", ""),
    ],
)
def test_hedges(text: str, bound: str) -> None:
    assert only(text).bound == bound


@pytest.mark.parametrize(
    ("text", "string"),
    [
        ("13800138000", "13800138000"),
        ("+44 161 496 0000", "441614960000"),
        ("v2.3.1", "2.3.1"),
        ("QX-72", "qx72"),
        ("幺三八零零", "13800"),
        ("one two three four", "1234"),
        ("192.168.1.20", "192.168.1.20"),
    ],
)
def test_strings_of_digits(text: str, string: str) -> None:
    quantity = only(text)
    assert (quantity.kind, quantity.string, quantity.value) == ("identifier", string, None)


@pytest.mark.parametrize(
    "text",
    [
        "大家统一意见",
        "十分感谢，万一不行，千万别急",
        "十三五规划",
        "one of them may be right",
        "四川的同事一起来",
        "This may take longer.",
        "百分之百放心的话不多",
    ],
)
def test_words_that_are_no_figures(text: str) -> None:
    assert [q.text for q in extract_quantities(text) if q.text != "百分之百"] == []


def test_superscripts_are_units_not_digits() -> None:
    assert [(q.text, q.value) for q in extract_quantities("120 m² and 5 km²")] == [
        ("120 m²", Decimal(120)),
        ("5 km²", Decimal(5)),
    ]


def test_a_glued_number_word_is_not_half_read() -> None:
    quantity = only("twothousand and one")
    assert (quantity.kind, quantity.value) == ("unread", None)


def test_separators_by_locale() -> None:
    assert only("1.234,56 €").value == Decimal("1234.56")
    assert only("1.234").value == Decimal("1.234") and dict(only("1.234").other) == {"thousands": 1}
    assert only("1.234", "de").value == Decimal(1234)
    assert only("3,5 Mio", "de").value == Decimal("3.5") * 10**6
    assert only("12,34,567").value == Decimal(1234567)
    assert dict(only("on 2/5", "en-GB").fields) == {"d": 2, "m": 5}
    assert dict(only("on 2/5", "en-US").fields) == {"d": 5, "m": 2}
    both = only("on 2/5")
    assert dict(both.fields) == {"d": 5, "m": 2} and dict(both.other) == {"d": 2, "m": 5}


def test_all_kinds_are_named() -> None:
    samples = (
        "five cats cost $5, 5%, 5 percentage points, 5 bps, half of it, the fifth, May 5, 5 pm, 5 days, Monday, 5 kg, "  # noqa: E501
        "v5.1, twothousand"
    )
    assert {q.kind for q in extract_quantities(samples)} == set(KINDS)
