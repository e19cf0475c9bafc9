"""Every reason has an example, and every example gets its reason, its severity and an exact nearest span."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.errors import UserError
from seatrial.guards.names import SEVERITY, Reason, check_names
from seatrial.guards.verdict import Finding, Verdict

TABLE = tomllib.loads((Path(__file__).parent / "names_reasons.toml").read_text(encoding="utf-8"))


def examples() -> Iterator[tuple[str, str, str, str]]:
    for example in TABLE["example"]:
        for language in ("en", "zh"):
            if language in example:
                found = example[language]
                yield example["reason"], language, found["summary"], found["name"]


def finding(summary: str, source: str, name: str, **options: bool) -> Finding:
    findings = check_names(summary, source, **options).findings
    return next(f for f in findings if f.text == name)


@pytest.mark.parametrize(("reason", "language", "summary", "name"), list(examples()))
def test_reason(reason: str, language: str, summary: str, name: str) -> None:
    source = TABLE["sources"][language]
    found = finding(summary, source, name, transliterate=reason == "transliterated")
    softer = (reason, language) == ("cut name", "en")  # Alex for Alexander is customary
    expected = Verdict.WARN if softer else SEVERITY[Reason(reason)]
    assert (found.reason, found.verdict) == (reason, expected)
    assert summary[slice(*found.span)] == name
    if found.nearest is not None:
        assert source[slice(*found.nearest.span)] == found.nearest.text


def test_every_reason_has_an_example() -> None:
    assert {reason for reason, *_ in examples()} == {str(reason) for reason in Reason}


def test_the_nearest_name_is_told() -> None:
    zh = TABLE["sources"]["zh"]
    for summary, name, near in [
        ("陈思认为预算还不够。", "陈思", "陈思远"),
        ("孙工搭建测试环境。", "孙工", "张工"),
        ("合同由山婉仪核对。", "山婉仪", "单婉仪"),
        ("陈建国认为预算还不够。", "陈建国", "陈思远"),
    ]:
        nearest = finding(summary, zh, name).nearest
        assert nearest is not None and nearest.text == near


def test_who_said_it_is_told_in_words() -> None:
    en = TABLE["sources"]["en"]
    found = finding("Tom Baker said the campaign has no money left for the trade fair.", en, "Tom Baker")
    assert found.detail.endswith("Sarah Lin")


@pytest.mark.parametrize(
    ("policy", "verdict"),
    [
        ({"not found": "warn"}, Verdict.WARN),
        ({"not found": Verdict.OK}, Verdict.OK),
        ({"person.not found": "ok", "not found": "warn"}, Verdict.OK),
        ({"place.not found": "ok"}, Verdict.FAIL),
    ],
)
def test_policy_makes_a_reason_softer(policy: dict[str, str], verdict: Verdict) -> None:
    report = check_names("孙晓梅认为预算还不够。", TABLE["sources"]["zh"], policy=policy)
    assert [f.verdict for f in report.findings] == [verdict]
    assert report.verdict is verdict


@pytest.mark.parametrize("policy", [{"nearly": "ok"}, {"not found": "bad"}, {"animal.not found": "ok"}])
def test_a_policy_that_means_nothing_is_refused(policy: dict[str, str]) -> None:
    with pytest.raises(UserError, match=r"names policy '.*' is not known"):
        check_names("孙晓梅来了。", "陈思远来了。", policy=policy)


def test_people_of_an_attendance_list_may_be_named() -> None:
    assert check_names("Ida Holm agreed.", "Tom: we start.").verdict is Verdict.FAIL
    assert check_names("Ida Holm agreed.", "Tom: we start.", known=["Ida Holm"]).verdict is Verdict.OK
    assert check_names("孙晓梅同意。", "陈思远：开始。", known=["孙晓梅"]).verdict is Verdict.OK


def test_a_place_of_the_chinese_tagger_only_warns() -> None:
    found = finding("他们去了杭州。", "他们去了上海。", "杭州")
    assert (found.kind, found.reason, found.verdict) == ("place", "not found", Verdict.WARN)


@pytest.mark.parametrize(
    ("day", "source", "reason"),
    [
        ("Friday", "Ann: see you fri then", "exact"),
        ("Saturday", "Ann: at the weekend", "exact"),
        ("June", "Ann: it is on 26/06", "exact"),
        ("June", "Ann: it is on 26/07", "not found"),
        ("Friday", "Ann: see you Thursday", "not found"),
    ],
)
def test_days_and_months_written_otherwise(day: str, source: str, reason: str) -> None:
    found = finding(f"Ann will come on {day}.".replace("on June", "in June"), source, day)
    assert (found.kind, found.reason) == ("calendar", reason)
    assert found.verdict in (Verdict.OK, Verdict.WARN)
