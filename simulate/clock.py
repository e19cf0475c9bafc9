"""The device's clock: what a piece of work would have taken there, added up in virtual time.

Seconds of one pass:

    t = max(moved bytes / bandwidth, compute) + fixed + paged bytes / storage

Bandwidth may be a curve over time (another program starts, the laptop gets hot): the bytes are then moved
along the curve, so a dip costs exactly what it covers. This module adds seconds to a number; it never sleeps
(see `pace`) and knows neither models nor devices.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.errors import UserError


@dataclass(frozen=True)
class BandwidthCurve:
    """Bandwidth over device time: from `times_s[i]` on it is `rates_Bps[i]`; the last one holds for ever.

    Raises `UserError` unless times start at 0 and rise, and every rate is positive and finite.
    """

    times_s: tuple[float, ...]
    rates_Bps: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.times_s or len(self.times_s) != len(self.rates_Bps):
            raise UserError("a bandwidth curve needs as many rates as times, and at least one")
        if self.times_s[0] != 0 or not all(
            b > a for a, b in zip(self.times_s, self.times_s[1:], strict=False)
        ):
            raise UserError("the times of a bandwidth curve must start at 0 s and rise")
        if not all(math.isfinite(rate) and rate > 0 for rate in self.rates_Bps):
            raise UserError("every rate of a bandwidth curve must be above zero and finite")

    @classmethod
    def constant(cls, rate_Bps: float) -> BandwidthCurve:
        return cls((0.0,), (rate_Bps,))

    def scaled(self, factor: float) -> BandwidthCurve:
        return BandwidthCurve(self.times_s, tuple(rate * factor for rate in self.rates_Bps))

    def rate_at(self, time_s: float) -> float:
        return self.rates_Bps[max(0, bisect_right(self.times_s, time_s) - 1)]

    def seconds_to_move(self, bytes_: float, start_s: float) -> float:
        """Seconds to move `bytes_` beginning at `start_s`: the integral of the rate over them is `bytes_`."""
        left, now = float(bytes_), start_s
        place = max(0, bisect_right(self.times_s, start_s) - 1)
        while place + 1 < len(self.times_s):
            room = self.rates_Bps[place] * (self.times_s[place + 1] - now)
            if left <= room:
                break
            left -= room
            now = self.times_s[place + 1]
            place += 1
        return now - start_s + left / self.rates_Bps[place]


@dataclass(frozen=True)
class Work:
    """One pass. `moved_bytes`: weighed by the runtime's factors; `paged_bytes`: read again from storage."""

    moved_bytes: float = 0.0
    compute_s: float = 0.0
    fixed_s: float = 0.0
    paged_bytes: float = 0.0

    def seconds(self, curve: BandwidthCurve, storage_Bps: float | None, start_s: float = 0.0) -> float:
        """Device seconds of this pass beginning at `start_s`; paging without a storage rate is free."""
        moving_s = curve.seconds_to_move(self.moved_bytes, start_s)
        paging_s = self.paged_bytes / storage_Bps if storage_Bps else 0.0
        return max(moving_s, self.compute_s) + self.fixed_s + paging_s


class VirtualClock:
    """Device time of a run. Sums with `math.fsum`'s exactness kept cheap: Kahan's compensated addition."""

    def __init__(self, start_s: float = 0.0) -> None:
        self.now_s = start_s
        self._lost_s = 0.0

    def advance(self, seconds: float) -> None:
        """Adds `seconds`. Raises ValueError for a negative or non-finite amount: time does not run back."""
        if not (seconds >= 0 and math.isfinite(seconds)):
            raise ValueError(f"a clock cannot advance by {seconds} s")
        step = seconds - self._lost_s
        total = self.now_s + step
        self._lost_s = (total - self.now_s) - step
        self.now_s = total


def parse_curve(text: str, name: str, parse_rate: Any) -> BandwidthCurve:
    """A curve from lines `SECONDS RATE` such as `0 50GB/s`; `#` begins a comment, a comma may separate.

    `parse_rate` turns `50GB/s` into bytes per second. `UserError` names the line that cannot be read.
    """
    rows: list[tuple[float, float]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].replace(",", " ").split()
        if words:
            rows.append(_row(words, f"{name}, line {number}", parse_rate))
    if not rows:
        raise UserError(f"{name} has no rows: give lines such as `0 50GB/s`")
    times, rates = zip(*rows, strict=True)
    return BandwidthCurve(times, rates)


def _row(words: Sequence[str], place: str, parse_rate: Any) -> tuple[float, float]:
    if len(words) != 2:
        raise UserError(f"{place}: {len(words)} words, but SECONDS RATE were needed, such as `30 25GB/s`")
    try:
        seconds = float(words[0].removesuffix("s"))
    except ValueError:
        raise UserError(f"{place}: {words[0]!r} is not a number of seconds") from None
    try:
        return seconds, parse_rate(words[1])
    except UserError as error:
        raise UserError(f"{place}: {error}") from None
