"""What is done with a text: judged against the transcript, cut at a sentence, its wrong facts looked up.

Thin: the judging is `guards.check`, the sentences are `guards.extract`'s. It does not know how a text
came to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatrial.guards.check import check
from seatrial.guards.extract import split_sentences
from seatrial.guards.policy import Policy
from seatrial.guards.transcript import Transcript
from seatrial.guards.verdict import Finding, GuardReport, Verdict

_ENDS = ".!?。！？…;；\"'”’)）]】"


def judge(text: str, transcript: Transcript, policy: Policy | None = None) -> tuple[GuardReport, ...]:
    """The reports of the number and the name guard over `text`."""
    return tuple(check(text, transcript.text, policy=policy).reports)


def whole_sentences(text: str) -> str:
    """`text` without a last sentence that was cut off; the whole text when it is the only one.

    A budget may end in the middle of a figure: `$1,2` would be a figure that nobody said.
    """
    stripped = text.strip()
    if not stripped or stripped[-1] in _ENDS:
        return stripped
    sentences = split_sentences(stripped)
    if len(sentences) < 2:
        return stripped
    return stripped[: sentences[-1].span[0]].rstrip()


def wrong_findings(reports: Iterable[GuardReport]) -> list[Finding]:
    """Findings that forbid the text."""
    return [finding for report in reports for finding in report.findings if finding.verdict is Verdict.FAIL]


def facts_for(findings: Sequence[Finding], transcript: Transcript, limit: int = 12) -> list[str]:
    """The transcript's sentences around the nearest source of each finding, in the transcript's order.

    Findings without a nearest source give none. A sentence is given with its speaker.
    """
    near = {finding.nearest.span for finding in findings if finding.nearest is not None}
    found: dict[int, str] = {}
    for turn in transcript.turns:
        for sentence in split_sentences(turn.text):
            start, end = turn.span[0] + sentence.span[0], turn.span[0] + sentence.span[1]
            if any(low < end and high > start for low, high in near):
                label = "" if turn.speaker is None else f"{turn.speaker}: "
                found[start] = label + sentence.text.strip()
    return [found[start] for start in sorted(found)][:limit]
