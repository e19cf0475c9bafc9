"""Keeping a real pace: sleep until the device would have been done.

Due times are absolute, so that what a sleep overshoots is taken off the next one and the pace does not
drift. A host slower than the device is never made up for later (no burst): the schedule starts again from
now, and the token counts as host-limited. Time source and sleep are parameters; the clock must be monotonic,
and one that runs backwards all the same is taken as standing still.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Pacer:
    """Paces one stream of work; call `start` when the first piece begins and `pace` when each is done."""

    def __init__(
        self, now: Callable[[], float] = time.perf_counter, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._now, self._sleep = now, sleep
        self._last_s = now()
        self._due_s = self._last_s
        self.backward_steps = 0

    def now_s(self) -> float:
        """The time, never less than the time before."""
        now = self._now()
        if now < self._last_s:
            self.backward_steps += 1
            # The jump is taken out of the schedule, else a step back would freeze the run for as long.
            self._due_s -= self._last_s - now
        self._last_s = now
        return now

    def start(self) -> None:
        self._due_s = self.now_s()

    def pace(self, device_s: float) -> bool:
        """Sleeps until `device_s` after the previous due time; True when the host was too slow for it."""
        now = self.now_s()
        self._due_s += device_s
        if now > self._due_s:
            self._due_s = now
            return True
        while (left := self._due_s - self.now_s()) > 0:
            self._sleep(left)
        return False
