"""One HTML file from one or several results: opens offline, needs no server and no script from elsewhere.

It shows what other commands found and judges nothing. Charts are drawn by Vega-Lite when the file is written
(vl-convert, the `report` extra) and stand in it as SVG.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.report.load import load_result
from seatrial.report.page import render
from seatrial.simulate.output import write_atomically


def write_report(results: Sequence[Path], out: Path, *, language: str = "en") -> None:
    """Writes the report of `results` (result files or run folders) to `out`.

    Raises UserError for a file that is no result, an unknown language, a missing `report` extra, or an `out`
    that cannot be written.
    """
    from seatrial.errors import UserError

    text = render([load_result(path) for path in results], language)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out, text)
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror or error}; give another with --html") from error
