"""Stopping rules as scores: for each step the highest threshold at which the rule would have fired by then.

A rule with a threshold fires at the first step whose score passes it, so one pass over a trace serves every
threshold of a sweep. The scores of entropy and repetition are those of `breakdown.BreakdownGuard`; the
others are what was tried beside them. Arrays of one run in, an array of the same length out; labels are not
known here.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seatrial.guards.thresholds import Thresholds

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TracedRun:
    """One generation as it was traced: arrays of T steps, in nats where signals are in nats.

    `budget` in tokens; `broken`: True, False, or None where nobody knows; `broken_at`: the first bad token.
    `wrong_figures`: figures and names of the text that the number and name guards refuse, None where
    unchecked.
    """

    run: str
    document: str
    language: str
    model: str
    weights: str
    kv: str
    kind: str  # "free" | "reference" | the planted fault
    budget: int
    tokens: NDArray[np.int64]
    entropy: Floats
    max_prob: Floats
    margin: Floats
    varentropy: Floats
    logprob: Floats
    known: NDArray[np.bool_] | None = None  # whether each token stands in the prompt; None: not traced
    broken: bool | None = None
    broken_at: int | None = None
    wrong_figures: int | None = None
    ended: bool = True
    prompt_tokens: int = 0
    vocabulary: int | None = None

    def __len__(self) -> int:
        return len(self.tokens)


Rule = Callable[[TracedRun], Floats]


def run_above(values: Floats, length: int) -> Floats:
    """The smallest of the last `length` values: a run of `length` steps lies above every threshold below
    it.
    """
    scores = np.full(len(values), -math.inf)
    if len(values) >= length:
        windows = np.lib.stride_tricks.sliding_window_view(values, length)
        scores[length - 1 :] = windows.min(axis=1)
    return scores


def most_above(values: Floats, window: int, share: float) -> Floats:
    """Of the last `window` values, the threshold that at least `share` of them pass: a run that forgives
    gaps.
    """
    scores = np.full(len(values), -math.inf)
    allowed = window - math.ceil(share * window)
    if len(values) >= window:
        windows = np.lib.stride_tricks.sliding_window_view(values, window)
        scores[window - 1 :] = np.partition(windows, allowed, axis=1)[:, allowed]
    return scores


def smoothed(values: Floats, tokens: int) -> Floats:
    """Exponential mean with time constant `tokens`; the plain mean until so many were seen."""
    means, mean = np.empty(len(values)), 0.0
    for i, value in enumerate(values):
        mean += (value - mean) / min(i + 1, tokens)
        means[i] = mean
    return means


def smoothed_and_stayed(values: Floats, tokens: int, dwell: int) -> Floats:
    """The exponential mean that was not fallen below for `dwell` steps (enter and leave at one threshold)."""
    return run_above(smoothed(values, tokens), dwell)


def risen(values: Floats, tokens: int, own_start: int) -> Floats:
    """The smoothed mean less the mean of the run's first `own_start` steps: what counts is the change."""
    if len(values) <= own_start:
        return np.full(len(values), -math.inf)
    scores = smoothed(values, tokens) - values[:own_start].mean()
    scores[: own_start + tokens] = -math.inf
    return scores


def loops(tokens: Sequence[int], limits: Thresholds) -> Floats:
    """How many whole times in a row the best-repeating phrase stands, as the repetition rule counts it."""
    ids = np.asarray(tokens, np.int64)
    steps = np.arange(len(ids))
    best = np.ones(len(ids))
    for period in range(1, min(limits.repeat_ngram, len(ids) - 1) + 1):
        same = np.zeros(len(ids), bool)
        same[period:] = ids[period:] == ids[:-period]
        run = steps - np.maximum.accumulate(np.where(same, -1, steps))
        covered = run + period
        times = covered / period
        best = np.where((run > 0) & (covered >= limits.repeat_tokens) & (times > best), times, best)
    return np.floor(best)


