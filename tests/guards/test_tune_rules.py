"""Rules as scores against the guard that runs live, and the areas against their definitions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.guards.breakdown import BreakdownGuard
from seatrial.guards.curves import auroc, average_precision, by_document, curve
from seatrial.guards.operating import RULES, Setting, as_thresholds, where_it_fires
from seatrial.guards.rules import TracedRun, baseline_rules, first_above, peak, run_above, standard_rules
from seatrial.guards.signals import Signals
from seatrial.guards.thresholds import Thresholds

V = 5000
LIMITS = Thresholds(
    smoothing_tokens=4,
    smoothed_dwell=3,
    repeat_ngram=8,
    repeat_tokens=6,
    monotony_window=10,
    foreign_window=6,
)


def traced(entropies: list[float], tokens: list[int], source: list[int], **changes) -> TracedRun:
    array = np.array(entropies, float)
    run = TracedRun(
        run="r",
        document="d",
        language="en",
        model="m",
        weights="int4",
        kv="fp32",
        kind="free",
        budget=len(tokens) or 1,
        tokens=np.array(tokens, np.int64),
        entropy=array,
        max_prob=np.exp(-array),
        margin=np.exp(-array) / 2,
        varentropy=array / 2,
        logprob=-array,
        known=np.array([t in source for t in tokens], bool),
    )
    return replace(run, **changes)


steps = st.lists(st.tuples(st.sampled_from([0.1, 1.0, 3.0, 6.0, math.nan]), st.integers(0, 6)), max_size=80)
thresholds = st.tuples(
    st.sampled_from([2.0, 5.0, math.inf]),
    st.sampled_from([0.75, 2.6, math.inf]),
    st.sampled_from([2.5, 4.0, math.inf]),
    st.sampled_from([0.45, 0.75, math.inf]),
    st.sampled_from([0.55, math.inf]),
)


@given(steps=steps, above=thresholds, length=st.sampled_from([2, 5, 10]))
@settings(max_examples=300, deadline=None)
def test_the_live_guard_stops_where_the_scores_say(steps, above, length):
    entropies, tokens = [e for e, _ in steps], [t for _, t in steps]
    source = [0, 1, 2]
    setting = Setting(length, above)
    guard = BreakdownGuard(V, as_thresholds(setting, LIMITS, V), source_ids=source)
    for entropy, token in steps:
        figures = (entropy, 0.5, 0.5, 0.5, -1.0)
        finite = not math.isnan(entropy)
        guard.observe_signals(Signals(*(figures if finite else (math.nan,) * 5), finite=finite), token)
    fired = where_it_fires(traced(entropies, tokens, source), setting, LIMITS)
    assert (None if guard.trip is None else guard.trip.at_token) == (
        None if fired is None else fired.at_token
    )


@given(
    scores=st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, -math.inf, math.inf]), min_size=2, max_size=30),
    data=st.data(),
)
@settings(max_examples=200, deadline=None)
def test_auroc_is_the_share_of_pairs_in_order(scores, data):
    bad = data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores)))
    pairs = [
        (b, g)
        for b, x in zip(scores, bad, strict=True)
        if x
        for g, y in zip(scores, bad, strict=True)
        if not y
    ]
    found = auroc(np.array(scores), np.array(bad))
    if not pairs:
        assert math.isnan(found)
        return
    assert found == pytest.approx(sum((b > g) + 0.5 * (b == g) for b, g in pairs) / len(pairs))


def test_curve_ends_at_nothing_and_at_everything():
    found = curve(np.array([1.0, 2.0, 2.0, 3.0]), np.array([False, True, False, True]))
    assert (found.caught[0], found.false_stops[0]) == (0.0, 0.0)
    assert (found.caught[-1], found.false_stops[-1]) == (1.0, 1.0)
    assert found.caught.tolist() == [0.0, 0.5, 1.0, 1.0] and found.false_stops.tolist() == [
        0.0,
        0.0,
        0.5,
        1.0,
    ]


def test_average_precision_of_a_perfect_and_of_a_blind_rule():
    bad = np.array([True] * 3 + [False] * 9)
    assert average_precision(np.arange(12)[::-1].astype(float), bad) == 1.0
    assert average_precision(np.zeros(12), bad) == pytest.approx(0.25)
    assert math.isnan(average_precision(np.zeros(3), np.zeros(3, bool)))


def test_intervals_by_document_are_wider_than_by_run_when_runs_of_a_document_agree():
    rng = np.random.default_rng(0)
    by_doc = np.repeat(rng.random(8) < 0.5, 20).astype(float)
    mean = lambda rows: float(by_doc[rows].mean())
    clustered = by_document(mean, [str(i // 20) for i in range(160)], draws=400)
    single = by_document(mean, [str(i) for i in range(160)], draws=400)
    assert clustered.value == single.value
    assert clustered.high - clustered.low > 2 * (single.high - single.low)


def test_one_document_or_one_class_gives_no_interval():
    values = np.arange(5.0)
    assert math.isnan(by_document(lambda rows: float(values[rows].mean()), ["a"] * 5, draws=50).low)


def test_a_run_shorter_than_the_window_never_scores():
    assert peak(run_above(np.ones(9), 10)) == -math.inf and peak(np.array([])) == -math.inf
    assert first_above(run_above(np.full(12, 3.0), 10), 2.0) == 9


@pytest.mark.parametrize(
    ("fault", "seen_by", "not_by"),
    [
        (
            "flat",
            ["10 in a row above", "smoothed entropy", "24 of 32 above", "entropy risen"],
            ["repetition"],
        ),
        ("loop", ["repetition", "monotony", "compression of 64 tokens"], ["10 in a row above"]),
        ("salad", ["foreign to the source"], ["repetition", "monotony"]),
        ("nan", ["not finite"], ["repetition"]),
    ],
)
def test_each_fault_is_seen_by_the_rule_that_is_made_for_it(fault, seen_by, not_by):
    rng = np.random.default_rng(5)
    source = list(range(200))
    calm = lambda: traced(rng.uniform(0, 3, 150).tolist(), rng.integers(0, 200, 150).tolist(), source)
    good = [calm() for _ in range(20)]
    broken = []
    for _ in range(20):
        run = calm()
        late = np.arange(150) >= 60
        entropy, tokens = run.entropy.copy(), run.tokens.copy()
        if fault == "flat":
            entropy[late] = rng.uniform(6, 8, late.sum())
        elif fault == "loop":
            tokens[late], entropy[late] = np.resize(tokens[:7], late.sum()), 0.05
        elif fault == "salad":
            tokens[late] = rng.integers(1000, 4000, late.sum())
        else:
            entropy[late] = math.nan
        broken.append(traced(entropy.tolist(), tokens.tolist(), source))
    bad = np.array([True] * 20 + [False] * 20)
    rules = standard_rules()
    area = {
        name: auroc(np.array([peak(rule(r)) for r in broken + good]), bad) for name, rule in rules.items()
    }
    assert all(area[name] > 0.95 for name in seen_by), area
    assert all(area[name] < 0.8 for name in not_by), area


def test_baselines_know_nothing():
    run = traced([1.0] * 20, list(range(20)), [])
    rules = baseline_rules()
    assert peak(rules["never"](run)) == -math.inf and peak(rules["always"](run)) == math.inf
    assert peak(rules["length only"](run)) == 20
    assert rules["random"](run)[0] == rules["random"](run)[-1] == baseline_rules()["random"](run)[0]
    assert len(RULES) == 5
