"""The command line: one file per command, put together here.

Each command module has a Typer function; heavy rooms are imported inside it, so that `--help`, `plan`,
`check` and `devices` start without torch, transformers or onnxruntime.
"""

from __future__ import annotations

import io
import os
import sys

import typer

from seatrial.cli.output import print_error
from seatrial.errors import EXIT_BAD_INPUT, EXIT_DONE, EXIT_INTERRUPTED, UserError


def build_app() -> typer.Typer:
    """All commands in one app: the only place where they meet."""
    from seatrial.cli import (
        check,
        damage,
        devices,
        doctor,
        export,
        ops,
        plan,
        quantize,
        report,
        run,
        trace,
        tune,
    )

    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Dry-run a small language model on a device before you ship it.",
    )
    app.callback()(_version_option)
    app.add_typer(devices.app, name="devices")
    app.command("plan")(plan.plan)
    app.command("ops")(ops.ops)
    app.command("export")(export.export)
    app.command("quantize")(quantize.quantize)
    app.command("run")(run.run)
    app.command("check")(check.check)
    app.command("damage")(damage.damage)
    app.command("trace")(trace.trace)
    app.command("tune")(tune.tune)
    app.command("report")(report.report)
    app.command("doctor")(doctor.doctor)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        from seatrial import __version__

        typer.echo(f"seatrial {__version__}")
        raise typer.Exit


def _version_option(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Dry-run a small language model on a device before you ship it."""


def main(arguments: list[str] | None = None) -> None:
    """Entry point of the `seatrial` script: runs a command, maps errors to exit codes."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character (ASCII, GBK) gets its code, never a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run_command(sys.argv[1:] if arguments is None else arguments))


def run_command(arguments: list[str]) -> int:
    """Exit code of one command line; `UserError` becomes one line on stderr and 2."""
    try:
        code = build_app()(args=arguments or ["--help"], prog_name="seatrial", standalone_mode=False)
        sys.stdout.flush()
        if code == EXIT_INTERRUPTED:  # so typer reports Ctrl-C here
            print_error("interrupted")
        return code if isinstance(code, int) else EXIT_DONE
    except UserError as error:
        print_error(str(error))
        return EXIT_BAD_INPUT
    except typer.TyperException as error:
        print_error(" ".join(error.format_message().split()))
        return EXIT_BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        print_error("interrupted")
        return EXIT_INTERRUPTED
    except (BrokenPipeError, SystemExit) as error:
        # rich and typer end the program with 1 when the reader of our pipe has gone; that is no failure.
        if not isinstance(error, BrokenPipeError) and not isinstance(error.__context__, BrokenPipeError):
            raise
        # Keeps the interpreter's last flush from raising again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return EXIT_DONE
