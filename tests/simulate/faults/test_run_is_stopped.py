"""Somebody stops the run, or goes away: the partial summary is saved, no process stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest
from hurt import RIGHT, Meddler, slow, start, wait_for_draft

from seatrial.simulate.cgroup import hierarchies
from seatrial.simulate.job import RunJob, Silent
from seatrial.simulate.run import run


def test_ctrl_c_saves_the_partial_summary_and_goes_on(job: RunJob) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    told: list[str] = []

    class Listener(Meddler):
        def stage(self, text: str, _share: float | None = None) -> None:
            told.append(text)

    with pytest.raises(KeyboardInterrupt):
        run(slow(job), Listener(interrupt))
    assert told[-1] == f"stopped; what was written so far is in {job.out / 'summary.partial.txt'}"
    saved = (job.out / "summary.partial.txt").read_text(encoding="utf-8").strip()
    assert saved
    assert RIGHT.startswith(saved)
    assert not (job.out / "summary.txt").exists()


def test_ctrl_c_while_the_model_is_being_opened(job: RunJob) -> None:
    class Early(Silent):
        def stage(self, text: str, _share: float | None = None) -> None:
            if text == "opening the model":
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(job, Early())
    assert sorted(file.name for file in job.out.iterdir()) == ["trace.jsonl"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_the_command_in_order(job: RunJob, number: signal.Signals, code: int) -> None:
    process = start(job, "--pace", "real", "--bandwidth", "2MB/s")
    wait_for_draft(process, job.out)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == code, told
    assert "Traceback" not in told
    assert number != signal.SIGINT or told.splitlines()[-1] == "seatrial: interrupted"
    assert [child for child in family if child.is_running()] == []
    assert [file.name for file in job.out.iterdir() if file.name.startswith(".")] == []


def test_a_killed_parent_takes_its_child_along(job: RunJob) -> None:
    process = start(job, "--pace", "real", "--bandwidth", "2MB/s")
    wait_for_draft(process, job.out)
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate(timeout=60)
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []
    # What it could not remove itself, the next run removes.
    run(job)
    for hierarchy in hierarchies():
        for group in hierarchy.ancestors():
            assert list(group.glob(f"seatrial-*-{process.pid}-*")) == []


def test_a_reader_that_goes_away_is_no_error(job: RunJob) -> None:
    process = start(job, "--json")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    told = process.stderr.read()
    assert process.wait(timeout=60) == 0, told
    assert "Traceback" not in told
    assert (job.out / "summary.txt").read_text(encoding="utf-8").strip() == RIGHT
    process.stderr.close()


def test_a_tables_reader_that_goes_away_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "seatrial", "devices", "list"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, "")
