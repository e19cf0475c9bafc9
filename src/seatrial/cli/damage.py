"""`seatrial damage`: what a quantization did to figures and names, by kind, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seatrial.errors import EXIT_CHECK_FAILED, EXIT_DONE, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.quantize.damage.documents import Document
    from seatrial.quantize.damage.report import DamageReport
    from seatrial.quantize.damage.verdicts import Limit


def damage(
    reference: Annotated[Path, typer.Argument(help="Bundle that counts as undamaged.")],
    candidate: Annotated[Path, typer.Argument(help="Bundle to compare with it; same tokenizer.")],
    text: Annotated[
        list[str] | None,
        typer.Option(
            "--text",
            help="Text file, folder of .txt files, or sample:en, sample:zh; may be repeated. Documents in "
            "one file are parted by lines of ---. The package's own documents when left out.",
        ),
    ] = None,
    echo: bool = typer.Option(
        False, "--echo", help="Read each document of --text twice, as is done with the package's own."
    ),
    quick: bool = typer.Option(False, "--quick", help="Also copy probes, about 10 minutes on 2 cores."),
    full: bool = typer.Option(False, "--full", help="Also many copy probes and --factorial, about 2 hours."),
    factorial: bool = typer.Option(
        False, "--factorial", help="Also which part hurts: weights, head, accuracy level, KV, one at a time."
    ),
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="CLASS[.FIGURE]:LIMIT",
            help="Exit 1 when the whole interval is above. FIGURE: harm (the default), flips, kl, nll",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Also write the report as one page.")] = None,
    lang: str = typer.Option("en", "--lang", help="Language of that page: en or zh."),
    seed: int = typer.Option(0, "--seed", help="Seed of the resampling and of the probes."),
    draws: int = typer.Option(2000, "--draws", min=200, help="Draws of the bootstrap."),
    window: int = typer.Option(1024, "--window", min=16, help="Tokens read from an empty cache at a time."),
    threads: int | None = typer.Option(None, "--threads", min=1, help="Threads; all CPUs if left out."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    quiet: bool = typer.Option(False, "--quiet", help="No progress on stderr."),
) -> int:
    """Measure damage on digits, dates, amounts, units and names, in English and Chinese.

    An interrupted run goes on where it was when it is started again with the same bundles, texts and options.

    Example: seatrial damage bundles/fp32 bundles/int4 --quick --fail-on digit:0.01
    """
    from dataclasses import replace

    from seatrial.cli.output import print_json, strict
    from seatrial.cli.progress import stage_progress
    from seatrial.export.bundle import open_bundle
    from seatrial.quantize.damage.run import Settings, measure_damage
    from seatrial.quantize.damage.verdicts import parse_limits
    from seatrial.quantize.probes.run import FULL, QUICK

    if quick and full:
        raise UserError("--quick and --full are two presets: give one of them")
    if echo and not text:
        raise UserError("--echo needs --text: the package's own documents are always read twice")
    limits = parse_limits(fail_on or [])
    plan = FULL if full else QUICK if quick else None
    settings = Settings(
        window=window,
        draws=draws,
        seed=seed,
        threads=threads,
        probes=None if plan is None else replace(plan, seed=seed),
        factorial=factorial or full,
        factorial_optional=not factorial,
    )
    if html is not None:
        from seatrial.report import check_ready

        check_ready(html, lang)
    documents = _documents(text, echo)
    with stage_progress(quiet) as progress:
        report = measure_damage(open_bundle(reference), open_bundle(candidate), documents, settings, progress)
    document = strict(report.to_json())
    # What was measured is kept nowhere by now: neither a page nor a pipe that fails may take the other along.
    try:
        if as_json:
            print_json(document)
        else:
            from seatrial.cli.damage_report import print_report

            print_report(report)
        code = _exit_code(report, limits)
    finally:
        if html is not None:
            from seatrial.report import write_document

            write_document(document, report.candidate.name, html, language=lang)
    return code


def _documents(names: Sequence[str] | None, echo: bool) -> list[Document] | None:
    """Documents of the files, folders and samples; None when none were given."""
    from seatrial.quantize.damage.documents import echoed, split_documents
    from seatrial.textfile import read_text

    if not names:
        return None
    found = []
    for name in names:
        folder = Path(name)
        files: list[str | Path] = [*sorted(folder.glob("*.txt"))] if folder.is_dir() else [name]
        for file in files:
            found += split_documents(Path(file).name, read_text(file))
    if not found:
        raise UserError(f"there is no text in {', '.join(names)}: give UTF-8 .txt files")
    return [echoed(document) for document in found] if echo else found


def _exit_code(report: DamageReport, limits: Sequence[Limit]) -> int:
    """1 when a limit is passed by the whole interval; a limit that cannot be judged is only a warning."""
    from seatrial.cli.output import print_error

    failed = False
    for limit, kept in report.judge(limits):
        found = report.classes[limit.label].figure(limit.figure)
        said = f"{limit.label}.{limit.figure} {found.value:.4g} [{found.low:.4g}, {found.high:.4g}]"
        if kept is False:
            failed = True
            print_error(f"failed: {said} is above the limit {limit.limit:g}")
        elif kept is None:
            print_error(f"warning: {said} cannot be told from the limit {limit.limit:g} at this size")
    return EXIT_CHECK_FAILED if failed else EXIT_DONE
