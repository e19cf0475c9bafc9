"""Rules are left out only where they cannot match: a quick look never says no where the rule says yes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.guards.numbers.blocks import _BITS, _SEARCHES, Block, Table
from seatrial.guards.numbers.dates_en import ENGLISH, YEARS
from seatrial.guards.numbers.dates_zh import CHINESE
from seatrial.guards.numbers.en import GLUED, glued
from seatrial.guards.numbers.hedges import _AFTER, _before, bound_of

NUMBER = re.compile(r"[\d零一二两三四五六七八九十]")
ENGLISH_PARTS = [
    *"0123456789", "10", "2026", "20260416", " ", " ", "-", "/", ".", ":", "–", "a", "pm", " to ", " and ",
    " till ", " until ", "am", "apr", "-mar-", "p.m.",
]  # fmt: skip
CHINESE_PARTS = [
    *"0123456789一二两十零",
    "  ",
    *"年年月月日号点时前后天周个星期季礼之./-:分半刻初底度",
    "星期",
    "个月",
]


@pytest.mark.parametrize(
    ("table", "parts"), [(ENGLISH, ENGLISH_PARTS), (CHINESE, CHINESE_PARTS)], ids=["en", "zh"]
)
@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_what_a_rule_at_a_number_reads_looks_likely(
    table: Table, parts: list[str], data: st.DataObject
) -> None:
    text = "".join(data.draw(st.lists(st.sampled_from(parts), min_size=1, max_size=14)))
    for place in (found.start() for found in NUMBER.finditer(text)):
        read = [
            pattern.pattern
            for _, anchored, pattern, _ in table.rows
            if anchored and pattern.match(text, place)
        ]
        assert not read or table.likely.match(text, place), (text[place:], read)


WORDS = [
    *("january", "sept", "monday", "weds", "weekend", "quarter", "century", "tomorrow", "tonight", "o'clock"),
    *(
        "early",
        "beginning of",
        "end of",
        "noon",
        "half past ",
        "christmas",
        "new year",
        "april fools",
        "fifteen",
    ),
    *("earth day", "nineteenth", "at 5", "around 7", "phone", "www.", "3rd", "q3", "1h", "5 pm", "room", "#"),
    *(
        "号",
        "房间",
        "元旦",
        "五一",
        "星期",
        "礼拜",
        "过去",
        "接下来",
        "半年",
        "年代",
        "下午",
        "夜",
        "的",
        "x",
        ".",
    ),
    *("10:30", "2026", "1 2 3", "v2", "+49"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.sampled_from([" ", "\n", "，"]))
@settings(max_examples=300, deadline=None)
def test_a_sign_that_is_there_is_never_called_absent(parts: list[str], gap: str) -> None:
    text = gap.join(parts)
    block = Block(text, 0, len(text))
    latin = re.search("[a-z]", text) is not None
    missed = [
        name
        for name, bit in _BITS.items()
        if block.absent & bit
        and _SEARCHES[bit](text)
        and (latin or name not in ("address", "half", "halfday", "past"))
    ]
    assert missed == []
    for row in (*ENGLISH.rows, *CHINESE.rows, *YEARS.rows):
        needs, _, pattern, _ = row
        assert pattern.search(text) is None or block.has(needs), (text, pattern.pattern)


@given(st.text(alphabet="twohundredthousandmillion -x五", max_size=60))
@settings(max_examples=100, deadline=None)
def test_glued_words_are_found_as_their_pattern_finds_them(text: str) -> None:
    assert [found.span() for found in glued(text)] == [found.span() for found in GLUED.finditer(text)]


@given(
    before=st.sampled_from(
        ["", "约", "about the ", "至少", "超过了", "just under ", "为", "no ", "x", "an ", "近"]
    ),
    after=st.sampled_from(
        ["", "以上", " or so", "左右", "多个", " plus", "-ish", "+", "不到", "x", " left", "许"]
    ),
)
def test_a_hedge_is_heard_as_its_pattern_hears_it(before: str, after: str) -> None:
    text = f"{before}37{after}"
    found = bound_of(text, len(before), len(before) + 2)
    behind = _AFTER.match(text, len(before) + 2)
    if not _before(" " + before.rstrip(" ")) and found and behind is not None:
        assert found == behind.lastgroup or before.rstrip().endswith(("the", "了", "为", "an"))
    if behind is not None:
        assert found
