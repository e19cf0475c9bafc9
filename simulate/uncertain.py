"""Figures and names that the model began without knowing what to write, marked in the guards' findings.

A mark of its own: it changes no verdict. The source decides whether a figure is right; the entropy of its
first token says how sure the model was of it. Pure functions of texts, tokens and findings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from seatrial.guards.breakdown import entity_starts
from seatrial.guards.verdict import Finding, GuardReport
from seatrial.simulate.windows import part_spans

MARKED = ("numbers", "names")


@dataclass(frozen=True)
class Tokens:
    """The text of each token that was written, and the entropy (nats) it was chosen at."""

    pieces: Sequence[str]
    entropies_nats: Sequence[float]


def mark_uncertain(
    reports: Sequence[GuardReport],
    texts: Sequence[str],
    written: Sequence[Tokens | None],
    *,
    above_nats: float,
) -> tuple[GuardReport, ...]:
    """`reports` over `merge(texts)`, the findings begun above `above_nats` with that entropy in them.

    `written[i]` are the tokens that `texts[i]` was cut from; None where the model did not write it.
    """
    starts: dict[tuple[int, int], float] = {}
    spans = [f.span for report in reports if report.guard in MARKED for f in report.findings]
    for (first, last), tokens in zip(part_spans(texts), written, strict=True):
        if tokens is None:
            continue
        # The part stands in the merged text without the space around it, which its tokens still hold.
        whole = "".join(tokens.pieces)
        offset = first - (len(whole) - len(whole.lstrip()))
        inside = [(a - offset, b - offset) for a, b in spans if first <= a < last]
        for start in entity_starts(inside, tokens.pieces, tokens.entropies_nats, above_nats=above_nats):
            starts[start.span[0] + offset, start.span[1] + offset] = start.entropy_nats
    return tuple(_marked(report, starts) for report in reports)


def _marked(report: GuardReport, starts: dict[tuple[int, int], float]) -> GuardReport:
    if report.guard not in MARKED:
        return report
    findings = tuple(_with_start(finding, starts.get(finding.span)) for finding in report.findings)
    return replace(report, findings=findings)


def _with_start(finding: Finding, nats: float | None) -> Finding:
    if nats is None:
        return finding
    told = f"begun uncertainly ({nats:.1f} nats)"
    return replace(finding, start_nats=nats, detail=f"{finding.detail}; {told}" if finding.detail else told)
