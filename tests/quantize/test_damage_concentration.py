"""Concentration on simulated tokens whose truth is known, and the rules that turn it into a verdict."""

from __future__ import annotations

import numpy as np
import pytest

from seatrial.errors import UserError
from seatrial.quantize.damage.classes import BIT, CLASSES, DIGIT, OTHER, PERSON
from seatrial.quantize.damage.concentration import concentration, differences
from seatrial.quantize.damage.figures import class_figures
from seatrial.quantize.damage.forced import ITEM, TOKEN, Scored
from seatrial.quantize.damage.tally import METRICS, tally
from seatrial.quantize.damage.verdicts import (
    LEAST_DOCUMENTS,
    MARGIN,
    Evidence,
    Limit,
    Verdict,
    decide,
    parse_limits,
    passes,
)
from seatrial.quantize.stats import Interval, wilson


def simulated(documents: int, factor: float, seed: int, *, tokens: int = 150) -> list[Scored]:
    """Documents whose KL depends on entropy, on the document, and on digits by `factor`.

    Digits are far less predictable than other tokens, so their raw KL is higher whatever the factor.
    """
    random = np.random.default_rng(seed)
    found = []
    for number in range(documents):
        rows = np.zeros(tokens, TOKEN)
        digit = random.random(tokens) < 0.25
        rows["language"] = number % 2
        rows["masks"] = np.where(digit, BIT[DIGIT], 0)
        rows["entropy"] = random.gamma(2, 0.5, tokens) + 1.2 * digit
        size = 0.05 * rows["entropy"] * random.lognormal(0, 0.3) * random.exponential(1, tokens)
        rows["kl"] = size * np.where(digit, factor, 1)
        rows["delta"] = random.normal(0, 0.1, tokens)
        found.append(Scored(rows, np.zeros(0, ITEM)))
    return found


def verdict_on_digits(rows: list[Scored], seed: int = 0):
    return class_figures(tally(lambda: rows, draws=400, seed=seed), 1e-6)[DIGIT]


def test_damage_that_doubles_on_digits_concentrates():
    found = verdict_on_digits(simulated(40, 2.0, 1))
    assert found.verdict is Verdict.CONCENTRATES
    assert found.p_adjusted < 0.01
    assert found.compared.ratio.low < 2 < found.compared.ratio.high


def test_damage_that_follows_entropy_alone_does_not_concentrate():
    found = verdict_on_digits(simulated(40, 1.0, 2))
    assert found.verdict is Verdict.DOES_NOT
    kl = {name: f.kl.value for name, f in class_figures(tally(lambda: simulated(40, 1.0, 2)), 1e-6).items()}
    assert kl[DIGIT] > 1.5 * kl[OTHER], "raw ratios do mislead here"


def test_too_few_documents_give_no_verdict_whatever_the_damage():
    found = verdict_on_digits(simulated(LEAST_DOCUMENTS - 1, 5.0, 3))
    assert found.verdict is Verdict.CANNOT_TELL
    assert str(LEAST_DOCUMENTS) in found.reason
    assert np.isnan([found.p_adjusted, found.compared.p, found.compared.detectable]).all()


def test_one_document_gives_figures_without_intervals():
    """Resampling one document gives the same one every time: a width of zero, which is not certainty."""
    found = verdict_on_digits(simulated(1, 5.0, 3))
    for figure in (found.kl, found.nll_delta, found.flips, *found.kinds.values(), found.compared.ratio):
        assert np.isfinite(figure.value) and np.isnan([figure.low, figure.high]).all()


def test_classes_that_are_not_tested_cost_the_others_nothing():
    """Holm's adjustment counts the tests that are made: here one, of digits."""
    found = verdict_on_digits(simulated(40, 1.0, 5))
    assert found.p_adjusted == found.compared.p


def test_a_class_without_tokens_gets_no_verdict_and_no_figure():
    found = class_figures(tally(lambda: simulated(30, 1.0, 4), draws=200), 1e-6)[PERSON]
    assert found.verdict is Verdict.CANNOT_TELL
    assert found.tokens == 0 and np.isnan(found.kl.value)


def test_false_alarms_are_rare_and_intervals_hold_the_truth():
    wrong = covered = 0
    trials = 40
    for seed in range(trials):
        found = verdict_on_digits(simulated(24, 1.0, 100 + seed, tokens=80), seed)
        wrong += found.verdict is Verdict.CONCENTRATES
        covered += found.compared.ratio.low <= 1 <= found.compared.ratio.high
    assert wrong <= 0.05 * trials
    assert covered >= 0.85 * trials


def test_the_stated_detectable_excess_is_mostly_seen():
    excess = verdict_on_digits(simulated(30, 1.0, 7)).compared.detectable
    seen = sum(
        verdict_on_digits(simulated(30, 1 + excess, 200 + seed), seed).verdict is Verdict.CONCENTRATES
        for seed in range(25)
    )
    assert seen >= 0.6 * 25


