"""Does the graph compute what the torch model computes? Logits, and every layer's residual before the next
norm.

Compared at lengths below, at and above the traced example's, whole, in pieces and token by token, in a
right-padded batch, and beyond the window. A limit is not chosen but measured: the same weights through
another kernel (another attention, another batch shape) differ by a noise floor, and the graph may differ by
a small multiple of it. It does not look for causes; `faults` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from seatrial.export.runner import GraphFailed, GraphRunner

# The graph adds in another order than either torch kernel, over up to a few thousand terms: its distance
# from one is a few times the distance between two. Clean families stay below 6 floors; the mildest fault of
# the suite is above 60.
FLOORS = 16.0
# A floor may come out as nothing where both kernels take the same path; fp32 cannot promise more than this
# share.
RELATIVE_FLOOR = 1e-6
# The length that graphs are traced with; the tracing takes it from here.
EXAMPLE_TOKENS = 5
_LONGEST = 1024


@dataclass(frozen=True)
class Check:
    """One row of the report: `figure` is the largest absolute difference, in the value's own unit."""

    name: str
    verdict: Literal["ok", "fail", "note"]
    figure: float | None
    limit: float | None
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        found = {"name": self.name, "verdict": self.verdict, "figure": self.figure, "limit": self.limit}
        return {**found, "detail": self.detail} if self.detail else found


@dataclass(frozen=True)
class Case:
    """Tokens to run and how: `lengths` are real tokens per right-padded row, `pieces` how the row is cut."""

    name: str
    ids: np.ndarray  # (B, T)
    pieces: tuple[int, ...] = ()
    lengths: tuple[int, ...] | None = None


@dataclass
class Reference:
    """What torch computes for one case: logits (B, T, V), residuals per layer (B, T, hidden).

    Floors are (B, T): how far another kernel lands per token, over all channels.
    """

    logits: np.ndarray
    residuals: list[np.ndarray]
    logits_floor: np.ndarray
    residual_floors: list[np.ndarray] = field(default_factory=list)


def make_cases(
    vocabulary: int, window: int | None, context: int, switch: int | None = None, seed: int = 11
) -> list[Case]:
    """The cases for one model: every length and every way of cutting, on tokens drawn by `seed`.

    `switch` is the length beyond which the rotary embedding changes, for models where it does.
    """
    rng = np.random.default_rng(seed)

    def draw(batch: int, tokens: int) -> np.ndarray:
        return rng.integers(min(16, vocabulary - 1), vocabulary, (batch, tokens))

    longest = min(24, context)
    body = draw(1, longest)
    cases = [
        Case("one token", body[:, :1]),
        Case("below the example", body[:, : EXAMPLE_TOKENS - 1]),
        Case("at the example", body[:, :EXAMPLE_TOKENS]),
        Case("whole", body),
        Case("in pieces", body, pieces=_pieces(longest)),
        Case("token by token", body, pieces=(1,) * longest),
        Case("right padding", draw(2, 9), lengths=(9, 6)),
    ]
    beyond = min(context, (window or 0) + 9)
    if window and beyond > longest and beyond <= _LONGEST:
        cases.append(Case("beyond the window", draw(1, beyond), pieces=_pieces(beyond)))
    if switch and longest < switch + 9 <= _LONGEST:
        cases.append(Case("beyond the rotary's switch", draw(1, switch + 9)))
    return cases


def not_run(window: int | None, context: int, switch: int | None) -> list[Check]:
    """Notes on cases that are too long to be run here."""
    found = []
    for what, length in (("the window", window), ("the rotary's switch", switch)):
        if length and length < context and length + 9 > _LONGEST:
            found.append(Check(f"beyond {what}", "note", None, None, f"{length} tokens, not run"))
    return found


def _pieces(total: int) -> tuple[int, ...]:
    """A few uneven pieces, one of them a single token."""
    first, second = max(1, total // 3), 1
    rest = total - first - second
    return tuple(piece for piece in (first, second, rest // 2, rest - rest // 2) if piece > 0)


def compare(
    runner: GraphRunner,
    cases: Sequence[Case],
    references: Sequence[Reference],
    residuals: Sequence[str],
) -> list[Check]:
    """One row per case for the logits, one per layer for its residual over all cases.

    `residuals` names the graph's value per layer; the runner must tap them.
    """
    rows: dict[str, Check] = {}
    for case, reference in zip(cases, references, strict=True):
        name = f"logits, {case.name}"
        try:
            ran = runner.run(case.ids, pieces=case.pieces, lengths=case.lengths)
        except GraphFailed as error:
            rows[name] = Check(name, "fail", None, None, str(error))
            continue
        where = real_tokens(case)
        rows[name] = worst_token(name, ran.logits, reference.logits, reference.logits_floor, where)
        size = np.zeros(case.ids.shape)
        for layer, tap in enumerate(residuals[: len(reference.residuals)]):
            name = f"residual of layer {layer}"
            wanted, floor = reference.residuals[layer], reference.residual_floors[layer]
            # What was rounded while a channel was huge stays in the stream when it has become small again.
            size = np.maximum(size, np.abs(wanted).max(-1))
            found = worst_token(name, ran.taps[tap], wanted, floor, where, size)
            if name not in rows or ratio(found) > ratio(rows[name]):
                rows[name] = found
    logits = [row for name, row in rows.items() if name.startswith("logits")]
    return logits + [row for name, row in rows.items() if not name.startswith("logits")]


def ratio(check: Check) -> float:
    """How much of its limit a check used; infinite when its figure is not finite."""
    return float("inf") if check.figure is None or not check.limit else check.figure / check.limit


def real_tokens(case: Case) -> np.ndarray:
    """(B, T): which positions hold real tokens."""
    batch, tokens = case.ids.shape
    lengths = np.array(case.lengths or [tokens] * batch)
    return np.arange(tokens)[None, :] < lengths[:, None]


def worst_token(
    name: str,
    found: np.ndarray,
    wanted: np.ndarray,
    floor: np.ndarray,
    where: np.ndarray,
    size: np.ndarray | None = None,
) -> Check:
    """The token that uses most of its limit. found, wanted (B, T, C); floor, where and size (B, T)."""
    if found.size != wanted.size:
        return Check(name, "fail", None, None, f"shape {list(found.shape)} instead of {list(wanted.shape)}")
    gaps = token_gaps(found.reshape(wanted.shape), wanted)[where]
    limits = token_limits(np.abs(wanted).max(-1) if size is None else size, floor)[where]
    if not np.isfinite(gaps).all():
        return Check(
            name, "fail", None, float(limits.min()), f"not finite at {int((~np.isfinite(gaps)).sum())} tokens"
        )
    worst = int(np.argmax(gaps / limits))
    return Check(
        name, "ok" if gaps[worst] <= limits[worst] else "fail", float(gaps[worst]), float(limits[worst])
    )


def token_gaps(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """(B, T): largest absolute difference of each token's channels."""
    return np.abs(found.astype(np.float64) - wanted).max(-1)


def token_limits(size: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """(B, T): a multiple of the measured floor, of its median, or of what fp32 can promise at this size."""
    return FLOORS * np.maximum(np.maximum(floor, np.median(floor)), RELATIVE_FLOOR * size)


def table(checks: Sequence[Check]) -> list[tuple[str, str, str, str]]:
    """Rows of (name, verdict, figure, limit) as text."""

    def text(value: float | None) -> str:
        return "-" if value is None else f"{value:.2e}"

    return [
        (check.name, check.verdict, check.detail or text(check.figure), text(check.limit)) for check in checks
    ]
