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
