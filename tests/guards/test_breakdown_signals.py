"""Signals against a slow float64 reference; masked, half-precision and broken rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from seatrial.errors import UserError
from seatrial.guards.signals import SignalMeter, signals, signals_of_rows


def reference(logits: np.ndarray, token: int) -> tuple[float, float, float, float, float]:
    """Entropy, max probability, margin, varentropy, log-probability by the book, in Python floats."""
    values = [float(v) for v in logits]
    peak = max(values)
    weights = [math.exp(v - peak) for v in values]
    total = math.fsum(weights)
    logp = [v - peak - math.log(total) for v in values]
    p = [w / total for w in weights]
    entropy = -math.fsum(a * b for a, b in zip(p, logp, strict=True) if a > 0)
    varentropy = math.fsum(a * (b + entropy) ** 2 for a, b in zip(p, logp, strict=True) if a > 0)
    best = sorted(p)[-2:]
    return entropy, best[-1], best[-1] - (best[-2] if len(best) > 1 else 0.0), varentropy, logp[token]


rows = npst.arrays(
    np.float32,
    st.integers(1, 200),
    elements=st.one_of(st.floats(-60, 60, width=32), st.just(np.float32(-np.inf))),
).filter(lambda row: np.isfinite(row).any())


@given(row=rows, data=st.data())
@settings(max_examples=150, deadline=None)
def test_signals_equal_the_reference(row, data):
    token = data.draw(st.integers(0, len(row) - 1))
    found = signals(row, token)
    entropy, best, margin, varentropy, logprob = reference(row, token)
    assert found.finite
    assert found.entropy == pytest.approx(entropy, abs=2e-5)
    assert found.max_prob == pytest.approx(best, abs=1e-6)
    assert found.margin == pytest.approx(margin, abs=1e-6)
    assert found.varentropy == pytest.approx(varentropy, abs=2e-3)
    assert found.logprob == pytest.approx(logprob, abs=2e-5)


@given(rows=npst.arrays(np.float32, (5, 300), elements=st.floats(-30, 30, width=32)))
@settings(max_examples=30, deadline=None)
def test_batched_and_one_at_a_time_are_the_same_numbers(rows):
    meter = SignalMeter(300)
    one_by_one = [meter.measure(row, 7) for row in rows]
    assert signals_of_rows(rows, [7] * 5) == one_by_one == [signals(row, 7) for row in rows]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("row", "entropy"),
    [
        ([0, -math.inf], 0.0),
        ([0, 0, -math.inf], math.log(2)),
        ([-math.inf, 5, 5, 5, 5], math.log(4)),
        ([60000, -60000], 0.0),
        ([0.0] * 1000, math.log(1000)),
    ],
)
def test_masked_and_extreme_rows(row, entropy, dtype):
    found = signals(np.array(row, dtype), 0)
    assert found.finite and found.entropy == pytest.approx(entropy, abs=1e-5)


def test_the_ends_of_half_precision():
    found = signals(np.array([65504, -65504], np.float16), 1)
    assert found.entropy == 0.0 and found.logprob == pytest.approx(-131008)


@pytest.mark.parametrize(
    "row", [[math.nan, 1.0], [1.0, math.nan], [-math.inf] * 3, [math.inf, 0.0], [math.inf, math.nan]]
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_not_finite_is_said_and_every_figure_is_nan(row, dtype):
    found = signals(np.array(row, dtype), 0)
    assert not found.finite
    assert all(
        math.isnan(v) for v in (found.entropy, found.max_prob, found.margin, found.varentropy, found.logprob)
    )


@pytest.mark.parametrize("size", [65_537, 151_936])
@pytest.mark.parametrize("spread", [0.01, 3.0, 9.0])
def test_a_row_in_several_pieces_equals_float64(size, spread):
    row = (np.random.default_rng(size).standard_normal(size) * spread).astype(np.float32)
    row[::7] = -np.inf
    row[size - 1] = row.max() + 2  # the best stands in the last piece
    wide = row[np.isfinite(row)].astype(np.float64)
    logp = wide - wide.max()
    logp -= math.log(np.exp(logp).sum())
    p = np.exp(logp)
    entropy = -(p * logp).sum()
    second, best = np.sort(p)[-2:]
    found = signals(row, 1)
    assert found.entropy == pytest.approx(entropy, abs=2e-5)
    assert (found.max_prob, found.margin) == pytest.approx((best, best - second), abs=1e-6)
    assert found.varentropy == pytest.approx((p * (logp + entropy) ** 2).sum(), abs=2e-3)
    assert found.logprob == pytest.approx(logp[0], abs=2e-5)  # row[0] is masked


@given(row=rows)
@settings(max_examples=50, deadline=None)
def test_the_place_of_the_best_may_be_given(row):
    assert signals(row, 0) == SignalMeter(len(row)).measure(row, 0, best=int(row.argmax()))


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_broken_row_is_seen_when_the_sampler_gave_its_best(broken):
    row = np.array([0.0, broken, 3.0], np.float32)
    assert not SignalMeter(3).measure(row, 0, best=int(row.argmax())).finite


def test_the_input_is_left_as_it_was():
    row = np.random.default_rng(0).normal(size=500).astype(np.float32)
    before = row.copy()
    signals(row, 3)
    assert np.array_equal(row, before)


def test_wrong_shapes_and_tokens_are_refused():
    meter = SignalMeter(10)
    with pytest.raises(UserError, match="shape"):
        meter.measure(np.zeros(9, np.float32))
    with pytest.raises(UserError, match="outside the vocabulary"):
        meter.measure(np.zeros(10, np.float32), 10)
    with pytest.raises(UserError, match="float"):
        meter.measure(np.zeros(10, np.int64))
