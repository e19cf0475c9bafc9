"""The control groups of this machine, whatever they are: version 2 with or without its controller, version 1.

The files of a fake tree take anything; a kernel refuses. What no group can be made in (no rights, nothing
mounted) must be left as it was, and the ceiling says what is in force instead.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psutil

from seatrial.simulate.ceiling import CGROUP_V1, CGROUP_V2, Ceiling, open_ceiling
from seatrial.simulate.cgroup import Group, Hierarchy, hierarchies, make_group, tightest_limit

LIMIT = 50_000_000


def own_groups(hierarchy: Hierarchy) -> list[Path]:
    return [group for folder in hierarchy.ancestors() for group in folder.glob(f"seatrial-*-{os.getpid()}-*")]


def limit_or_reason(hierarchy: Hierarchy) -> int | OSError:
    """What a group with the limit got, after it was removed again, or why there is none."""
    try:
        group = make_group(hierarchy, LIMIT)
    except OSError as error:
        return error
    try:
        assert (group.folder / hierarchy.limit_file).is_file()
        return group.limit_bytes
    finally:
        assert group.remove()


def test_a_hierarchy_takes_the_limit_or_is_left_as_it_was() -> None:
    """A version 2 mount beside version 1 often has no memory controller: its group must not pass for one."""
    for hierarchy in hierarchies():
        got = limit_or_reason(hierarchy)
        assert isinstance(got, OSError) or 0 < got <= LIMIT
        assert own_groups(hierarchy) == []
        controllers = hierarchy.mount / "cgroup.controllers"
        if hierarchy.version == 2 and "memory" not in controllers.read_text().split():
            assert isinstance(got, OSError)
            assert tightest_limit(hierarchy) is None


def test_the_ceiling_is_the_strongest_that_this_kernel_really_gives() -> None:
    possible = {h.version for h in hierarchies() if not isinstance(limit_or_reason(h), OSError)}
    strongest = CGROUP_V2 if 2 in possible else CGROUP_V1 if 1 in possible else None
    with open_ceiling(LIMIT) as ceiling:
        assert (ceiling.mechanism if ceiling.group is not None else None) == strongest
        assert (strongest is not None) or ceiling.notes


def test_a_child_joins_a_real_group_before_it_runs_and_leaves_with_it() -> None:
    """Joining, listing and removing need no memory controller, so a bare version 2 mount shows them too."""
    for hierarchy in hierarchies():
        folder = hierarchy.own / f"seatrial-0-{os.getpid()}-00000000"
        try:
            folder.mkdir()
        except OSError:
            assert not folder.exists()
            continue
        group = Group(hierarchy.version, folder, LIMIT, swap_limited=True)
        ceiling = Ceiling(LIMIT, f"cgroup-v{hierarchy.version}", group=group)
        listing = ["/bin/sh", "-c", "cat /proc/self/cgroup; exec sleep 60"]
        with subprocess.Popen(ceiling.command(listing), stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            lines = [child.stdout.readline() for _ in Path("/proc/self/cgroup").read_text().splitlines()]
            assert any(line.strip().endswith(f"/{folder.name}") for line in lines)
            assert ceiling.holds(child.pid, None)
            assert group.kills() == 0
            ceiling.close()
            assert child.wait(timeout=10) == -9
        assert not folder.exists()
        assert not psutil.pid_exists(child.pid)
