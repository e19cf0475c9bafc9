"""Who said it, and which of several names: the right name in the wrong place."""

from __future__ import annotations

import pytest

from seatrial.guards.names import check_names

LABELLED = """陈思远：预算我觉得还不够，市场推广至少要八十万。
林若曦：我不同意，仓库改造才是重点，下周二之前要交方案。
王强：测试环境由张工搭建，合同请单婉仪核对。
发言人4：海外的渠道我来谈，下个月去新加坡。"""

LOWER = """project lead: the lamp needs a wooden foot , oak if we can get it .
buyer: oak is too dear , the supplier wants forty euros a piece .
designer: the switch should glow in the dark , so that people find it at night .
buyer: glass would break in the post .
project lead: then we take beech ."""


def warned(summary: str, source: str) -> list[tuple[str, str]]:
    return [(f.text, f.reason) for f in check_names(summary, source).findings if f.verdict != "ok"]


@pytest.mark.parametrize(
    ("summary", "speaker"),
    [
        ("陈总认为仓库改造才是重点，方案下周二之前要交。", "陈总"),
        ("王经理表示市场推广至少要八十万。", "王经理"),
        ("发言人4说仓库改造才是重点。", "发言人4"),
        ("陈思远说预算不够，林若曦说市场推广至少要八十万。", "林若曦"),
    ],
)
def test_a_statement_given_to_another_speaker(summary: str, speaker: str) -> None:
    assert warned(summary, LABELLED) == [(speaker, "other speaker")]


@pytest.mark.parametrize(
    "summary",
    [
        "林若曦指出仓库改造是重点。",
        "陈总认为市场推广至少要八十万。",
        "陈思远同意仓库改造是重点。",
        "王强提到测试环境由张工搭建。",
        "发言人4说下个月去新加坡谈海外渠道。",
    ],
)
def test_a_statement_of_its_speaker_passes(summary: str) -> None:
    assert warned(summary, LABELLED) == []


@pytest.mark.parametrize(
    ("summary", "flagged"),
    [
        ("buyer thought the switch should glow in the dark so people find it at night.", ["buyer"]),
        ("the project lead said that oak is too dear at forty euros a piece.", ["project lead"]),
        ("designer thought the switch should glow in the dark so people find it at night.", []),
        (
            "buyer said that oak is too dear, while designer said that glass would break in the post.",
            ["designer"],
        ),
        ("designer agreed that oak is too dear at forty euros a piece.", []),
        ("designer asked whether oak is too dear at forty euros a piece.", []),
    ],
)
def test_speakers_in_lower_case(summary: str, flagged: list[str]) -> None:
    assert warned(summary, LOWER) == [(speaker, "other speaker") for speaker in flagged]


def test_one_speaker_with_and_without_brackets_is_one() -> None:
    source = (
        "Ida Holm (Leeds): The lamp needs an oak foot.\nTom: Fine.\nIda Holm: And a brass switch that glows."
    )
    assert warned("Ida Holm said the brass switch glows.", source) == []
    assert warned("Tom said the brass switch glows on the lamp.", source) == [("Tom", "other speaker")]


PLANS = """Agent: We have the Amber, the Coral and the Slate plan.
Client: What does the Slate plan cover?
Agent: The Slate plan covers theft, fire and broken windows.
Client: I will take the Coral plan. Can I sign up today?"""


@pytest.mark.parametrize(
    ("summary", "flagged"),
    [
        ("The client signs up for the Coral plan.", []),
        ("The client signs up for the Amber plan.", ["Amber"]),
        ("The Slate plan covers theft and broken windows.", []),
        ("The Amber plan covers theft and broken windows.", ["Amber"]),
        ("The agent offers the Amber, the Coral and the Slate plan.", []),
    ],
)
def test_which_of_several_names(summary: str, flagged: list[str]) -> None:
    assert warned(summary, PLANS) == [(name, "other name there") for name in flagged]


def test_a_name_that_is_wrong_by_itself_keeps_its_own_reason() -> None:
    assert warned("陈思认为仓库改造才是重点，方案下周二之前要交。", LABELLED) == [("陈思", "cut name")]
