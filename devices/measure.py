"""Probes the bare machine: read bandwidth by threads, matrix products, reading from storage, memory, cores.

Each probe takes a few seconds and reports the best of its rounds: what disturbs a round only makes it slower.
The figures go into a device file like anybody's. It knows no model; stepping a bundle is
`seatrial.simulate.calibrate`'s.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import platform
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import numpy as np
import psutil

from seatrial.devices.limits import UsableMemory, usable_memory
from seatrial.errors import UserError

# Far above any last-level cache, so that reading is reading memory.
BYTES_PER_THREAD = 192 << 20
ROUNDS = 5
MATRIX = 1024
STORAGE_BYTES = 256 << 20
BLOCK_BYTES = 4 << 20


@attrs.frozen
class MachineFigures:
    """What the probes found. Rates in bytes and operations per second; storage None where it cannot be read
    raw.
    """

    chip: str
    cores: int
    memory: UsableMemory
    bandwidth_by_threads: dict[int, float]
    matmul_ops: float
    storage_Bps: float | None
    storage_note: str

    @property
    def bandwidth_Bps(self) -> float:
        """The best of all thread counts."""
        return max(self.bandwidth_by_threads.values())


def measure_machine(folder: Path, *, progress: Callable[[str], None] = lambda _: None) -> MachineFigures:
    """All probes, about half a minute; `folder` lies on the storage that models are kept on."""
    cores = usable_cores()
    progress("read bandwidth")
    bandwidth = {threads: read_bandwidth(threads) for threads in thread_counts(cores)}
    progress("matrix product")
    ops = matmul_throughput()
    progress("storage")
    storage, note = storage_read(folder)
    return MachineFigures(chip_name(), cores, usable_memory(), bandwidth, ops, storage, note)


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_counts(cores: int) -> list[int]:
    """1, 2, 4, ... and all cores."""
    powers = [1 << power for power in range(16) if 1 << power < cores]
    return [*powers, cores]


def read_bandwidth(threads: int, *, bytes_per_thread: int = BYTES_PER_THREAD, rounds: int = ROUNDS) -> float:
    """Bytes per second of reading (no writing) with so many threads, best round."""
    arrays = [np.ones(bytes_per_thread // 8, np.uint64) for _ in range(threads)]
    with ThreadPoolExecutor(threads) as pool:
        seconds = [_timed(lambda: list(pool.map(np.bitwise_xor.reduce, arrays))) for _ in range(rounds + 1)]
    return threads * arrays[0].nbytes / min(seconds[1:])


def matmul_throughput(*, size: int = MATRIX, rounds: int = ROUNDS) -> float:
    """Operations per second of a square fp32 product with numpy's library on all its threads."""
    left = np.ones((size, size), np.float32)
    seconds = [_timed(lambda: left @ left) for _ in range(rounds + 1)]
    return 2.0 * size**3 / min(seconds[1:])


def storage_read(folder: Path, *, size: int = STORAGE_BYTES) -> tuple[float | None, str]:
    """Bytes per second of reading a fresh file past the page cache, and how; None where that is refused.

    Raises:
        UserError: the folder cannot be written or lacks the space.
    """
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix="seatrial-probe-", delete=False) as file:
            path = Path(file.name)
            try:
                block = os.urandom(BLOCK_BYTES)
                for _ in range(size // BLOCK_BYTES):
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
                return _read_uncached(path, size)
            finally:
                path.unlink()
    except OSError as error:
        raise UserError(f"{folder}: {size} bytes for the storage probe cannot be written: {error}") from None


def chip_name() -> str:
    """The processor's name as the system tells it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def peak_cpu_ops(cores: int) -> tuple[float, str]:
    """fp32 operations per second of all cores by vector width and clock, and how that was derived."""
    flags = _cpu_flags()
    lanes = 32 if "avx512f" in flags else 16 if "avx2" in flags else 8
    frequency = psutil.cpu_freq()
    clock = (frequency.max or frequency.current) * 1e6 if frequency else 2.5e9
    told = "the system's" if frequency else "assumed"
    return (
        cores * 2.0 * lanes * clock,
        f"derived: {cores} cores x {2 * lanes} FLOP x {clock / 1e9:.2f} GHz ({told} clock)",
    )


def _cpu_flags() -> frozenset[str]:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("flags"):
                return frozenset(line.partition(":")[2].split())
    return frozenset()


def _read_uncached(path: Path, size: int) -> tuple[float | None, str]:
    """O_DIRECT where the file system has it, else after dropping the file's pages."""
    direct = getattr(os, "O_DIRECT", 0)
    if direct:
        with contextlib.suppress(OSError):
            return _read_direct(path, size, direct), "read past the page cache (O_DIRECT)"
    if not hasattr(os, "posix_fadvise"):
        return None, "this system cannot read past its page cache here"
    with path.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return size / _timed(
            lambda: _read_all(file.fileno(), bytearray(BLOCK_BYTES))
        ), "read after dropping its pages"


def _read_direct(path: Path, size: int, flag: int) -> float:
    descriptor = os.open(path, os.O_RDONLY | flag)
    try:
        # An anonymous map is page-aligned, as O_DIRECT wants its buffers.
        with mmap.mmap(-1, BLOCK_BYTES) as buffer:
            return size / _timed(lambda: _read_all(descriptor, buffer))
    finally:
        os.close(descriptor)


def _read_all(descriptor: int, buffer: bytearray | mmap.mmap) -> None:
    while os.readv(descriptor, [buffer]):
        pass


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
