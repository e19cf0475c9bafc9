"""What counts as a name, in both languages, on invented sentences; and what only looks like one."""

from __future__ import annotations

import pytest

from seatrial.guards.names import find_names, tag_entities
from seatrial.guards.names.turns import read_turns


def people(text: str) -> list[str]:
    return [m.text for m in find_names(text) if m.kind == "person"]


def names(text: str) -> list[str]:
    return [m.text for m in find_names(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("王经理和李主任都在。", ["王经理", "李主任"]),
        ("我们请王工看一下工作台。", ["王工"]),
        ("老李昨天请假了，小陈代班。", ["老李", "小陈"]),
        ("客户经理小王跟进。", ["小王"]),
        ("阿强负责物流。", ["阿强"]),
        ("小高、小方和老马参加。", ["小高", "小方", "老马"]),
        ("欧阳靖负责设计，上官云负责测试。", ["欧阳靖", "上官云"]),
        ("欧阳总表示同意，诸葛先生来了。", ["欧阳总", "诸葛先生"]),
        ("单婉仪、曾国强和仇海涛出席。", ["单婉仪", "曾国强", "仇海涛"]),
        ("李娜副总经理介绍了情况。", ["李娜副总经理"]),
        ("孙博士和吴教授合作。", ["孙博士", "吴教授"]),
        ("关于合同，关律师有意见。", ["关律师"]),
        ("何时开始？何总说明天。", ["何总"]),
        ("约翰·史密斯和玛丽出席了会议。", ["约翰·史密斯", "玛丽"]),
        ("王总、李总、张总都到了。", ["王总", "李总", "张总"]),
        ("陳大文先生說可以，張偉也來。", ["陳大文先生", "張偉"]),
        ("张伟：开始吧。\n王芳：好的。", ["张伟", "王芳"]),
        ("发言人1：大家好。\n发言人2：你好。", []),
        ("王总安排测试，马总马上到。", ["王总", "马总"]),
        ("常总常常加班，白总白天不在。", ["常总", "白总"]),
    ],
)
def test_chinese_people(text: str, expected: list[str]) -> None:
    assert people(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "那三年的年费这张表里都有。",
        "这张图和那张表都是新的。",
        "请张总结一下。",
        "向老师请教一下。",
        "相关部长会议推迟。",
        "文书记录已经归档。",
        "高工资的岗位不多。",
        "成本总监的意见很重要。",
        "项目经理负责，产品经理和项目总监都同意。",
        "时代表示变了，谢谢大家。",
        "石油价格上涨，小米发布了新手机。",
        "老师说小时候很有意思。",
        "叶子落了。",
        "阿姨和叔叔都来了。",
    ],
)
def test_words_that_look_like_chinese_names(text: str) -> None:
    assert people(text) == []


def test_the_parts_of_a_chinese_name() -> None:
    full, titled, nick = find_names("欧阳靖总监、王经理和老李到了。")
    assert (full.surname, full.given, full.title, full.bare) == ("欧阳", "靖", "总监", "欧阳靖")
    assert (titled.surname, titled.given, titled.title) == ("王", None, "经理")
    assert (nick.surname, nick.title, nick.text) == ("李", "老", "老李")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("However, Sarah Miller said no.", ["Sarah Miller"]),
        ("Friends plan a party for Tom.", ["Tom"]),
        ("They met Dr. Lee at St. Mary's Hospital.", ["Dr. Lee", "St. Mary's Hospital"]),
        ("The University of Leeds and Bank of Ghent agreed.", ["University of Leeds", "Bank of Ghent"]),
        ("Ludwig van der Berg wrote it.", ["Ludwig van der Berg"]),
        ("mr smith said that mrs jones left", ["mr smith", "mrs jones"]),
        ("JAMES: hello\nANNA: hi", ["JAMES", "ANNA"]),
        ("James O'Connor's plan failed.", ["James O'Connor"]),
        ("Steve suggested a break.", ["Steve"]),
        ("Management suggested a break. Discussion was long. Revenue rose.", []),
        ("Zoe will call Jean-Luc Picard on Monday.", ["Zoe", "Jean-Luc Picard", "Monday"]),
        ("- Action: Ben to email Carla\n- Next: budget", ["Ben", "Carla"]),
        ("J. K. Holm and J.R.R. Falk", ["J. K. Holm", "J.R.R. Falk"]),
        ("The cost was $5M and £XXX.", []),
        ("Two friends, Steve and Carly, met.", ["Steve", "Carly"]),
        ("Ann and Emily cook. Elisabeth gardens.", ["Ann", "Emily", "Elisabeth"]),
        ("ACTION ITEMS FOR TODAY\nnothing", []),
        ("Ｊｏｈｎ Ｈｏｌｍ said so.", ["Ｊｏｈｎ Ｈｏｌｍ"]),
        ("We moved to BestShopXYZ.", ["BestShopXYZ"]),
    ],
)
def test_english_names(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_known_people_are_found_in_lower_case() -> None:
    text = "then karen said that tom baker will call"
    assert names(text) == []
    assert [m.text for m in find_names(text, known=["Karen", "Tom Baker"])] == ["karen", "tom baker"]


def test_the_start_of_a_sentence_alone_leaves_a_name_uncertain() -> None:
    assert [m.certain for m in find_names("Steve suggested a break.")] == [False]
    assert [m.certain for m in find_names("Then Steve suggested a break.")] == [True]


def test_entities_of_both_languages() -> None:
    found = tag_entities(
        "Ms. Alder works for Northwind Insurance near Alder Street. 张伟在上海的清华大学工作。"
    )
    assert [(e.text, e.kind) for e in found] == [
        ("Ms. Alder", "person"),
        ("Northwind Insurance", "organisation"),
        ("Alder Street", "place"),
        ("张伟", "person"),
        ("上海", "place"),
        ("清华大学", "organisation"),
    ]


def test_turns_of_labels_in_lower_case_and_of_a_chat_in_one_line() -> None:
    lower = "project lead: the lamp is late .\nbuyer: who ordered it ?\nproject lead: i did .\nbuyer: fine ."
    assert [t.speaker for t in read_turns(lower)] == ["project lead", "buyer", "project lead", "buyer"]
    chat = "Finn: Are you in? . Ida: Yes! . Finn: Good . Ida: See you"
    turns = read_turns(chat)
    assert [(t.speaker, t.text.strip(" .")) for t in turns] == [
        ("Finn", "Are you in?"),
        ("Ida", "Yes!"),
        ("Finn", "Good"),
        ("Ida", "See you"),
    ]
    assert all(chat[slice(*t.span)] == t.text for t in turns)
