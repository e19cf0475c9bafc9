"""Amounts with units: decimal and binary never mixed, nothing guessed."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.devices.device import matches_memory
from seatrial.devices.units import (
    BYTE_UNITS,
    format_bytes,
    format_time,
    parse_bytes,
    parse_ops,
    parse_rate,
    parse_time,
)
from seatrial.errors import UserError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8GB", 8_000_000_000),
        ("8GiB", 8_589_934_592),
        ("8192MiB", 8_589_934_592),
        ("8000000000", 8_000_000_000),
        ("1.5 GB", 1_500_000_000),
        ("512kB", 512_000),
    ],
)
def test_bytes_keep_decimal_and_binary_apart(text: str, expected: int) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize(
    "text", ["8 G", "8gb", "8Gb", "8 M", "", "GB", "-1GB", "0GB", "8GB/s", "1e400GB", "nanGB"]
)
def test_a_half_or_unknown_unit_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        parse_bytes(text)


def test_half_a_unit_names_both_readings() -> None:
    with pytest.raises(UserError, match=r"GB or GiB"):
        parse_bytes("8 G")


def test_the_edge_of_fitting() -> None:
    """A need of 8.2 GB is above 8 GB and below 8 GiB, with 389,934,592 bytes to spare."""
    need = 8_200_000_000
    assert need > parse_bytes("8GB")
    assert parse_bytes("8GiB") - need == 389_934_592


def test_a_machine_sold_as_16_gb_may_report_14_9_gib() -> None:
    reported = round(14.90 * 2**30)
    assert matches_memory(parse_bytes("16GB"), reported)
    assert not matches_memory(parse_bytes("16GB"), parse_bytes("8GiB"))
    assert not matches_memory(parse_bytes("16GB"), parse_bytes("32GB"))


def test_rates_times_and_ops() -> None:
    assert parse_rate("50GB/s") == 50e9
    assert parse_rate("1GiB/s") == 2**30
    assert parse_time("20s") == 20.0
    assert parse_time("300ms") == pytest.approx(0.3)
    assert parse_ops("20TOPS") == 20e12
    assert parse_ops("153GFLOPS") == 153e9


@pytest.mark.parametrize("text", ["50GB", "50", "50 GB per s", "50gb/s"])
def test_a_rate_needs_per_second(text: str) -> None:
    with pytest.raises(UserError):
        parse_rate(text)


@pytest.mark.parametrize("text", ["20", "20 seconds", "-3s", "s"])
def test_a_time_needs_its_unit(text: str) -> None:
    with pytest.raises(UserError):
        parse_time(text)


@settings(deadline=None)
@given(st.integers(1, 10**6), st.sampled_from(sorted(BYTE_UNITS)))
def test_every_unit_is_its_divisor(number: int, unit: str) -> None:
    assert parse_bytes(f"{number}{unit}") == number * BYTE_UNITS[unit]


@settings(deadline=None)
@given(st.floats(1e3, 1e15))
def test_a_printed_amount_reads_back_within_its_rounding(amount: float) -> None:
    assert parse_bytes(format_bytes(amount)) == pytest.approx(amount, rel=0.005)


@settings(deadline=None)
@given(st.floats(1e-3, 1e6))
def test_a_printed_time_reads_back_within_its_rounding(seconds: float) -> None:
    assert math.isclose(parse_time(format_time(seconds)), seconds, rel_tol=0.06)
