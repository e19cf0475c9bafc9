"""What a run is asked, what it tells while it works, and what it ends with: plain data.

`RunResult.to_json` is the document of `seatrial run --json`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from seatrial.errors import EXIT_CHECK_FAILED, EXIT_DONE, EXIT_PARTIAL
from seatrial.guards.verdict import GuardReport, Verdict, worst

Status = Literal["ok", "fallback", "partial", "failed"]
Kind = Literal["model", "long", "extractive", "partial"]

EXIT_OF_STATUS: dict[str, int] = {
    "ok": EXIT_DONE,
    "fallback": EXIT_DONE,
    "partial": EXIT_PARTIAL,
    "failed": EXIT_CHECK_FAILED,
}


@dataclass(frozen=True)
class RunJob:
    """Everything that `seatrial run` can be told. Bytes, seconds and bytes per second."""

    transcript: str
    device: str
    out: Path
    inputs: tuple[Path, ...] = ()  # files that were read: never written over
    model: str | None = None
    weights: str | None = None
    kv: str | None = None  # None: a bundle's own, else fp32
    max_tokens: int = 400
    deadline_s: float | None = None
    ceiling_bytes: int | None = None
    other_programs_bytes: int = 0
    bandwidth_Bps: float | None = None
    bandwidth_trace: Path | None = None
    runtime: str | None = None
    strict: bool = False
    prompt: Path | None = None
    pace: Literal["virtual", "real"] = "virtual"
    stand_in: Path | None = None
    ballast: bool = False
    thresholds: Path | None = None
    threads: int | None = None
    patience_s: float = 300.0
    # False: start as asked even where the guard foresees that it will not fit, to see it happen.
    foresee_memory: bool = True
    # True: begin with mapped weights.
    mapped: bool = False


class Hooks(Protocol):
    """What a run tells while it works. Implementations must be quick: they run between tokens."""

    def stage(self, text: str, share: float | None = None) -> None: ...
    def prefill(self, done: int, of: int, host_s: float, device_s: float) -> None: ...
    def token(self, piece: str, index: int, of: int, host_s: float, device_s: float) -> None: ...
    def note(self, text: str) -> None: ...


class Silent:
    """Hooks that tell nobody."""

    def stage(self, text: str, share: float | None = None) -> None: ...
    def prefill(self, done: int, of: int, host_s: float, device_s: float) -> None: ...
    def token(self, piece: str, index: int, of: int, host_s: float, device_s: float) -> None: ...
    def note(self, text: str) -> None: ...


@dataclass(frozen=True)
class Fallback:
    """What was done about a verdict. `at_token`: tokens written when it happened, None before the first."""

    trigger: str
    action: str
    at_token: int | None = None
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "trigger": self.trigger,
            "action": self.action,
            "at_token": self.at_token,
            "detail": self.detail,
        }


@dataclass(frozen=True)
class Attempt:
    """A text that the model or the extractor wrote, how it was judged, and why it was not delivered."""

    kind: Kind
    text: str
    tokens: int
    guards: tuple[GuardReport, ...]
    refused: str | None = None

    @property
    def verdict(self) -> Verdict:
        return worst(report.verdict for report in self.guards)

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "text": self.text,
            "tokens": self.tokens,
            "verdict": str(self.verdict),
            "refused": self.refused,
            "guards": [report.to_json() for report in self.guards],
        }


@dataclass
class Phase:
    """Tokens and seconds of prefill or decode, summed over every attempt of the run."""

    tokens: int = 0
    steps: int = 0
    device_s: float = 0.0
    host_s: float = 0.0
    limited: int = 0  # steps in which the host was slower than the device
    host_steps_s: list[float] = field(default_factory=list)  # of the child that finished, step by step

    @property
    def first_step_s(self) -> float | None:
        """The first step after opening: with mapped weights it pays for reading them in."""
        return self.host_steps_s[0] if self.host_steps_s else None

    @property
    def steady_step_s(self) -> float | None:
        """Median of the later half of the steps."""
        later = self.host_steps_s[len(self.host_steps_s) // 2 :]
        return statistics.median(later) if later else None


@dataclass(frozen=True)
class MemoryResult:
    """The ceiling and the two peaks, private and file-backed."""

    ceiling_bytes: int
    mechanism: str
    peak_private_bytes: int | None
    peak_mapped_bytes: int | None
    mapped_weights: bool
    peak_ceiling_bytes: int | None = None
    samples: int = 0
    source: str = "none"
    stand_in: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "ceiling_bytes": self.ceiling_bytes,
            "mechanism": self.mechanism,
            "peak_private_bytes": self.peak_private_bytes,
            "peak_mapped_bytes": self.peak_mapped_bytes,
            "mapped_weights": self.mapped_weights,
            "peak_ceiling_bytes": self.peak_ceiling_bytes,
            "samples": self.samples,
            "source": self.source,
            "stand_in": self.stand_in,
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class RunResult:
    """How a run ended."""

    status: Status
    summary: str
    summary_kind: Kind
    device: str
    model: str
    weights: str
    kv: str
    pace: str
    prefill: Phase
    decode: Phase
    first_token_device_s: float | None
    first_token_host_s: float | None
    weight_bytes_per_token: int
    kv_bytes_per_token: int
    kv_allocated_bytes: int
    memory: MemoryResult
    guards: tuple[GuardReport, ...]
    fallbacks: tuple[Fallback, ...]
    attempts: tuple[Attempt, ...]
    trace: Path
    bandwidth_Bps: float
    runtime: str
    sizes: dict[str, int]
    windows: int = 1
    windows_read: int = 1
    deaths: tuple[dict[str, Any], ...] = ()
    would_fit_bytes: int = 0
    unsaved: tuple[str, ...] = ()
    execution: dict[str, Any] = field(default_factory=dict)
    stand_in: str | None = None
    # What `seatrial plan` says of this job, and of the same job in other formats and on other devices.
    plan: dict[str, Any] = field(default_factory=dict)
    planned: tuple[dict[str, Any], ...] = ()
    thresholds: dict[str, Any] = field(default_factory=dict)  # of the breakdown guard, in force
    source: Path | None = None  # the transcript as it was read, kept for reports
    notes: tuple[str, ...] = field(default=())

    @property
    def died(self) -> dict[str, Any] | None:
        """The last death of a child, with the token it had reached; None when none died."""
        return self.deaths[-1] if self.deaths else None

    @property
    def exit_code(self) -> int:
        """By the status; a result that could not be saved is not done."""
        code = EXIT_OF_STATUS[self.status]
        return EXIT_CHECK_FAILED if code == EXIT_DONE and self.unsaved else code

    def to_json(self) -> dict[str, Any]:
        """The document of `run --json`: seconds and milliseconds as named, sizes in bytes."""
        return {
            "status": self.status,
            "summary": self.summary,
            "summary_kind": self.summary_kind,
            "device": self.device,
            "runtime": self.runtime,
            "model": self.model,
            "stand_in": self.stand_in,
            "weights": self.weights,
            "kv": self.kv,
            "pace": self.pace,
            "bandwidth_Bps": self.bandwidth_Bps,
            "windows": self.windows,
            "windows_read": self.windows_read,
            "prefill": {
                "tokens": self.prefill.tokens,
                "device_s": self.prefill.device_s,
                "host_s": self.prefill.host_s,
                "first_token_device_s": self.first_token_device_s,
                "first_token_host_s": self.first_token_host_s,
            },
            "decode": {
                "tokens": self.decode.tokens,
                "device_ms_per_token": _ms_each(self.decode.device_s, self.decode.steps),
                "host_ms_per_token": _ms_each(self.decode.host_s, self.decode.steps),
                "host_ms_first": _ms(self.decode.first_step_s),
                "host_ms_steady": _ms(self.decode.steady_step_s),
                "weight_bytes_per_token": self.weight_bytes_per_token,
                "kv_bytes_per_token": self.kv_bytes_per_token,
                "host_limited": _share(self.decode.limited, self.decode.steps),
            },
            "kv_allocated_bytes": self.kv_allocated_bytes,
            "sizes": self.sizes,
            "execution": self.execution,
            "memory": self.memory.to_json(),
            "guards": [report.to_json() for report in self.guards],
            "fallbacks": [fallback.to_json() for fallback in self.fallbacks],
            "attempts": [attempt.to_json() for attempt in self.attempts],
            "died": self.died,
            "deaths": list(self.deaths),
            "would_fit_bytes": self.would_fit_bytes,
            "trace": str(self.trace),
            "source": str(self.source) if self.source else None,
            "thresholds": self.thresholds,
            "plan": self.plan,
            "planned": list(self.planned),
            "notes": list(self.notes),
        }


def _ms_each(seconds: float, steps: int) -> float | None:
    """Milliseconds per step; None when no step was made."""
    return 1e3 * seconds / steps if steps else None


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1e3 * seconds


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def refusal(reports: Sequence[GuardReport]) -> str | None:
    """Why these reports forbid a text to be shown, in one sentence; None when they do not."""
    failed = [report for report in reports if report.verdict is Verdict.FAIL]
    if not failed:
        return None
    told = []
    for report in failed:
        findings = [finding for finding in report.findings if finding.verdict is Verdict.FAIL]
        shown = "; ".join(f"{f.text!r}: {f.reason}" if f.text else f.detail for f in findings[:3])
        more = f" and {len(findings) - 3} more" if len(findings) > 3 else ""
        told.append(f"{report.guard}: {shown}{more}")
    return "; ".join(told)
