"""The clock against plain references: an integral taken in small steps, exact sums, and a fake wall clock."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.devices.units import parse_rate
from seatrial.errors import UserError
from seatrial.simulate.clock import BandwidthCurve, VirtualClock, Work, parse_curve
from seatrial.simulate.pace import Pacer

rates = st.floats(1e6, 1e12)
gaps = st.lists(st.floats(0.01, 5.0), min_size=0, max_size=6)


@st.composite
def curves(draw: st.DrawFn) -> BandwidthCurve:
    times = [0.0]
    for gap in draw(gaps):
        times.append(times[-1] + gap)
    return BandwidthCurve(tuple(times), tuple(draw(rates) for _ in times))


def moved(curve: BandwidthCurve, start_s: float, end_s: float) -> Fraction:
    """Exact bytes moved between two times: the sum over the curve's steps."""
    total = Fraction(0)
    edges = [*curve.times_s, math.inf]
    for place, rate in enumerate(curve.rates_Bps):
        low, high = max(start_s, edges[place]), min(end_s, edges[place + 1])
        if high > low:
            total += Fraction(rate) * (Fraction(high) - Fraction(low))
    return total


@given(curves(), st.floats(0, 1e11), st.floats(0, 20))
def test_moving_bytes_along_a_curve_is_the_inverse_of_its_integral(
    curve: BandwidthCurve, amount: float, start_s: float
) -> None:
    seconds = curve.seconds_to_move(amount, start_s)
    assert float(moved(curve, start_s, start_s + seconds)) == pytest.approx(amount, rel=1e-9, abs=1e4)


@given(curves(), st.floats(0, 1e10), st.floats(0, 1e10))
def test_two_pieces_take_as_long_as_one(curve: BandwidthCurve, first: float, second: float) -> None:
    a = curve.seconds_to_move(first, 0.0)
    b = curve.seconds_to_move(second, a)
    assert a + b == pytest.approx(curve.seconds_to_move(first + second, 0.0), rel=1e-9, abs=1e-12)


def test_a_pass_takes_what_the_formula_says() -> None:
    curve = BandwidthCurve.constant(50e9)
    assert Work(1.6e9, fixed_s=0.002).seconds(curve, 2e9) == pytest.approx(0.034)
    assert Work(1.6e9, 3.15, 0.002).seconds(curve, 2e9) == pytest.approx(3.152)
    # A dense model read in order through a cache that is too small: all of it again for every token.
    assert Work(1.6e9, paged_bytes=1.6e9).seconds(curve, 2e9) == pytest.approx(0.032 + 0.8)


def test_a_dip_costs_exactly_what_it_covers() -> None:
    curve = BandwidthCurve((0.0, 1.0, 2.0), (10e9, 5e9, 10e9))
    assert curve.seconds_to_move(5e9, 0.25) == pytest.approx(0.5)
    assert curve.seconds_to_move(10e9, 0.5) == pytest.approx(0.5 + 1.0 + 0.0)
    assert curve.seconds_to_move(20e9, 0.0) == pytest.approx(2.5)
    assert (curve.rate_at(0.99), curve.rate_at(1.0), curve.rate_at(9.0)) == (10e9, 5e9, 10e9)


@given(st.lists(st.floats(1e-7, 10.0), max_size=300))
def test_virtual_time_is_the_sum_and_never_runs_back(steps: list[float]) -> None:
    clock, before = VirtualClock(), 0.0
    for step in steps:
        clock.advance(step)
        assert clock.now_s >= before
        before = clock.now_s
    assert clock.now_s == pytest.approx(math.fsum(steps), rel=1e-15, abs=1e-18)


@pytest.mark.parametrize("amount", [-1e-9, math.nan, math.inf])
def test_a_clock_refuses_what_is_no_time(amount: float) -> None:
    with pytest.raises(ValueError, match="cannot advance"):
        VirtualClock().advance(amount)


def test_a_million_small_steps_do_not_drift() -> None:
    clock = VirtualClock()
    for _ in range(1_000_000):
        clock.advance(0.1)
    assert clock.now_s == 100_000.0


def test_curve_files() -> None:
    text = "# seconds rate\n0 50GB/s\n\n30s, 25GB/s # another program\n90 40GB/s\n"
    assert parse_curve(text, "t", parse_rate) == BandwidthCurve((0, 30, 90), (50e9, 25e9, 40e9))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no rows"),
        ("5 1GB/s", "start at 0"),
        ("0 1GB/s\n0 2GB/s", "rise"),
        ("0 1GB/s\n1 2GB", "line 2"),
        ("0 1GB/s\nx 2GB/s", "line 2: 'x' is not a number of seconds"),
        ("0", "line 1: 1 words"),
        ("0 0GB/s", "line 1"),
        ("0 1GB/s\nnan 2GB/s", "rise"),
    ],
)
def test_curve_files_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_curve(text, "t", parse_rate)


class World:
    """A wall clock that moves when somebody works or sleeps; every sleep oversleeps by `late_s`."""

    def __init__(self, late_s: float = 0.0) -> None:
        self.time_s, self.late_s, self.slept = 100.0, late_s, 0

    def now(self) -> float:
        return self.time_s

    def sleep(self, seconds: float) -> None:
        self.slept += 1
        self.time_s += seconds + self.late_s


def run(world: World, work_s: list[float], device_s: float) -> tuple[float, list[bool]]:
    pacer = Pacer(world.now, world.sleep)
    pacer.start()
    start, limited = world.time_s, []
    for seconds in work_s:
        world.time_s += seconds
        limited.append(pacer.pace(device_s))
    return world.time_s - start, limited


@given(st.floats(0, 0.004), st.lists(st.floats(0.0, 0.005), min_size=50, max_size=200))
def test_oversleeping_does_not_drift(late_s: float, work_s: list[float]) -> None:
    took, limited = run(World(late_s), work_s, 0.01)
    assert not any(limited)
    assert 0.01 * len(work_s) - 1e-9 <= took <= 0.01 * len(work_s) + late_s + 1e-9


def test_a_slow_token_is_said_and_leaves_no_debt() -> None:
    took, limited = run(World(), [0.002, 0.050, 0.002, 0.002], 0.01)
    assert limited == [False, True, False, False]
    assert took == pytest.approx(0.01 + 0.05 + 0.01 + 0.01)


def test_a_host_slower_than_the_device_never_sleeps() -> None:
    world = World()
    took, limited = run(world, [0.02] * 30, 0.01)
    assert (all(limited), world.slept) == (True, 0)
    assert took == pytest.approx(0.6)


def test_a_clock_that_jumps_back_does_not_freeze_the_run() -> None:
    world = World()
    pacer = Pacer(world.now, world.sleep)
    pacer.start()
    world.time_s -= 3600
    before = world.time_s
    assert pacer.pace(0.01) is False
    assert world.time_s - before == pytest.approx(0.01)
    assert pacer.backward_steps == 1
