"""Reported faults of name checks, each with its right verdict, and the same kind with other inputs."""

from __future__ import annotations

import pytest

from seatrial.guards.names import check_names, find_names


def judged(summary: str, source: str) -> list[tuple[str, str, str]]:
    return [(f.text, f.reason, str(f.verdict)) for f in check_names(summary, source).findings]


SURNAMES = "。周敏然说，张工下周上线，那三年的年费这张表里都有。"


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("周敏然说下周上线。", [("周敏然", "exact", "ok")]),
        ("周敏说下周上线。", [("周敏", "cut name", "fail")]),
        ("张总说下周上线。", [("张总", "title changed", "warn")]),
        ("李工下周上线。", [("李工", "not found", "fail")]),
        ("张工下周上线。", [("张工", "exact", "ok")]),
    ],
)
def test_surname_with_title_and_cut_name(summary: str, expected: list[tuple[str, str, str]]) -> None:
    assert judged(summary, SURNAMES) == expected


def test_the_source_has_two_people_and_no_look_alike() -> None:
    assert [m.text for m in find_names(SURNAMES)] == ["周敏然", "张工"]


ACCENTS = "Today O’Malley met Mun\u0303ez and José in the harbour office."


@pytest.mark.parametrize(
    "name", ["O'Malley", "OMalley", "O’Malley", "Mu\u00f1ez", "Mun\u0303ez", "Munez", "Jose\u0301"]
)
def test_one_name_in_many_spellings(name: str) -> None:
    assert judged(f"They met {name} there.", ACCENTS) == [(name, "exact", "ok")]


@pytest.mark.parametrize(("name", "reason"), [("O'Mally", "near spelling"), ("MU EZ", "not found")])
def test_a_misspelt_name_is_flagged(name: str, reason: str) -> None:
    assert judged(f"They met {name} there.", ACCENTS) == [(name, reason, "fail")]


@pytest.mark.parametrize(
    ("source", "summary", "expected"),
    [
        ("！欧阳靖言说，刘工下周上线。", "欧阳靖说下周上线。", ("欧阳靖", "cut name", "fail")),
        ("。赵一鸣说，何总下周来。", "何经理下周来。", ("何经理", "title changed", "warn")),
        ("。赵一鸣说，何总下周来。", "赵一鸣下周来。", ("赵一鸣", "exact", "ok")),
        ("。赵一鸣说，何总下周来。", "钱总下周来。", ("钱总", "not found", "fail")),
        ("\n陈思远认为，老李可以值班。", "李主任可以值班。", ("李主任", "title changed", "warn")),
        ("\n陈思远认为，老李可以值班。", "老王可以值班。", ("老王", "not found", "fail")),
        ("；林若曦认为，这几张图都是新的。", "林若曦认为图是新的。", ("林若曦", "exact", "ok")),
        ("；林若曦认为，这几张图都是新的。", "林若认为图是新的。", ("林若", "cut name", "fail")),
    ],
)
def test_surnames_titles_and_cut_names_of_others(
    source: str, summary: str, expected: tuple[str, str, str]
) -> None:
    assert judged(summary, source) == [expected]


@pytest.mark.parametrize(
    ("written", "accepted", "flagged"),
    [
        ("Zo\u00eb", ["Zoe\u0308", "Zoe", "ZO\u00cb", "Zoe\u0308's"], "Zoa"),
        ("D’Arcy", ["D'Arcy", "DArcy", "D\u02bcArcy", "d’Arcy"], "D'Arby"),
        ("Łukasz", ["Lukasz", "ŁUKASZ"], "Lukacz"),
        ("Åse", ["Ase", "A\u030ase"], "Asa"),
        ("Jean-Luc", ["Jean\u2010Luc", "JeanLuc", "Jean\u2011Luc"], "Jean-Lac"),
        ("Strauß", ["Strauss", "STRAUSS"], "Straub"),
    ],
)
def test_apostrophes_accents_and_forms_of_others(written: str, accepted: list[str], flagged: str) -> None:
    source = f"Today Mr. {written} came to the harbour office."
    for name in [written, *accepted]:
        assert [f.verdict for f in check_names(f"They met Mr. {name} there.", source).findings] == ["ok"]
    assert [f.verdict for f in check_names(f"They met Mr. {flagged} there.", source).findings] == ["fail"]
