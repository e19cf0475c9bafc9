"""Text cut into plain and marked segments: pure, so that what is shown is exactly the text.

Knows nothing of HTML; the template writes the segments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

RANK = {"ok": 0, "warn": 1, "fail": 2}


@dataclass(frozen=True)
class Mark:
    """A span `[start, end)` and what is to be said about it. `target`: id of the other side's mark."""

    start: int
    end: int
    verdict: str
    key: str
    target: str | None
    reason: str = ""
    detail: str = ""
    kind: str = ""
    nearest: str = ""
    unsure: bool = False  # the model began it without knowing what to write


@dataclass(frozen=True)
class Segment:
    """A piece of text without line ends; `mark` is None for plain text."""

    text: str
    mark: Mark | None = None


def lines_of(text: str, marks: Sequence[Mark]) -> list[list[Segment]]:
    """The text as lines of segments; joined again they are the text, letter for letter.

    Where marks overlap, the more serious one keeps its span and the other is left out.
    """
    lines: list[list[Segment]] = [[]]
    position = 0
    for mark in _apart(marks, len(text)):
        _append(lines, text[position : mark.start], None)
        _append(lines, text[mark.start : mark.end], mark)
        position = mark.end
    _append(lines, text[position:], None)
    return lines


def _append(lines: list[list[Segment]], text: str, mark: Mark | None) -> None:
    first, *others = text.split("\n")
    for index, piece in enumerate([first, *others]):
        if index:
            lines.append([])
        if piece:
            lines[-1].append(Segment(piece, mark))


def _apart(marks: Iterable[Mark], length: int) -> list[Mark]:
    """Marks inside the text that do not overlap, in order."""
    kept: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: (-RANK.get(mark.verdict, 0), mark.start, -mark.end)):
        inside = 0 <= mark.start < mark.end <= length
        if inside and all(mark.end <= other.start or other.end <= mark.start for other in kept):
            kept.append(mark)
    return sorted(kept, key=lambda mark: mark.start)


def pair_marks(findings: Sequence[dict[str, Any]], prefix: str) -> tuple[list[Mark], list[Mark]]:
    """Marks of a summary and of its source from findings; each pair points at the other.

    Several findings may have the same nearest span; the source then has one mark, which points at the first.
    """
    summary: list[Mark] = []
    source: dict[tuple[int, int], Mark] = {}
    for index, finding in enumerate(findings):
        key, near = f"{prefix}-{index}", finding.get("nearest")
        span = (near["span"][0], near["span"][1]) if near else None
        target = None if span is None else source[span].key if span in source else f"{key}-source"
        summary.append(_mark(finding, key, target))
        if span is not None and span not in source:
            source[span] = Mark(*span, finding["verdict"], f"{key}-source", key, finding["reason"])
    return summary, list(source.values())


def _mark(finding: dict[str, Any], key: str, target: str | None) -> Mark:
    start, end = finding["span"]
    near = finding.get("nearest")
    return Mark(
        start,
        end,
        finding["verdict"],
        key,
        target,
        finding["reason"],
        finding.get("detail") or "",
        finding["kind"],
        near["text"] if near else "",
        finding.get("start_nats") is not None,
    )
