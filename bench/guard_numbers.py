"""The number guard on labelled sets, beside the trivial rule and the rule that flags everything.

A row is flagged when a figure of it (for mention-level sets: one that overlaps the mention) has the verdict
`fail`; "guard, warn too" counts warnings as flags. The trivial rule: a regular expression for digits, flagged
when one of the summary's does not occur in the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from guard_scores import Scores, rows_of, score

from seatrial.guards.numbers import check_numbers
from seatrial.guards.verdict import Finding, Verdict

SUMMEDITS = ("ectsum", "qmsumm", "sales_call", "samsum")
_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")


def evaluate(folder: Path) -> Iterator[tuple[str, int, int, str, Scores]]:
    """(set, n, wrong, rule, scores) for every number set that the folder has."""
    for name, rows, wrong in _sets(folder):
        flags = [_flags(row) for row in rows]
        rules = {
            "guard": [fail for fail, _ in flags],
            "guard, warn too": [warn for _, warn in flags],
            "trivial": [_trivial(row) for row in rows],
            "flag all": [True] * len(rows),
        }
        for rule, flagged in rules.items():
            yield name, len(rows), sum(wrong), rule, score(zip(flagged, wrong, strict=True))


def _sets(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]], list[bool]]]:
    rows = rows_of(folder, "uhgeval_num_mentions.jsonl")
    if rows:
        yield "UHGEval numbers", rows, [bool(row["wrong"]) for row in rows]
    for part in SUMMEDITS:
        rows = [r for r in rows_of(folder, f"summedits_{part}.jsonl") if not r["wrong"] or r["number_wrong"]]
        if rows:
            yield f"SummEdits {part}", rows, [bool(row["number_wrong"]) for row in rows]
    rows = [r for r in rows_of(folder, "diasumfact_qmsum.jsonl") if not r["wrong"] or r["number_wrong"]]
    if any(row["number_wrong"] for row in rows):
        yield "DiaSumFact numbers", rows, [bool(row["number_wrong"]) for row in rows]


def findings_of(row: dict[str, Any]) -> list[Finding]:
    """The findings that a row is judged by."""
    found = check_numbers(row["summary"], row["source"]).findings
    if "mention" not in row:
        return list(found)
    spans = _occurrences(row["summary"], row["mention"])
    return [f for f in found if any(f.span[0] < end and start < f.span[1] for start, end in spans)]


def _occurrences(text: str, part: str) -> list[tuple[int, int]]:
    return [(m.start(), m.end()) for m in re.finditer(re.escape(part), text)]


def _flags(row: dict[str, Any]) -> tuple[bool, bool]:
    verdicts = {finding.verdict for finding in findings_of(row)}
    return Verdict.FAIL in verdicts, bool(verdicts & {Verdict.FAIL, Verdict.WARN})


def _trivial(row: dict[str, Any]) -> bool:
    known = set(_DIGITS.findall(row["source"]))
    return any(digits not in known for digits in _DIGITS.findall(row.get("mention") or row["summary"]))
