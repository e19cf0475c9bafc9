"""Sweeps: nothing lost, nothing done twice, the same files from every kind of worker."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from seatrial.errors import UserError
from seatrial.guards.signals import signals
from seatrial.simulate.sweep import dask_cluster, one_after_another, process_pool, run_sweep


@dataclass(frozen=True)
class Rows:
    """A small job: signals of seeded rows of logits. `log` gets a line for each time it is computed."""

    seed: int
    log: str = ""
    nap_s: float = 0.0

    @property
    def key(self) -> str:
        return hashlib.sha256(f"{self.seed}".encode()).hexdigest()[:24]


def measure(job: Rows) -> str:
    """Work that is really done: entropies of random rows."""
    if job.log:
        with Path(job.log).open("a", encoding="utf-8") as log:
            log.write(f"{job.seed}\n")
    time.sleep(job.nap_s)
    if job.seed < 0:
        raise UserError(f"seed {job.seed} is below 0")
    rng = np.random.default_rng(job.seed)
    rows = [{"event": "trace", "format": 1}, {"event": "job", "key": job.key, "seed": job.seed}]
    rows += [{"event": "token", "entropy": signals(rng.normal(size=500)).entropy} for _ in range(5)]
    return "".join(json.dumps(row) + "\n" for row in rows)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_each_job_is_done_once_and_found_the_next_time(tmp_path):
    log = tmp_path / "log"
    jobs = [Rows(seed, str(log)) for seed in (3, 1, 2, 1)]
    first = run_sweep(jobs, measure, tmp_path / "out", one_after_another)
    assert (first.found, first.made, first.failed) == (0, 3, ())
    before = files_of(tmp_path / "out")
    again = run_sweep(jobs, measure, tmp_path / "out", one_after_another)
    assert (again.found, again.made) == (3, 0)
    assert files_of(tmp_path / "out") == before
    assert sorted(log.read_text().split()) == ["1", "2", "3"]
    index = [json.loads(line) for line in first.index.read_text().splitlines()]
    assert [row["key"] for row in index] == sorted(job.key for job in set(jobs))
    assert all((tmp_path / "out" / row["file"]).is_file() for row in index)


def test_a_bad_job_is_told_and_the_others_are_done(tmp_path):
    result = run_sweep([Rows(1), Rows(-5), Rows(2)], measure, tmp_path, one_after_another)
    assert result.made == 2 and result.failed == ((Rows(-5).key, "seed -5 is below 0"),)
    assert len(result.index.read_text().splitlines()) == 2


def test_a_pool_gives_the_same_files(tmp_path):
    jobs = [Rows(seed) for seed in range(12)]
    run_sweep(jobs, measure, tmp_path / "one", one_after_another)
    run_sweep(jobs[::-1], measure, tmp_path / "pool", process_pool(2))
    assert files_of(tmp_path / "one") == files_of(tmp_path / "pool")


KILLED = """
import sys
sys.path.insert(0, {folder!r})
from pathlib import Path
import {module} as work
from seatrial.simulate.sweep import process_pool, run_sweep
if __name__ == "__main__":
    jobs = [work.Rows(seed, {log!r}, 0.01) for seed in range(200)]
    print(run_sweep(jobs, work.measure, Path({out!r}), process_pool(2)), flush=True)
"""


def sweep_process(tmp_path: Path) -> subprocess.Popen:
    here = Path(__file__)
    script = tmp_path / "sweep_200.py"
    values = {"folder": str(here.parent), "module": here.stem, "log": str(tmp_path / "log")}
    script.write_text(KILLED.format(**values, out=str(tmp_path / "out")), encoding="utf-8")
    return subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)


def traces(tmp_path: Path) -> set[str]:
    folder = tmp_path / "out" / "traces"
    return {p.stem for p in folder.glob("*.jsonl")} if folder.is_dir() else set()


def test_killed_twice_200_traces_are_finished_with_no_finished_one_done_again(tmp_path):
    """What was in a worker's hands at the kill is lost and done again; what was written is not."""
    finished: list[set[str]] = []
    for least in (30, 90):
        process = sweep_process(tmp_path)
        while len(traces(tmp_path)) < least:
            assert process.poll() is None, "the sweep ended before it was killed"
            time.sleep(0.005)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        finished.append(traces(tmp_path))
    process = sweep_process(tmp_path)
    told, _ = process.communicate(timeout=120)
    assert process.returncode == 0 and f"found={len(finished[-1])}" in told
    assert traces(tmp_path) == {Rows(seed).key for seed in range(200)}
    computed = [int(line) for line in (tmp_path / "log").read_text().split()]
    counts = {Rows(seed).key: computed.count(seed) for seed in range(200)}
    in_hand = 4  # two workers, two jobs handed out to each
    assert all(counts[key] == 1 for key in finished[0])
    assert min(counts.values()) == 1
    assert sum(counts.values()) <= 200 + 2 * in_hand
    run_sweep([Rows(seed) for seed in range(200)], measure, tmp_path / "plain", one_after_another)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "plain")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a Dask cluster with two worker processes that can import this file."""
    from distributed import LocalCluster

    here = str(Path(__file__).parent)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
    monkeypatch.syspath_prepend(here)
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", silence_logs=50
    ) as local:
        yield local.scheduler_address


def test_dask_gives_the_same_files(tmp_path, cluster):
    import test_sweep as importable  # by its name: the cluster's workers import it too

    jobs = [importable.Rows(seed) for seed in range(12)] + [importable.Rows(-1)]
    local = run_sweep(jobs, importable.measure, tmp_path / "here", one_after_another)
    there = run_sweep(jobs, importable.measure, tmp_path / "dask", dask_cluster(cluster))
    assert files_of(tmp_path / "here") == files_of(tmp_path / "dask")
    assert (local.made, local.failed) == (there.made, there.failed) == (12, local.failed)
    assert there.failed[0][1] == "seed -1 is below 0"


def test_no_scheduler_is_one_clear_line(tmp_path):
    with pytest.raises(UserError, match="no Dask scheduler answers"):
        run_sweep([Rows(1)], measure, tmp_path, dask_cluster("tcp://127.0.0.1:1", patience_s=1.0))
