"""`seatrial check`: the number and name guards alone, on a summary and its source. No model is loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from datetime import date

    from seatrial.guards.check import CheckResult
    from seatrial.guards.policy import Policy

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def check(
    summary: str = typer.Argument(..., help="The summary: a text file, or - for standard input."),
    source: str = typer.Argument(..., help="What it summarises: text with speaker labels, SRT or VTT."),
    meeting_date: str | None = typer.Option(
        None, "--meeting-date", help="The meeting's day, as in 2026-03-18: tomorrow and 下周三 become days."
    ),
    locale: str | None = typer.Option(
        None,
        "--locale",
        help="How numbers and dates are written: en-US, en-GB, de, ... (default: by the text).",
    ),
    thresholds: str | None = typer.Option(
        None, "--thresholds", help=r"A TOML file with \[numbers] and \[names]: the severity of each reason."
    ),
    severity: list[str] | None = typer.Option(
        None,
        "--severity",
        help="One reason made stricter or softer, as in 'numbers.one end=fail'; may be repeated.",
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    quiet: bool = typer.Option(False, "--quiet", help="Print the verdict only."),
) -> int:
    """Check every figure and name of a summary against its source.

    Example: seatrial check summary.txt meeting.txt --meeting-date 2026-03-12
    """
    from seatrial.cli.output import print_json
    from seatrial.errors import EXIT_CHECK_FAILED, EXIT_DONE
    from seatrial.guards.check import check as check_text
    from seatrial.guards.verdict import Verdict
    from seatrial.textfile import read_text

    policy = _policy(thresholds, severity or [])
    written = read_text(summary, what="summary")
    result = check_text(
        written,
        read_text(source, what="source"),
        meeting_date=_day(meeting_date),
        locale=locale,
        policy=policy,
    )
    if as_json:
        print_json(result.to_json())
    else:
        _print(written, result, quiet)
    return EXIT_CHECK_FAILED if result.verdict is Verdict.FAIL else EXIT_DONE


def _day(written: str | None) -> date | None:
    from datetime import date

    from seatrial.errors import UserError

    if written is None:
        return None
    try:
        return date.fromisoformat(written)
    except ValueError as error:
        raise UserError(f"--meeting-date {written!r} is no date; write it as 2026-03-18") from error


def _policy(thresholds: str | None, severity: list[str]) -> Policy | None:
    from seatrial.guards.policy import policy_from_file, policy_from_options

    base = policy_from_file(thresholds) if thresholds is not None else None
    return policy_from_options(severity, base) if severity else base


def _print(summary: str, result: CheckResult, quiet: bool) -> None:
    """The summary with coloured figures and names, a table of reasons, the verdict."""
    from rich.console import Console

    console = Console(highlight=False)
    if not quiet:
        console.print(_coloured(summary, result))
        console.print()
        if result.findings:
            console.print(_table(result))
    counts = {word: sum(1 for f in result.findings if f.verdict == word) for word in ("ok", "warn", "fail")}
    told = ", ".join(f"{count} {word}" for word, count in counts.items())
    console.print(f"verdict: [{_STYLES[result.verdict]}]{result.verdict}[/] ({told})")


def _coloured(summary: str, result: CheckResult) -> Any:
    from rich.text import Text

    text = Text(summary.rstrip("\n"))
    for finding in sorted(result.findings, key=lambda f: ("ok", "warn", "fail").index(str(f.verdict))):
        text.stylize(_STYLES[finding.verdict], *finding.span)
    return text


def _table(result: CheckResult) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("verdict", "text", "kind", "reason", "nearest in the source"):
        table.add_column(heading, overflow="fold")
    for finding in result.findings:
        near = "" if finding.nearest is None else f"{finding.nearest.text} @ {finding.nearest.span[0]}"
        row = (finding.text, finding.kind, finding.reason, near)
        style = _STYLES[finding.verdict]
        table.add_row(
            Text(str(finding.verdict), style=style), *(Text(" ".join(cell.split())) for cell in row)
        )
    return table