def test_an_effect_below_the_margin_is_never_called_detectable():
    small = verdict_on_digits(simulated(40, 1.0, 5)).compared.detectable
    sums = np.random.default_rng(0).normal(1, 1e-4, (1000, 1, len(CLASSES), len(METRICS)))
    sure = concentration(sums[0], sums, DIGIT, tests=7).detectable
    assert MARGIN < sure < MARGIN + 0.01 < small
    wide = np.random.default_rng(0).normal(1, 0.05, (1000, 1, len(CLASSES), len(METRICS)))
    assert (
        concentration(wide[0], wide, DIGIT, tests=7).detectable
        > concentration(wide[0], wide, DIGIT).detectable
    )


def test_no_harm_in_few_tokens_is_not_certainty():
    """Every draw of documents without a harm has none: Wilson's upper end keeps a limit from being passed."""
    rows = list(simulated(LEAST_DOCUMENTS, 1.0, 3, tokens=10))
    for scored in rows:
        scored.tokens["flip"] = 0
    found = class_figures(tally(lambda: rows), 1e-6)[OTHER]
    harm, n = found.kinds["harm"], found.tokens
    assert (harm.value, harm.low) == (0, 0) and harm.high == wilson(0, n).high > 0
    assert passes(Limit(OTHER, "harm", harm.high / 2), harm, found.enough) is None
    assert passes(Limit(OTHER, "harm", harm.high * 2), harm, found.enough) is True


def test_difference_in_differences_by_hand():
    sums = np.zeros((2, len(CLASSES), len(METRICS)))
    digit, other = CLASSES.index(DIGIT), CLASSES.index(OTHER)
    sums[0, digit, :2], sums[0, other, :2] = (10, 5.0), (100, 20.0)  # 0.5 against 0.2
    sums[1, digit, :2], sums[1, other, :2] = (30, 6.0), (50, 5.0)  # 0.2 against 0.1
    difference, expected, covered = differences(sums, digit)
    assert difference == pytest.approx((10 * 0.3 + 30 * 0.1) / 40)
    assert expected == pytest.approx((10 * 0.2 + 30 * 0.1) / 40)
    assert covered == 1
    sums[1, other, :2] = 0  # nothing to compare with in the second stratum
    difference, _, covered = differences(sums, digit)
    assert difference == pytest.approx(0.3) and covered == pytest.approx(0.25)


def test_nothing_to_compare_with_is_not_a_verdict():
    sums = np.zeros((1, len(CLASSES), len(METRICS)))
    sums[0, CLASSES.index(DIGIT), :2] = (100, 5.0)
    found = concentration(sums, np.stack([sums] * 50), DIGIT)
    assert np.isnan(found.ratio.value)
    evidence = Evidence(100, 40, 40, False, Interval(0.05, 0.04, 0.06), 1e-6, found, 0.5)
    assert decide(evidence)[0] is Verdict.CANNOT_TELL


def evidence(ratio: Interval, p: float, **changes) -> Evidence:
    sums = np.zeros((1, len(CLASSES), len(METRICS)))
    plain = concentration(sums, np.stack([sums] * 9), DIGIT)
    from dataclasses import replace

    base = Evidence(500, 40, 40, False, Interval(0.05, 0.04, 0.06), 1e-6, replace(plain, ratio=ratio), p)
    return replace(base, **changes)


NOTHING = Interval(float("nan"), float("nan"), float("nan"))


@pytest.mark.parametrize(
    ("ratio", "p", "changes", "verdict"),
    [
        (Interval(1.6, 1.3, 1.9), 0.004, {}, "concentrates"),
        (Interval(1.6, 0.9, 2.4), 0.2, {}, "cannot tell"),
        (Interval(1.05, 1.01, 1.1), 0.004, {}, "does not concentrate"),
        (Interval(1.2, 1.1, 1 + MARGIN + 0.1), 0.004, {}, "cannot tell"),
        (Interval(0.5, 0.4, 0.6), 1.0, {}, "does not concentrate"),
        (Interval(9.0, 8.0, 10.0), 0.004, {"documents": 5}, "cannot tell"),
        (Interval(9.0, 8.0, 10.0), 0.004, {"tokens": 20}, "cannot tell"),
        (Interval(9.0, 8.0, 10.0), 0.004, {"floor": 0.1}, "none"),
        (NOTHING, 1.0, {"identical": True, "tokens": 3, "documents": 2}, "none"),
        (NOTHING, 1.0, {"identical": True, "all_documents": 3, "documents": 3}, "cannot tell"),
    ],
)  # fmt: skip
def test_rules_of_the_verdict(ratio, p, changes, verdict):
    found, reason = decide(evidence(ratio, p, **changes))
    assert str(found) == verdict
    assert reason


def test_limits_are_parsed_and_judged_by_the_whole_interval():
    limits = parse_limits(["digit:0.01", "person.kl:0.2"])
    assert limits == [Limit("digit", "harm", 0.01), Limit("person", "kl", 0.2)]
    assert passes(limits[0], Interval(0.03, 0.02, 0.04), True) is False
    assert passes(limits[0], Interval(0.012, 0.008, 0.02), True) is None
    assert passes(limits[0], Interval(0.004, 0.002, 0.008), True) is True
    assert passes(limits[0], Interval(0.03, 0.02, 0.04), False) is None


@pytest.mark.parametrize(
    "text", ["digit", "digit:", "digit:x", "digit:-1", "digit.speed:1", "nose:0.1", "digit:nan"]
)
def test_a_limit_that_is_none_is_refused(text):
    with pytest.raises(UserError):
        parse_limits([text])
