"""Divergence against plain float64 formulas, and flips by their definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from seatrial.quantize.damage.divergence import HARM, OTHER_FLIP, REPAIR, SAME, diverge, flips
from seatrial.quantize.damage.figures import LEAST_FLOOR

ROWS = arrays(np.float32, (3, 40), elements=st.floats(-30, 30, width=32))


def log_probabilities(logits):
    wide = logits.astype(np.float64)
    wide -= wide.max(1, keepdims=True)
    return wide - np.log(np.exp(wide).sum(1, keepdims=True))


@settings(max_examples=80, deadline=None)
@given(ROWS, ROWS, st.lists(st.integers(0, 39), min_size=3, max_size=3))
def test_every_figure_equals_its_formula(reference, candidate, targets):
    found = diverge(reference, candidate, np.array(targets))
    log_p, log_q = log_probabilities(reference), log_probabilities(candidate)
    p, rows = np.exp(log_p), np.arange(3)
    assert found.entropy == pytest.approx(-(p * log_p).sum(1), abs=2e-5)
    assert found.kl == pytest.approx((p * (log_p - log_q)).sum(1), abs=2e-5)
    assert found.nll == pytest.approx(-log_p[rows, targets], abs=2e-5)
    assert found.delta == pytest.approx(log_p[rows, targets] - log_q[rows, targets], abs=2e-5)
    assert (found.top_reference == reference.argmax(1)).all()
    assert (found.top_candidate == candidate.argmax(1)).all()


def test_small_differences_are_seen_down_to_the_least_floor_in_a_large_vocabulary():
    random = np.random.default_rng(0)
    reference = (random.normal(size=(8, 49152)) * 3 + 15).astype(np.float32)
    candidate = reference + (random.normal(size=reference.shape) * 1e-3).astype(np.float32)
    found = diverge(reference, candidate, np.zeros(8, np.int64))
    log_p, log_q = log_probabilities(reference), log_probabilities(candidate)
    exact = (np.exp(log_p) * (log_p - log_q)).sum(1)
    assert exact.min() > 4e-7
    assert np.abs(found.kl - exact).max() <= LEAST_FLOOR
    assert abs(found.kl.mean() - exact.mean()) < LEAST_FLOOR / 2


@given(ROWS)
def test_equal_rows_differ_by_exactly_nothing(rows):
    found = diverge(rows, rows.copy(), np.array([0, 1, 2]))
    assert (found.kl == 0).all() and (found.delta == 0).all()
    assert (found.flips(np.array([0, 1, 2])) == SAME).all()


def test_flips_are_harm_repair_or_other():
    reference, candidate = np.array([1, 1, 2, 2, 2]), np.array([1, 2, 1, 3, 2])
    targets = np.array([1, 1, 1, 1, 1])
    assert flips(reference, candidate, targets).tolist() == [SAME, HARM, REPAIR, OTHER_FLIP, SAME]
