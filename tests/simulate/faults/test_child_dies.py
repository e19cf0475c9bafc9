"""The process with the model dies, hangs or does not fit: a result with a reason, and what was tried."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from typing import Any

import pytest
from hurt import AT, RIGHT, TRANSCRIPT, Meddler, actions, send, slow

from seatrial.simulate.job import RunJob
from seatrial.simulate.run import run


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


def test_the_json_document_survives_every_death(job: RunJob) -> None:
    result = run(slow(job), Meddler(send(signal.SIGKILL)))
    document: dict[str, Any] = json.loads((job.out / "result.json").read_text(encoding="utf-8"))
    assert document == json.loads(json.dumps(result.to_json(), allow_nan=False))
