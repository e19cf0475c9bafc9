"""The statistics against plain references, worked values, and simulations with a known truth."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import comb
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import UserError
from seatrial.quantize.stats import (
    ClusterBootstrap,
    holm,
    mcnemar,
    minimum_detectable,
    minimum_detectable_pairs,
    p_not_above,
    percentile_interval,
    wilson,
)


def test_wilson_gives_the_published_values():
    # Newcombe 1998, table I: 81/263, 15/148, 0/20, 1/29.
    for successes, of, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        found = wilson(successes, of)
        assert (round(found.low, 4), round(found.high, 4)) == (low, high)


@given(st.integers(0, 400), st.integers(0, 400))
def test_wilson_holds_the_rate_and_stays_a_rate(successes, failures):
    found = wilson(successes, successes + failures)
    assert 0 <= found.low <= found.high <= 1
    if successes + failures:
        assert found.low <= found.value <= found.high


def test_wilson_refuses_more_successes_than_trials():
    with pytest.raises(UserError, match="5 of 3"):
        wilson(5, 3)


@given(st.integers(0, 12), st.integers(0, 12))
def test_mcnemar_is_the_exact_binomial_test(harms, repairs):
    pairs = harms + repairs
    chance = [Fraction(comb(pairs, k), 2**pairs) for k in range(pairs + 1)]
    # Reference: the probability of all outcomes at most as likely as the one seen (symmetric, so exact).
    expected = sum((c for c in chance if c <= chance[harms]), Fraction(0))
    assert mcnemar(harms, repairs) == pytest.approx(float(expected))


def test_mcnemar_of_large_counts_does_not_overflow():
    assert 0 < mcnemar(2600, 2400) < 0.01
    normal = 2 * NormalDist().cdf(-(1000 - 1) / 81_000**0.5)
    assert mcnemar(40_000, 41_000) == pytest.approx(normal, rel=0.02)
    assert mcnemar(40_000, 40_000) == 1.0
    assert mcnemar(0, 0) == 1.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_holm_equals_the_step_down_rule(values):
    named = {str(i): value for i, value in enumerate(values)}
    adjusted = holm(named)
    for level in (0.01, 0.05, 0.2):
        rejected, alive = set(), sorted(named, key=named.__getitem__)
        while alive and len(alive) * named[alive[0]] <= level:
            rejected.add(alive.pop(0))
        close = {name for name in named if abs(adjusted[name] - level) < 1e-12}
        assert {name for name in named if adjusted[name] <= level} - close == rejected - close


def test_holm_of_a_textbook_family():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.005}) == pytest.approx(
        {"a": 0.03, "b": 0.06, "c": 0.06, "d": 0.02}
    )


def test_minimum_detectable_is_2_8_standard_errors():
    assert minimum_detectable(0.1) == pytest.approx(0.28016, abs=1e-4)


def test_minimum_detectable_of_pairs_is_seen_at_the_stated_power():
    discordant, pairs, draws = 0.2, 200, 4000
    difference = minimum_detectable_pairs(discordant, pairs)
    random = np.random.default_rng(1)
    harm = (discordant + difference) / 2
    counts = random.multinomial(pairs, [harm, discordant - harm, 1 - discordant], draws)
    power = np.mean([mcnemar(int(h), int(r)) < 0.05 for h, r, _ in counts])
    # The exact test is conservative, the formula is asymptotic.
    assert 0.70 < power < 0.85


def test_no_difference_is_seen_in_a_handful_of_pairs():
    assert np.isnan(minimum_detectable_pairs(0.1, 5))
    assert np.isnan(minimum_detectable_pairs(0.1, 0))
    assert np.isnan(minimum_detectable_pairs(0.0, 100))


def test_streamed_counts_are_multinomial():
    sizes, draws = [3, 2], 40_000
    bootstrap = ClusterBootstrap(sizes, (1,), draws=draws, seed=3)
    first = np.stack([bootstrap.counts(0) for _ in range(3)], axis=1)
    second = np.stack([bootstrap.counts(1) for _ in range(2)], axis=1)
    assert (first.sum(axis=1) == 3).all() and (second.sum(axis=1) == 2).all()
    for counts in product(range(4), repeat=3):
        if sum(counts) == 3:
            chance = 6 / np.prod([[1, 1, 2, 6][c] for c in counts]) / 27
            assert (first == counts).all(axis=1).mean() == pytest.approx(chance, abs=0.01)
    with pytest.raises(UserError, match="more documents"):
        bootstrap.counts(0)


def test_streamed_sums_equal_a_plain_bootstrap():
    random = np.random.default_rng(5)
    documents = random.normal(size=(7, 2, 3)) * (random.random((7, 2, 3)) < 0.6)
    counter, streamed = (ClusterBootstrap([7], (2, 3), draws=50, seed=9) for _ in range(2))
    weights = np.stack([counter.counts() for _ in range(7)], axis=1)
    for sums in documents:
        streamed.add(sums)
    assert streamed.totals == pytest.approx(documents.sum(axis=0))
    assert streamed.draws == pytest.approx(np.einsum("bd,dij->bij", weights, documents))


def test_intervals_cover_a_known_mean_of_clustered_values():
    """Values of one document are alike: intervals that ignored that would cover far less than 95 %."""
    random = np.random.default_rng(11)
    covered = naive = 0
    trials, documents, tokens = 200, 40, 30
    for trial in range(trials):
        level = random.normal(size=(documents, 1))
        values = 2 + level + random.normal(size=(documents, tokens))
        bootstrap = ClusterBootstrap([documents], (2,), draws=400, seed=trial)
        for row in values:
            bootstrap.add(np.array([row.sum(), tokens]))
        mean = bootstrap.totals[0] / bootstrap.totals[1]
        found = percentile_interval(mean, bootstrap.draws[:, 0] / bootstrap.draws[:, 1])
        covered += found.low <= 2 <= found.high
        naive += abs(mean - 2) <= 1.96 * values.std() / np.sqrt(values.size)
    assert covered / trials >= 0.89
    assert naive / trials < 0.6


def test_one_sided_p_never_claims_more_than_the_draws_can_show():
    assert p_not_above(np.ones(1999)) == pytest.approx(1 / 2000)
    assert p_not_above(np.linspace(-1, 1, 1001)) == pytest.approx(0.5, abs=0.01)


def test_no_interval_from_draws_that_mostly_have_no_value():
    found = percentile_interval(1.0, np.array([np.nan, np.nan, 1.0]))
    assert np.isnan(found.low) and np.isnan(found.high)
