"""Where to put the thresholds: the setting that catches most at a stated rate of false stops, and how sure
that is.

A setting is what `BreakdownGuard` takes: an entropy for runs, one for the smoothed mean, a number of
repeats; the guard stops a run when any of its rules does. Settings are found on some documents and judged
on others (folds by document), since a threshold judged on the runs it was fitted to flatters itself.
Nothing here knows what a stop costs; see `costs`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from seatrial.guards.curves import Bools, Floats, Interval, by_document
from seatrial.guards.rules import TracedRun, first_above, loops, peak, run_above, smoothed_and_stayed
from seatrial.guards.thresholds import Thresholds

RUN_LENGTHS = (5, 10, 15, 20, 30)
REPEATS = (3, 4, 5, 6, 8, 12)
FOLDS = 5
_GRID = 40


@dataclass(frozen=True)
class Setting:
    """Thresholds of the three rules; inf where a rule is not used."""

    run_length: int
    entropy_nats: float
    smoothed_nats: float
    repeat_times: float


@dataclass(frozen=True)
class Peaks:
    """For N runs: the highest value each rule reached, that is the highest threshold at which it fires."""

    runs: dict[int, Floats]  # run length -> (N,)
    smoothed: Floats
    repeats: Floats
    broken_logits: Bools  # a row that is not finite

    def at(self, rows: NDArray[np.intp] | Bools) -> Peaks:
        """The peaks of some runs."""
        return Peaks(
            {k: v[rows] for k, v in self.runs.items()},
            self.smoothed[rows],
            self.repeats[rows],
            self.broken_logits[rows],
        )

    def stopped(self, setting: Setting) -> Bools:
        """Which runs the guard stops with this setting."""
        return (
            self.broken_logits
            | (self.runs[setting.run_length] > setting.entropy_nats)
            | (self.smoothed > setting.smoothed_nats)
            | (self.repeats >= setting.repeat_times)
        )


def measure_peaks(
    runs: Sequence[TracedRun], limits: Thresholds, lengths: Sequence[int] = RUN_LENGTHS
) -> Peaks:
    """Peaks of every run, with the windows and dwell of `limits`."""
    seen = [np.where(np.isfinite(run.entropy), run.entropy, 0.0) for run in runs]
    mean = lambda e: peak(smoothed_and_stayed(e, limits.smoothing_tokens, limits.smoothed_dwell))
    return Peaks(
        {k: np.array([peak(run_above(e, k)) for e in seen]) for k in lengths},
        np.array([mean(e) for e in seen]),
        np.array([peak(loops(run.tokens.tolist(), limits)) for run in runs]),
        np.array([not np.isfinite(run.entropy).all() for run in runs], bool),
    )


def fit(peaks: Peaks, bad: Bools, max_false: float) -> Setting | None:
    """The setting that catches most bad runs while it stops at most `max_false` of the good; None: there is
    none.

    Among equals: fewest false stops, then a run length of 10, then the fewest rules. Thresholds lie half-
    way between the runs they part.
    """
    if not bad.any() or bad.all():
        return None
    best: tuple[tuple[float, ...], Setting] | None = None
    for length in peaks.runs:
        for repeats in (math.inf, *REPEATS):
            for setting in _with_repeats(peaks, bad, max_false, length, repeats):
                stopped = peaks.stopped(setting)
                if stopped[~bad].mean() > max_false:
                    continue
                unused = math.isinf(setting.entropy_nats) + math.isinf(setting.smoothed_nats)
                rank = (stopped[bad].mean(), -stopped[~bad].mean(), float(length == 10), float(unused))
                if best is None or rank > best[0]:
                    best = (rank, setting)
    return None if best is None else best[1]


def _with_repeats(peaks: Peaks, bad: Bools, max_false: float, length: int, repeats: float) -> list[Setting]:
    """For each entropy of a run rule, the lowest smoothed threshold that keeps the false stops."""
    bare = Setting(length, math.inf, math.inf, repeats)
    allowed = math.floor(max_false * int((~bad).sum()) + 1e-9)
    found = []
    for nats in _candidates(peaks.runs[length], bad):
        setting = replace(bare, entropy_nats=nats)
        stopped = peaks.stopped(setting)
        left = allowed - int(stopped[~bad].sum())
        if left < 0:
            continue
        found.append(setting)
        found.append(replace(setting, smoothed_nats=_lowest(peaks.smoothed, bad, ~stopped, left)))
    return found


def _candidates(values: Floats, bad: Bools) -> list[float]:
    """Thresholds half-way above the peaks of good runs, at most `_GRID` of them, and never."""
    good = np.unique(values[~bad & np.isfinite(values)])
    if len(good) > _GRID:
        good = np.unique(np.quantile(good, np.linspace(0, 1, _GRID), method="higher"))
    return [math.inf, *(_halfway(value, values) for value in good)]


def _halfway(value: float, values: Floats) -> float:
    """Between a value and the next one above it."""
    above = values[values > value]
    return float((value + above.min()) / 2) if len(above) else float(np.nextafter(value, math.inf))


def _lowest(values: Floats, bad: Bools, still_shown: Bools, allowed: int) -> float:
    """The lowest threshold that stops at most `allowed` more good runs."""
    good = np.sort(values[~bad & still_shown])[::-1]
    return _halfway(float(good[allowed]), values) if len(good) > allowed else 0.0


@dataclass(frozen=True)
class Judged:
    """How a setting does, in shares of one."""

    caught: Interval
    false_stops: Interval
    bad_runs: int
    good_runs: int
    documents: int


def judge_by_folds(
    peaks: Peaks, bad: Bools, documents: Sequence[str], max_false: float, *, draws: int, seed: int = 0
) -> tuple[Judged, Bools]:
    """Fits on four fifths of the documents, applies to the rest, in turn; intervals by document."""
    names = sorted(set(documents))
    order = np.random.default_rng(seed).permutation(len(names))
    fold_of = {names[i]: int(place % FOLDS) for place, i in enumerate(order)}
    fold = np.array([fold_of[d] for d in documents])
    stopped = np.zeros(len(bad), bool)
    for held_out in range(min(FOLDS, len(names))):
        inside = fold != held_out
        setting = fit(peaks.at(inside), bad[inside], max_false)
        if setting is not None:
            stopped[~inside] = peaks.at(~inside).stopped(setting)
    return rates(stopped, bad, documents, draws=draws, seed=seed), stopped


def rates(stopped: Bools, bad: Bools, documents: Sequence[str], *, draws: int, seed: int = 0) -> Judged:
    """Shares of bad and of good runs that were stopped, with intervals by document."""

    def share(of: Bools) -> Interval:
        def mean(rows: NDArray[np.intp]) -> float:
            chosen = rows[of[rows]]
            return float(stopped[chosen].mean()) if len(chosen) else math.nan

        return by_document(mean, documents, draws=draws, seed=seed)

    return Judged(share(bad), share(~bad), int(bad.sum()), int((~bad).sum()), len(set(documents)))


@dataclass(frozen=True)
class Fired:
    """Where a setting stopped a run. `delay`: tokens from the first bad one, None when that is not known."""

    at_token: int
    share_of_budget: float
    delay: int | None


def where_it_fires(run: TracedRun, setting: Setting, limits: Thresholds) -> Fired | None:
    """The first token at which any rule stops the run; None when none does."""
    seen = np.where(np.isfinite(run.entropy), run.entropy, 0.0)
    mean = smoothed_and_stayed(seen, limits.smoothing_tokens, limits.smoothed_dwell)
    places = [
        first_above(run_above(seen, setting.run_length), setting.entropy_nats),
        first_above(mean, setting.smoothed_nats),
        first_above((~np.isfinite(run.entropy)).astype(float), 0.5),
    ]
    if math.isfinite(setting.repeat_times):
        repeated = loops(run.tokens.tolist(), limits)
        places.append(first_above(repeated, float(np.nextafter(setting.repeat_times, -math.inf))))
    fired = [place for place in places if place is not None]
    if not fired:
        return None
    first = min(fired)
    delay = None if run.broken_at is None else first - run.broken_at
    return Fired(first, (first + 1) / max(run.budget, 1), delay)


def as_thresholds(setting: Setting, limits: Thresholds, vocabulary_size: int) -> Thresholds:
    """The setting in the form of the guard; a rule not used gets the highest value that is allowed."""
    most = 0.995 * math.log(vocabulary_size)
    capped = lambda nats: round(min(nats, most), 3)
    return replace(
        limits,
        run_length=setting.run_length,
        entropy_nats=capped(setting.entropy_nats),
        smoothed_enter_nats=capped(setting.smoothed_nats),
        smoothed_leave_nats=capped(setting.smoothed_nats),
        repeat_times=10**6 if math.isinf(setting.repeat_times) else int(setting.repeat_times),
    )
