"""How far a candidate's predictions are from a reference's, position by position, on the same text.

Teacher-forced: both read the reference text. KL divergence in nats from the reference to the candidate, and
how often the most likely token is the same. Averages only; which tokens suffered is another module's
question.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seatrial.export.session import Session

# Rows of a 49k vocabulary that are compared at once: two float32 arrays of 25 MB.
ROWS = 128


@dataclass(frozen=True)
class Agreement:
    """Mean KL (nats) and share of equal top tokens over `tokens` positions."""

    tokens: int
    kl: float
    same_top1: float

    def to_json(self) -> dict[str, Any]:
        return {"tokens": self.tokens, "kl": self.kl, "same_top1": self.same_top1}


def log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """Log probabilities over the last axis, (..., V)."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted


def kl_rows(reference: NDArray[np.float32], candidate: NDArray[np.float32]) -> NDArray[np.float64]:
    """KL(reference || candidate) in nats of each row of logits, (T, V) -> (T,)."""
    log_p = log_softmax(reference)
    log_p_minus_q = log_p - log_softmax(candidate)
    return np.einsum("tv,tv->t", np.exp(log_p), log_p_minus_q).astype(np.float64)


def compare_rows(pairs: Iterable[tuple[NDArray[np.float32], NDArray[np.float32]]]) -> Agreement:
    """Agreement over pieces of (reference logits, candidate logits), each (T, V)."""
    kl, same = [], []
    for reference, candidate in pairs:
        kl.append(kl_rows(reference, candidate))
        same.append(reference.argmax(-1) == candidate.argmax(-1))
    divergences, equal = np.concatenate(kl), np.concatenate(same)
    return Agreement(len(divergences), float(divergences.mean()), float(equal.mean()))


def compare(reference: Session, candidate: Session, ids: Sequence[int]) -> Agreement:
    """Agreement of two sessions on one text, side by side and in pieces."""
    left, right = reference.score_chunks(ids, chunk=ROWS), candidate.score_chunks(ids, chunk=ROWS)
    return compare_rows(zip(left, right, strict=True))
