"""Traces of the embedded model: the same whoever makes them, true to the engine, broken where planted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from seatrial.cli import run_command
from seatrial.errors import EXIT_CHECK_FAILED, UserError
from seatrial.export.bundle import open_bundle
from seatrial.export.session import Session
from seatrial.export.tokenizer import Tokenizer
from seatrial.guards.signals import signals_of_rows
from seatrial.simulate.plant import IN_WEIGHTS, KINDS, broken_bundle
from seatrial.simulate.trace_files import read_labels, read_traces, vocabulary_of
from seatrial.simulate.trace_job import Engines, TraceJob, make_trace

if TYPE_CHECKING:
    from seatrial.export.bundle import Bundle

TEXT = """Nora Feld: The ramp for the north gate costs 3,500 dollars and arrives in the first week of April.
Tom Reyes: Then we should order it today, because the supplier raises prices on Monday.
Nora Feld: Agreed. Tom orders the ramp today and Ines plans the training for May.
"""
SUMMARY = "The team orders the ramp for the north gate today; it costs 3,500 dollars and arrives in April."
SHORT = {"max_tokens": 20, "prompt_tokens": 400, "threads": 2, "check": False}


@pytest.fixture(scope="module")
def engines() -> Engines:
    return Engines()


@pytest.fixture
def job(int4_bundle: Bundle) -> TraceJob:
    return TraceJob(document="ramp", transcript=TEXT, model=str(int4_bundle.folder), weights=None, **SHORT)


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.rstrip("\n").split("\n")]


def tokens_of(text: str) -> list[dict[str, Any]]:
    return [row for row in rows_of(text) if row["event"] == "token"]


def test_a_trace_does_not_depend_on_what_its_worker_did_before(job, engines):
    first = make_trace(job, engines)
    make_trace(replace(job, plant="scrambled-memory", plant_at=3), engines)
    make_trace(replace(job, transcript=TEXT * 2), engines)
    assert make_trace(job, engines) == first == make_trace(job, Engines())


def test_a_persons_text_is_read_token_by_token_with_the_engines_own_figures(job, engines, int4_bundle):
    text = make_trace(replace(job, reference=SUMMARY, max_tokens=60), engines)
    rows, tokens = rows_of(text), tokens_of(text)
    assert rows[-1]["text"] == SUMMARY and rows[-1]["reason"] == "end"
    tokenizer = Tokenizer.load(int4_bundle.folder)
    assert [row["id"] for row in tokens] == tokenizer.encode(SUMMARY)
    with Session(int4_bundle, capacity=1024, threads=2) as session:
        from seatrial.simulate.prompt import default_prompt

        prompt = tokenizer.chat(default_prompt(TEXT).messages(TEXT.rstrip("\n"), 60))
        assert rows[1]["prompt_tokens"] == len(prompt)
        ids = [row["id"] for row in tokens]
        scored = session.score([*prompt, *ids])[len(prompt) - 1 : -1]
    whole = signals_of_rows(scored, ids)
    gaps = [abs(a["logprob"] - b.logprob) for a, b in zip(tokens, whole, strict=True)]
    assert max(gaps) < 0.5 and float(np.mean(gaps)) < 0.1, f"max {max(gaps)}, mean {np.mean(gaps)}"
    assert [row["known"] for row in tokens] == [row["id"] in set(prompt) for row in tokens]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in IN_WEIGHTS])
def test_a_planted_fault_begins_where_it_was_planted(job, engines, kind):
    whole = tokens_of(make_trace(replace(job, reference=SUMMARY), engines))
    broken = tokens_of(make_trace(replace(job, reference=SUMMARY, plant=kind, plant_at=10), engines))
    assert broken[:10] == whole[:10]
    assert broken[10:] != whole[10:]
    late = broken[10:]
    if kind == "not-finite":
        assert all(row["entropy"] is None and row["finite"] is False for row in late)
    if kind == "flat-logits":
        assert np.mean([row["entropy"] for row in late]) > 5
    if kind == "loop":
        assert [row["id"] for row in late] == [row["id"] for row in broken[3:10]] + [
            late[0]["id"],
            *(r["id"] for r in late[1:3]),
        ]
    if kind == "stuck-token":
        assert len({row["id"] for row in late}) == 1


def test_seeds_make_faults_repeatable_and_different(job, engines):
    hot = replace(job, plant="hot-sampler", plant_at=2)
    assert make_trace(hot, engines) == make_trace(hot, engines)
    assert tokens_of(make_trace(hot, engines)) != tokens_of(make_trace(replace(hot, seed=1), engines))


@pytest.mark.parametrize(("kind", "severity"), [("noised-weights", 0.5), ("flipped-bits", 0.02)])
def test_broken_weights_are_another_bundle_that_opens_and_says_so(int4_bundle, tmp_path, kind, severity):
    before = {file.name: file.stat().st_size for file in int4_bundle.folder.iterdir()}
    out = broken_bundle(int4_bundle, tmp_path / "broken", kind, severity=severity)
    opened = open_bundle(out)
    assert opened.info["planted"]["kind"] == kind and opened.info["planted"]["tensors"] > 100
    data = lambda bundle: np.fromfile(bundle.folder / "model.onnx.data", np.uint8)
    changed = float((data(opened) != data(int4_bundle)).mean())
    assert 0.01 < changed < 0.8
    assert {file.name: file.stat().st_size for file in int4_bundle.folder.iterdir()} == before
    same = broken_bundle(int4_bundle, tmp_path / "again", kind, severity=severity)
    assert np.array_equal(data(opened), data(open_bundle(same)))
    with pytest.raises(UserError, match="no fault of weights"):
        broken_bundle(int4_bundle, tmp_path / "no", "loop", severity=1.0)


def test_unknown_faults_and_windows_too_small_are_refused(job, engines):
    with pytest.raises(UserError, match="known: flat-logits"):
        make_trace(replace(job, plant="gremlin"), engines)
    with pytest.raises(UserError, match="lower --max-tokens"):
        make_trace(replace(job, max_tokens=9000), engines)


def test_from_a_folder_to_a_plain_word_about_thresholds(int4_bundle, tmp_path, capsysbinary):
    """The commands, end to end; two documents are too few for a recommendation, and that is what is said."""
    (tmp_path / "in").mkdir()
    (tmp_path / "people").mkdir()
    for name in ("one", "two"):
        (tmp_path / "in" / f"{name}.txt").write_text(
            TEXT.replace("3,500", f"{len(name)},500"), encoding="utf-8"
        )
        (tmp_path / "people" / f"{name}.txt").write_text(SUMMARY, encoding="utf-8")
    options = ["--model", str(int4_bundle.folder), "--max-tokens", "12", "--prompt-tokens", "400"]
    planted = ["--plant", "loop", "--plant", "not-finite", "--plant-at", "4", "--threads", "2"]
    folders = [str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--references", str(tmp_path / "people")]
    command = ["trace", *folders, *options, *planted, "--json", "--quiet"]
    assert run_command(command) == 0
    assert json.loads(capsysbinary.readouterr().out)["made"] == 8
    assert run_command(command) == 0
    assert json.loads(capsysbinary.readouterr().out)["found"] == 8
    runs = read_traces(tmp_path / "out")
    labels = {(run.document, run.kind): run.broken for run in runs}
    assert labels["one", "reference"] is False and labels["two", "loop"] is True and len(runs) == 8
    assert vocabulary_of(runs) == 49152 and all(run.known is not None for run in runs)
    out = tmp_path / "thresholds.toml"
    command = ["tune", str(tmp_path / "out"), "--out", str(out), "--draws", "20", "--json", "--quiet"]
    assert run_command(command) == EXIT_CHECK_FAILED
    told = json.loads(capsysbinary.readouterr().out)
    assert told["meets"] is False and told["why"].startswith("cannot tell") and not out.exists()
    assert {row["rule"] for row in told["baselines"]} == {"length only", "random", "never", "always"}


def test_broken_trace_files_and_labels_are_named(tmp_path):
    with pytest.raises(UserError, match="no traces"):
        read_traces(tmp_path)
    (tmp_path / "a.jsonl").write_text('{"event": "trace", "format": 1}\n{"event": "tok', encoding="utf-8")
    with pytest.raises(UserError, match=r"a\.jsonl is broken in line 2"):
        read_traces(tmp_path)
    (tmp_path / "a.jsonl").write_text(
        '{"event": "trace", "format": 1}\n{"event": "token", "id": 3}\n', encoding="utf-8"
    )
    with pytest.raises(UserError, match="a token row lacks"):
        read_traces(tmp_path)
    labels = tmp_path / "labels.csv"
    labels.write_text("\ufeffdocument,label\nramp,bad\ngate, Good\n", encoding="utf-8")
    assert read_labels(labels) == {"ramp": True, "gate": False}
    labels.write_text("document,label\nramp,maybe\n", encoding="utf-8")
    with pytest.raises(UserError, match="line 2"):
        read_labels(labels)


def test_a_runs_own_trace_is_read_with_the_result_beside_it(tmp_path: Path):
    folder = tmp_path / "monday"
    folder.mkdir()
    token = {
        "event": "token",
        "id": 5,
        "entropy": 1.0,
        "max_prob": 0.5,
        "margin": 0.1,
        "varentropy": 1.0,
        "logprob": -1.0,
    }
    rows = [{"event": "trace", "format": 1}]
    rows += [{**token, "index": i, "attempt": attempt, "part": 0} for attempt in (1, 2) for i in range(3)]
    (folder / "trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "result.json").write_text('{"model": "M", "weights": "int4", "kv": "int8"}', encoding="utf-8")
    runs = read_traces(tmp_path)
    assert [(run.document, len(run), run.model, run.kv, run.broken) for run in runs] == [
        ("monday", 3, "M", "int8", None)
    ] * 2
