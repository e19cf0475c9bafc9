"""`seatrial tune`: from traces to a thresholds file, or the plain word that none will do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from seatrial.guards.costs import PolicyResult, Prices
    from seatrial.guards.rules import TracedRun
    from seatrial.guards.tune import TuneResult


def tune(
    traces: Annotated[Path, typer.Argument(metavar="TRACES", help="Folder that `seatrial trace` wrote.")],
    out: Annotated[Path, typer.Option("--out", help="The thresholds file to write.")] = Path(
        "thresholds.toml"
    ),
    labels: str = typer.Option(
        "planted",
        "--labels",
        help="Which runs are broken: planted, guards, or a CSV file (run or document, label).",
    ),
    max_false_stops: float = typer.Option(
        0.05, "--max-false-stops", help="Share of good summaries that may be stopped."
    ),
    missed_cost: Annotated[
        float | None,
        typer.Option("--missed-cost", help="Price of a missed error in needless fallbacks, instead."),
    ] = None,
    min_caught: Annotated[
        float | None, typer.Option("--min-caught", help="Share of broken summaries that must be stopped.")
    ] = None,
    share_broken: float = typer.Option(0.05, "--share-broken", help="Share of broken summaries in real use."),
    device: str = typer.Option("thin-laptop-8gb", "--device", help="Device whose seconds the policies cost."),
    model: Annotated[
        str | None, typer.Option("--model", help="Model whose time is planned; the embedded one if left out.")
    ] = None,
    extract_seconds: float = typer.Option(0.05, "--extract-seconds", help="Seconds of one extract."),
    draws: int = typer.Option(1000, "--draws", help="Bootstrap draws of the intervals."),
    html: Annotated[Path | None, typer.Option("--html", help="Also write the result as one page.")] = None,
    lang: str = typer.Option("en", "--lang", help="Language of that page: en or zh."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress on stderr."),
) -> int:
    """Compare stopping rules on traces and recommend thresholds at a stated price.

    Example: seatrial tune traces --max-false-stops 0.05 --out thresholds.toml --html tune.html
    """
    from seatrial.cli.output import print_json, strict
    from seatrial.cli.progress import stage_progress
    from seatrial.cli.tune_report import document, print_report
    from seatrial.errors import EXIT_CHECK_FAILED, EXIT_DONE
    from seatrial.guards.tune import Wish, label_runs
    from seatrial.guards.tune import tune as compare
    from seatrial.simulate.trace_files import read_labels, read_traces, vocabulary_of

    wish = Wish(max_false_stops, missed_cost, min_caught, share_broken, draws)
    if html is not None:
        from seatrial.report import check_ready

        check_ready(html, lang)
    with stage_progress(quiet) as report:
        report("reading traces", None)
        runs = read_traces(traces)
        own = None if labels in ("planted", "guards") else read_labels(Path(labels))
        labelled = label_runs(runs, labels if own is None else "file", own)
        report("comparing rules", None)
        result = compare(labelled, wish, vocabulary_size=vocabulary_of(labelled))
        policies = _policies(runs, result, device, model, extract_seconds)
    if result.recommended.meets:
        _write(out, result, labelled, f"{traces.name}, labels: {labels}")
    told = strict(document(result, policies, device, out if result.recommended.meets else None))
    if html is not None:
        from seatrial.report import write_document

        write_document(told, traces.resolve().name, html, language=lang)
    if as_json:
        print_json(told)
    else:
        print_report(result, policies, device, out)
    return EXIT_DONE if result.recommended.meets else EXIT_CHECK_FAILED


def _policies(
    runs: list[TracedRun], result: TuneResult, device: str, model: str | None, extract_s: float
) -> list[PolicyResult]:
    """The joint view over the model's own texts that the other guards checked; empty without any."""
    from seatrial.guards.costs import joint_view
    from seatrial.guards.operating import where_it_fires
    from seatrial.guards.thresholds import Thresholds

    checked = [run for run in runs if run.kind == "free" and run.wrong_figures is not None]
    setting = result.recommended.setting
    if not checked or setting is None:
        return []
    fired = [where_it_fires(run, setting, Thresholds()) for run in checked]
    prices = _prices(checked, device, model, extract_s)
    return joint_view(checked, [f.at_token if f else None for f in fired], prices)


def _prices(runs: list[TracedRun], device: str, model: str | None, extract_s: float) -> Prices:
    """The device's seconds for the median prompt and for a token, by the plan."""
    from statistics import median

    from seatrial.cli.plan import architecture_of
    from seatrial.devices.device import load_device
    from seatrial.devices.runtime import load_runtime
    from seatrial.guards.costs import Prices
    from seatrial.simulate.plan import Job, plan

    machine = load_device(device)
    tokens = max(run.budget for run in runs)
    prompt = int(median(run.prompt_tokens for run in runs))
    job = Job(prompt_tokens=prompt, max_tokens=tokens, weights=runs[0].weights, kv=runs[0].kv)
    architecture = architecture_of(model or "embedded")
    planned = plan(architecture, machine, load_runtime(machine.runtime), job)
    return Prices(planned.decode_s.mid, extract_s, planned.prefill_s.mid)


def _write(out: Path, result: TuneResult, runs: list[TracedRun], data: str) -> None:
    """The thresholds file, under a temporary name and then renamed."""
    import datetime

    from seatrial.errors import UserError
    from seatrial.guards.thresholds import Made, ThresholdsFile, to_toml
    from seatrial.simulate.output import write_atomically

    assert result.recommended.thresholds is not None
    of = lambda name: ", ".join(sorted({getattr(run, name) for run in runs}))
    made = Made(
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        model=of("model"),
        weights=of("weights"),
        kv=of("kv"),
        data=data,
        note=result.recommended.why,
    )
    try:
        write_atomically(out, to_toml(ThresholdsFile(breakdown=result.recommended.thresholds, made=made)))
    except OSError as error:
        raise UserError(f"cannot write {out}: {error.strerror or error}; give another with --out") from None
