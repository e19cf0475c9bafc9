"""Where sentences end: never inside a number, after a title, or before a closing quote."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.guards.sentences import cut_places, split_sentences


def texts(text: str) -> list[str]:
    return [s.text for s in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("他去了医院，共花了123.23元。第二天好了。", ["他去了医院，共花了123.23元。", "第二天好了。"]),
        (
            "The fine was 1.6m after Dr. Lee left. Version 3.11 ships.",
            ["The fine was 1.6m after Dr. Lee left.", "Version 3.11 ships."],
        ),
        ("13.81万亿元，增长5.7%！后来呢？", ["13.81万亿元，增长5.7%！", "后来呢？"]),
        ("他说：“行。”然后走了。", ["他说：“行。”", "然后走了。"]),
        (
            "Ask Mr. Hale or Mrs. Ito. Prof. Adeyemi knows.",
            ["Ask Mr. Hale or Mrs. Ito.", "Prof. Adeyemi knows."],
        ),
        ("J. R. Marsh signed. K. Ober did not.", ["J. R. Marsh signed.", "K. Ober did not."]),
        ("We met at 5 p.m. on Monday. It rained.", ["We met at 5 p.m. on Monday.", "It rained."]),
        ("It closed at 5 p.m. Nobody came.", ["It closed at 5 p.m.", "Nobody came."]),
        ("Costs e.g. rent fell. Sales vs. plan rose.", ["Costs e.g. rent fell.", "Sales vs. plan rose."]),
        ("He said no. Then no. 5 won.", ["He said no.", "Then no. 5 won."]),
        ("1. Rent fell. 2. Sales rose.", ["1. Rent fell.", "2. Sales rose."]),
        ("“Really?” she asked. “Yes!” he said.", ["“Really?” she asked.", "“Yes!” he said."]),
        ("Wait... and then it worked. Done!", ["Wait... and then it worked.", "Done!"]),
        ("See docs.example.com for v2.0.1. Thanks.", ["See docs.example.com for v2.0.1.", "Thanks."]),
        ("增长了３．５个百分点。好。", ["增长了３．５个百分点。", "好。"]),
        ("真的吗？！不会吧……我不信。", ["真的吗？！", "不会吧……", "我不信。"]),
        ("第一行没有句号\n第二行有。", ["第一行没有句号", "第二行有。"]),
        ("共33.33 %，体温98.6。版本3.11发布了。", ["共33.33 %，体温98.6。", "版本3.11发布了。"]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_known_sentences(text, expected):
    assert texts(text) == expected


numbers = st.one_of(
    st.decimals(0, 10**6, places=2).map(str),
    st.integers(0, 10**9).map(lambda n: f"{n:,}"),
    st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20)).map(
        lambda v: "v" + ".".join(map(str, v))
    ),
    st.integers(1, 9999).map(lambda n: f"{n / 10}万元"),
    st.floats(0, 100).map(lambda p: f"{p:.2f} %"),
    st.floats(0, 100).map(lambda p: f"{p:.1f}m"),
    st.integers(1, 99).map(lambda n: f"３．{n}"),
)
frames = st.sampled_from(
    ["We paid {} in May.", "The sum is {}.", "共花了{}。", "到{}为止！", "Dr. Lee saw {} of them?"]
)


@given(st.lists(st.tuples(frames, numbers), min_size=1, max_size=6), st.sampled_from([" ", "\n", "  "]))
@settings(max_examples=200, deadline=None)
def test_no_number_is_ever_cut(pairs, between):
    written = [frame.format(number) for frame, number in pairs]
    text = between.join(written)
    assert texts(text) == written
    for (_, number), sentence in zip(pairs, split_sentences(text), strict=True):
        assert number in sentence.text


@given(st.text(alphabet=st.sampled_from('aB3 .。!?！”"’)\n汉字，,；Dr…v\t'), max_size=80))
@settings(max_examples=400, deadline=None)
def test_spans_are_exact_in_order_and_leave_out_only_white_space(text):
    found = split_sentences(text)
    assert all(text[slice(*s.span)] == s.text for s in found)
    assert re.sub(r"\s", "", "".join(s.text for s in found)) == re.sub(r"\s", "", text)
    assert all(a.span[1] <= b.span[0] for a, b in pairwise(found))


@pytest.mark.parametrize(
    ("text", "never"),
    [
        ("合同总额我们报的是一千八百六十万元左右", ["一千", "一千八百", "一千八百六十"]),
        ("增长百分之五点七以后", ["增长百", "增长百分", "增长百分之", "增长百分之五"]),
        ("it costs two hundred thousand dollars in all", ["it costs two", "it costs two hundred"]),
        ("we pay 3.5 million and 1,200 more", ["we pay 3.5", "we pay 3", "we pay 3.5 million and 1,"]),
        (
            "the review is on May 4th with Dr. Lee there",
            ["the review is on May", "the review is on May 4th with Dr."],
        ),
    ],
)
def test_a_cut_leaves_no_other_amount(text, never):
    pieces = [text[:place].rstrip() for place in cut_places(text)]
    assert pieces[-1] == text
    assert not set(never) & set(pieces) and len(pieces) > 1
