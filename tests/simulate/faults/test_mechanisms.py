"""Control groups, limits and counters taken away one by one: weaker ceilings run and say so."""

from __future__ import annotations

from dataclasses import replace

import psutil
import pytest

from seatrial.errors import UserError
from seatrial.simulate.job import RunJob
from seatrial.simulate.run import run


@pytest.mark.parametrize("missing", ["/proc and cgroups", "permission for cgroups"])
def test_without_groups_the_run_is_limited_otherwise_and_says_so(
    job: RunJob, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    import seatrial.simulate.ceiling as ceiling

    def refuse(*_: object) -> object:
        raise PermissionError(13, "Permission denied")

    if missing == "/proc and cgroups":
        monkeypatch.setattr(ceiling, "hierarchies", lambda *_: [])
    else:
        monkeypatch.setattr(ceiling, "make_group", refuse)
    result = run(job)
    assert (result.status, result.memory.mechanism) == ("ok", "rlimit")
    assert any("coarse" in note for note in result.memory.notes)
    assert any("cgroup" in note for note in result.memory.notes)


def accounted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither cgroups nor rlimit, as on macOS and Windows: psutil's accounting alone."""
    import seatrial.simulate.ceiling as ceiling

    monkeypatch.setattr(ceiling, "hierarchies", lambda *_: [])
    monkeypatch.setattr(ceiling, "_by_rlimit", lambda *_: None)


def test_accounting_alone_runs_and_stops_what_is_too_big(
    job: RunJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    accounted(monkeypatch)
    fine = run(job)
    assert (fine.status, fine.memory.mechanism) == ("ok", "accounting")
    assert fine.memory.peak_private_bytes is not None
    small = run(replace(job, ceiling_bytes=15_000_000, foresee_memory=False))
    assert (small.status, small.exit_code) == ("partial", 3)
    assert all(death["kind"] == "memory" for death in small.deaths)
    with pytest.raises(UserError, match="--strict"):
        run(replace(job, strict=True, runtime="generic-cpu"))


def test_without_smaps_and_shared_counters_psutil_still_tells_two_numbers(
    job: RunJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    import seatrial.simulate.memory_watch as watch
    import seatrial.simulate.worker as worker

    accounted(monkeypatch)
    monkeypatch.setattr(worker, "read_exact", lambda _: None)
    monkeypatch.setattr(watch, "has_shared", lambda _: False)
    result = run(job)
    assert (result.memory.peak_private_bytes or 0) > 0


def test_unsampled_memory_is_null_with_a_reason(job: RunJob, monkeypatch: pytest.MonkeyPatch) -> None:
    import seatrial.simulate.memory_watch as watch
    import seatrial.simulate.worker as worker

    def refuse(process: psutil.Process) -> object:
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(watch, "read_use", refuse)
    monkeypatch.setattr(worker, "read_exact", lambda _: None)
    monkeypatch.setattr(worker.MemoryWatch, "note", lambda *_: None)
    memory = run(job).to_json()["memory"]
    assert memory["peak_private_bytes"] is None
    assert any("could not be sampled" in note for note in memory["notes"])
