"""Memory control groups, versions 2 and 1: where we are, what already limits us, and one group of our own.

Reads `/proc/self/cgroup` and `/proc/self/mountinfo`, so it works in containers whose group path does not
exist below the mount. The root of /proc is a parameter: tests hand in trees of plain files. This module knows
nothing of models or runs; it makes a group, reads its counters and removes it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import time
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")

# Version 1 has no word for "no limit": it is the largest page-aligned number, which depends on the page size.
_NO_LIMIT = 1 << 62

_OWN_NAME = re.compile(r"seatrial-(\d+)-(\d+)-[0-9a-f]{8}")


@dataclass(frozen=True)
class Hierarchy:
    """One mounted memory hierarchy: `version` 2 or 1, its mount point and our own group in it."""

    version: int
    mount: Path
    own: Path

    @property
    def limit_file(self) -> str:
        return "memory.max" if self.version == 2 else "memory.limit_in_bytes"

    def ancestors(self) -> list[Path]:
        """Our own group first, then its parents up to the mount point."""
        inside = [self.own, *self.own.parents]
        return [group for group in inside if group == self.mount or self.mount in group.parents]


def parse_limit(text: str) -> int | None:
    """Bytes of a limit file; None for `max` and for version 1's sentinel.

    Raises ValueError when the text is neither.
    """
    word = text.strip()
    if word == "max":
        return None
    value = int(word)
    return None if value >= _NO_LIMIT or value < 0 else value


def hierarchies(proc: Path = PROC) -> list[Hierarchy]:
    """The memory hierarchies of this process, version 2 first; empty where there is no /proc."""
    try:
        own = _own_paths((proc / "self/cgroup").read_text())
        mounts = _mounts((proc / "self/mountinfo").read_text())
    except OSError:
        return []
    found = []
    for version, mount, root in mounts:
        path = own.get(version)
        if path is not None:
            found.append(Hierarchy(version, mount, _below(mount, root, path)))
    return sorted(found, key=lambda h: -h.version)


def _own_paths(text: str) -> dict[int, str]:
    """Version -> path of our group, from `/proc/self/cgroup` lines `id:controllers:path`."""
    paths: dict[int, str] = {}
    for line in text.splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0" and not controllers:
            paths[2] = path
        elif "memory" in controllers.split(","):
            paths[1] = path
    return paths


def _mounts(text: str) -> list[tuple[int, Path, str]]:
    """(version, mount point, root within the hierarchy) of each cgroup mount that can carry memory."""
    found = []
    for line in text.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 5 or not kind:
            continue
        if kind[0] == "cgroup2":
            found.append((2, Path(_unescape(fields[4])), _unescape(fields[3])))
        elif kind[0] == "cgroup" and "memory" in kind[-1].split(","):
            found.append((1, Path(_unescape(fields[4])), _unescape(fields[3])))
    return found


def _unescape(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), path)


def _below(mount: Path, root: str, path: str) -> Path:
    """Our group's folder; the mount itself when the path lies outside what is mounted here."""
    relative = path.removeprefix(root.rstrip("/")) if root != "/" else path
    folder = mount / relative.lstrip("/")
    return folder if folder.is_dir() else mount


def tightest_limit(hierarchy: Hierarchy) -> tuple[int, Path] | None:
    """The smallest limit of our group and its parents, with its file; unreadable files are passed over."""
    limits = []
    for group in hierarchy.ancestors():
        file = group / hierarchy.limit_file
        with contextlib.suppress(OSError, ValueError):
            value = parse_limit(file.read_text())
            if value is not None:
                limits.append((value, file))
    return min(limits, default=None)


@dataclass(frozen=True)
class Group:
    """A group that we made, its limit in force. `limit_bytes` is what the kernel says, rounded to pages."""

    version: int
    folder: Path
    limit_bytes: int
    swap_limited: bool

    @property
    def procs(self) -> Path:
        return self.folder / "cgroup.procs"

    def peak_bytes(self) -> int | None:
        """The kernel's own peak, file pages included; None before Linux 5.19 (version 2)."""
        name = "memory.peak" if self.version == 2 else "memory.max_usage_in_bytes"
        return _read_int(self.folder / name)

    def kills(self) -> int:
        """How often the kernel killed in this group for want of memory."""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        return _field(self.folder / name, "oom_kill") or 0

    def pids(self) -> list[int]:
        with contextlib.suppress(OSError):
            return [int(pid) for pid in self.procs.read_text().split()]
        return []

    def remove(self, *, patience_s: float = 5.0) -> bool:
        """Kills what still lives in the group and removes it; False if it stayed busy."""
        deadline = time.monotonic() + patience_s
        while True:
            for pid in self.pids():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            try:
                self.folder.rmdir()
                return True
            except FileNotFoundError:
                return True
            except OSError:
                if time.monotonic() >= deadline:
                    return False
                time.sleep(0.005)


def make_group(hierarchy: Hierarchy, limit_bytes: int) -> Group:
    """A new group with `limit_bytes`, in our own group or the nearest parent that lets us.

    Raises OSError with the last reason when none does.
    """
    reason: OSError = PermissionError("no group may be made here")
    for parent in hierarchy.ancestors():
        try:
            _remove_stale(parent)
            return _make_below(parent, hierarchy, limit_bytes)
        except OSError as error:
            reason = error
    raise reason


def _make_below(parent: Path, hierarchy: Hierarchy, limit_bytes: int) -> Group:
    folder = parent / f"seatrial-{_pid_namespace()}-{os.getpid()}-{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        if hierarchy.version == 2 and not (folder / "memory.max").exists():
            _write(parent / "cgroup.subtree_control", "+memory")
        _write(folder / hierarchy.limit_file, str(limit_bytes))
        actual = parse_limit((folder / hierarchy.limit_file).read_text())
        if actual is None or actual > limit_bytes:
            raise OSError(f"{folder / hierarchy.limit_file} did not take {limit_bytes}")
        swap = _limit_swap(folder, hierarchy.version, actual)
        if not os.access(folder / "cgroup.procs", os.W_OK):
            raise PermissionError(f"{folder / 'cgroup.procs'} cannot be written")
        return Group(hierarchy.version, folder, actual, swap)
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError):
            folder.rmdir()
        raise error if isinstance(error, OSError) else OSError(str(error)) from error


def _limit_swap(folder: Path, version: int, limit_bytes: int) -> bool:
    """Without this, memory beyond the limit goes to swap instead of being refused."""
    name, value = (
        ("memory.swap.max", "0") if version == 2 else ("memory.memsw.limit_in_bytes", str(limit_bytes))
    )
    try:
        _write(folder / name, value)
    except OSError:
        return False
    return True


def _write(file: Path, text: str) -> None:
    """Writes to a file that the kernel made; never creates one, which would look like a limit in force."""
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _remove_stale(parent: Path) -> None:
    """Groups of runs that were killed before they could tidy up: empty, of a process that is gone."""
    for folder in parent.glob("seatrial-*"):
        match = _OWN_NAME.fullmatch(folder.name)
        if match is None or int(match[1]) != _pid_namespace() or _alive(int(match[2])):
            continue
        with contextlib.suppress(OSError):
            folder.rmdir()


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _pid_namespace() -> int:
    """Pids are compared only within one namespace: another container's live run is not stale."""
    try:
        return Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        return 0


def _read_int(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return None


def _field(file: Path, name: str) -> int | None:
    with contextlib.suppress(OSError):
        for line in file.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name and value.strip().isdigit():
                return int(value)
    return None
