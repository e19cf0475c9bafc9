"""The memory ceiling of a run: the strongest mechanism that can really be made, and what it is worth.

Order: cgroup-v2, cgroup-v1, rlimit, accounting. A mechanism counts only once it was made and read back; each
one that could not be made leaves its reason in `notes`, so a run without an enforced ceiling never looks like
one with. The child joins before `exec`, so even the interpreter's pages are counted. What runs under the
ceiling, and what to do when it is hit, is decided elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from seatrial.errors import UserError
from seatrial.simulate.cgroup import PROC, Group, hierarchies, make_group, tightest_limit

CGROUP_V2, CGROUP_V1, RLIMIT, ACCOUNTING = "cgroup-v2", "cgroup-v1", "rlimit", "accounting"
MECHANISMS = (CGROUP_V2, CGROUP_V1, RLIMIT, ACCOUNTING)

# The shell's exit code when the child could not join; no program of ours uses it.
JOIN_FAILED = 97

_JOIN = f'echo 0 > "$1" || exit {JOIN_FAILED}; shift; exec "$@"'
_RLIMIT = f'ulimit -d "$1" || exit {JOIN_FAILED}; shift; exec "$@"'

# Below this no interpreter with onnxruntime starts: a typing mistake, not a device.
LEAST_CEILING_BYTES = 1_000_000


@dataclass(frozen=True)
class HostMemory:
    """What this machine lets us use: the smallest of physical memory and every control group above us."""

    bytes: int
    source: str


def host_memory(proc: Path = PROC) -> HostMemory:
    """Usable bytes and which file or call said so.

    Physical memory alone is wrong inside a container: `/proc/meminfo` is not namespaced.
    """
    limits = [HostMemory(_physical_bytes(proc), _physical_source(proc))]
    for hierarchy in hierarchies(proc):
        tightest = tightest_limit(hierarchy)
        if tightest is not None:
            limits.append(HostMemory(tightest[0], str(tightest[1])))
    return min(limits, key=lambda memory: memory.bytes)


def _meminfo(proc: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in (proc / "meminfo").read_text().splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) * 1024
    return None


def _physical_bytes(proc: Path) -> int:
    return _meminfo(proc) or int(psutil.virtual_memory().total)


def _physical_source(proc: Path) -> str:
    return str(proc / "meminfo") if _meminfo(proc) else "psutil.virtual_memory"


@dataclass
class Ceiling:
    """A ceiling in force. Use as a context manager: leaving it removes the group and whatever lives in it."""

    limit_bytes: int
    mechanism: str
    notes: tuple[str, ...] = ()
    group: Group | None = None
    _closed: bool = field(default=False, repr=False)

    @property
    def enforced(self) -> bool:
        """True when the kernel refuses more; accounting only sees it, and kills a moment later."""
        return self.mechanism != ACCOUNTING

    def command(self, argv: list[str]) -> list[str]:
        """`argv` wrapped so that the process is under the ceiling before it executes."""
        if self.group is not None:
            return ["/bin/sh", "-c", _JOIN, "seatrial-join", str(self.group.procs), *argv]
        if self.mechanism == RLIMIT:
            return ["/bin/sh", "-c", _RLIMIT, "seatrial-limit", str(self.limit_bytes // 1024), *argv]
        return argv

    def holds(self, pid: int, data_limit_bytes: int | None) -> bool:
        """Whether process `pid` really is under this ceiling (`data_limit_bytes`: its own RLIMIT_DATA)."""
        if self.group is not None:
            return pid in self.group.pids()
        if self.mechanism == RLIMIT:
            return data_limit_bytes == self.limit_bytes // 1024 * 1024
        return True

    def kills(self) -> int:
        """Processes the kernel killed at this ceiling so far."""
        return self.group.kills() if self.group is not None else 0

    def peak_bytes(self) -> int | None:
        """The kernel's own peak (file pages included) where it keeps one."""
        return self.group.peak_bytes() if self.group is not None else None

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self.group is not None and not self.group.remove():
            print(f"seatrial: could not remove {self.group.folder}", file=sys.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_ceiling(
    limit_bytes: int,
    *,
    strict: bool = False,
    mapped: bool = False,
    proc: Path = PROC,
    platform: str = sys.platform,
) -> Ceiling:
    """The strongest ceiling of `limit_bytes` that can be made here.

    `mapped`: the run maps its weights. RLIMIT_DATA counts writable private mappings as data, so it would
    refuse such a run memory that costs nothing; accounting is used instead, and said.
    Raises `UserError` for a ceiling too small to start anything, and under `strict` for anything weaker than
    enforcement.
    """
    if limit_bytes < LEAST_CEILING_BYTES:
        raise UserError(
            f"a ceiling of {limit_bytes} bytes starts nothing: give at least 1MB, such as --ceiling 8GB"
        )
    notes: list[str] = []
    ceiling = _by_group(limit_bytes, notes, proc) or _by_rlimit(limit_bytes, notes, mapped, platform)
    if ceiling is None:
        if strict:
            raise UserError(
                f"--strict: no enforced memory ceiling can be made here ({'; '.join(notes)}); "
                "run where a memory cgroup may be made, or drop --strict to have it accounted"
            )
        notes.append("the ceiling is accounted: sampled, and the run is stopped when private bytes pass it")
        ceiling = Ceiling(limit_bytes, ACCOUNTING)
    host = host_memory(proc)
    if host.bytes < limit_bytes:
        notes.append(
            f"this machine lets a process have {host.bytes} bytes ({host.source}), less than the ceiling"
        )
    ceiling.notes = tuple(notes)
    return ceiling


def _by_group(limit_bytes: int, notes: list[str], proc: Path) -> Ceiling | None:
    found = hierarchies(proc)
    if not found:
        notes.append("cgroup: none mounted that could hold a memory limit")
    for hierarchy in found:
        name = CGROUP_V2 if hierarchy.version == 2 else CGROUP_V1
        try:
            group = make_group(hierarchy, limit_bytes)
        except OSError as error:
            notes.append(f"{name}: {error.strerror or error}")
            continue
        # A stronger version that is absent is no weakness of this one.
        notes.clear()
        if not group.swap_limited and _swap_bytes():
            notes.append(f"{name}: swap is not limited here, so memory past the ceiling may be swapped")
        return Ceiling(group.limit_bytes, name, group=group)
    return None


def _swap_bytes() -> int:
    try:
        return int(psutil.swap_memory().total)
    except (OSError, RuntimeError):
        return 0


def _by_rlimit(limit_bytes: int, notes: list[str], mapped: bool, platform: str) -> Ceiling | None:
    if platform != "linux":
        notes.append(f"rlimit: {platform} does not refuse memory by RLIMIT_DATA")
        return None
    if mapped:
        notes.append("rlimit: would count mapped weights as data")
        return None
    hard = _data_hard_limit()
    if hard is not None and hard < limit_bytes:
        notes.append(f"rlimit: the hard limit here is {hard} bytes")
        return None
    notes.append("rlimit: RLIMIT_DATA counts reserved as well as used memory: a coarse stand-in for a cgroup")
    return Ceiling(limit_bytes, RLIMIT)


def _data_hard_limit() -> int | None:
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    return None if hard == resource.RLIM_INFINITY else hard


def drop_cached_pages(files: Iterable[Path]) -> None:
    """Asks the kernel to forget the cached pages of `files`.

    Pages are charged to the group that reads them first: a file that is already cached would be mapped for
    free, and the ceiling would look kinder than it is. A no-op where the call is missing.
    """
    advise = getattr(os, "posix_fadvise", None)
    if advise is None:
        return
    for file in files:
        with contextlib.suppress(OSError), file.open("rb") as stream:
            os.fsync(stream.fileno())
            advise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def describe_death(returncode: int, *, killed_for_memory: bool) -> str:
    """One plain phrase for how a child ended."""
    if killed_for_memory:
        return "out of memory"
    if returncode == JOIN_FAILED:
        return "could not join its memory ceiling"
    if returncode < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-returncode).name}"
    return f"ended with exit code {returncode}"
