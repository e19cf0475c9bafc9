"""Many runs in one process, and what has grown since the first ones: nothing should have.

`footprint` is what a run could leak; `soak` makes the runs. The test does a few, `bench/soak.py` fifty.
"""

from __future__ import annotations

import gc
import os
import tempfile
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from seatrial.export.cache import cache_folder
from seatrial.simulate.cgroup import hierarchies


@dataclass(frozen=True)
class Footprint:
    """What this process holds and what lies around because of it."""

    private_bytes: int
    descriptors: int
    threads: int
    children: int
    groups: int
    cache_files: int
    temporary_files: int


def footprint() -> Footprint:
    gc.collect()
    process = psutil.Process()
    groups = {
        group
        for hierarchy in hierarchies()
        for parent in hierarchy.ancestors()
        for group in parent.glob(f"seatrial-*-{os.getpid()}-*")
    }
    return Footprint(
        private_bytes=process.memory_full_info().uss,
        descriptors=process.num_fds(),
        threads=threading.active_count(),
        children=len(process.children()),
        groups=len(groups),
        cache_files=sum(1 for file in cache_folder().rglob("*") if file.is_file()),
        temporary_files=sum(1 for file in Path(tempfile.gettempdir()).glob("tmp*") if file.is_file()),
    )


def soak(one: Callable[[int], object], runs: int, warm_up: int) -> list[Footprint]:
    """The footprint after `warm_up` runs (lazy imports, caches) and after each of `runs` more."""
    for number in range(warm_up):
        one(number)
    found = [footprint()]
    for number in range(runs):
        one(warm_up + number)
        found.append(footprint())
    return found


def growth(found: list[Footprint]) -> dict[str, int]:
    """Last minus first, per kind."""
    first, last = asdict(found[0]), asdict(found[-1])
    return {name: last[name] - first[name] for name in first}
