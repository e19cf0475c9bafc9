"""What every extract must keep, whatever the source: letter for letter, in order, in budget, never empty."""

from __future__ import annotations

import random
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.errors import UserError
from seatrial.guards.extract import extract
from seatrial.guards.transcript import parse_transcript

ENGLISH = """Nora Feld: Good morning everyone.
Tom Reyes: Yeah. Mhm. Okay.
Nora Feld: The warehouse budget for the spring quarter is 48,250 dollars, which Dr. Osei approved on Monday.
Tom Reyes: Right, right.
Tom Reyes: The warehouse budget does not cover the new lifting ramp, so we need another 3.5 thousand dollars.
Ines Ward: I think that the ramp supplier can deliver in the first week of April at the earliest.
Nora Feld: We decided to order the ramp now and to pay for it out of the spring budget.
Tom Reyes: Uh-huh, uh-huh, yeah, yeah, okay, okay, sure, sure, right.
Ines Ward: The training of the drivers moves to May because version 3.11 of the software is late.
"""
CHINESE = """方敏：大家早上好。
罗刚：嗯，对，好的好的。
方敏：春季仓库的预算一共是四十八万两千五百元，财务上周一已经批准了。
罗刚：对对对，是的是的是的是的是的。
罗刚：仓库的预算不包括新的升降平台，所以我们还需要3.5万元。
石岚：升降平台的供应商最早四月第一周可以交货。
方敏：我们决定现在就订升降平台，从春季预算里支付。
石岚：司机培训推迟到五月，因为软件3.11版本要晚一点发布。
"""


def count_words(text: str) -> int:
    return len(re.findall(r"[\u4e00-\u9fff]|[^\s\u4e00-\u9fff]+", text))


def require_contract(source: str, budget: int) -> None:
    found = extract(source, budget=budget, count=count_words)
    text = parse_transcript(source).text
    assert found.sentences and found.text.strip()
    assert found.text == "\n".join(s.text for s in found.sentences)
    assert all(text[slice(*s.span)] == s.text for s in found.sentences)
    assert all(a.span[1] <= b.span[0] for a, b in pairwise(found.sentences))
    assert count_words(found.text) <= budget or len(found.sentences) == 1


@pytest.mark.parametrize("source", [ENGLISH, CHINESE, ENGLISH + CHINESE])
@pytest.mark.parametrize("budget", [1, 5, 15, 30, 60, 120, 10_000])
def test_contract_on_both_languages(source, budget):
    require_contract(source, budget)


fragments = st.sampled_from(
    [
        "yeah ",
        "budget ",
        "3.5 ",
        "。",
        ". ",
        "\n",
        "Ada: ",
        "王磊：",
        "预算",
        "嗯",
        "123.23元",
        "Dr. Lee ",
        "，",
        "agreed ",
    ]
)


@given(st.lists(fragments, min_size=1, max_size=60).map("".join), st.integers(1, 50))
@settings(max_examples=300, deadline=None)
def test_contract_on_anything_with_a_word_in_it(source, budget):
    try:
        parse_transcript(source)
    except UserError:
        return
    require_contract(source, budget)


def test_backchannels_are_passed_over_and_speakers_are_told():
    for source, names in [
        (ENGLISH, {"Nora Feld", "Tom Reyes", "Ines Ward"}),
        (CHINESE, {"方敏", "罗刚", "石岚"}),
    ]:
        found = extract(source, budget=60, count=count_words)
        assert {s.speaker for s in found.sentences} <= names
        assert not re.search(r"Mhm|Uh-huh|Right, right|对对|好的好的|Good morning|早上好", found.text)


def test_numbers_are_those_of_the_source():
    for source in (ENGLISH, CHINESE):
        for budget in range(1, 80, 3):
            figures = re.findall(r"\d[\d.,]*\d|\d", extract(source, budget=budget, count=count_words).text)
            assert set(figures) <= set(re.findall(r"\d[\d.,]*\d|\d", source))


