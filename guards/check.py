"""Numbers and names of a summary against its source, in one verdict; and the source's words for a retry."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from seatrial.guards.names import check_names
from seatrial.guards.numbers import check_numbers
from seatrial.guards.policy import Policy
from seatrial.guards.verdict import Finding, GuardReport, Verdict, worst


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
    """Checks every figure and every name of `summary` against `source`."""
    numbers = check_numbers(summary, source, meeting_date=meeting_date, locale=locale, policy=policy)
    names = check_names(summary, source, policy=policy.names if policy else None)
    reports = (numbers, _without_dates(names, numbers))
    findings = sorted((f for report in reports for f in report.findings), key=lambda f: (f.span, f.guard))
    return CheckResult(worst(report.verdict for report in reports), tuple(findings), reports)


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
