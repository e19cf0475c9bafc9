"""The ceiling: what /proc and cgroup files say, the order of mechanisms, and that a real one holds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import UserError
from seatrial.simulate.ceiling import (
    ACCOUNTING,
    CGROUP_V1,
    CGROUP_V2,
    JOIN_FAILED,
    RLIMIT,
    describe_death,
    drop_cached_pages,
    host_memory,
    open_ceiling,
)
from seatrial.simulate.cgroup import hierarchies, make_group, parse_limit, tightest_limit
from seatrial.simulate.memory_watch import MemoryUse, read_exact, read_use


def fake_proc(tmp_path: Path, cgroup: str, mounts: str, total_kib: int = 67_108_864) -> Path:
    proc = tmp_path / "proc"
    (proc / "self").mkdir(parents=True)
    (proc / "self/cgroup").write_text(cgroup)
    (proc / "self/mountinfo").write_text(mounts)
    (proc / "meminfo").write_text(f"MemTotal:       {total_kib} kB\nMemFree: 1 kB\n")
    return proc


def mount_line(point: Path, kind: str, options: str, root: str = "/") -> str:
    return f"35 31 0:32 {root} {point} rw,relatime - {kind} {kind} {options}\n"


def version_1(tmp_path: Path, limits: dict[str, str], own: str = "/a/b", root: str = "/") -> Path:
    """A version 1 tree with `memory.limit_in_bytes` in the named folders, and a /proc that lies in `own`."""
    mount = tmp_path / "memory"
    mount.mkdir(parents=True)
    for folder, limit in limits.items():
        (mount / folder).mkdir(parents=True, exist_ok=True)
        (mount / folder / "memory.limit_in_bytes").write_text(limit)
    return fake_proc(tmp_path, f"4:memory:{own}\n0::/\n", mount_line(mount, "cgroup", "rw,memory", root))


def version_2(tmp_path: Path, limits: dict[str, str], own: str = "/a/b") -> Path:
    mount = tmp_path / "unified"
    mount.mkdir(parents=True)
    for folder, limit in limits.items():
        (mount / folder).mkdir(parents=True, exist_ok=True)
        (mount / folder / "memory.max").write_text(limit)
    return fake_proc(tmp_path, f"0::{own}\n", mount_line(mount, "cgroup2", "rw"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("max\n", None),
        ("9223372036854771712\n", None),  # 4 KiB pages
        ("9223372036854710272\n", None),  # 64 KiB pages
        ("-1\n", None),
        ("2147483648\n", 2147483648),
        ("0", 0),
    ],
)
def test_limits_and_the_ways_to_write_none(text: str, value: int | None) -> None:
    assert parse_limit(text) == value


def test_a_container_limit_counts_more_than_the_hosts_memory(tmp_path: Path) -> None:
    proc = version_1(tmp_path, {"a/b": "2147483648\n"})
    memory = host_memory(proc)
    assert memory.bytes == 2_147_483_648
    assert memory.source.endswith("a/b/memory.limit_in_bytes")


@pytest.mark.parametrize("make", [version_1, version_2])
def test_a_parents_limit_binds_too(tmp_path: Path, make: object) -> None:
    proc = make(tmp_path, {"a/b": "4000000000", "a": "1000000000", "": "9223372036854771712"})  # type: ignore[operator]
    assert host_memory(proc).bytes == 1_000_000_000


def test_max_everywhere_leaves_physical_memory(tmp_path: Path) -> None:
    proc = version_2(tmp_path, {"a/b": "max", "a": "max"})
    memory = host_memory(proc)
    assert (memory.bytes, Path(memory.source).name) == (67_108_864 * 1024, "meminfo")


def test_unreadable_and_broken_limit_files_are_passed_over(tmp_path: Path) -> None:
    proc = version_1(tmp_path, {"a/b": "no number", "a": "3000000000"})
    assert tightest_limit(hierarchies(proc)[0])[0] == 3_000_000_000  # type: ignore[index]


def test_a_container_sees_its_own_group_at_the_mount(tmp_path: Path) -> None:
    """The path in /proc/self/cgroup is the host's; below the mount it does not exist."""
    proc = version_1(tmp_path, {"": "1500000000"}, own="/docker/abc", root="/docker/abc")
    (found,) = hierarchies(proc)
    assert found.own == found.mount
    assert host_memory(proc).bytes == 1_500_000_000


def test_without_proc_there_is_no_group_and_psutil_tells_the_memory(tmp_path: Path) -> None:
    nothing = tmp_path / "none"
    assert hierarchies(nothing) == []
    memory = host_memory(nothing)
    assert (memory.source, memory.bytes > 0) == ("psutil.virtual_memory", True)


def test_mount_points_with_spaces(tmp_path: Path) -> None:
    mount = tmp_path / "my groups"
    mount.mkdir()
    escaped = Path(str(mount).replace(" ", r"\040"))
    proc = fake_proc(tmp_path, "0::/\n", mount_line(escaped, "cgroup2", "rw"))
    assert hierarchies(proc)[0].mount == mount


def test_a_group_that_does_not_take_the_limit_is_not_used(tmp_path: Path) -> None:
    """Plain folders stand for a mount where nothing is enforced: the files are not there to be written."""
    proc = version_2(tmp_path, {"a/b": "max"})
    (tmp_path / "unified/a/b/cgroup.subtree_control").write_text("")
    with pytest.raises(OSError, match=r"memory.max|subtree_control"):
        make_group(hierarchies(proc)[0], 1_000_000_000)
    assert not list((tmp_path / "unified").rglob("seatrial-*"))


