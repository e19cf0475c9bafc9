"""Reads results of other commands: run, plan, damage, tune, check; told apart by the fields they promise."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.errors import UserError
from seatrial.simulate.output import RESULT

# Fields that only one kind of document has.
KINDS = {
    "run": {"status", "summary_kind", "decode"},
    "plan": {"job", "time", "bound"},
    "plans": {"plans"},
    "damage": {"classes", "minimum_detectable"},
    "tune": {"meets", "rules", "baselines"},
}


@dataclass(frozen=True)
class Result:
    """One document; of a run also the transcript and the trace's rows, where they are there."""

    kind: str
    name: str
    data: dict[str, Any]
    source: str = ""
    tokens: list[dict[str, Any]] = field(default_factory=list)


def load_result(path: Path) -> Result:
    """The result in a file, or in a run's output folder.

    Raises UserError when there is none, or the file is no result of a command.
    """
    file = path / RESULT if path.is_dir() else path
    data = _read(file)
    kind = kind_of(data)
    if kind is None:
        known = ", ".join(KINDS)
        raise UserError(
            f"{file} is no result of seatrial: a JSON document of {known} is needed (--json prints one)"
        )
    name = file.parent.name if file.name == RESULT else file.stem
    if kind != "run":
        return Result(kind, name, data)
    source = _beside(file, data.get("source"))
    trace = _beside(file, data.get("trace"))
    return Result(kind, name, data, _text(source), _token_rows(_text(trace)))


def kind_of(data: dict[str, Any]) -> str | None:
    """Which command printed a document; None when none did."""
    return next((kind for kind, fields in KINDS.items() if fields <= data.keys()), None)


def _read(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"cannot read the result {file}: {error.strerror or error}") from error
    except ValueError as error:
        raise UserError(
            f"{file} is not JSON ({error}); give a file that --json printed, or a run's folder"
        ) from error
    if not isinstance(data, dict):
        raise UserError(f"{file} is no result of seatrial: one JSON object is needed")
    return data


def _beside(file: Path, named: str | None) -> Path | None:
    """A file that a result names: beside the result first, so that a moved folder still works."""
    if not named:
        return None
    moved = file.parent / Path(named).name
    return moved if moved.is_file() else Path(named)


def _text(path: Path | None) -> str:
    try:
        return path.read_text(encoding="utf-8") if path else ""
    except OSError:
        # A report of a result whose trace or source is gone is still a report; the page says what is missing.
        return ""


def _token_rows(text: str) -> list[dict[str, Any]]:
    rows = []
    for line in text.splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue  # the last line of a run that was killed while writing it
        if row.get("event") == "token":
            rows.append(row)
    return rows