def test_nothing_is_said_twice():
    source = "\n".join(
        f"Ada: The spring budget of the warehouse is 48,250 dollars in all{end}" for end in "..!."
    )
    assert len(extract(source, budget=500, count=count_words).sentences) == 1


def test_preferences_lift_what_they_name():
    source = "\n".join(
        [
            "Ada: The garden behind the office looks lovely when the long summer sun is finally out.",
            "Ben: The garden behind the office looks lovely and the long summer sun helps it a lot.",
            "Cyd: The garden behind the office costs 4,120 dollars for water over the long summer.",
            "Dan: For the garden behind the office we agreed that Ben will send a plan by Friday.",
        ]
    )
    assert "lovely" in extract(source, budget=20, count=count_words).text
    assert "4,120" in extract(source, budget=20, count=count_words, prefer=["figures"]).text
    assert "agreed" in extract(source, budget=20, count=count_words, prefer=["decisions"]).text
    with pytest.raises(UserError, match="known: figures, decisions"):
        extract(source, budget=16, count=count_words, prefer=["jokes"])


POINTS = {
    "parking": "The new parking spaces for the vans should be painted before the parking permits expire.",
    "canteen": "The canteen menu needs cheaper lunch dishes, because lunch in the canteen costs too much.",
    "heating": "The heating engineer found that the heating boiler in the cellar is too old to repair.",
    "website": "The website translation is late, and the website team wants a second translator for it.",
}
POINTS_ZH = {
    "停车": "新的停车位要在停车许可证到期之前画好线，送货车才有地方停车。",
    "食堂": "食堂的午餐菜单需要更便宜的菜，因为食堂午餐现在太贵了。",
    "暖气": "暖气工程师发现地下室的暖气锅炉太旧，已经没有办法修理了。",
    "网站": "网站的翻译工作晚了，网站团队希望再请一位翻译人员来帮忙。",
}


@pytest.mark.parametrize("points", [POINTS, POINTS_ZH])
def test_each_point_of_the_agenda_is_covered(points):
    """Four points of equal length, each told in three ways: four sentences' room holds one of each."""
    endings = ["", " I say so again.", " That is all."]
    source = "\n".join(f"Ada: {text}{end}\nBen: Yeah, okay." for text in points.values() for end in endings)
    room = sum(count_words(text) for text in points.values())
    found = extract(source, budget=room, count=count_words).text
    assert [point for point in points if point in found] == list(points)


def test_an_impossible_budget_and_an_empty_source_are_refused():
    with pytest.raises(UserError, match="at least 1"):
        extract(ENGLISH, budget=0, count=count_words)
    with pytest.raises(UserError, match="empty"):
        extract("", budget=10, count=count_words)


def test_speech_without_full_stops_is_cut_at_commas_and_never_through_a_figure():
    rng = random.Random(4)
    hanzi = lambda: "".join(chr(rng.randrange(0x4E00, 0x5E00)) for _ in range(14))
    word = lambda: "".join(rng.choice("bcdfglmnprst") + rng.choice("aeiou") for _ in range(3))
    words = lambda: " ".join(word() for _ in range(7))
    chinese = "方敏：" + "，".join(f"{hanzi()}花了{100 + i}.5万元" for i in range(40))
    english = "Ada: " + ", ".join(f"{words()} cost {i},250 dollars" for i in range(1, 60))
    for source, ends in ((chinese, r"万元，?$"), (english, r"dollars,?$")):
        found = extract(source, budget=300, count=count_words)
        text = parse_transcript(source).text
        assert len(found.sentences) > 1 and all(text[slice(*s.span)] == s.text for s in found.sentences)
        assert all(re.search(ends, s.text) for s in found.sentences)
        figures = set(re.findall(r"\d[\d.,]*\d", source))
        assert set(re.findall(r"\d[\d.,]*\d", found.text)) <= figures
