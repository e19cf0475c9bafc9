"""How much memory this process may really use: the machine's, or a container's limit where that is lower.

/proc/meminfo is not namespaced: inside a container it shows the host, wrong in the reassuring direction. The
lowest limit on the way up from the process's own group counts. Both cgroup versions; elsewhere the machine's
total.
"""

from __future__ import annotations

from pathlib import Path

import attrs
import psutil

UNLIMITED = 1 << 60


@attrs.frozen
class UsableMemory:
    """Bytes, and where the figure comes from."""

    bytes: int
    source: str


def usable_memory(
    *, total_bytes: int | None = None, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")
) -> UsableMemory:
    """The lower of the machine's memory and the limits of the process's control groups."""
    total = psutil.virtual_memory().total if total_bytes is None else total_bytes
    limits = [found for found in _limits(proc, cgroups) if found.bytes < total]
    return min(limits, key=lambda found: found.bytes, default=UsableMemory(total, "memory of the machine"))


def _limits(proc: Path, cgroups: Path) -> list[UsableMemory]:
    """Every limit on the process's own groups and those above them."""
    try:
        lines = (proc / "self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        # No control groups here (macOS, Windows, a bare proc).
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found += _up(cgroups, path, "memory.max")
        elif "memory" in controllers.split(","):
            found += _up(cgroups / "memory", path, "memory.limit_in_bytes")
    return found


def _up(root: Path, path: str, name: str) -> list[UsableMemory]:
    """Limits in a group and its ancestors; a container often sees its own group as the root."""
    folder = root / path.lstrip("/")
    found = []
    for place in (folder, *folder.parents):
        limit = _read_limit(place / name)
        if limit is not None:
            found.append(UsableMemory(limit, f"container limit in {place / name}"))
        if place == root:
            break
    return found


def _read_limit(file: Path) -> int | None:
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:
        # The group is not visible from inside this container: its ancestors are looked at next.
        return None
    return int(text) if text.isdigit() and int(text) < UNLIMITED else None
