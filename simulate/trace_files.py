"""Traces read back as arrays, whoever wrote them: a sweep (`index.jsonl` and its files) or single runs.

A trace of a sweep says what it is in its `job` row. A `trace.jsonl` of a run has none: document and formats
then come from the `result.json` beside it, and each attempt is a run of its own. A row that is not whole
JSON, or a token without its signals, is a broken file and is named.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seatrial.errors import UserError
from seatrial.guards.rules import TracedRun
from seatrial.simulate.plant import KINDS

_SIGNALS = ("entropy", "max_prob", "margin", "varentropy", "logprob")
Row = dict[str, Any]


def read_traces(folder: Path) -> list[TracedRun]:
    """Every trace in `folder`, in the order of the files' names.

    A planted run is broken from its first planted token, a person's text is not, and a text that the model
    ended by itself is taken as not broken; of a text that filled its budget nobody knows.
    """
    if not folder.is_dir():
        raise UserError(
            f"no folder {folder}: give the folder that seatrial trace wrote, or runs' output folders"
        )
    index = folder / "index.jsonl"
    if index.is_file():
        files = [folder / row["file"] for row in _rows(index)]
    else:
        files = sorted(folder.rglob("*.jsonl"))
    runs = [run for path in files for run in _read(path)]
    if not runs:
        raise UserError(f"no traces in {folder}: make some with `seatrial trace TRANSCRIPTS --out {folder}`")
    return runs


_TRUE, _FALSE = ("1", "true", "yes", "bad", "broken"), ("0", "false", "no", "good", "ok")


def read_labels(path: Path) -> dict[str, bool]:
    """The user's own labels: CSV with a column `run` or `document` and a column `label`; True is broken."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"labels {path} cannot be read: {error}") from None
    labels: dict[str, bool] = {}
    for number, row in enumerate(rows, 2):
        name, label = row.get("run") or row.get("document"), (row.get("label") or "").strip().lower()
        if not name or label not in (*_TRUE, *_FALSE):
            raise UserError(
                f"labels {path}, line {number}: a column run or document and a column label "
                f"({' or '.join((_TRUE[-1], _FALSE[-2]))}) are needed"
            )
        labels[name] = label in _TRUE
    if not labels:
        raise UserError(f"labels {path} has no rows")
    return labels


def vocabulary_of(runs: Sequence[TracedRun]) -> int:
    """The vocabulary that all traces agree on: entropies over other vocabularies cannot be compared."""
    sizes = {run.vocabulary for run in runs if run.vocabulary is not None}
    if len(sizes) != 1:
        told = ", ".join(map(str, sorted(sizes))) or "none"
        raise UserError(f"the traces tell {told} vocabulary sizes, one is needed: tune each model by itself")
    return sizes.pop()


def _rows(path: Path) -> list[Row]:
    try:
        lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")  # not at U+2028, which may be said
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"trace {path} cannot be read: {error}") from None
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
        except ValueError:
            raise UserError(f"trace {path} is broken in line {number}: not a JSON row") from None
    return rows


def _read(path: Path) -> Iterator[TracedRun]:
    rows = _rows(path)
    if not rows or rows[0].get("event") != "trace":
        return
    job = next((row for row in rows if row["event"] == "job"), None)
    tokens = [row for row in rows if row["event"] == "token"]
    if job is not None:
        done = next((row for row in rows if row["event"] == "done"), {})
        yield _of_sweep(path, job, tokens, done)
        return
    result = _result_beside(path)
    attempts = dict.fromkeys((row.get("attempt"), row.get("part")) for row in tokens)
    for attempt in attempts:
        own = [row for row in tokens if (row.get("attempt"), row.get("part")) == attempt]
        yield _of_run(path, result, attempt, own)


def _of_sweep(path: Path, job: Row, tokens: list[Row], done: Row) -> TracedRun:
    planted = job["kind"] in KINDS
    ended = done.get("reason") == "end"
    wrong = [done.get(name) for name in ("wrong_figures", "wrong_names")]
    return TracedRun(
        run=job["key"],
        document=job["document"],
        language=job["language"],
        model=job["model"],
        weights=job["weights"],
        kv=job["kv"],
        kind=job["kind"],
        budget=job["max_tokens"],
        broken=True if planted else (False if job["kind"] == "reference" or ended else None),
        broken_at=job["plant_at"] if planted else None,
        wrong_figures=None if None in wrong else sum(w for w in wrong if w is not None),
        ended=ended,
        prompt_tokens=job.get("prompt_tokens") or 0,
        vocabulary=job.get("vocabulary"),
        **_arrays(path, tokens),
    )


def _of_run(path: Path, result: Row, attempt: tuple[Any, Any], tokens: list[Row]) -> TracedRun:
    return TracedRun(
        run=f"{path.parent.name} {attempt[0]}.{attempt[1]}",
        document=path.parent.name,
        language="unknown",
        model=result.get("model") or "unknown",
        weights=result.get("weights") or "unknown",
        kv=result.get("kv") or "unknown",
        kind="free",
        budget=max(len(tokens), 1),
        **_arrays(path, tokens),
    )


def _result_beside(path: Path) -> Row:
    beside = path.parent / "result.json"
    if not beside.is_file():
        return {}
    try:
        document = json.loads(beside.read_text(encoding="utf-8"))
    except ValueError:
        raise UserError(f"{beside} is broken: not JSON") from None
    return document if isinstance(document, dict) else {}


def _arrays(path: Path, tokens: list[Row]) -> dict[str, Any]:
    try:
        signals = {name: np.array([_number(row[name]) for row in tokens], float) for name in _SIGNALS}
        ids = np.array([int(row["id"]) for row in tokens], np.int64)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"trace {path}: a token row lacks or garbles {error}") from None
    told = [row.get("known") for row in tokens]
    known = None if None in told else np.array(told, bool)
    return {"tokens": ids, "known": known, **signals}


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
