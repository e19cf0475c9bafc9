"""The table of the fault suite: each fault drawn into one graph, what saw it, and what it was called.

Families, layers and places are drawn by the generator that is given; the models come from the caller. The
document is made from the rows alone, so that a stale one shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seatrial.export.faults.mutations.graph import Graph
from seatrial.export.faults.mutations.suite import SUITE
from seatrial.export.faults.symptoms import measure_of, right_answers, symptom_of

DOCUMENT = Path("docs/faults.md")
COMMAND = "python bench/export_faults.py --write"
SYMPTOMS_COMMAND = "python bench/export_symptoms.py --write"


@dataclass(frozen=True)
class Row:
    """One fault: where it was put, which checks failed, and its name."""

    fault: str
    family: str
    put_at: str
    detected_by: tuple[str, ...]
    named_as: str
    named: bool

    @property
    def detected(self) -> bool:
        return bool(self.detected_by)


def place_fault(
    verify: Callable[..., Any], families: Sequence[str], number: int, rng: np.random.Generator
) -> Row:
    """Put fault `number` of the suite into the first drawn family that has a place for it, and verify.

    `verify(family, proto)` verifies; `verify.proto(family)` is the right graph. Raises LookupError when no
    family has a place for the fault.
    """
    name, kinds, edit = SUITE[number]
    for family in rng.permutation(list(families)):
        graph = Graph(verify.proto(str(family)))  # type: ignore[attr-defined]
        placed = edit(graph, rng)
        if placed is not None:
            found = verify(str(family), graph.model)
            right = [f for f in found.faults if f.kind in kinds and placed.matches(f.place)]
            shown = (right or found.faults)[:1]
            return Row(
                fault=name,
                family=str(family),
                put_at=placed.text(),
                detected_by=_failed(found.checks),
                named_as=f"{shown[0].kind} at {shown[0].place}" if shown else "-",
                named=bool(right),
            )
    raise LookupError(f"no family has a place for: {name}")


def _failed(checks: Sequence[Any]) -> tuple[str, ...]:
    """Which kinds of check failed."""
    kinds = [check.name.split(",")[0].split(" of ")[0] for check in checks if check.verdict == "fail"]
    return tuple(dict.fromkeys(kinds))


def render(rows: Sequence[Row]) -> str:
    """The document."""
    named, detected = sum(row.named for row in rows), sum(row.detected for row in rows)
    lines = [
        "# Faults that get a name",
        "",
        f"Made by `{COMMAND}`; a test fails when it is stale.",
        "Each fault of the suite is put into the right graph of a tiny random model; family, layer and place",
        "are drawn by seed. `seatrial export --verify` then sees it and says what it is.",
        "",
        f"Detected: {detected} of {len(rows)}. Named with kind and place: {named} of {len(rows)}.",
        "",
        "| fault | family | put at | detected by | named as | right |",
        "|---|---|---|---|---|---|",
        *(
            f"| {row.fault} | {row.family} | {row.put_at} | {', '.join(row.detected_by) or '-'} "
            f"| {row.named_as} | {'yes' if row.named else 'no'} |"
            for row in rows
        ),
        "",
        "## What a reader of the answers would notice",
        "",
        "Figures are of the embedded model with the fault in its middle layer / in every layer, made by",
        f"`{SYMPTOMS_COMMAND}`: the change in the loss of rare tokens (nats), in entropy (nats), the share",
        "of positions whose top token stays, and the length of greedy answers to a few questions (tokens;",
        f"{right_answers()['answer_tokens']:.0f} without a fault).",
        "A fault that has no layer has one figure. What the model does not have is stood in for: the mean of",
        "what a projection gives for a bias, the inverse for a missing factor, Gemma 2's cap for a soft cap.",
        "",
        "| kind | symptom | rare loss | entropy | same top token | answer |",
        "|---|---|---|---|---|---|",
        *(_symptom_row(kind) for kind in dict.fromkeys(kind for _, kinds, _ in SUITE for kind in kinds)),
    ]
    return "\n".join(lines) + "\n"


def _symptom_row(kind: str) -> str:
    figures = list((measure_of(kind) or {}).values())
    columns = {"rare_nll_delta": ".2f", "entropy_delta": ".2f", "same_top1": ".2f", "answer_tokens": ".0f"}
    cells = [" / ".join(_figure(row[name], form) for row in figures) or "-" for name, form in columns.items()]
    return f"| {kind} | {symptom_of(kind)} | {' | '.join(cells)} |"


def _figure(value: float | None, form: str) -> str:
    return "not finite" if value is None else format(value, form)