def test_the_order_ends_in_accounting_and_says_why(tmp_path: Path) -> None:
    proc = version_1(tmp_path, {"a/b": "max"})
    (tmp_path / "memory").chmod(0o500)
    with open_ceiling(8_000_000_000, proc=tmp_path / "none", platform="darwin") as ceiling:
        assert (ceiling.mechanism, ceiling.enforced) == (ACCOUNTING, False)
        assert any("darwin" in note for note in ceiling.notes)
        assert any("accounted" in note for note in ceiling.notes)
    del proc


def test_rlimit_is_used_where_no_group_can_be_made_and_not_for_mapped_weights(tmp_path: Path) -> None:
    with open_ceiling(4_000_000_000, proc=tmp_path, platform="linux") as ceiling:
        assert ceiling.mechanism == RLIMIT
        assert any("coarse" in note for note in ceiling.notes)
    with open_ceiling(4_000_000_000, proc=tmp_path, mapped=True, platform="linux") as ceiling:
        assert ceiling.mechanism == ACCOUNTING
        assert any("mapped weights" in note for note in ceiling.notes)


def test_strict_refuses_accounting(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--strict: no enforced memory ceiling"):
        open_ceiling(4_000_000_000, strict=True, proc=tmp_path, mapped=True)


def test_a_ceiling_that_starts_nothing_is_a_typing_mistake() -> None:
    with pytest.raises(UserError, match="8GB"):
        open_ceiling(8)


def test_a_ceiling_above_the_hosts_memory_is_said(tmp_path: Path) -> None:
    proc = fake_proc(tmp_path, "", "", total_kib=1_000_000)
    with open_ceiling(8_000_000_000, proc=proc) as ceiling:
        assert any("less than the ceiling" in note for note in ceiling.notes)


EATER = "import sys; x = bytearray(int(sys.argv[1])); x[::4096] = b'x' * len(x[::4096]); print('ate')"


def eat(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("mechanism", ["best", RLIMIT])
def test_a_real_ceiling_refuses_what_is_above_and_allows_what_is_below(
    tmp_path: Path, mechanism: str
) -> None:
    """The strongest mechanism of this machine, and the one without groups: both must really hold."""
    proc = tmp_path if mechanism == RLIMIT else Path("/proc")
    with open_ceiling(100_000_000, proc=proc) as ceiling:
        below = eat(ceiling.command([sys.executable, "-c", EATER, "40000000"]))
        assert (below.returncode, below.stdout) == (0, "ate\n")
        above = eat(ceiling.command([sys.executable, "-c", EATER, "200000000"]))
        assert above.returncode != 0
        assert above.stdout == ""
        if ceiling.group is not None:
            assert ceiling.kills() >= 1
            assert (ceiling.peak_bytes() or 0) <= 100_000_000
        else:
            assert "MemoryError" in above.stderr


def test_leaving_removes_the_group_and_whatever_lives_in_it() -> None:
    ceiling = open_ceiling(100_000_000)
    child = subprocess.Popen(ceiling.command(["sleep", "60"]))
    try:
        if ceiling.group is not None:
            while child.pid not in ceiling.group.pids():
                assert child.poll() is None
        ceiling.close()
        if ceiling.group is not None:
            assert not ceiling.group.folder.exists()
            assert child.wait(timeout=10) == -9
    finally:
        child.kill()
        child.wait()


def test_a_child_that_cannot_join_does_not_run_without_a_ceiling(tmp_path: Path) -> None:
    command = ["/bin/sh", "-c", f'echo 0 > "$1" || exit {JOIN_FAILED}; shift; exec "$@"', "x"]
    done = eat([*command, str(tmp_path / "gone/cgroup.procs"), "echo", "ran"])
    assert (done.returncode, done.stdout) == (JOIN_FAILED, "")
    assert describe_death(JOIN_FAILED, killed_for_memory=False) == "could not join its memory ceiling"


@given(st.integers(-64, 255))
def test_every_death_has_a_plain_name(code: int) -> None:
    told = describe_death(code, killed_for_memory=False)
    assert told.isprintable()
    assert describe_death(code, killed_for_memory=True) == "out of memory"


def test_peaks_are_of_each_kind() -> None:
    peak = MemoryUse(5, 1, 1, "a").peak_with(MemoryUse(2, 9, 1, "b"))
    assert peak == MemoryUse(5, 9, 2, "b")


def use_now() -> MemoryUse:
    return read_exact(os.getpid()) or read_use(psutil.Process())


def test_private_and_mapped_are_told_apart(tmp_path: Path) -> None:
    """64 MB of fresh memory are private; 64 MB of a mapped file that is read are not."""
    import mmap

    size = 64_000_000
    (tmp_path / "weights").write_bytes(b"x" * size)
    before = use_now()
    with (
        (tmp_path / "weights").open("rb") as stream,
        mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ) as view,
    ):
        total = sum(view[::4096])
        mapped = use_now()
    # Fresh pages from the kernel: an allocator could answer from what earlier tests gave back to it.
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as fresh:
        fresh.write(b"x" * size)
        private = use_now()
    assert total > 0
    assert mapped.mapped_bytes - before.mapped_bytes >= 0.95 * size
    assert private.private_bytes - before.private_bytes >= 0.95 * size
    assert mapped.private_bytes - before.private_bytes < 0.2 * size


def test_dropping_cached_pages_never_fails(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    drop_cached_pages([tmp_path / "file", tmp_path / "missing"])
    assert (tmp_path / "file").read_bytes() == b"x" * 100_000


def test_mechanism_names_are_the_documented_ones() -> None:
    assert (CGROUP_V2, CGROUP_V1, RLIMIT, ACCOUNTING) == ("cgroup-v2", "cgroup-v1", "rlimit", "accounting")
