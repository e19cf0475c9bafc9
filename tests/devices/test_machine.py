"""Probes of the bare machine, and the memory that a container really has."""

from pathlib import Path

import pytest

from seatrial.devices.limits import usable_memory
from seatrial.devices.measure import (
    chip_name,
    matmul_throughput,
    peak_cpu_ops,
    read_bandwidth,
    storage_read,
    thread_counts,
    usable_cores,
)
from seatrial.errors import UserError

HOST = 64 * 2**30
LIMIT = 2_147_483_648


def group(folder: Path, lines: str, **limits: str) -> dict[str, Path]:
    """A faked /proc and /sys/fs/cgroup with limit files by their place."""
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/cgroup").write_text(lines, encoding="utf-8")
    for place, text in limits.items():
        file = folder / "cgroup" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="ascii")
    return {"proc": folder / "proc", "cgroups": folder / "cgroup"}


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ("0::/\n", "memory.max"),
        ("0::/job/one\n", "job/one/memory.max"),
        ("0::/job/one\n", "job/memory.max"),
        ("0::/not/visible/here\n", "memory.max"),
        ("9:memory:/job\n1:cpu:/\n", "memory/job/memory.limit_in_bytes"),
        ("9:memory:/not/visible\n", "memory/memory.limit_in_bytes"),
    ],
)
def test_a_container_has_what_its_group_allows(tmp_path: Path, lines: str, place: str) -> None:
    places = group(tmp_path, lines, **{place: str(LIMIT)})
    found = usable_memory(total_bytes=HOST, **places)
    assert found.bytes == LIMIT
    assert place in found.source.replace("\\", "/")


def test_the_lowest_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    places = group(tmp_path, "0::/a/b\n", **{"a/b/memory.max": str(8 * LIMIT), "a/memory.max": str(LIMIT)})
    assert usable_memory(total_bytes=HOST, **places).bytes == LIMIT


@pytest.mark.parametrize("text", ["max", "9223372036854771712", str(2 * HOST)])
def test_no_limit_is_the_whole_machine(tmp_path: Path, text: str) -> None:
    places = group(
        tmp_path, "0::/\n9:memory:/\n", **{"memory.max": text, "memory/memory.limit_in_bytes": text}
    )
    found = usable_memory(total_bytes=HOST, **places)
    assert found.bytes == HOST
    assert "machine" in found.source


def test_without_control_groups_the_machine_counts(tmp_path: Path) -> None:
    assert usable_memory(total_bytes=HOST, proc=tmp_path, cgroups=tmp_path).bytes == HOST


def test_this_machine_has_memory() -> None:
    assert usable_memory().bytes > 100 << 20


def test_thread_counts_end_with_all_cores() -> None:
    assert thread_counts(1) == [1]
    assert thread_counts(6) == [1, 2, 4, 6]
    assert thread_counts(8) == [1, 2, 4, 8]


def test_the_probes_give_rates_a_machine_can_have() -> None:
    assert 1e8 < read_bandwidth(1, bytes_per_thread=16 << 20, rounds=2) < 1e13
    assert 1e7 < matmul_throughput(size=128, rounds=2) < 1e15
    ops, derived = peak_cpu_ops(usable_cores())
    assert 1e9 < ops < 1e15
    assert "FLOP" in derived
    assert chip_name()


def test_the_storage_probe_leaves_nothing_behind(tmp_path: Path) -> None:
    rate, note = storage_read(tmp_path, size=8 << 20)
    assert rate is None or rate > 1e5
    assert note
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="probe"):
        storage_read(tmp_path / "nowhere")
