"""What every guard says: a verdict and the findings behind it.

Plain data: spans are `[start, end)` in characters of the summary (and of the source for `nearest`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """How serious: `ok` may be shown, `warn` should be looked at, `fail` must not be shown as it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


_RANK = {Verdict.OK: 0, Verdict.WARN: 1, Verdict.FAIL: 2}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The most serious of some verdicts; `ok` when there are none."""
    return max(verdicts, key=_RANK.__getitem__, default=Verdict.OK)


@dataclass(frozen=True)
class Nearest:
    """The closest thing the source says, with its span in the source."""

    text: str
    span: tuple[int, int]


@dataclass(frozen=True)
class Finding:
    """One figure or name of the summary and what the source has to say about it."""

    guard: str  # "numbers" | "names" | "breakdown" | "memory"
    text: str
    span: tuple[int, int]
    kind: str
    verdict: Verdict
    reason: str
    value: str | None = None  # normalized value, as a decimal string, an ISO date or a plain name
    unit: str | None = None
    nearest: Nearest | None = None
    detail: str = ""  # one plain sentence for people
    # Entropy (nats) of the first token, where a run saw the model begin this uncertainly; changes no verdict.
    start_nats: float | None = None

    def to_json(self) -> dict[str, Any]:
        """One entry of `findings` in `seatrial check --json`."""
        near = None if self.nearest is None else {"text": self.nearest.text, "span": list(self.nearest.span)}
        return {
            "guard": self.guard,
            "text": self.text,
            "span": list(self.span),
            "kind": self.kind,
            "value": self.value,
            "unit": self.unit,
            "verdict": str(self.verdict),
            "reason": self.reason,
            "nearest": near,
            "detail": self.detail,
            "start_nats": self.start_nats,
        }


@dataclass(frozen=True)
class GuardReport:
    """A guard's verdict over a whole summary."""

    guard: str
    verdict: Verdict
    findings: tuple[Finding, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return {
            "guard": self.guard,
            "verdict": str(self.verdict),
            "findings": [f.to_json() for f in self.findings],
        }
