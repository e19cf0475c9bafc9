"""Every reason has an example in the table, gets the severity of the policy, and points at the source."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.errors import UserError
from seatrial.guards.numbers import check_numbers
from seatrial.guards.policy import (
    NUMBER_REASONS,
    Policy,
    make_policy,
    policy_from_file,
    policy_from_options,
)
from seatrial.guards.verdict import Finding, Verdict

TABLE = tomllib.loads((Path(__file__).parent / "numbers_reasons.toml").read_text(encoding="utf-8"))


def examples() -> Iterator[tuple[str, str, str, str]]:
    for example in TABLE["example"]:
        for language in ("en", "zh"):
            if language in example:
                yield example["reason"], language, example[language]["summary"], example[language]["figure"]


def finding(summary: str, source: str, figure: str, policy: Policy | None = None) -> Finding:
    findings = check_numbers(summary, source, policy=policy).findings
    return next(f for f in findings if f.text == figure)


@pytest.mark.parametrize(("reason", "language", "summary", "figure"), list(examples()))
def test_reason(reason: str, language: str, summary: str, figure: str) -> None:
    source = TABLE["sources"][language]
    found = finding(summary, source, figure)
    assert (found.reason, found.verdict) == (reason, Policy().number(found.kind, reason))
    assert summary[slice(*found.span)] == figure
    if found.nearest is not None:
        assert source[slice(*found.nearest.span)] == found.nearest.text


def test_every_reason_has_an_example() -> None:
    assert {reason for reason, *_ in examples()} == set(NUMBER_REASONS)


def test_a_kind_can_be_made_stricter_or_softer() -> None:
    source = "We met three customers, and 12 signed."
    summary = "Five customers were met."
    assert finding(summary, "We met people.", "Five").verdict == Verdict.WARN  # a small count in words
    stricter = make_policy({"small count.not found": Verdict.FAIL}, {})
    assert finding(summary, "We met people.", "Five", stricter).verdict == Verdict.FAIL
    assert finding("12 signed.", source, "12").verdict == Verdict.OK
    softer = make_policy({"not found": Verdict.WARN}, {})
    assert finding("13 signed.", source, "13").verdict == Verdict.FAIL
    assert finding("13 signed.", source, "13", softer).verdict == Verdict.WARN


def test_a_small_count_that_the_source_counts_otherwise_is_a_claim() -> None:
    source = "We offer three different plans to families."
    assert finding("There are two plans.", source, "two").verdict == Verdict.FAIL
    assert finding("There are two options.", source, "two").verdict == Verdict.WARN


def test_a_count_of_names_that_follow_shows_itself() -> None:
    source = "Steve: fancy a drink? Carly: yes."
    assert finding("Two friends, Steve and Carly, meet.", source, "Two").verdict == Verdict.OK
    assert finding("Three friends, Steve and Carly, meet.", source, "Three").verdict == Verdict.WARN


def test_options_and_files_of_severities(tmp_path: Path) -> None:
    made = policy_from_options(["numbers.one end=fail", "names.homophone=ok"])
    assert made.number("amount", "one end") == Verdict.FAIL
    assert dict(made.names) == {"homophone": Verdict.OK}
    file = tmp_path / "thresholds.toml"
    file.write_text('[numbers]\n"other unit" = "warn"\n', encoding="utf-8")
    read = policy_from_file(file)
    assert read.number("amount", "other unit") == Verdict.WARN
    assert policy_from_options(["numbers.rounded=warn"], read).number("amount", "other unit") == Verdict.WARN


@pytest.mark.parametrize(
    "option",
    [
        "numbers.one end",
        "numbers.nonsense=ok",
        "numbers.one end=maybe",
        "one end=ok",
        "numbers.pets.exact=ok",
    ],
)
def test_an_option_that_means_nothing_is_refused(option: str) -> None:
    with pytest.raises(UserError):
        policy_from_options([option])
