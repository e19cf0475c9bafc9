"""Files that cannot be written, are cut, missing or change during the run; two runs on one cache."""

from __future__ import annotations

import json
import os
import resource
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hurt import RIGHT, Meddler, slow, start
from scripted import write_scripted_bundle

from seatrial.errors import UserError
from seatrial.simulate.job import RunJob, RunResult
from seatrial.simulate.run import run


@pytest.mark.parametrize("kind", ["file in the way", "below a file", "full disk"])
def test_an_output_folder_that_cannot_be_written_is_refused_first(
    job: RunJob, tmp_path: Path, kind: str
) -> None:
    blocker = tmp_path / "blocker"
    blocker.write_text("x")
    out = {"file in the way": blocker, "below a file": blocker / "out", "full disk": Path("/proc/nothing")}[
        kind
    ]
    with pytest.raises(UserError, match="cannot write to the output folder"):
        run(replace(job, out=out))


def test_a_bundle_cut_short_is_refused_before_anything_runs(job: RunJob, tmp_path: Path) -> None:
    broken = write_scripted_bundle(tmp_path / "broken", RIGHT)
    data = broken / "model.onnx.data"
    os.truncate(data, data.stat().st_size // 2)
    with pytest.raises(UserError, match=r"model\.onnx\.data"):
        run(replace(job, model=str(broken)))
    assert not job.out.exists()


@pytest.mark.parametrize("missing", ["model.onnx.data", "tokenizer.json", "config.json"])
def test_a_bundle_without_a_file_is_one_clear_line(job: RunJob, tmp_path: Path, missing: str) -> None:
    broken = write_scripted_bundle(tmp_path / "broken", RIGHT)
    (broken / missing).unlink()
    with pytest.raises(UserError, match=missing):
        run(replace(job, model=str(broken)))
    assert not job.out.exists()


def test_a_bundle_that_changes_during_the_run_does_not_mix(job: RunJob, tmp_path: Path) -> None:
    """The child reads the files it opened; replaced ones count from the next run on."""
    own = write_scripted_bundle(tmp_path / "own", RIGHT)
    other = write_scripted_bundle(tmp_path / "other", "Everything else was said by Ben Okoro.")

    def replace_files(_: int) -> None:
        for file in other.iterdir():
            (own / f".{file.name}").write_bytes(file.read_bytes())
            (own / f".{file.name}").replace(own / file.name)

    result = run(replace(slow(job), model=str(own)), Meddler(replace_files, times=1))
    assert (result.status, result.summary) == ("ok", RIGHT)


def test_a_full_disk_during_the_run_loses_the_trace_and_not_the_summary(job: RunJob) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, before[1]))
        result = run(job)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert result.summary == RIGHT
    assert any("trace" in note for note in result.notes)
    assert any("result.json" in note for note in result.notes)
    assert (job.out / "summary.txt").read_text(encoding="utf-8").strip() == RIGHT
    assert not (job.out / "result.json").exists()


def test_two_runs_at_once_do_not_meet(job: RunJob, tmp_path: Path) -> None:
    results: dict[int, RunResult] = {}

    def one(number: int) -> None:
        results[number] = run(replace(job, out=tmp_path / f"out{number}"))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [results[number].summary for number in range(2)] == [RIGHT, RIGHT]


def test_two_runs_that_need_the_same_bundle_make_it_once(job: RunJob, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    arguments = ["--weights", "int8", "--kv", "fp32", "--json", "--quiet"]
    both = [
        start(replace(job, out=tmp_path / f"out{number}"), *arguments, cache=cache) for number in range(2)
    ]
    told = [process.communicate(timeout=300) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert [json.loads(out)["weights"] for out, _ in told] == ["int8", "int8"]
    assert len(list(cache.glob("bundles/*/int8-kv-fp32.*/seatrial.json"))) == 1
    assert [file for file in cache.rglob(".*") if ".partial" in file.name] == []
