"""The order of the fallbacks, on a real (tiny, scripted) model in a real child: what is delivered and why."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted import write_scripted_bundle

from seatrial.errors import UserError
from seatrial.guards.transcript import parse_transcript
from seatrial.guards.verdict import Verdict
from seatrial.simulate.job import RunJob, RunResult
from seatrial.simulate.run import run

TRANSCRIPT = """Anna Lindqvist: Good morning. The budget of the trade fair is $35,000, we decided that in May.
Ben Okoro: Fine with me, thirty-five thousand dollars and not a dollar more than that.
Anna Lindqvist: Then I will write the plan by the 12th of June and send it to everybody here.
Ben Okoro: I will book the hall in Kestenby, and the train tickets for eleven people as well.
"""
RIGHT = "The budget of the trade fair is $35,000. Anna Lindqvist writes the plan by the 12th of June."
WRONG = "The budget of the trade fair is $48,000. Anna Lindqvist writes the plan by the 12th of June."
WRONG_NAME = "The budget is $35,000. Gregor Halloway writes the plan by the 12th of June."


def job(tmp_path: Path, says: str, **changes: Any) -> RunJob:
    bundle_options = {key: changes.pop(key) for key in ("with_facts", "context") if key in changes}
    bundle = write_scripted_bundle(tmp_path / "model", says, **bundle_options)
    asked = RunJob(
        transcript=TRANSCRIPT,
        device="thin-laptop-8gb",
        out=tmp_path / "out",
        model=str(bundle),
        threads=1,
        max_tokens=120,
        patience_s=60,
    )
    return replace(asked, **changes)


def actions(result: RunResult) -> list[tuple[str, str]]:
    return [(fallback.trigger, fallback.action) for fallback in result.fallbacks]


def test_a_right_summary_is_delivered_as_it_is(tmp_path: Path) -> None:
    result = run(job(tmp_path, RIGHT))
    assert (result.status, result.summary_kind, result.summary) == ("ok", "model", RIGHT)
    assert (result.exit_code, actions(result), result.attempts) == (0, [], ())
    assert {report.guard: report.verdict for report in result.guards} == dict.fromkeys(
        ("memory", "breakdown", "numbers", "names"), Verdict.OK
    )
    assert (tmp_path / "out/summary.txt").read_text(encoding="utf-8") == RIGHT + "\n"


def test_a_wrong_figure_gets_one_longer_summary_with_the_right_sentence(tmp_path: Path) -> None:
    result = run(job(tmp_path, WRONG, with_facts=RIGHT))
    assert (result.status, result.summary_kind, result.summary) == ("fallback", "long", RIGHT)
    assert actions(result) == [("figures", "longer summary")]
    (refused,) = result.attempts
    assert (refused.kind, refused.text) == ("model", WRONG)
    assert refused.refused is not None
    assert "$48,000" in refused.refused


@pytest.mark.parametrize(("says", "trigger"), [(WRONG, "figures"), (WRONG_NAME, "names")])
def test_wrong_twice_ends_in_sentences_of_the_transcript(tmp_path: Path, says: str, trigger: str) -> None:
    result = run(job(tmp_path, says, with_facts=says))
    assert (result.status, result.summary_kind, result.exit_code) == ("fallback", "extractive", 0)
    assert actions(result) == [(trigger, "longer summary"), (trigger, "extractive summary")]
    assert [attempt.kind for attempt in result.attempts] == ["model", "long"]
    assert all(sentence in TRANSCRIPT for sentence in result.summary.splitlines())
    assert all(report.verdict is not Verdict.FAIL for report in result.guards)


@pytest.mark.parametrize(
    ("script", "rule"),
    [
        ("The budget is decided and so on and on again. <loop>", "repetition"),
        ("The budget <noise>", "entropy_run"),
        ("The budget <nan>", "not_finite"),
    ],
)
def test_a_breakdown_goes_straight_to_the_extract(tmp_path: Path, script: str, rule: str) -> None:
    result = run(job(tmp_path, script))
    assert (result.status, result.summary_kind) == ("fallback", "extractive")
    assert actions(result) == [("breakdown", "extractive summary")]
    (breakdown,) = [report for report in result.guards if report.guard == "breakdown"]
    assert (breakdown.verdict, breakdown.findings[0].reason) == (Verdict.FAIL, rule)
    assert result.fallbacks[0].at_token == result.attempts[0].tokens > 0


def test_a_model_that_says_nothing_is_told(tmp_path: Path) -> None:
    result = run(job(tmp_path, ""))
    assert (result.status, result.summary_kind) == ("fallback", "extractive")
    assert actions(result) == [("empty", "extractive summary")]
    assert "wrote nothing" in (result.attempts[0].refused or "")


def test_a_long_transcript_is_read_in_windows_and_joined(tmp_path: Path) -> None:
    long = TRANSCRIPT * 6
    result = run(job(tmp_path, RIGHT, transcript=long, context=1500, max_tokens=200))
    assert result.windows > 1
    assert result.status == "ok"
    assert result.summary == "\n\n".join([RIGHT] * result.windows)


def test_the_deadline_cuts_the_budget_and_the_text_ends_with_a_sentence(tmp_path: Path) -> None:
    # 1 MB of weights at 1 MB/s: about a second per token of device time, none of this machine's.
    slow = job(tmp_path, RIGHT, bandwidth_Bps=1e6, deadline_s=40.0)
    result = run(slow)
    assert ("deadline", "shorter budget") in actions(result)
    assert result.prefill.device_s + result.decode.device_s <= 40.0
    assert RIGHT.startswith(result.summary)
    assert result.summary.endswith(".")


def test_a_deadline_that_allows_nothing_ends_in_the_extract(tmp_path: Path) -> None:
    result = run(job(tmp_path, RIGHT, bandwidth_Bps=1e6, deadline_s=2.0))
    assert actions(result) == [("deadline", "extractive summary")]
    assert (result.decode.tokens, result.status) == (0, "fallback")
    assert result.to_json()["decode"]["device_ms_per_token"] is None


def test_the_document_has_every_field_and_is_strict_json(tmp_path: Path) -> None:
    result = run(job(tmp_path, WRONG, with_facts=WRONG))
    document = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert document == json.loads((tmp_path / "out/result.json").read_text(encoding="utf-8"))
    for name in (
        "status",
        "summary",
        "summary_kind",
        "device",
        "model",
        "weights",
        "kv",
        "guards",
        "fallbacks",
    ):
        assert name in document
    assert {"tokens", "device_s", "host_s"} <= document["prefill"].keys()
    assert {
        "tokens",
        "device_ms_per_token",
        "host_ms_per_token",
        "weight_bytes_per_token",
        "kv_bytes_per_token",
        "host_limited",
    } <= document["decode"].keys()
    memory = document["memory"]
    assert memory["mechanism"] in ("cgroup-v2", "cgroup-v1", "rlimit", "accounting")
    assert 0 < memory["peak_private_bytes"] < memory["ceiling_bytes"]
    assert memory["peak_mapped_bytes"] > 0
    assert all({"trigger", "action", "at_token"} <= fallback.keys() for fallback in document["fallbacks"])


def test_the_trace_adds_up_to_the_result(tmp_path: Path) -> None:
    result = run(job(tmp_path, RIGHT))
    rows = [json.loads(line) for line in result.trace.read_text(encoding="utf-8").splitlines()]
    tokens = [row for row in rows if row["event"] == "token"]
    assert "".join(row["text"] for row in tokens) == RIGHT
    assert sum(row["device_s"] for row in tokens) == pytest.approx(result.decode.device_s)
    assert sum(row["tokens"] for row in rows if row["event"] == "prefill") == result.prefill.tokens
    assert all({"entropy", "margin", "private_bytes", "clock_s"} <= row.keys() for row in tokens)


def test_the_clock_moves_the_bytes_that_the_plan_would(tmp_path: Path) -> None:
    """Decode at a tenth of the bandwidth takes ten times as long: nothing else is in it for this runtime."""
    fast = run(job(tmp_path, RIGHT, bandwidth_Bps=1e9))
    slow = run(job(tmp_path, RIGHT, bandwidth_Bps=1e8))
    assert slow.decode.device_s == pytest.approx(10 * fast.decode.device_s, rel=1e-9)


def test_a_retry_reads_only_what_is_new(tmp_path: Path) -> None:
    result = run(job(tmp_path, WRONG, with_facts=RIGHT))
    rows = [json.loads(line) for line in result.trace.read_text(encoding="utf-8").splitlines()]
    read = {1: 0, 2: 0}
    for row in rows:
        if row["event"] == "prefill":
            read[row["attempt"]] += row["tokens"]
    assert 0 < read[2] < read[1]


def test_own_prompt_and_what_it_must_have(tmp_path: Path) -> None:
    template = tmp_path / "prompt.txt"
    template.write_text("Summarize:\n{transcript}\nIn {words} words.{facts}")
    assert run(job(tmp_path, RIGHT, prompt=template)).status == "ok"
    template.write_text("Summarize.")
    with pytest.raises(UserError, match=r"write \{transcript\} there"):
        run(job(tmp_path, RIGHT, prompt=template))


def test_what_an_earlier_run_left_is_gone(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/summary.partial.txt").write_text("old")
    run(job(tmp_path, RIGHT))
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "result.json",
        "source.txt",
        "summary.txt",
        "trace.jsonl",
    ]
    assert (tmp_path / "out/source.txt").read_text(encoding="utf-8") == parse_transcript(TRANSCRIPT).text
