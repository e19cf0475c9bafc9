"""Recommendations on runs whose truth is known: thresholds where there are some, a plain no where not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from seatrial.errors import UserError
from seatrial.guards.breakdown import BreakdownGuard
from seatrial.guards.costs import POLICIES, Prices, cheapest_points, expected_cost, joint_view, risk_coverage
from seatrial.guards.operating import as_thresholds, fit, judge_by_folds, measure_peaks, rates
from seatrial.guards.rules import TracedRun
from seatrial.guards.thresholds import Thresholds
from seatrial.guards.tune import TuneResult, Wish, label_runs, tune

V = 50_000
TOKENS = 120


def make_run(rng: np.random.Generator, number: int, fault: str | None, gap: float = 4.0) -> TracedRun:
    """A calm run around 1.5 nats of words of the source; from token 40 on with a fault."""
    entropy = np.clip(rng.normal(1.5, 0.7, TOKENS), 0, 10)
    tokens = rng.integers(0, 300, TOKENS)
    known = np.ones(TOKENS, bool)
    late = np.arange(TOKENS) >= 40
    if fault == "flat":
        entropy[late] += gap
    elif fault == "loop":
        tokens[late], entropy[late] = np.resize(tokens[33:40], late.sum()), 0.05
    elif fault == "salad":
        tokens[late], known[late] = rng.integers(1000, 9000, late.sum()), False
    elif fault == "nan":
        entropy[late] = math.nan
    return TracedRun(
        run=f"r{number}",
        document=f"d{number // 4}",
        language=("en", "zh")[number % 2],
        model="m",
        weights="int4",
        kv="fp32",
        kind=fault or "reference",
        budget=TOKENS,
        tokens=tokens.astype(np.int64),
        entropy=entropy,
        max_prob=np.exp(-entropy),
        margin=np.exp(-entropy) / 2,
        varentropy=entropy,
        logprob=-entropy,
        known=known,
        broken=fault is not None,
        broken_at=None if fault is None else 40,
    )


def make_runs(good: int, faults: dict[str, int], seed: int = 0, gap: float = 4.0) -> list[TracedRun]:
    rng = np.random.default_rng(seed)
    kinds: list[str | None] = [None] * good + [kind for kind, times in faults.items() for _ in range(times)]
    order = rng.permutation(len(kinds))
    return [make_run(rng, number, kinds[i], gap) for number, i in enumerate(order)]


def quick(runs: list[TracedRun], **wish) -> TuneResult:
    return tune(runs, Wish(draws=40, **wish), vocabulary_size=V)


def test_separable_faults_are_recommended_and_hold_on_other_documents_and_new_runs():
    runs = make_runs(60, {"flat": 20, "loop": 20, "salad": 20, "nan": 10})
    found = quick(runs, min_caught=0.95).recommended
    assert found.meets and found.thresholds is not None and found.held_out is not None
    assert found.held_out.caught.value >= 0.95 and found.held_out.false_stops.value <= 0.05
    fresh = make_runs(200, {"flat": 50, "loop": 50, "salad": 50, "nan": 20}, seed=9)
    stopped = [live_stop(run, found.thresholds) for run in fresh]
    bad = np.array([bool(run.broken) for run in fresh])
    assert np.mean(np.array(stopped)[bad]) >= 0.95 and np.mean(np.array(stopped)[~bad]) <= 0.05


def live_stop(run: TracedRun, thresholds: Thresholds) -> bool:
    """Whether the real guard stops a run of these signals."""
    from seatrial.guards.signals import Signals

    source = set(run.tokens[run.known].tolist()) if run.known is not None else None
    guard = BreakdownGuard(V, thresholds, source_ids=source)
    for entropy, token in zip(run.entropy, run.tokens, strict=True):
        finite = not math.isnan(entropy)
        guard.observe_signals(Signals(float(entropy), 0.5, 0.5, 0.5, -1.0, finite), int(token))
    return guard.trip is not None


def test_runs_that_do_not_differ_get_no_threshold():
    runs = make_runs(60, {"flat": 60}, gap=0.0)
    found = quick(runs).recommended
    assert not found.meets and found.why.startswith("no threshold meets this")


def test_a_wish_for_more_than_can_be_caught_is_refused_with_figures():
    runs = make_runs(60, {"flat": 30}) + make_runs(0, {"calm": 30}, seed=4)
    renamed = [replace(run, run=f"x{i}", document=f"e{i // 4}") for i, run in enumerate(runs)]
    found = quick(renamed, min_caught=0.95).recommended
    assert not found.meets and "fewer than 95% caught" in found.why and found.held_out is not None
    assert quick(renamed).recommended.meets


@pytest.mark.parametrize(("good", "bad"), [(60, 3), (3, 60), (0, 60), (60, 0)])
def test_too_few_runs_of_a_class_give_no_verdict(good, bad):
    found = quick(make_runs(good, {"flat": bad})).recommended
    assert not found.meets and found.why.startswith("cannot tell") and found.thresholds is None


def test_a_judgement_by_folds_never_sees_its_own_document():
    """Each document's runs are alike and unlike all others: in-sample is perfect, by folds it is chance."""
    rng = np.random.default_rng(1)
    runs = []
    for number in range(80):
        run = make_run(rng, number, None)
        level = float(rng.uniform(0, 8))
        runs.append(
            replace(run, entropy=np.full(TOKENS, level), document=f"d{number}", broken=bool(number % 2))
        )
    bad = np.array([bool(run.broken) for run in runs])
    peaks = measure_peaks(runs, Thresholds())
    setting = fit(peaks, bad, 0.2)
    assert setting is not None
    held_out, _ = judge_by_folds(peaks, bad, [run.document for run in runs], 0.2, draws=50)
    in_sample = peaks.stopped(setting)[bad].mean() - peaks.stopped(setting)[~bad].mean()
    assert held_out.caught.value - held_out.false_stops.value < in_sample


