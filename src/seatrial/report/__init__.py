"""One HTML file from one or several results: opens offline, needs no server and no script from elsewhere.

It shows what other commands found and judges nothing. Charts are drawn by Vega-Lite when the file is written
(vl-convert, the `report` extra) and stand in it as SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seatrial.errors import UserError
from seatrial.report.load import Result, kind_of, load_result
from seatrial.report.page import render
from seatrial.simulate.output import write_atomically


def write_report(results: Sequence[Path], out: Path, *, language: str = "en") -> None:
    """Writes the report of `results` (result files or run folders) to `out`.

    Raises UserError for a file that is no result, an unknown language, a missing `report` extra, or an `out`
    that cannot be written.
    """
    _write([load_result(path) for path in results], out, language)


def write_document(document: dict[str, Any], name: str, out: Path, *, language: str = "en") -> None:
    """Writes the report of one document of plan, damage or tune, as `--json` prints it; errors as above."""
    kind = kind_of(document)
    if kind is None:
        raise UserError("this document is no result of plan, damage or tune")
    _write([Result(kind, name, document)], out, language)


def check_ready(out: Path, language: str, inputs: Sequence[Path] = ()) -> None:
    """Finds out before a long job whether its report could be written.

    Raises UserError for a missing `report` extra, an unknown language, or an `out` that is one of `inputs`.
    """
    from seatrial.report.svg import engine
    from seatrial.report.words import speaker

    speaker(language)
    engine()
    for given in inputs:
        if out.exists() and given.exists() and out.samefile(given):
            raise UserError(f"--html {out} is also an input: give another file")


def _write(results: Sequence[Result], out: Path, language: str) -> None:
    text = render(results, language)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, text)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror or error}; give another with --html") from error
