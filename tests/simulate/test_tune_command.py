"""`seatrial tune` on trace files whose truth is known: what is written, what is told, what is refused."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from seatrial.cli import run_command
from seatrial.errors import EXIT_BAD_INPUT, EXIT_CHECK_FAILED, EXIT_DONE
from seatrial.guards.breakdown import BreakdownGuard
from seatrial.guards.thresholds import load_thresholds


def write_trace(folder: Path, rng: np.random.Generator, number: int, kind: str, **header) -> None:
    """A trace as a sweep writes it: calm words of the source, from token 30 on with what `kind` says."""
    entropy = np.clip(rng.normal(1.5, 0.7, 90), 0.01, 10)
    if kind == "flat-logits":
        entropy[30:] += 5
    tokens = rng.integers(0, 300, 90)
    if kind == "loop":
        tokens[30:] = np.resize(tokens[23:30], 60)
    job = {
        "event": "job",
        "key": f"k{number:03d}",
        "document": f"meeting {number // 4}",
        "language": ("en", "zh")[number % 2],
        "model": "SmolLM2-135M-Instruct",
        "weights": "int4",
        "kv": "fp32",
        "kind": kind,
        "plant_at": 30,
        "prompt_tokens": 400,
        "max_tokens": 90,
        "vocabulary": 49152,
        **header,
    }
    steps = [
        {"event": "token", "index": i, "id": int(t), "known": True, "text": "x", "entropy": float(e)}
        | {"max_prob": math.exp(-e), "margin": math.exp(-e) / 2, "varentropy": float(e), "logprob": -float(e)}
        for i, (t, e) in enumerate(zip(tokens, entropy, strict=True))
    ]
    wrong = (
        {"wrong_figures": number % 3, "wrong_names": 0}
        if kind == "free"
        else {"wrong_figures": None, "wrong_names": None}
    )
    done = {
        "event": "done",
        "reason": "end" if kind == "free" else "budget",
        "tokens": 90,
        "text": "x",
        **wrong,
    }
    lines = [{"event": "trace", "format": 1}, job, *steps, done]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / f"{job['key']}.jsonl").write_text(text, encoding="utf-8")


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    folder = tmp_path / "traces"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(120):
        write_trace(folder, rng, number, ("reference", "flat-logits", "loop", "free")[number % 4])
    return folder


def tune(capsys, *arguments: str) -> tuple[int, dict]:
    code = run_command(["tune", *arguments, "--draws", "30", "--json", "--quiet"])
    return code, json.loads(capsys.readouterr().out)


def test_a_recommendation_is_written_and_can_be_used(traces, tmp_path, capsysbinary):
    out = tmp_path / "thresholds.toml"
    code, told = tune(capsysbinary, str(traces), "--out", str(out), "--min-caught", "0.95")
    assert code == EXIT_DONE and told["meets"] and told["thresholds_file"] == str(out)
    file = load_thresholds(out)
    assert file.breakdown.entropy_nats == told["thresholds"]["entropy_nats"]
    BreakdownGuard(49152, file.breakdown)
    assert (file.made.model, file.made.weights, file.made.kv) == ("SmolLM2-135M-Instruct", "int4", "fp32")
    assert "traces, labels: planted" in file.made.data and file.made.date
    assert told["held_out"]["false_stops"]["value"] <= 0.05 <= told["held_out"]["false_stops"]["high"] + 0.05
    assert told["runs"] == {"broken": 60, "good": 60, "documents": 30}
    assert {group["group"] for group in told["groups"]} >= {"language en", "language zh", "loop en"}


def test_policies_cost_the_devices_seconds(traces, tmp_path, capsysbinary):
    _, told = tune(capsysbinary, str(traces), "--out", str(tmp_path / "t.toml"), "--extract-seconds", "0.5")
    rows = {row["policy"]: row for row in told["policies"]["rows"]}
    assert told["policies"]["device"] == "thin-laptop-8gb"
    assert rows["always extractive"]["seconds"] == 0.5 and rows["always extractive"]["wrong_shown"] == 0
    assert rows["show everything"]["wrong_shown"] > rows["both guards"]["wrong_shown"] == 0
    assert rows["show everything"]["seconds"] < rows["number and name guard"]["seconds"]


def test_labels_from_the_guards_and_from_a_file(traces, tmp_path, capsysbinary):
    code, told = tune(capsysbinary, str(traces), "--labels", "guards", "--out", str(tmp_path / "g.toml"))
    assert told["runs"] == {"broken": 20, "good": 10, "documents": 30}
    assert code == EXIT_CHECK_FAILED and not (tmp_path / "g.toml").exists()
    labels = tmp_path / "labels.csv"
    rows = [
        f"k{number:03d},{'bad' if number % 4 == 1 else 'good'}" for number in range(120) if number % 4 < 2
    ]
    labels.write_text("run,label\n" + "\n".join(rows), encoding="utf-8")
    code, told = tune(capsysbinary, str(traces), "--labels", str(labels), "--out", str(tmp_path / "f.toml"))
    assert code == EXIT_DONE and told["runs"] == {"broken": 30, "good": 30, "documents": 30}


def test_people_are_told_the_same(traces, tmp_path, capsys):
    assert (
        run_command(["tune", str(traces), "--out", str(tmp_path / "t.toml"), "--draws", "30", "--quiet"]) == 0
    )
    text = capsys.readouterr().out
    for expected in (
        "60 broken and 60 good runs",
        "10 in a row above",
        "always extractive",
        "Recommended, written to",
    ):
        assert expected in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["missing"],
        ["{traces}", "--labels", "missing.csv"],
        ["{traces}", "--max-false-stops", "2"],
        ["{traces}", "--device", "toaster"],
    ],
)
def test_bad_input_is_one_line(traces, tmp_path, capsys, arguments):
    given = [argument.format(traces=traces) for argument in arguments]
    code = run_command(["tune", *given, "--out", str(tmp_path / "t.toml"), "--draws", "10", "--quiet"])
    told = capsys.readouterr()
    assert code == EXIT_BAD_INPUT and told.out == "" and len(told.err.strip().splitlines()) == 1
    assert not (tmp_path / "t.toml").exists()


def test_traces_of_two_vocabularies_are_not_mixed(traces, capsys):
    write_trace(traces, np.random.default_rng(1), 500, "loop", vocabulary=32000)
    assert run_command(["tune", str(traces), "--quiet"]) == EXIT_BAD_INPUT
    assert "32000, 49152" in capsys.readouterr().err
