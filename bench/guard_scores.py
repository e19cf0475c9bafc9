"""Scores of a guard against labels: precision, recall, F1, specificity, balanced accuracy, with baselines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Scores:
    """Counts of one rule on one set: flagged or not, wrong or right."""

    true_flags: int
    false_flags: int
    misses: int
    passes: int

    @property
    def precision(self) -> float:
        return _share(self.true_flags, self.true_flags + self.false_flags)

    @property
    def recall(self) -> float:
        return _share(self.true_flags, self.true_flags + self.misses)

    @property
    def f1(self) -> float:
        return _share(2 * self.true_flags, 2 * self.true_flags + self.false_flags + self.misses)

    @property
    def specificity(self) -> float:
        return _share(self.passes, self.passes + self.false_flags)

    @property
    def balanced_accuracy(self) -> float:
        return (self.recall + self.specificity) / 2


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def score(pairs: Iterable[tuple[bool, bool]]) -> Scores:
    """Counts (flagged, wrong) pairs."""
    counts = {(flagged, wrong): 0 for flagged in (True, False) for wrong in (True, False)}
    for flagged, wrong in pairs:
        counts[flagged, wrong] += 1
    return Scores(counts[True, True], counts[True, False], counts[False, True], counts[False, False])


def rows_of(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows of one .jsonl file; empty when the folder has no such file."""
    path = folder / name
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )


def table_lines(rows: Iterable[tuple[str, int, int, str, Scores]]) -> Iterator[str]:
    """Lines of a table: set, n / wrong, rule, then the five figures."""
    yield f"{'set':28} {'n/wrong':>9} {'rule':18} {'P':>5} {'R':>5} {'F1':>5} {'spec':>5} {'BAcc':>5}"
    for name, n, wrong, rule, found in rows:
        figures = (found.precision, found.recall, found.f1, found.specificity, found.balanced_accuracy)
        yield f"{name:28} {f'{n}/{wrong}':>9} {rule:18} " + " ".join(f"{figure:5.3f}" for figure in figures)
