"""From labelled traces to thresholds: which rules tell broken runs from good ones, at which price, how
surely.

The recommendation is fitted to all runs and judged by folds of documents; it is given with its interval, or
it is said that no threshold meets what was asked. Labels come from planted faults, from the number and name
guards, or from the user. It reads no files and draws nothing: `simulate.trace_files` and `seatrial tune`
do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from seatrial.errors import UserError
from seatrial.guards.costs import Cheapest, cheapest_points, expected_cost, risk_coverage
from seatrial.guards.curves import Bools, Floats, Interval, auroc, average_precision, by_document, curve
from seatrial.guards.operating import (
    RUN_LENGTHS,
    Fired,
    Judged,
    Peaks,
    Setting,
    as_thresholds,
    fit,
    judge_by_folds,
    measure_peaks,
    rates,
    where_it_fires,
)
from seatrial.guards.rules import Rule, TracedRun, baseline_rules, peak, standard_rules
from seatrial.guards.thresholds import Thresholds

LEAST_RUNS = 10  # of each class: with fewer, one run is more than a tenth of a rate


@dataclass(frozen=True)
class Wish:
    """What the user asks for. Either a rate of false stops, or a price of a missed error in needless
    fallbacks.
    """

    max_false_stops: float = 0.05
    missed_cost: float | None = None
    min_caught: float | None = None
    share_broken: float = 0.05
    draws: int = 1000

    def __post_init__(self) -> None:
        for name in ("max_false_stops", "share_broken"):
            if not 0 <= getattr(self, name) < 1:
                raise UserError(f"{name} is {getattr(self, name)}: a share from 0 to below 1 is needed")
        if self.missed_cost is not None and self.missed_cost <= 0:
            raise UserError(f"missed_cost is {self.missed_cost}: it must be above 0")


@dataclass(frozen=True)
class RuleRow:
    """One rule over all labelled runs; thresholds and rates at the wished rate of false stops."""

    rule: str
    auroc: Interval
    average_precision: Interval
    auroc_by_language: dict[str, float]
    threshold: float
    caught: float
    false_stops: float
    costs: tuple[Cheapest, ...] = ()
    risk_coverage: tuple[tuple[float, float], ...] = ()
    roc: tuple[tuple[float, float, float], ...] = ()  # (false stops, caught, precision or NaN)


@dataclass(frozen=True)
class Group:
    """How the recommendation does on a part of the runs (one language, one quantization, one fault)."""

    group: str
    runs: int
    stopped: float
    is_bad: bool


@dataclass(frozen=True)
class Recommendation:
    """The setting and how it does; `meets` False: no threshold does what was asked, and `why`."""

    meets: bool
    why: str
    setting: Setting | None = None
    thresholds: Thresholds | None = None
    fitted: Judged | None = None
    held_out: Judged | None = None
    cost: float = math.nan


@dataclass(frozen=True)
class TuneResult:
    """Everything `seatrial tune` tells."""

    wish: Wish
    bad_runs: int
    good_runs: int
    documents: int
    rules: tuple[RuleRow, ...]
    baselines: tuple[RuleRow, ...]
    sweep: tuple[tuple[int, float, float, float], ...]  # run length, nats, caught, false stops
    recommended: Recommendation
    plain: Judged  # only so many in a row above the threshold, fitted to the same rate
    groups: tuple[Group, ...] = ()
    fired: tuple[Fired, ...] = field(default=())


def label_runs(
    runs: Sequence[TracedRun], source: str, own: Mapping[str, bool] | None = None
) -> list[TracedRun]:
    """The runs whose label is known. `source`: "planted" (the runs' own labels), "guards" or "file".

    guards: a run is bad when the number or name guard refuses something in it. file: `own` says by run or by
    document. `UserError` when nothing is labelled.
    """
    if source == "planted":
        labelled = [run for run in runs if run.broken is not None]
    elif source == "guards":
        checked = [run for run in runs if run.wrong_figures is not None]
        labelled = [replace(run, broken=bool(run.wrong_figures), broken_at=None) for run in checked]
    elif source == "file":
        told = own or {}
        known = [(run, told.get(run.run, told.get(run.document))) for run in runs]
        labelled = [replace(run, broken=label) for run, label in known if label is not None]
    else:
        raise UserError(f"labels from {source!r} are not known; known: planted, guards, file")
    if not labelled:
        raise UserError(f"none of the {len(runs)} traces has a label from {source}")
    return labelled


def tune(
    runs: Sequence[TracedRun], wish: Wish, *, vocabulary_size: int, limits: Thresholds | None = None
) -> TuneResult:
    """Compares rules on labelled `runs`; recommends thresholds for the guard or says that none will do."""
    limits = limits or Thresholds()
    bad = np.array([bool(run.broken) for run in runs])
    documents = [run.document for run in runs]
    peaks = measure_peaks(runs, limits, tuple(sorted({*RUN_LENGTHS, limits.run_length})))
    recommended = recommend(peaks, bad, documents, wish, vocabulary_size=vocabulary_size, limits=limits)
    in_a_row = peaks.runs[limits.run_length]
    plain = in_a_row > _at_rate(in_a_row, bad, wish.max_false_stops)[0]
    return TuneResult(
        wish=wish,
        bad_runs=int(bad.sum()),
        good_runs=int((~bad).sum()),
        documents=len(set(documents)),
        rules=tuple(_rule_rows(standard_rules(limits), runs, bad, documents, wish)),
        baselines=tuple(_rule_rows(baseline_rules(), runs, bad, documents, wish)),
        sweep=tuple(_sweep(peaks, bad)),
        recommended=recommended,
        plain=rates(plain, bad, documents, draws=wish.draws),
        groups=tuple(_groups(runs, peaks, recommended.setting)),
        fired=tuple(_fired(runs, recommended.setting, limits)),
    )


def recommend(
    peaks: Peaks,
    bad: Bools,
    documents: Sequence[str],
    wish: Wish,
    *,
    vocabulary_size: int,
    limits: Thresholds,
) -> Recommendation:
    """The setting for the wish, judged on documents it was not fitted to."""
    good_runs, bad_runs = int((~bad).sum()), int(bad.sum())
    if min(good_runs, bad_runs) < LEAST_RUNS:
        return Recommendation(
            False,
            f"cannot tell: {bad_runs} broken and {good_runs} good runs, {LEAST_RUNS} of each are needed",
        )
    rate = wish.max_false_stops if wish.missed_cost is None else _cheapest_rate(peaks, bad, wish)
    tried = [_try(peaks, bad, documents, wish, rate, share * rate) for share in _SHARES]
    found = [attempt for attempt in tried if attempt is not None]
    if not found:
        return Recommendation(False, f"no threshold meets this: each stops over {rate:.1%} of good runs")
    setting, held_out, meets, why = max(found, key=lambda attempt: (attempt[2], *_rank(attempt[1], rate)))
    return Recommendation(
        meets=meets,
        why=why,
        setting=setting,
        thresholds=as_thresholds(setting, limits, vocabulary_size),
        fitted=rates(peaks.stopped(setting), bad, documents, draws=wish.draws),
        held_out=held_out,
        cost=float(
            expected_cost(
                held_out.caught.value,
                held_out.false_stops.value,
                missed_cost=wish.missed_cost or 1.0,
                share_broken=wish.share_broken,
            )
        ),
    )


# Shares of the wished rate that thresholds are fitted to: one that uses the rate up on the runs it has seen
# goes over it on others.
_SHARES = (1.0, 0.6, 0.3, 0.0)
_Attempt = tuple[Setting, Judged, bool, str]


def _try(
    peaks: Peaks, bad: Bools, documents: Sequence[str], wish: Wish, rate: float, fitted_to: float
) -> _Attempt | None:
    setting = fit(peaks, bad, fitted_to)
    if setting is None:
        return None
    held_out, _ = judge_by_folds(peaks, bad, documents, fitted_to, draws=wish.draws)
    return (setting, held_out, *_verdict(held_out, wish, rate))


def _rank(judged: Judged, rate: float) -> tuple[float, float]:
    """Better first: no more false stops than wished, then more caught."""
    return -max(0.0, judged.false_stops.value - rate), judged.caught.value


_RATES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)


def _cheapest_rate(peaks: Peaks, bad: Bools, wish: Wish) -> float:
    """The rate of false stops at which a run costs least."""
    assert wish.missed_cost is not None
    costs = []
    for rate in _RATES:
        setting = fit(peaks, bad, rate)
        stopped = peaks.stopped(setting) if setting else np.zeros(len(bad), bool)
        price = expected_cost(
            float(stopped[bad].mean()),
            float(stopped[~bad].mean()),
            missed_cost=wish.missed_cost,
            share_broken=wish.share_broken,
        )
        costs.append(float(price))
    return _RATES[int(np.argmin(costs))]


def _verdict(judged: Judged, wish: Wish, rate: float) -> tuple[bool, str]:
    told = (
        f"on documents it was not fitted to it catches {_percent(judged.caught)} of broken runs and stops"
        f" {_percent(judged.false_stops)} of good ones"
    )
    if not judged.gain.low > 0:
        return False, f"no threshold meets this: no better than chance; {told}"
    if wish.missed_cost is None and judged.false_stops.value > rate:
        return False, f"no threshold meets this: more than {rate:.1%} false stops; {told}"
    if wish.min_caught is not None and judged.caught.value < wish.min_caught:
        return False, f"no threshold meets this: fewer than {wish.min_caught:.0%} caught; {told}"
    if wish.missed_cost is None and judged.false_stops.high > rate:
        return True, f"{told}; at this number of runs the rate of false stops may still be above {rate:.1%}"
    return True, told


def _percent(interval: Interval) -> str:
    return f"{interval.value:.1%} [{interval.low:.1%}, {interval.high:.1%}]"


def _at_rate(scores: Floats, bad: Bools, max_false: float) -> tuple[float, float, float]:
    """(threshold, caught, false stops) of the lowest threshold with at most `max_false` false stops."""
    found = curve(scores, bad)
    allowed = np.flatnonzero(found.false_stops <= max_false + 1e-12)
    if not len(allowed):
        return math.inf, 0.0, 0.0
    place = int(allowed[-1])
    return float(found.thresholds[place]), float(found.caught[place]), float(found.false_stops[place])


def _rule_rows(
    rules: Mapping[str, Rule], runs: Sequence[TracedRun], bad: Bools, documents: Sequence[str], wish: Wish
) -> Iterator[RuleRow]:
    languages = np.array([run.language for run in runs])
    for name, rule in rules.items():
        scores = np.array([peak(rule(run)) for run in runs])
        threshold, caught, false_stops = _at_rate(scores, bad, wish.max_false_stops)
        yield RuleRow(
            rule=name,
            auroc=_area(auroc, scores, bad, documents, wish.draws),
            average_precision=_area(average_precision, scores, bad, documents, wish.draws),
            auroc_by_language={
                str(code): auroc(scores[languages == code], bad[languages == code])
                for code in np.unique(languages)
            },
            threshold=threshold,
            caught=caught,
            false_stops=false_stops,
            costs=tuple(cheapest_points(scores, bad, share_broken=wish.share_broken)),
            risk_coverage=tuple(risk_coverage(scores, bad, share_broken=wish.share_broken)),
            roc=_roc(scores, bad),
        )


def _roc(scores: Floats, bad: Bools) -> tuple[tuple[float, float, float], ...]:
    found = curve(scores, bad)
    columns = (found.false_stops.tolist(), found.caught.tolist(), found.precision.tolist())
    return tuple(zip(*columns, strict=True))


def _area(
    area: Callable[[Floats, Bools], float], scores: Floats, bad: Bools, documents: Sequence[str], draws: int
) -> Interval:
    return by_document(lambda rows: area(scores[rows], bad[rows]), documents, draws=draws)


def _sweep(peaks: Peaks, bad: Bools) -> Iterator[tuple[int, float, float, float]]:
    """Caught and false stops of "k in a row above" for each k and a grid of entropies."""
    if not bad.any() or bad.all():
        return
    for length, values in sorted(peaks.runs.items()):
        for nats in np.arange(0.5, 10.01, 0.5):
            stopped = values > nats
            yield length, float(nats), float(stopped[bad].mean()), float(stopped[~bad].mean())


def _groups(runs: Sequence[TracedRun], peaks: Peaks, setting: Setting | None) -> Iterator[Group]:
    """Shares stopped by language, quantization and kind, bad and good runs apart."""
    if setting is None:
        return
    stopped = peaks.stopped(setting)
    members: dict[tuple[str, bool], list[int]] = {}
    for place, run in enumerate(runs):
        names = (
            f"language {run.language}",
            f"weights {run.weights}, kv {run.kv}",
            f"{run.kind} {run.language}",
        )
        for name in names:
            members.setdefault((name, bool(run.broken)), []).append(place)
    for (name, is_bad), places in sorted(members.items()):
        yield Group(name, len(places), float(stopped[places].mean()), is_bad)


def _fired(runs: Sequence[TracedRun], setting: Setting | None, limits: Thresholds) -> Iterator[Fired]:
    """Where the recommended setting stops the broken runs it catches."""
    if setting is None:
        return
    for run in runs:
        if run.broken:
            fired = where_it_fires(run, setting, limits)
            if fired is not None:
                yield fired
