"""The measurement from two bundles to a report: the one place where the parts of this package meet.

Finished documents and probes are kept in a work folder until the report is made, so an interrupted run goes
on where it was. Printing, exit codes and the reading of files are the command's business.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from seatrial.errors import UserError
from seatrial.export.bundle import Bundle
from seatrial.export.cache import cache_folder
from seatrial.export.session import Session
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.damage.documents import LANGUAGES, Document, echoed, own_documents
from seatrial.quantize.damage.factorial import run_factorial
from seatrial.quantize.damage.figures import LEAST_FLOOR, class_figures, languages_of
from seatrial.quantize.damage.forced import score_document
from seatrial.quantize.damage.heading import common_tokenizer, describe, mark_of
from seatrial.quantize.damage.item_figures import breakdown_figures, guard_figures, item_figures
from seatrial.quantize.damage.noise import Noise, floor_of, measure_noise
from seatrial.quantize.damage.report import DamageReport
from seatrial.quantize.damage.settings import Settings, checked
from seatrial.quantize.damage.store import Store, code_mark, key_of
from seatrial.quantize.damage.tally import tally
from seatrial.quantize.probes.run import run_probes

Progress = Callable[[str, float | None], None]  # what is going on, and the share done in [0, 1] where known


def _silent(_what: str, _share: float | None) -> None:
    """No progress."""


def default_documents() -> list[Document]:
    """The package's own documents in all languages, each to be read twice."""
    return [echoed(document) for language in LANGUAGES for document in own_documents(language)]


def measure_damage(
    reference: Bundle,
    candidate: Bundle,
    documents: Sequence[Document] | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> DamageReport:
    """Compare `candidate` with `reference` on documents (the package's own when None).

    KL and NLL are in nats per token, harm and flips shares of one, intervals 95 % by document. `progress` is
    called with what is going on and the share done. Finished documents are kept in `settings.work`, so that
    an interrupted call goes on where it was.

    Raises `UserError` for tokenizers or vocabularies that differ, for logits that are not finite, for no
    documents, and while another process measures the same.
    """
    settings, progress = settings or Settings(), progress or _silent
    documents = default_documents() if documents is None else list(documents)
    if not documents:
        raise UserError("there is no document to measure on: give texts with words in them")
    tokenizer = common_tokenizer(reference, candidate, (document.text for document in documents))
    settings, warnings = checked(reference, candidate, documents, tokenizer, settings)
    folder = _work_folder(reference, candidate, documents, settings)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder.with_suffix(".lock"), timeout=0):
            found = _measure(reference, candidate, documents, tokenizer, folder, settings, progress)
            return replace(found, warnings=warnings)
    except Timeout as error:
        raise UserError(
            "another run is measuring these two bundles on these texts: wait for it, or stop it"
        ) from error


def _measure(
    reference: Bundle,
    candidate: Bundle,
    documents: Sequence[Document],
    tokenizer: Tokenizer,
    folder: Path,
    settings: Settings,
    progress: Progress,
) -> DamageReport:
    """Every stage, with its rows in `folder` until the end."""
    seconds: dict[str, float] = {}
    store = Store(folder)
    noise = _forced(reference, candidate, documents, tokenizer, settings, store, progress, seconds)
    report = report_of(reference, candidate, documents, store, noise, settings, seconds)
    if settings.probes is not None:
        started = time.perf_counter()
        found = run_probes(
            reference,
            candidate,
            tokenizer,
            settings.probes,
            folder,
            progress,
            settings.threads,
            draws=settings.draws,
        )
        seconds["probes"] = time.perf_counter() - started
        report = replace(report, probes=found)
    if settings.factorial:
        started = time.perf_counter()
        report = replace(
            report,
            factorial=run_factorial(
                reference,
                candidate,
                documents,
                tokenizer,
                folder,
                progress,
                together=store,
                window=settings.window,
                draws=settings.draws,
                seed=settings.seed,
                threads=settings.threads,
            ),
        )
        seconds["factorial"] = time.perf_counter() - started
    store.remove()
    return report


