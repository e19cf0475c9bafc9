"""`seatrial export MODEL OUT`: any model becomes a bundle, compared with torch before it gets its name."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from seatrial.errors import EXIT_CHECK_FAILED, EXIT_DONE, UserError


class Exporter(StrEnum):
    """The doors to ONNX: the swapped attention, or optimum's exporter."""

    AUTO = "auto"
    ATTENTION = "attention"
    OPTIMUM = "optimum"


def export(
    model: Annotated[str, typer.Argument(help="A folder, a hub id, a GGUF file, or `embedded`.")],
    out: Annotated[Path, typer.Argument(help="The bundle to write; with --verify, the bundle to check.")],
    exporter: Annotated[
        Exporter, typer.Option(help="Which exporter; auto takes the first that can.")
    ] = Exporter.AUTO,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check OUT against MODEL and name faults.")
    ] = False,
    allow_pickle: Annotated[bool, typer.Option(help="Read pickled weights, weights only.")] = False,
    json_: Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress.")] = False,
) -> int:
    """Export MODEL to a bundle at OUT, checked against torch; or check a bundle made by anyone (--verify).

    Example: seatrial export HuggingFaceTB/SmolLM2-360M-Instruct bundles/fp32
    """
    _require_extra()
    from seatrial.cli.progress import stage_progress
    from seatrial.export.source import resolve

    with stage_progress(quiet or json_) as progress:
        source = resolve(None if model == "embedded" else model, progress=progress, allow_pickle=allow_pickle)
        if verify:
            from seatrial.export.verify import verify_bundle

            report = verify_bundle(source, out, progress=progress).to_json()
        else:
            from seatrial.export.to_onnx import export_bundle

            result = export_bundle(
                source,
                out,
                exporter=exporter.value,
                progress=progress,
                allow_pickle=allow_pickle,
            )
            report = {
                **result.info,
                "checks": [check.to_json() for check in result.checks],
                "notes": result.notes,
            }
            report["bundle"] = None if result.bundle is None else str(result.bundle)
    return _show(report, json_)


def _require_extra() -> None:
    import importlib.util

    missing = [
        name for name in ("torch", "transformers", "onnxscript") if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise UserError(
            f"export needs {', '.join(missing)}; install them with: pip install 'seatrial[export]'"
        )


def _show(report: dict[str, Any], json_: bool) -> int:
    failed = any(check["verdict"] == "fail" for check in report["checks"])
    if json_:
        from seatrial.cli.output import print_json

        print_json(report)
    else:
        _print(report, failed)
    return EXIT_CHECK_FAILED if failed else EXIT_DONE


def _print(report: dict[str, Any], failed: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    table = Table("check", "verdict", "figure", "limit", box=None, pad_edge=False)
    for check in report["checks"]:
        figures = ["-" if check[name] is None else f"{check[name]:.2e}" for name in ("figure", "limit")]
        table.add_row(check["name"], check["verdict"], *figures)
    console.print(table)
    for fault in report.get("faults", []):
        console.print(f"fault: {fault['kind']} at {fault['place']}: {fault['detail']}")
        console.print(f"  a reader notices: {fault['symptom']}")
    for note in report["notes"]:
        console.print(f"note: {note}")
    if failed:
        console.print(
            "a check failed" + ("" if report.get("faults") is not None else "; nothing was written")
        )
    elif report.get("bundle"):
        sizes = ", ".join(f"{name} {size:,} bytes" for name, size in report.get("sizes", {}).items())
        console.print(f"written: {report['bundle']}" + (f" ({sizes})" if sizes else ""))
