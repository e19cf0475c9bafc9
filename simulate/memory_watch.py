"""Samples a process's memory as two numbers, private and file-backed, and keeps their peaks.

Resident size alone mixes memory that a process owns with file pages that the kernel may take back, so a
mapped model looks as large as a copied one. Private is anonymous memory; mapped is resident file
pages (weights and shared libraries). The sampler is a thread in the parent, so it sees a child that is stuck
in native code.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import psutil

INTERVAL_S = 0.01


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of one moment, or peaks of each kind (which need not be of the same moment)."""

    private_bytes: int = 0
    mapped_bytes: int = 0
    samples: int = 0
    source: str = "none"

    def peak_with(self, other: MemoryUse) -> MemoryUse:
        return MemoryUse(
            max(self.private_bytes, other.private_bytes),
            max(self.mapped_bytes, other.mapped_bytes),
            self.samples + other.samples,
            other.source if other.samples else self.source,
        )


def read_use(process: psutil.Process) -> MemoryUse:
    """Private and mapped bytes now.

    Linux: resident minus shared pages of statm, cheap enough for every 10 ms. Elsewhere: unique set size,
    which psutil offers on macOS and Windows. Raises psutil.Error when the process is gone or may not be read.
    """
    info = process.memory_info()
    if has_shared(info):
        return MemoryUse(info.rss - info.shared, info.shared, 1, "statm")
    unique = process.memory_full_info().uss
    return MemoryUse(unique, max(0, info.rss - unique), 1, "uss")


def has_shared(info: Any) -> bool:
    """Whether this system counts shared pages apart (Linux)."""
    return hasattr(info, "shared")


def read_exact(pid: int) -> MemoryUse | None:
    """Private and mapped bytes from smaps_rollup: exact, slow (it walks the page tables); None if unreadable.

    statm's counters are kept per thread and lag by some pages; this one corrects the peak after a phase.
    """
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as stream:  # noqa: PTH123 - a pseudo file
            fields = dict(line.split(":", 1) for line in stream.read().splitlines()[1:] if ":" in line)
    except (OSError, ValueError):
        return None
    with contextlib.suppress(KeyError, ValueError):
        resident, anonymous = (_kib(fields[name]) for name in ("Rss", "Anonymous"))
        return MemoryUse(anonymous, resident - anonymous, 1, "smaps_rollup")
    return None


def _kib(text: str) -> int:
    return int(text.split()[0]) * 1024


class MemoryWatch:
    """A sampling thread over one child. `on_over` is called once when private bytes pass `limit_bytes`."""

    def __init__(
        self, pid: int, *, limit_bytes: int | None = None, on_over: Callable[[], None] | None = None
    ) -> None:
        self._process = psutil.Process(pid)
        self._limit_bytes, self._on_over = limit_bytes, on_over
        self._stop = threading.Event()
        self._peak = MemoryUse()
        self.latest = MemoryUse()
        self._lock = threading.Lock()
        self.problem: str | None = None
        self.over = False
        self._thread = threading.Thread(target=self._run, name="seatrial-memory", daemon=True)
        self._thread.start()

    @property
    def peak(self) -> MemoryUse:
        with self._lock:
            return replace(self._peak)

    def note(self, use: MemoryUse | None) -> None:
        """Takes another reading (such as `read_exact`) into the peak."""
        if use is not None:
            with self._lock:
                self._peak = self._peak.peak_with(use)

    def stop(self) -> MemoryUse:
        self._stop.set()
        self._thread.join()
        return self.peak

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                use = read_use(self._process)
            except psutil.NoSuchProcess:
                return
            except (psutil.Error, OSError) as error:
                self.problem = f"memory could not be sampled: {error}"
                return
            self.latest = use
            self.note(use)
            self._check(use)
            self._stop.wait(INTERVAL_S)

    def _check(self, use: MemoryUse) -> None:
        if self._limit_bytes is None or self.over or use.private_bytes <= self._limit_bytes:
            return
        self.over = True
        if self._on_over is not None:
            self._on_over()
