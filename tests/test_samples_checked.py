"""The guards against the sample summaries, whose truth is known: the good pass, the falsified do not.

Errors whose wrong value is said elsewhere in the meeting are left out: no promise is made about them.
"""

import pytest

from seatrial.guards.check import CheckResult, check
from seatrial.guards.verdict import Finding, Verdict
from seatrial.samples import LANGUAGES, MEETING_DATE, PlantedError, planted_errors, sample_text, summary_text


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_guards_let_the_good_summary_pass(language):
    result = check(summary_text(language), sample_text(language), meeting_date=MEETING_DATE[language])
    assert [told(finding) for finding in result.findings if finding.verdict == Verdict.FAIL] == []
    assert result.verdict != Verdict.FAIL


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_guards_flag_every_planted_error_that_a_look_up_can_notice(language):
    summary = summary_text(language, "flawed")
    result = check(summary, sample_text(language), meeting_date=MEETING_DATE[language])
    missed = [
        error.text for error in planted_errors(language) if not error.elsewhere and not flagged(error, result)
    ]
    assert missed == []
    assert result.verdict == Verdict.FAIL


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_guards_fail_nothing_but_the_planted_errors(language):
    summary = summary_text(language, "flawed")
    spans = [error.span(summary) for error in planted_errors(language)]
    result = check(summary, sample_text(language), meeting_date=MEETING_DATE[language])
    failed = [finding for finding in result.findings if finding.verdict == Verdict.FAIL]
    assert [
        told(finding) for finding in failed if not any(overlap(finding.span, span) for span in spans)
    ] == []


def flagged(error: PlantedError, result: CheckResult) -> bool:
    """Whether the guard in charge has something to say about the very place of the error."""
    span = error.span(summary_text(error.language, "flawed"))
    found = [
        finding for finding in result.findings if finding.guard == error.guard and overlap(finding.span, span)
    ]
    return any(finding.verdict != Verdict.OK for finding in found)


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def told(finding: Finding) -> tuple[str, str, str | None]:
    """A finding as a failing test should print it."""
    return finding.text, finding.reason, finding.nearest.text if finding.nearest else None
