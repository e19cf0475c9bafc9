"""`seatrial report`: results of other commands as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULT...", help="Run folders, or files that --json printed.")
    ],
    html: Annotated[Path, typer.Option("--html", help="The file to write.")],
    lang: str = typer.Option("en", "--lang", help="Language of the page: en or zh."),
    as_json: bool = typer.Option(False, "--json", help="Print what was written as JSON."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing."),
) -> int:
    """Write results as one HTML file that opens offline.

    Example: seatrial report out/en out/zh --html report.html
    """
    from seatrial.cli.output import print_json
    from seatrial.errors import EXIT_DONE
    from seatrial.report import write_report

    write_report(results, html, language=lang)
    if as_json:
        print_json({"html": str(html), "results": [str(path) for path in results]})
    elif not quiet:
        print(f"written: {html} ({html.stat().st_size / 1e6:.2f} MB)")
    return EXIT_DONE
