"""Known faults of number guards, each as its whole kind: what must pass, what must not, what deserves a
look."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.guards.numbers import check_numbers
from seatrial.guards.verdict import Verdict

CASES = tomllib.loads((Path(__file__).parent / "numbers_cases.toml").read_text(encoding="utf-8"))["case"]


def summaries(wanted: str) -> Iterator[pytest.param]:
    for case in CASES:
        for summary in case.get(wanted, []):
            yield pytest.param(summary, case["source"], id=f"{case['name']}: {summary}")


@pytest.mark.parametrize(("summary", "source"), list(summaries("accept")))
def test_accepted(summary: str, source: str) -> None:
    report = check_numbers(summary, source)
    assert [(f.text, f.reason) for f in report.findings if f.verdict != Verdict.OK] == []


@pytest.mark.parametrize(("summary", "source"), list(summaries("flag")))
def test_flagged(summary: str, source: str) -> None:
    report = check_numbers(summary, source)
    assert report.verdict == Verdict.FAIL, [(f.text, f.reason) for f in report.findings]


@pytest.mark.parametrize(("summary", "source"), list(summaries("warn")))
def test_at_least_a_warning(summary: str, source: str) -> None:
    report = check_numbers(summary, source)
    assert report.verdict != Verdict.OK, [(f.text, f.reason) for f in report.findings]


@pytest.mark.parametrize(("summary", "source"), list(summaries("open")))
def test_left_open(summary: str, source: str) -> None:
    report = check_numbers(summary, source)
    assert report.verdict == Verdict.WARN, [(f.text, f.reason) for f in report.findings]


def test_words_that_only_look_like_numbers_state_nothing() -> None:
    text = "大家统一意见，十三五期间十分努力，万一有事，千万别急，一起去四川。"
    assert check_numbers(text, "别的话").findings == ()


def test_a_source_passes_its_own_check() -> None:
    for case in CASES:
        report = check_numbers(case["source"], case["source"])
        assert [(f.text, f.reason) for f in report.findings if f.verdict == Verdict.FAIL] == []
