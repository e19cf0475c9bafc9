"""`seatrial trace`: many traces of a folder of transcripts, in parallel, resumable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.simulate.sweep import Runner, SweepResult
    from seatrial.simulate.trace_job import TraceJob


def trace(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Transcripts: .txt, .srt or .vtt files.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for the traces; goes on where it stopped.")],
    references: Annotated[
        Path | None,
        typer.Option(
            "--references", help="People's summaries, named like the transcripts: runs known to be good."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="Model, may be repeated; the embedded one if left out."),
    ] = None,
    weights: Annotated[
        list[str] | None, typer.Option("--weights", help="int4 (default), int8, fp32; a bundle as it is.")
    ] = None,
    kv: Annotated[
        list[str] | None, typer.Option("--kv", help="fp32 (default) or int8; may be repeated.")
    ] = None,
    max_tokens: Annotated[
        list[int] | None, typer.Option("--max-tokens", help="Length of a summary (200); may be repeated.")
    ] = None,
    prompt_tokens: Annotated[
        int | None, typer.Option("--prompt-tokens", help="Cut each transcript to fit so many tokens.")
    ] = None,
    prompt: Annotated[
        Path | None, typer.Option("--prompt", help="Own request, with {transcript} in it.")
    ] = None,
    plant: Annotated[
        list[str] | None,
        typer.Option("--plant", help="Fault to plant, may be repeated; `all` for every kind."),
    ] = None,
    plant_at: Annotated[int | None, typer.Option("--plant-at", help="Token at which faults begin.")] = None,
    seed: int = typer.Option(0, "--seed", help="Seed of the planted faults."),
    workers: int = typer.Option(1, "--workers", help="Processes on this machine."),
    threads: int = typer.Option(1, "--threads", help="Threads of each worker's engine."),
    dask: str | None = typer.Option(None, "--dask", help="Address of a Dask scheduler to work on instead."),
    no_check: bool = typer.Option(False, "--no-check", help="Do not check figures and names of the texts."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress on stderr."),
) -> int:
    """Trace a model over a folder of transcripts, as data for `seatrial tune`.

    Example: seatrial trace transcripts --plant all --out traces
    """
    from seatrial.cli.output import print_json
    from seatrial.cli.progress import stage_progress
    from seatrial.errors import EXIT_CHECK_FAILED, EXIT_DONE, UserError
    from seatrial.simulate.plant import KINDS
    from seatrial.simulate.sweep import run_sweep, trace_work
    from seatrial.simulate.trace_plan import TracePlan, plan_traces
    from seatrial.textfile import read_text, read_transcript

    if workers < 1 or threads < 1:
        raise UserError("--workers and --threads must be at least 1")
    plan = TracePlan(
        folder=folder,
        out=out,
        references=references,
        models=tuple(model or ()),
        weights=tuple(weights or (None,)),
        kv=tuple(kv or ("fp32",)),
        max_tokens=tuple(max_tokens or (200,)),
        prompt_tokens=prompt_tokens,
        prompt=None if prompt is None else read_text(prompt, what="prompt"),
        plants=KINDS if plant and "all" in plant else tuple(plant or ()),
        plant_at=plant_at,
        seed=seed,
        threads=threads,
        check=not no_check,
    )
    read = lambda path: read_text(path) if path.parent == references else read_transcript(path)
    with stage_progress(quiet) as report:
        jobs = plan_traces(plan, read, report)
        if dask is None:
            _prepare(jobs, report)
        result = run_sweep(
            jobs,
            trace_work,
            out,
            _runner(workers, dask),
            on_done=lambda done, of: report(f"traces ({of})", done / of),
        )
    if as_json:
        print_json(_document(result))
    else:
        _print(result)
    return EXIT_CHECK_FAILED if result.failed else EXIT_DONE


def _prepare(jobs: Sequence[TraceJob], report) -> None:  # type: ignore[no-untyped-def]
    """Makes each bundle once, with progress, before several workers want it."""
    from seatrial.simulate.prepare import ensure_bundle

    for model, weights, kv in dict.fromkeys((job.model, job.weights, job.kv) for job in jobs):
        ensure_bundle(model, weights, kv, report)


def _runner(workers: int, dask: str | None) -> Runner:
    from seatrial.simulate.sweep import dask_cluster, one_after_another, process_pool

    if dask is not None:
        return dask_cluster(dask)
    return one_after_another if workers == 1 else process_pool(workers)


def _document(result: SweepResult) -> dict[str, object]:
    return {
        "found": result.found,
        "made": result.made,
        "failed": [{"key": key, "reason": reason} for key, reason in result.failed],
        "index": str(result.index),
    }


def _print(result: SweepResult) -> None:
    typer.echo(
        f"{result.made} traces made, {result.found} were there, {len(result.failed)} failed: {result.index}"
    )
    for key, reason in result.failed:
        typer.echo(f"  {key}: {reason}")
