"""`seatrial run`: the whole job on a transcript, under a device's clock and memory ceiling."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from types import FrameType

    from seatrial.simulate.job import RunJob

DEFAULT_OUT = Path("seatrial-run")


def run(
    transcript: str = typer.Argument(
        ...,
        metavar="TRANSCRIPT",
        help="Text with speaker labels, SRT, VTT, - (stdin), sample:en or sample:zh.",
    ),
    device: str = typer.Option(..., "--device", help="A device's name or a TOML file."),
    model: str | None = typer.Option(
        None, "--model", help="Folder, hub id, GGUF file or bundle; the embedded model when left out."
    ),
    weights: str | None = typer.Option(
        None, "--weights", help="int4 (default), int8, fp32; a bundle as it is."
    ),
    kv: str | None = typer.Option(None, "--kv", help="KV cache: fp32 (default), int8; a bundle's own."),
    max_tokens: int = typer.Option(400, "--max-tokens", help="Length of the summary."),
    deadline: str | None = typer.Option(None, "--deadline", help="Device time the job may take, as in 20s."),
    ceiling: str | None = typer.Option(None, "--ceiling", help="Memory the job may take, as in 4GB or 4GiB."),
    other_programs: str | None = typer.Option(None, "--other-programs", help="Memory other programs hold."),
    bandwidth: str | None = typer.Option(
        None, "--bandwidth", help="Bandwidth instead of the device's, as 50GB/s."
    ),
    bandwidth_trace: Annotated[
        Path | None,
        typer.Option("--bandwidth-trace", help="File of lines `SECONDS RATE`: bandwidth over device time."),
    ] = None,
    runtime: str | None = typer.Option(
        None, "--runtime", help="A runtime's name or TOML file; else the device's."
    ),
    strict: bool = typer.Option(False, "--strict", help="Refuse whatever is weaker than what was asked."),
    prompt: Annotated[
        Path | None, typer.Option("--prompt", help="Own request, with {transcript} in it.")
    ] = None,
    pace: str = typer.Option(
        "virtual", "--pace", help="virtual adds up device time, real also sleeps to it."
    ),
    stand_in: Annotated[
        Path | None,
        typer.Option(
            "--stand-in", help="config.json of the model meant: its time and memory, tokens of this one."
        ),
    ] = None,
    ballast: bool = typer.Option(False, "--ballast", help="Really take the memory of the stand-in's model."),
    thresholds: Annotated[
        Path | None, typer.Option("--thresholds", help="thresholds.toml for the guards.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for summary, result and trace.")] = DEFAULT_OUT,
    encoding: str | None = typer.Option(
        None, "--encoding", help="Encoding of the transcript; UTF-8 if left out."
    ),
    threads: int | None = typer.Option(
        None, "--threads", help="Threads of the engine; all CPUs if left out."
    ),
    watchdog: str = typer.Option("5min", "--watchdog", help="Silence after which the model counts as hung."),
    map_weights: bool = typer.Option(False, "--map-weights", help="Begin with mapped weights."),
    no_forecast: bool = typer.Option(
        False, "--no-forecast", help="Begin as asked even if the memory guard foresees that it will not fit."
    ),
    html: Annotated[Path | None, typer.Option("--html", help="Also write the result as one page.")] = None,
    lang: str = typer.Option("en", "--lang", help="Language of that page: en or zh."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress on stderr."),
) -> int:
    """Summarize a transcript under a device's limits, with guards and fallbacks.

    Example: seatrial run sample:en --device thin-laptop-8gb --html report.html
    """
    from seatrial.cli.output import print_json
    from seatrial.cli.run_progress import told
    from seatrial.cli.run_report import print_report
    from seatrial.devices.units import parse_bytes, parse_rate, parse_time
    from seatrial.errors import UserError
    from seatrial.simulate.job import RunJob
    from seatrial.textfile import read_transcript

    if pace not in ("virtual", "real"):
        raise UserError(f"--pace is {pace!r}: virtual or real")
    job = RunJob(
        transcript=read_transcript(transcript, encoding=encoding),
        device=device,
        out=out,
        inputs=tuple(Path(name) for name in (transcript, prompt, thresholds, bandwidth_trace) if name),
        model=model,
        weights=weights,
        kv=kv,
        max_tokens=max_tokens,
        deadline_s=parse_time(deadline) if deadline else None,
        ceiling_bytes=parse_bytes(ceiling) if ceiling else None,
        other_programs_bytes=parse_bytes(other_programs) if other_programs else 0,
        bandwidth_Bps=parse_rate(bandwidth) if bandwidth else None,
        bandwidth_trace=bandwidth_trace,
        runtime=runtime,
        strict=strict,
        prompt=prompt,
        pace=pace,  # type: ignore[arg-type]
        stand_in=stand_in,
        ballast=ballast,
        thresholds=thresholds,
        threads=threads,
        patience_s=parse_time(watchdog),
        foresee_memory=not no_forecast,
        mapped=map_weights,
    )
    if html is not None:
        from seatrial.report import check_ready, write_report

        check_ready(html, lang, job.inputs)
    progress = told(quiet)
    result = _carry_out(job, progress)
    if html is not None:
        write_report([out], html, language=lang)
    try:
        if as_json:
            print_json(result.to_json())
        else:
            print_report(result)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # the latter is rich's word for the former
        # The reader has gone; the result is in the output folder. Keeps the last flush from raising again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return result.exit_code


def _carry_out(job: RunJob, progress: Any) -> Any:
    """The run, with SIGTERM handled like Ctrl-C; a failed preparation is a failed check."""
    from seatrial.cli.output import print_error
    from seatrial.errors import EXIT_CHECK_FAILED
    from seatrial.simulate.prepare import PreparationFailed
    from seatrial.simulate.run import run as carry_out

    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        with progress:
            return carry_out(job, progress)
    except PreparationFailed as error:
        print_error(str(error))
        raise typer.Exit(EXIT_CHECK_FAILED) from error
    finally:
        signal.signal(signal.SIGTERM, before)


def _terminate(number: int, _: FrameType | None) -> None:
    """Asked to end: tidy up as for Ctrl-C, then leave with the shell's code for this signal."""
    raise SystemExit(128 + number)
