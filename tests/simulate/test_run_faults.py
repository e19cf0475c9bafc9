"""A run that is hurt: killed, hung, interrupted, out of disk, without rights. Nothing lost, nothing left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from scripted import write_scripted_bundle

from seatrial.errors import UserError
from seatrial.simulate.cgroup import hierarchies
from seatrial.simulate.job import RunJob, RunResult, Silent
from seatrial.simulate.run import run

TRANSCRIPT = """Anna Lindqvist: Good morning. The budget of the trade fair is $35,000, we decided that in May.
Ben Okoro: Fine with me, thirty-five thousand dollars and not a dollar more than that.
Anna Lindqvist: Then I will write the plan by the 12th of June and send it to everybody here.
"""
RIGHT = "The budget of the trade fair is $35,000. Anna Lindqvist writes the plan by the 12th of June."
AT = 6  # the token at which things go wrong


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scripted_bundle(tmp_path_factory.mktemp("model"), RIGHT)


@pytest.fixture
def job(tmp_path: Path, model: Path) -> RunJob:
    return RunJob(
        transcript=TRANSCRIPT,
        device="thin-laptop-8gb",
        out=tmp_path / "out",
        model=str(model),
        threads=1,
        max_tokens=120,
        patience_s=60,
    )


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """After every test: no child, no control group, no temporary file."""
    yield
    assert children() == []
    for hierarchy in hierarchies():
        for group in hierarchy.ancestors():
            assert list(group.glob(f"seatrial-*-{os.getpid()}-*")) == []
    assert [file for file in tmp_path.rglob("*") if file.name.startswith(".")] == []


def children() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children():
        try:
            if "seatrial.simulate.child" in " ".join(child.cmdline()):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


class Meddler(Silent):
    """Does something to the child when the model has written token `at`, the first `times` times."""

    def __init__(self, act: Callable[[int], object], at: int = AT, times: int = 99) -> None:
        self.act, self.at, self.times = act, at, times

    def token(self, _piece: str, index: int, *_: float) -> None:
        if index == self.at and self.times > 0:
            self.times -= 1
            (child,) = children()
            self.act(child.pid)
            # A stopped or dying child has more events in its pipe; they would be read as if nothing had been.
            time.sleep(0.05)


def send(number: int) -> Callable[[int], None]:
    return lambda pid: os.kill(pid, number)


def slow(job: RunJob) -> RunJob:
    """Real pace, so that the child is between two tokens when something is done to it: 10 ms each."""
    return replace(job, pace="real", bandwidth_Bps=80e6)


def actions(result: RunResult) -> list[tuple[str, str]]:
    return [(fallback.trigger, fallback.action) for fallback in result.fallbacks]


# ---- the child dies


def test_a_killed_child_is_tried_again_with_mapped_weights(job: RunJob) -> None:
    result = run(slow(job), Meddler(send(signal.SIGKILL), times=1))
    assert (result.status, result.summary, result.exit_code) == ("fallback", RIGHT, 0)
    assert actions(result) == [("killed", "mapped weights")]
    assert result.fallbacks[0].at_token is not None
    assert result.memory.mapped_weights
    assert result.died is not None
    assert result.died["detail"] == "killed by SIGKILL"


def test_killed_again_and_again_leaves_the_partial_summary_and_the_reason(job: RunJob) -> None:
    result = run(slow(job), Meddler(send(signal.SIGKILL)))
    assert (result.status, result.summary_kind, result.exit_code) == ("partial", "partial", 3)
    assert RIGHT.startswith(result.summary)
    assert len(result.summary) > 10
    assert (job.out / "summary.partial.txt").read_text(encoding="utf-8").strip() == result.summary
    assert not (job.out / "summary.txt").exists()
    assert result.to_json()["died"]["at_token"] >= AT


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGILL])
def test_a_crash_is_a_result_with_its_name(job: RunJob, number: signal.Signals) -> None:
    result = run(slow(job), Meddler(send(number), times=1))
    assert result.died is not None
    assert number.name in result.died["detail"]
    assert result.exit_code in (0, 3)


def test_a_hung_child_is_ended_by_the_watchdog(job: RunJob) -> None:
    result = run(replace(slow(job), patience_s=3.0), Meddler(send(signal.SIGSTOP), times=1))
    assert (result.status, result.exit_code) == ("partial", 3)
    assert result.died is not None
    assert (result.died["kind"], result.died["at_token"]) == ("hang", result.decode.tokens)
    assert RIGHT.startswith(result.summary)


def test_out_of_memory_at_the_start_goes_down_the_ways_and_ends_in_the_extract(job: RunJob) -> None:
    """20 MB hold no interpreter with onnxruntime: both ways die, and what would fit is said."""
    result = run(replace(job, ceiling_bytes=20_000_000, foresee_memory=False))
    assert (result.status, result.summary_kind, result.exit_code) == ("partial", "extractive", 3)
    assert [death["way"] for death in result.deaths] == ["as asked", "mapped weights"]
    assert result.would_fit_bytes > 20_000_000
    assert result.summary
    assert all(line in TRANSCRIPT for line in result.summary.splitlines())


def test_the_guard_foresees_it_and_says_so_before_the_child_starts(job: RunJob) -> None:
    result = run(replace(job, ceiling_bytes=20_000_000))
    (memory,) = [report for report in result.guards if report.guard == "memory"]
    assert str(memory.verdict) == "fail"
    assert "against a ceiling of 20 MB" in memory.findings[0].detail


# ---- the run is stopped


def test_ctrl_c_saves_the_partial_summary_and_goes_on(job: RunJob) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(slow(job), Meddler(interrupt))
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


def command(job: RunJob, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "seatrial", "run", "-", "--device", job.device, "--model", str(job.model)),
        *("--out", str(job.out), "--threads", "1", "--max-tokens", "120", *more),
    ]


def start(job: RunJob, *more: str, cache: Path | None = None) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        command(job, *more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **({"SEATRIAL_CACHE": str(cache)} if cache else {})},
        # A background job is started with Ctrl-C ignored and would pass that on; a terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdin is not None
    process.stdin.write(TRANSCRIPT)
    process.stdin.close()
    process.stdin = None
    return process


def wait_for_draft(process: subprocess.Popen[str], out: Path) -> None:
    """Until the child is up: the trace's temporary file appears before it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        busy = [child for child in psutil.Process(process.pid).children(recursive=True) if child.is_running()]
        if busy and list(out.glob(".trace.jsonl*")):
            time.sleep(1.0)
            return
        time.sleep(0.02)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_the_command_in_order(job: RunJob, number: signal.Signals, code: int) -> None:
    process = start(job, "--pace", "real", "--bandwidth", "2MB/s")
    wait_for_draft(process, job.out)
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(number)
    _, told = process.communicate(timeout=60)
    assert process.returncode == code, told
    assert "Traceback" not in told
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


# ---- files


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
    import resource

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


# ---- mechanisms taken away


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


# ---- two at once


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
    assert len(list(cache.glob("bundles/*/int8-kv-fp32/seatrial.json"))) == 1
    assert [file for file in cache.rglob(".*") if ".partial" in file.name] == []


def test_the_json_document_survives_every_death(job: RunJob) -> None:
    result = run(slow(job), Meddler(send(signal.SIGKILL)))
    document: dict[str, Any] = json.loads((job.out / "result.json").read_text(encoding="utf-8"))
    assert document == json.loads(json.dumps(result.to_json(), allow_nan=False))