def squeezed(tokens: Sequence[int], window: int) -> Floats:
    """How far zlib shortens the last `window` token ids, the idea of Whisper's rule: high for any
    repetition.
    """
    ids = np.asarray(tokens, np.uint32)
    scores = np.full(len(ids), -math.inf)
    for i in range(window, len(ids) + 1):
        data = ids[i - window : i].tobytes()
        scores[i - 1] = len(data) / len(zlib.compress(data))
    return scores


def monotony(tokens: Sequence[int], window: int) -> Floats:
    """1 less the share of different tokens among the last `window`: a loop that changes a little."""
    scores = np.full(len(tokens), -math.inf)
    counts: Counter[int] = Counter()
    for i, token in enumerate(tokens):
        counts[int(token)] += 1
        if i >= window:
            old = int(tokens[i - window])
            counts[old] -= 1
            if not counts[old]:
                del counts[old]
        if i >= window - 1:
            scores[i] = 1.0 - len(counts) / window
    return scores


def foreign(known: NDArray[np.bool_] | None, length: int, window: int) -> Floats:
    """Share of the last `window` tokens that do not stand in the prompt: a summary speaks the source's
    words.
    """
    scores = np.full(length, -math.inf)
    if known is not None and length >= window:
        windows = np.lib.stride_tricks.sliding_window_view(~known, window)
        scores[window - 1 :] = windows.mean(axis=1)
    return scores


def not_finite(run: TracedRun) -> Floats:
    """1 where the signals are NaN, 0 elsewhere."""
    return np.isnan(run.entropy).astype(float)


def standard_rules(limits: Thresholds | None = None) -> dict[str, Rule]:
    """Every rule that a tuning compares, by name. NaN signals count as 0 here: `not finite` sees them."""
    limits = limits or Thresholds()
    k, tokens, dwell = limits.run_length, limits.smoothing_tokens, limits.smoothed_dwell
    return {
        f"{k} in a row above": lambda r: run_above(_seen(r.entropy), k),
        "smoothed entropy": lambda r: smoothed_and_stayed(_seen(r.entropy), tokens, dwell),
        "24 of 32 above": lambda r: most_above(_seen(r.entropy), 32, 0.75),
        "entropy risen": lambda r: risen(_seen(r.entropy), tokens, 24),
        "smoothed varentropy": lambda r: smoothed_and_stayed(_seen(r.varentropy), tokens, dwell),
        "smoothed doubt (1 - max probability)": lambda r: smoothed_and_stayed(
            _seen(1.0 - r.max_prob), tokens, dwell
        ),
        "smoothed closeness (1 - margin)": lambda r: smoothed_and_stayed(
            _seen(1.0 - r.margin), tokens, dwell
        ),
        "smoothed surprise (-log p)": lambda r: smoothed_and_stayed(_seen(-r.logprob), tokens, dwell),
        "repetition": lambda r: loops(r.tokens, limits),
        "monotony": lambda r: monotony(r.tokens.tolist(), limits.monotony_window),
        "foreign to the source": lambda r: foreign(r.known, len(r), limits.foreign_window),
        "compression of 64 tokens": lambda r: squeezed(r.tokens, 64),
        "not finite": not_finite,
    }


def baseline_rules(seed: int = 0) -> dict[str, Rule]:
    """What any rule must beat: the length, chance, never and always."""
    return {
        "length only": lambda r: np.arange(1.0, len(r) + 1),
        "random": lambda r: np.full(len(r), _chance(seed, r.run)),
        "never": lambda r: np.full(len(r), -math.inf),
        "always": lambda r: np.full(len(r), math.inf),
    }


def _chance(seed: int, name: str) -> float:
    return float(np.random.default_rng([seed, zlib.crc32(name.encode())]).random())


def _seen(values: Floats) -> Floats:
    return np.where(np.isfinite(values), values, 0.0)


def peak(scores: Floats) -> float:
    """The score of the whole run: the highest threshold at which it would have been stopped."""
    return float(scores.max()) if len(scores) else -math.inf


def first_above(scores: Floats, threshold: float) -> int | None:
    """The step at which a rule with this threshold stops the run; None when it does not."""
    above = np.flatnonzero(scores > threshold)
    return int(above[0]) if len(above) else None
