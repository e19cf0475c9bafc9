"""Where to put the thresholds: the setting that catches most at a stated rate of false stops, and how sure
that is.

A setting is what `BreakdownGuard` takes, a threshold for each of its rules; the guard stops a run when any of
them fires. Settings are found on some documents and judged on others (folds by document), since a threshold
judged on the runs it was fitted to flatters itself. Nothing here knows what a stop costs; see `costs`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from seatrial.guards.curves import Bools, Floats, Interval, by_document
from seatrial.guards.rules import (
    TracedRun,
    first_above,
    foreign,
    loops,
    monotony,
    peak,
    run_above,
    smoothed_and_stayed,
)
from seatrial.guards.thresholds import NEVER_REPEATS, Thresholds

RUN_LENGTHS = (5, 10, 15, 20, 30)
FOLDS = 5
RULES = ("entropy run", "smoothed entropy", "repetition", "monotony", "foreign")
_SPARE = 0.005  # share of the broken runs that a rule must catch alone to be needed
_ENOUGH = 0.05  # share of the broken runs that must lie above all good ones for a rule to stay on unneeded


@dataclass(frozen=True)
class Setting:
    """A threshold for each of `RULES`: a run is stopped when a score is above it; inf where a rule is off."""

    run_length: int
    above: tuple[float, ...]

    def of(self, rule: str) -> float:
        return self.above[RULES.index(rule)]


@dataclass(frozen=True)
class Peaks:
    """For N runs: the highest value each rule reached, that is the highest threshold at which it fires."""

    runs: dict[int, Floats]  # run length -> (N,)
    others: Floats  # (rules but the first, N)
    broken_logits: Bools  # a row that is not finite

    def at(self, rows: NDArray[np.intp] | Bools) -> Peaks:
        """The peaks of some runs."""
        runs = {k: v[rows] for k, v in self.runs.items()}
        return Peaks(runs, self.others[:, rows], self.broken_logits[rows])

    def scores(self, run_length: int) -> Floats:
        """(rules, N) with the run rule of this length first."""
        return np.vstack([self.runs[run_length], self.others])

    def stopped(self, setting: Setting) -> Bools:
        """Which runs the guard stops with this setting."""
        above = self.scores(setting.run_length) > np.array(setting.above)[:, None]
        return np.asarray(self.broken_logits | above.any(axis=0))


def running_scores(run: TracedRun, limits: Thresholds, run_length: int) -> list[Floats]:
    """The score of each of `RULES` after every token of a run."""
    seen = np.where(np.isfinite(run.entropy), run.entropy, 0.0)
    tokens = run.tokens.tolist()
    return [
        run_above(seen, run_length),
        smoothed_and_stayed(seen, limits.smoothing_tokens, limits.smoothed_dwell),
        loops(tokens, limits),
        monotony(tokens, limits.monotony_window),
        foreign(run.known, len(run), limits.foreign_window),
    ]


def measure_peaks(
    runs: Sequence[TracedRun], limits: Thresholds, lengths: Sequence[int] = RUN_LENGTHS
) -> Peaks:
    """Peaks of every run, with the windows and dwell of `limits`."""
    seen = [np.where(np.isfinite(run.entropy), run.entropy, 0.0) for run in runs]
    others = [[peak(s) for s in running_scores(run, limits, 1)[1:]] for run in runs]
    return Peaks(
        {k: np.array([peak(run_above(e, k)) for e in seen]) for k in lengths},
        np.array(others).T.reshape(len(RULES) - 1, len(runs)),
        np.array([not np.isfinite(run.entropy).all() for run in runs], bool),
    )


def fit(peaks: Peaks, bad: Bools, max_false: float) -> Setting | None:
    """The setting that catches most bad runs while it stops at most `max_false` of the good; None: there is
    none.

    Greedy, as the best of five thresholds together would be a search of billions: every rule starts where
    it stops no good run, then the step that catches most for each false stop is taken while the rate allows
    it. Rules that catch (nearly) nothing alone are switched off, and each threshold is moved into the
    middle of the gap it parts. Among equals: fewest false stops, then a run length of 10.
    """
    if not bad.any() or bad.all() or peaks.broken_logits[~bad].mean() > max_false:
        return None
    best: tuple[tuple[float, float, bool], Setting] | None = None
    for length in peaks.runs:
        setting = _greedy(peaks, bad, max_false, length)
        stopped = peaks.stopped(setting)
        rank = (float(stopped[bad].mean()), -float(stopped[~bad].mean()), length == 10)
        if best is None or rank > best[0]:
            best = (rank, setting)
    return None if best is None else best[1]


def _greedy(peaks: Peaks, bad: Bools, max_false: float, length: int) -> Setting:
    scores = peaks.scores(length)
    allowed = math.floor(max_false * int((~bad).sum()) + 1e-9)
    above = np.array([row[~bad].max() for row in scores])
    stops = lambda at: peaks.broken_logits | (scores > np.array(at)[:, None]).any(axis=0)
    while True:
        step = _best_step(scores, above, bad, allowed, stops)
        if step is None:
            break
        above[step[0]] = step[1]
    above = _without_idle_rules(above, bad, stops)
    centred = [_centred(scores, above, rule, bad, stops) for rule in range(len(RULES))]
    return Setting(length, tuple(_spare(row, at, bad) for row, at in zip(scores, centred, strict=True)))


def _spare(row: Floats, above: float, bad: Bools) -> float:
    """A rule that is not needed stays on, away from the good runs, where it fires before the others do.

    Half-way from the highest good run to the lowest quarter of the broken ones above; off where they are few.
    """
    highest = float(row[~bad].max())
    higher = row[bad & (row > highest)]
    if math.isfinite(above) or not math.isfinite(highest) or len(higher) < _ENOUGH * int(bad.sum()):
        return above
    return (highest + float(np.quantile(higher, 0.25))) / 2


Stops = Callable[[Floats], Bools]


def _best_step(
    scores: Floats, above: Floats, bad: Bools, allowed: int, stops: Stops
) -> tuple[int, float] | None:
    """(rule, lower threshold) that catches most for each further false stop; None when nothing helps."""
    before = stops(above)
    best: tuple[float, int, float] | None = None
    for rule, row in enumerate(scores):
        lower = np.unique(row[~bad & (row < above[rule])])[::-1][: allowed + 1]
        for value in [*lower, -math.inf][: allowed + 1]:
            after = before | (row > value)
            false_stops = int(after[~bad].sum())
            caught = int(after[bad].sum()) - int(before[bad].sum())
            if false_stops > allowed or caught <= 0:
                continue
            gain = caught / max(0.5, false_stops - int(before[~bad].sum()))
            if best is None or gain > best[0]:
                best = (gain, rule, float(value))
    return None if best is None else (best[1], best[2])


def _without_idle_rules(above: Floats, bad: Bools, stops: Stops) -> Floats:
    """Switches off, one after another, the rules without which nearly as many are caught."""
    spare = _SPARE * int(bad.sum())
    while True:
        caught = int(stops(above)[bad].sum())
        used = [rule for rule in range(len(above)) if math.isfinite(above[rule])]
        losses = {rule: caught - int(stops(_off(above, rule))[bad].sum()) for rule in used}
        idle = min(losses, key=lambda rule: losses[rule], default=None)
        if idle is None or losses[idle] > spare:
            return above
        above = _off(above, idle)


def _off(above: Floats, rule: int) -> Floats:
    changed = above.copy()
    changed[rule] = math.inf
    return changed


def _centred(scores: Floats, above: Floats, rule: int, bad: Bools, stops: Stops) -> float:
    """The middle between the threshold and the lowest score that only this rule catches."""
    if not math.isfinite(above[rule]):
        return math.inf
    needed = bad & stops(above) & ~stops(_off(above, rule))
    return float((above[rule] + scores[rule][needed].min()) / 2) if needed.any() else float(above[rule])


@dataclass(frozen=True)
class Judged:
    """How a setting does, in shares of one."""

    caught: Interval
    false_stops: Interval
    gain: Interval  # caught less false stops: 0 is chance
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

    def share(rows: NDArray[np.intp], of: Bools) -> float:
        chosen = rows[of[rows]]
        return float(stopped[chosen].mean()) if len(chosen) else math.nan

    interval = lambda statistic: by_document(statistic, documents, draws=draws, seed=seed)
    of = lambda members: _exact_at_the_ends(interval(lambda rows: share(rows, members)), documents, members)
    return Judged(
        caught=of(bad),
        false_stops=of(~bad),
        gain=interval(lambda rows: share(rows, bad) - share(rows, ~bad)),
        bad_runs=int(bad.sum()),
        good_runs=int((~bad).sum()),
        documents=len(set(documents)),
    )


def _exact_at_the_ends(rate: Interval, documents: Sequence[str], members: Bools) -> Interval:
    """A rate of 0 or 1 with the exact binomial bound over its documents: drawing again never leaves the end.

    None of n documents: the 95 % interval reaches to 1 - 0.025^(1/n) (Clopper and Pearson 1934).
    """
    count = len({name for name, member in zip(documents, members, strict=True) if member})
    if rate.value == 0.0 and count:
        return Interval(0.0, 0.0, 1.0 - 0.025 ** (1.0 / count))
    if rate.value == 1.0 and count:
        return Interval(1.0, 0.025 ** (1.0 / count), 1.0)
    return rate


@dataclass(frozen=True)
class Fired:
    """Where a setting stopped a run. `delay`: tokens from the first bad one, None when that is not known."""

    at_token: int
    share_of_budget: float
    delay: int | None


def where_it_fires(run: TracedRun, setting: Setting, limits: Thresholds) -> Fired | None:
    """The first token at which any rule stops the run; None when none does."""
    scores = running_scores(run, limits, setting.run_length)
    places = [first_above(score, limit) for score, limit in zip(scores, setting.above, strict=True)]
    places.append(first_above((~np.isfinite(run.entropy)).astype(float), 0.5))
    fired = [place for place in places if place is not None]
    if not fired:
        return None
    first = min(fired)
    delay = None if run.broken_at is None else first - run.broken_at
    return Fired(first, (first + 1) / max(run.budget, 1), delay)


def as_thresholds(setting: Setting, limits: Thresholds, vocabulary_size: int) -> Thresholds:
    """The setting in the form of the guard; a rule not used gets the highest value that is allowed."""
    most = 0.995 * math.log(vocabulary_size)
    nats = lambda rule: round(min(setting.of(rule), most), 3)
    share = lambda rule: round(min(setting.of(rule), 1.0), 4)
    repeats = setting.of("repetition")
    return replace(
        limits,
        run_length=setting.run_length,
        entropy_nats=nats("entropy run"),
        smoothed_enter_nats=nats("smoothed entropy"),
        smoothed_leave_nats=nats("smoothed entropy"),
        repeat_times=NEVER_REPEATS if math.isinf(repeats) else math.floor(repeats) + 1,
        monotony_share=share("monotony"),
        foreign_share=share("foreign"),
    )