def test_thresholds_of_a_recommendation_can_be_used_as_they_are():
    found = quick(make_runs(40, {"loop": 40})).recommended
    assert found.setting is not None
    limits = as_thresholds(found.setting, Thresholds(), V)
    BreakdownGuard(V, limits)
    assert limits.entropy_nats < math.log(V) and limits.smoothed_enter_nats < math.log(V)


def test_a_rate_of_none_or_all_is_not_certain():
    """Nothing of ten documents was stopped: the rate may still be nearly a third."""
    bad = np.array([True] * 10 + [False] * 10)
    names = [f"d{number}" for number in range(10)] * 2
    judged = rates(bad.copy(), bad, names, draws=50)
    assert judged.false_stops.value == 0.0 and judged.false_stops.high == pytest.approx(0.3085, abs=1e-4)
    assert judged.caught.value == 1.0 and judged.caught.low == pytest.approx(0.6915, abs=1e-4)


def test_firing_comes_after_the_fault_and_before_the_budget_is_spent():
    result = quick(make_runs(60, {"flat": 30, "loop": 30}))
    delays = [fired.delay for fired in result.fired if fired.delay is not None]
    assert len(delays) >= 55 and np.median(delays) >= 0
    assert all(0 < fired.share_of_budget <= 1 for fired in result.fired)


def test_groups_tell_languages_and_faults_apart():
    result = quick(make_runs(60, {"flat": 30, "nan": 20}))
    groups = {(group.group, group.is_bad): group.stopped for group in result.groups}
    assert groups["nan en", True] == groups["nan zh", True] == 1.0
    assert groups["language en", False] <= 0.1
    assert any(group.startswith("weights int4") for group, _ in groups)


def test_labels_from_guards_and_from_the_user():
    runs = [replace(run, broken=None) for run in make_runs(4, {"flat": 2})]
    with pytest.raises(UserError, match="none of the 6 traces has a label from planted"):
        label_runs(runs, "planted")
    checked = [replace(run, wrong_figures=number % 2) for number, run in enumerate(runs)]
    assert [run.broken for run in label_runs(checked, "guards")] == [False, True] * 3
    told = label_runs(runs, "file", {"r1": True, "d0": False})
    assert {run.run: run.broken for run in told} == {"r0": False, "r1": True, "r2": False, "r3": False}
    with pytest.raises(UserError, match="known: planted, guards, file"):
        label_runs(runs, "stars")


@pytest.mark.parametrize("change", [{"max_false_stops": 1.0}, {"share_broken": -0.1}, {"missed_cost": 0.0}])
def test_wishes_that_mean_nothing_are_refused(change):
    with pytest.raises(UserError):
        Wish(**change)


def test_cheapest_threshold_is_the_cheapest_of_all():
    rng = np.random.default_rng(2)
    bad = rng.random(60) < 0.4
    scores = rng.normal(size=60) + bad
    for point in cheapest_points(scores, bad, share_broken=0.1):
        costs = []
        for threshold in [-math.inf, *scores, math.inf]:
            stopped = scores > threshold
            costs.append(
                expected_cost(
                    stopped[bad].mean(), stopped[~bad].mean(), missed_cost=point.missed_cost, share_broken=0.1
                )
            )
        assert point.cost == pytest.approx(min(costs))
    assert risk_coverage(scores, bad, share_broken=0.1)[0] == pytest.approx((1.0, 0.1))


def test_a_dearer_missed_error_never_lowers_what_is_caught():
    bad = np.array([True, False] * 40)
    scores = np.random.default_rng(3).normal(size=80) + bad
    caught = [point.caught for point in cheapest_points(scores, bad, share_broken=0.1)]
    assert caught == sorted(caught)
    runs = make_runs(60, {"flat": 30}, gap=1.0)
    cheap, dear = quick(runs, missed_cost=1.0), quick(runs, missed_cost=500.0)
    assert cheap.recommended.fitted is not None and dear.recommended.fitted is not None
    assert cheap.recommended.fitted.caught.value <= dear.recommended.fitted.caught.value


def test_policies_add_up_by_hand():
    base = make_run(np.random.default_rng(0), 0, None)
    runs = [replace(base, wrong_figures=2), replace(base, wrong_figures=0), replace(base, wrong_figures=1)]
    rows = joint_view(runs, [None, 59, None], Prices(token_s=0.01, extract_s=0.1, prefill_s=1.0))
    by_name = {row.policy: row for row in rows}
    assert list(by_name) == list(POLICIES)
    everything, both = by_name["show everything"], by_name["both guards"]
    assert everything.seconds == pytest.approx(1 + 120 * 0.01) and everything.wrong_shown == pytest.approx(
        1.0
    )
    assert both.seconds == pytest.approx((3 * 1.0 + 3 * 0.1 + (120 + 60 + 120) * 0.01) / 3)
    assert (both.wrong_shown, both.extractive) == (0.0, 1.0)
    assert by_name["breakdown guard"].wrong_shown == pytest.approx(1.0)
    assert by_name["number and name guard"].extractive == pytest.approx(2 / 3)
    assert by_name["always extractive"].seconds == pytest.approx(0.1)
    with pytest.raises(ValueError, match="checked"):
        joint_view([base], [None], Prices(0, 0, 0))
