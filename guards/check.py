"""Numbers and names of a summary against its source, in one verdict; and the source's words for a retry."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from seatrial.guards.names import check_names
from seatrial.guards.numbers import check_numbers
from seatrial.guards.policy import Policy
from seatrial.guards.transcript import Transcript, is_subtitles, parse_transcript
from seatrial.guards.verdict import Finding, GuardReport, Nearest, Verdict, worst


@dataclass(frozen=True)
class CheckResult:
    """The verdict over both guards, and their findings in the order of the summary."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    reports: tuple[GuardReport, ...]

    def to_json(self) -> dict[str, Any]:
        """The document that `seatrial check --json` prints."""
        return {"verdict": str(self.verdict), "findings": [finding.to_json() for finding in self.findings]}


def check(
    summary: str,
    source: str,
    *,
    meeting_date: date | None = None,
    locale: str | None = None,
    policy: Policy | None = None,
) -> CheckResult:
    """Checks every figure and every name of `summary` against `source`.

    Of subtitles (SRT, VTT) only what is said counts as source; `nearest` spans are still those of `source`.
    """
    if is_subtitles(source):
        spoken = parse_transcript(source)
        result = check(summary, spoken.text, meeting_date=meeting_date, locale=locale, policy=policy)
        return _in_the_file(result, _raw_places(source, spoken))
    numbers = check_numbers(summary, source, meeting_date=meeting_date, locale=locale, policy=policy)
    names = check_names(summary, source, policy=policy.names if policy else None)
    reports = (numbers, _without_dates(names, numbers))
    findings = sorted((f for report in reports for f in report.findings), key=lambda f: (f.span, f.guard))
    return CheckResult(worst(report.verdict for report in reports), tuple(findings), reports)


def _raw_places(source: str, spoken: Transcript) -> list[int]:
    """Where in `source` each character of the speech stands: a byte-order mark and \\r\\n count as given."""
    begin = int(source.startswith("\ufeff"))
    kept = [n for n in range(begin, len(source)) if source[n : n + 2] != "\r\n"]
    kept.append(len(source))
    return [kept[place] for place in spoken.places or ()]


def _in_the_file(result: CheckResult, places: list[int]) -> CheckResult:
    move = lambda finding: replace(finding, nearest=_moved(finding.nearest, places))
    reports = tuple(replace(report, findings=tuple(map(move, report.findings))) for report in result.reports)
    return replace(result, findings=tuple(map(move, result.findings)), reports=reports)


def _moved(near: Nearest | None, places: list[int]) -> Nearest | None:
    if near is None:
        return None
    start, end = near.span
    return Nearest(near.text, (places[start], places[end - 1] + 1))


def _without_dates(names: GuardReport, numbers: GuardReport) -> GuardReport:
    """Names of days and months that the number guard has judged as part of a date are judged once."""
    dates = [finding.span for finding in numbers.findings]
    kept = tuple(
        f
        for f in names.findings
        if f.kind != "calendar" or not any(a < f.span[1] and f.span[0] < b for a, b in dates)
    )
    return GuardReport(names.guard, worst(finding.verdict for finding in kept), kept)


def evidence(finding: Finding, source: str) -> str | None:
    """The sentence of the source around a finding's nearest figure or name; None when nothing is near."""
    from seatrial.guards.extract import split_sentences

    if finding.nearest is None:
        return None
    start, end = finding.nearest.span
    for sentence in split_sentences(source):
        if sentence.span[0] <= start < sentence.span[1] or sentence.span[0] < end <= sentence.span[1]:
            return sentence.text.strip()
    return None
