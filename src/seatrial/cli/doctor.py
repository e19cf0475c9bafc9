"""`seatrial doctor`: versions, ceiling, cache; one line each with the remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from seatrial.cli.output import print_json
from seatrial.errors import EXIT_CHECK_FAILED, EXIT_DONE

if TYPE_CHECKING:
    from seatrial.doctor import Line

MARKS = {"ok": "[green]ok[/]", "warn": "[yellow]warn[/]", "fail": "[red]fail[/]"}


def doctor(
    clean: bool = typer.Option(
        False, "--clean", help="Empty the cache: models and bundles are made again when needed."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Print only what needs doing."),
) -> int:
    """Look at this installation: versions, memory ceiling, cache; each line with its remedy.

    Example: seatrial doctor
    """
    from seatrial.doctor import clean_cache, examine

    freed = clean_cache() if clean else None
    lines = examine()
    if as_json:
        print_json({"lines": [line.to_json() for line in lines], "freed_bytes": freed})
    else:
        _print([line for line in lines if line.status != "ok" or not quiet], freed)
    return EXIT_CHECK_FAILED if any(line.status == "fail" for line in lines) else EXIT_DONE


def _print(lines: list[Line], freed: int | None) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    if freed is not None:
        console.print(f"cache emptied: {freed / 1e9:.2f} GB freed")
    for line in lines:
        remedy = f" -> {escape(line.remedy)}" if line.remedy else ""
        console.print(f"{MARKS[line.status]:<16} {line.name}: {escape(line.detail)}{remedy}", soft_wrap=True)