def _work_folder(
    reference: Bundle, candidate: Bundle, documents: Sequence[Document], settings: Settings
) -> Path:
    texts = [text for document in documents for text in (document.language, document.text)]
    key = key_of(mark_of(reference), mark_of(candidate), str(settings.window), code_mark(), *texts)
    return (settings.work or cache_folder() / "damage") / key


def _forced(
    reference: Bundle,
    candidate: Bundle,
    documents: Sequence[Document],
    tokenizer: Tokenizer,
    settings: Settings,
    store: Store,
    progress: Progress,
    seconds: dict[str, float],
) -> dict[str, list[Noise]]:
    """Score every document that is not in the store yet, and measure the noise of both bundles."""
    longest = max(tokenizer.count(document.text) for document in documents)
    capacity = len(tokenizer.prefix_ids()) + min(settings.window, max(1, longest))
    started = time.perf_counter()
    with (
        Session(reference, capacity=capacity, threads=settings.threads) as left,
        Session(candidate, capacity=capacity, threads=settings.threads) as right,
    ):
        _refuse_other_vocabulary(left, right, tokenizer)
        noise: dict[str, list[Noise]] = {"reference": [], "candidate": []}
        if settings.noise:
            samples = _samples(documents, tokenizer)
            noise = _noise((reference, candidate), (left, right), samples, progress)
            seconds["noise"] = time.perf_counter() - started
        started = time.perf_counter()
        for number, document in enumerate(documents):
            progress("reading documents", number / len(documents))
            if not store.has(number):
                scored = score_document(document, left, right, tokenizer, window=settings.window)
                store.write(number, scored)
        progress("reading documents", 1.0)
        seconds["forced"] = time.perf_counter() - started
        return noise


def _samples(documents: Sequence[Document], tokenizer: Tokenizer) -> list[list[int]]:
    """A text of each language that noise is measured on: the longest of its first few."""
    samples = []
    for language in LANGUAGES:
        some = [document for document in documents if document.language == language][:8]
        if some:
            samples.append(max((tokenizer.encode(document.text) for document in some), key=len))
    return samples


def _noise(
    bundles: Sequence[Bundle],
    sessions: Sequence[Session],
    samples: Sequence[Sequence[int]],
    progress: Progress,
) -> dict[str, list[Noise]]:
    """The noise of both bundles, before anything is compared."""
    noise = {}
    for done, whose in enumerate(("reference", "candidate")):
        progress("noise floor", done / 2)
        texts = [ids[: sessions[done].capacity] for ids in samples]
        noise[whose] = measure_noise(bundles[done], sessions[done], texts)
    progress("noise floor", 1.0)
    return noise


def _refuse_other_vocabulary(left: Session, right: Session, tokenizer: Tokenizer) -> None:
    first = tokenizer.encode("1")[:1]
    widths = [session.prefill(first).shape[-1] for session in (left, right)]
    if widths[0] != widths[1]:
        raise UserError(
            f"the logits of the reference are {widths[0]} wide and those of the candidate {widths[1]}: "
            "compare two bundles of one model"
        )


def report_of(
    reference: Bundle,
    candidate: Bundle,
    documents: Sequence[Document],
    store: Store,
    noise: dict[str, list[Noise]],
    settings: Settings,
    seconds: dict[str, float],
) -> DamageReport:
    """The report of stored rows, without probes and factorial; `seconds` gets one entry more."""
    started = time.perf_counter()
    found = tally(lambda: store.documents(len(documents)), draws=settings.draws, seed=settings.seed)
    floor = max(LEAST_FLOOR, *(floor_of(noise[whose]) for whose in ("reference", "candidate")))
    present = languages_of(found)
    report = DamageReport(
        reference=describe(reference),
        candidate=describe(candidate),
        documents={LANGUAGES[place]: found.sizes[place] for place in present},
        tokens=found.scored,
        noise=noise,
        floor=floor,
        classes=class_figures(found, floor),
        languages={LANGUAGES[place]: class_figures(found, floor, place) for place in present},
        items=item_figures(found),
        item_languages={LANGUAGES[place]: item_figures(found, place) for place in present},
        breakdown=breakdown_figures(found),
        guard=guard_figures(found.outcomes.tolist()),
        seconds=seconds,
        settings=settings.told(),
    )
    seconds["statistics"] = time.perf_counter() - started
    return report
