"""Amounts with units: bytes, rates, times and operations per second, read strictly and printed honestly.

Decimal (GB = 10^9) and binary (GiB = 2^30) units are different words and are never guessed: `8 G` and `8gb`
are refused. A printed unit is the divisor that was used. This module does not know what an amount is for.
"""

from __future__ import annotations

import math
import re
from typing import TypeVar

from seatrial.errors import UserError

BYTE_UNITS = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}
OPS_UNITS = {
    "GOPS": 1e9,
    "GFLOPS": 1e9,
    "TOPS": 1e12,
    "TFLOPS": 1e12,
}

Number = TypeVar("Number", int, float)
_AMOUNT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z/]*)\s*")


def parse_bytes(text: str | int) -> int:
    """Bytes of `8GB`, `8GiB`, `8192MiB` or a plain number of bytes.

    Raises:
        UserError: an unknown unit, half a unit (`8 G`), or an amount that is not above zero.
    """
    if isinstance(text, int) and not isinstance(text, bool):
        return _positive(text, str(text), "an amount of memory")
    number, unit = _split(str(text), "an amount of memory", "8GB (10^9), 8GiB (2^30)")
    if not unit:
        return round(_positive(number, str(text), "an amount of memory"))
    factor = _factor(
        unit, BYTE_UNITS, str(text), "an amount of memory", "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB"
    )
    return round(_positive(number * factor, str(text), "an amount of memory"))


def parse_rate(text: str) -> float:
    """Bytes per second of `50GB/s`, `11.4GiB/s`, `416MB/s`."""
    number, unit = _split(str(text), "a rate", "50GB/s")
    if not unit.endswith("/s"):
        raise UserError(f"{text!r} is not a rate: bytes per second are needed, as in 50GB/s or 416MB/s")
    factor = _factor(unit[:-2], BYTE_UNITS, str(text), "a rate", "kB/s, MB/s, GB/s, KiB/s, MiB/s, GiB/s")
    return _positive(number * factor, str(text), "a rate")


def parse_time(text: str) -> float:
    """Seconds of `20s`, `300ms`, `1.5min`, `2h`."""
    number, unit = _split(str(text), "a time", "20s")
    factor = _factor(unit, TIME_UNITS, str(text), "a time", "us, ms, s, min, h")
    return _positive(number * factor, str(text), "a time")


def parse_ops(text: str) -> float:
    """Operations per second of `20TOPS` or `2.6TFLOPS` (one multiply-add is two operations)."""
    number, unit = _split(str(text), "a compute rate", "20TOPS")
    factor = _factor(unit, OPS_UNITS, str(text), "a compute rate", "GOPS, TOPS, GFLOPS, TFLOPS")
    return _positive(number * factor, str(text), "a compute rate")


def format_bytes(amount: float) -> str:
    """`527.56 MB`: decimal, the unit is the divisor."""
    return _scaled(amount, "B", (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)))


def format_rate(amount: float) -> str:
    """`50.00 GB/s`."""
    return format_bytes(amount) + "/s"


def format_time(seconds: float) -> str:
    """`30.0 ms`, `12.3 s`, `4.1 min`, `2.0 h`."""
    if not math.isfinite(seconds):
        return "unknown"
    if seconds < 1.0:
        return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} us"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def format_ops(ops: float) -> str:
    """`8.00 TOPS` (per second)."""
    return f"{ops / 1e12:.2f} TOPS" if ops >= 1e12 else f"{ops / 1e9:.1f} GOPS"


def _split(text: str, what: str, example: str) -> tuple[float, str]:
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise UserError(f"{text!r} is not {what}: a number and a unit are needed, as in {example}")
    return float(match[1]), match[2]


def _factor(unit: str, units: dict[str, float] | dict[str, int], text: str, what: str, known: str) -> float:
    if unit in units:
        return units[unit]
    if not unit:
        raise UserError(
            f"{text!r} is not {what}: a unit is missing, one of {known}, as in {text}{next(iter(units))}"
        )
    near = [name for name in units if name.lower() == unit.lower() or (unit and name.startswith(unit))]
    hint = f"; write {' or '.join(dict.fromkeys(near))} if that is meant" if near else ""
    raise UserError(f"{text!r} is not {what}: unit {unit!r} is not one of {known}{hint}")


def _positive(amount: Number, text: str, what: str) -> Number:
    if not (amount > 0 and math.isfinite(amount)):
        raise UserError(f"{text!r} is not {what}: it must be above zero and finite")
    return amount


def _scaled(amount: float, base: str, units: tuple[tuple[str, float], ...]) -> str:
    for unit, divisor in units:
        if abs(amount) >= divisor:
            return f"{amount / divisor:.2f} {unit}"
    return f"{amount:.0f} {base}"
