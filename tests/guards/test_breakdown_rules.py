"""The breakdown guard: what must trip it, what must not, and that nothing un-trips it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.errors import UserError
from seatrial.guards.breakdown import BreakdownGuard, LoopCounter, Thresholds, entity_starts
from seatrial.guards.signals import Signals
from seatrial.guards.verdict import Verdict

V = 1000


def row_of_entropy(nats: float, vocabulary: int = V) -> np.ndarray:
    """Logits whose entropy is about `nats`: e^nats equally likely tokens, the rest masked."""
    logits = np.full(vocabulary, -np.inf, np.float32)
    logits[: round(math.exp(nats))] = 0.0
    return logits


def drive(guard: BreakdownGuard, rows: list[tuple[float, int]]) -> int | None:
    """The token at which the guard trips, given (entropy, token) after (entropy, token)."""
    for nats, token in rows:
        guard.observe(row_of_entropy(nats), token)
    return None if guard.trip is None else guard.trip.at_token


def test_ten_in_a_row_trip_and_nine_do_not():
    limits = Thresholds(entropy_nats=3.0, smoothed_enter_nats=6.5)
    unsure, sure = [(5.0, 3 * i) for i in range(9)], [(0.5, 1)]
    assert drive(BreakdownGuard(V, limits), unsure + sure + unsure) is None
    guard = BreakdownGuard(V, limits)
    assert drive(guard, sure + unsure + [(5.0, 77)]) == 10
    assert guard.trip is not None and guard.trip.rule == "entropy_run" and guard.trip.since == 1


@pytest.mark.parametrize(
    "bad", [[0.0, math.nan], [-math.inf, -math.inf], [math.inf, 0.0], [math.nan, -math.inf]]
)
def test_a_row_that_is_not_finite_trips_at_once(bad):
    guard = BreakdownGuard(
        2,
        Thresholds(entropy_nats=0.5, smoothed_enter_nats=0.6, smoothed_leave_nats=0.5, entity_start_nats=0.5),
    )
    guard.observe(np.array([1.0, 0.0]), 0)
    state = guard.observe(np.array(bad), 0)
    assert state.trip is not None and state.trip.rule == "not_finite" and state.trip.at_token == 1


@pytest.mark.parametrize("length", [1, 2, 5, 17, 40])
def test_a_confident_loop_trips_the_repetition_rule(length):
    guard = BreakdownGuard(V)
    prose = [(1.0, i) for i in range(100, 130)]
    loop = [(0.05, token) for _ in range(20) for token in range(length)]
    at = drive(guard, prose + loop)
    assert at is not None and guard.trip is not None and guard.trip.rule == "repetition"
    needed = max(guard.thresholds.repeat_times * length, guard.thresholds.repeat_tokens)
    assert at == 30 + needed - 1


def repeated_by_the_book(tokens: list[int], longest: int, least_tokens: int) -> tuple[float, int]:
    """(times, period): each period is tried, and the text read backwards for each."""
    times, best = 1.0, 0
    for period in range(1, longest + 1):
        same = 0
        while same + period < len(tokens) and tokens[-1 - same] == tokens[-1 - same - period]:
            same += 1
        if same and same + period >= least_tokens and (same + period) / period > times:
            times, best = (same + period) / period, period
    return times, best


@given(
    phrase=st.lists(st.integers(0, 3), min_size=1, max_size=7),
    noise=st.lists(st.integers(0, 59), max_size=4),
    longest=st.integers(1, 12),
    least=st.integers(2, 24),
)
@settings(max_examples=60, deadline=None)
def test_loops_are_counted_as_by_the_book(phrase, noise, longest, least):
    tokens = (phrase * 60)[:60]
    for place in noise:
        tokens[place] = 9
    counter = LoopCounter(longest)
    for length, token in enumerate(tokens, start=1):
        counter.push(token)
        assert counter.best(least) == repeated_by_the_book(tokens[:length], longest, least)


def test_figures_with_many_zeros_are_no_loop():
    assert drive(BreakdownGuard(V), [(0.1, t) for t in [5, 1, 0, 0, 0, 0, 0, 0, 0, 0, 9, 4]]) is None


def test_once_tripped_it_stays_tripped():
    guard = BreakdownGuard(V, Thresholds(entropy_nats=3.0))
    at = drive(guard, [(5.0, i) for i in range(10)])
    first = guard.trip
    guard.observe(np.full(V, np.nan), 1)
    assert drive(guard, [(0.1, i) for i in range(200)]) == at
    assert guard.trip is first
    assert guard.report().verdict is Verdict.FAIL


def test_smoothed_mean_needs_to_stay_and_gaps_do_not_save_it():
    limits = Thresholds(entropy_nats=5.0, smoothed_enter_nats=3.0, smoothed_leave_nats=2.0)
    with_gaps = [(6.0 if i % 3 else 0.5, i) for i in range(60)]
    guard = BreakdownGuard(V, limits)
    drive(guard, with_gaps)
    assert guard.trip is not None and guard.trip.rule == "smoothed_entropy"
    short = (
        [(1.0, i) for i in range(30)] + [(6.0, 900), (6.0, 901), (6.0, 902)] + [(0.2, i) for i in range(40)]
    )
    assert drive(BreakdownGuard(V, limits), short) is None


def test_steps_after_the_end_token_never_count():
    guard = BreakdownGuard(V, Thresholds(entropy_nats=3.0), end_ids=[2])
    drive(guard, [(1.0, 5), (1.0, 2)])
    assert drive(guard, [(6.0, 5)] * 50) is None
    assert guard.observe(np.full(V, np.nan), 5).ended


@pytest.mark.parametrize(
    ("limits", "vocabulary", "top_k"),
    [
        (Thresholds(entropy_nats=11.0), 49152, None),
        (Thresholds(entropy_nats=math.log(49152)), 49152, None),
        (Thresholds(entropy_nats=3.1), 49152, 20),
        (Thresholds(smoothed_enter_nats=11.0), 49152, None),
        (Thresholds(entropy_nats=5.0), 100, None),
        (Thresholds(entropy_nats=0.1), 49152, 1),
    ],
)
def test_a_threshold_that_cannot_fire_is_refused(limits, vocabulary, top_k):
    with pytest.raises(UserError, match=r"can never fire|always 0"):
        BreakdownGuard(vocabulary, limits, top_k=top_k)


def test_report_points_at_the_loop():
    guard = BreakdownGuard(V)
    pieces = ["The ", "budget ", *["is ", "ok ", "and "] * 20]
    for token in [7, 8, *[1, 2, 3] * 20]:
        guard.observe(row_of_entropy(0.5), token)
    finding = guard.report(pieces).findings[0]
    text = "".join(pieces)
    assert text[slice(*finding.span)] == finding.text and finding.text.startswith("is ok and is ok")


def test_entity_starts_looks_at_the_first_token_only():
    pieces = ["We", " paid", " 3", "7", ".5", " to", " Anna"]
    spans = [(8, 12), (16, 20)]
    assert "".join(pieces)[8:12] == "37.5"
    high_second = entity_starts(spans, pieces, [0, 0, 0.1, 5, 5, 0, 0.1], above_nats=2.0)
    assert high_second == []
    found = entity_starts(spans, pieces, [0, 0, 3.0, 0, 0, 0, 4.0], above_nats=2.0)
    assert [(f.span, f.at_token) for f in found] == [((8, 12), 2), ((16, 20), 6)]


def test_states_from_measured_signals_are_the_same_as_from_logits():
    by_logits, by_signals = BreakdownGuard(V), BreakdownGuard(V)
    rng = np.random.default_rng(3)
    for token in rng.integers(0, V, 50):
        row = rng.normal(size=V).astype(np.float32) * rng.uniform(0.1, 5)
        state = by_logits.observe(row, int(token))
        assert by_signals.observe_signals(state.signals, int(token)) == state
    assert by_signals.observe_signals(Signals(0, 1, 1, 0, 0), 1).token_index == 50


def test_near_loops_trip_the_monotony_rule_and_prose_does_not():
    rng = np.random.default_rng(0)
    near = [int(t) for t in rng.choice([7, 7, 7, 7, 8, 9], 100)]  # no phrase repeats exactly for long
    guard = BreakdownGuard(V, Thresholds(repeat_times=40))
    assert drive(guard, [(0.5, t) for t in near]) == 47
    assert guard.trip is not None and guard.trip.rule == "monotony" and guard.trip.since == 0
    prose = [int(t) for t in rng.zipf(1.3, 300) % V]
    assert drive(BreakdownGuard(V, Thresholds(repeat_times=40)), [(0.5, t) for t in prose]) is None


def test_foreign_words_trip_only_when_asked_and_only_with_a_source():
    salad = [(0.5, token) for token in range(500, 600)]
    limits = Thresholds(foreign_share=0.9)
    guard = BreakdownGuard(V, limits, source_ids=range(100))
    assert drive(guard, salad) == 47
    assert guard.trip is not None and guard.trip.rule == "foreign" and "100%" in guard.trip.detail
    assert drive(BreakdownGuard(V, limits), salad) is None
    assert drive(BreakdownGuard(V, source_ids=range(100)), salad) is None
    half = [(0.5, token if token % 2 else token % 100) for token in range(500, 600)]
    assert drive(BreakdownGuard(V, limits, source_ids=range(100)), half) is None
