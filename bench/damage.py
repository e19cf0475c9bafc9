"""Damage of the embedded model's formats, both languages: writes the tables into docs/damage.md.

    python bench/damage.py                 every format against fp32, and one part at a time
    python bench/damage.py --minutes 5     as many documents as are read until then

The reference is read once for all formats. The embedded model was 4-bit before it came here, so its figures
are relative to that. An interrupted run goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from damage_page import write_docs

from seatrial.export.bundle import INFO, Bundle, open_bundle
from seatrial.export.cache import cache_folder
from seatrial.export.session import Session
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.bundle import quantize_bundle
from seatrial.quantize.damage import forced
from seatrial.quantize.damage.documents import Document
from seatrial.quantize.damage.factorial import run_factorial
from seatrial.quantize.damage.forced import Replayed, score_document
from seatrial.quantize.damage.heading import common_tokenizer, mark_of
from seatrial.quantize.damage.noise import Noise, measure_noise
from seatrial.quantize.damage.run import Settings, default_documents, report_of
from seatrial.quantize.damage.store import Store, code_mark, key_of
from seatrial.quantize.recipe import GENERATION
from seatrial.simulate.prepare import ensure_bundle

MIXED_MB = 130
TOGETHER = "int4 weights, int8 KV"


def formats(fp32: Bundle, work: Path, left_out: Sequence[str] = ()) -> Iterator[tuple[str, Bundle]]:
    """Every format that is compared, made when it is not there yet."""
    yield "int8 weights", ensure_bundle(None, weights="int8", kv="fp32")
    yield "int4 weights, int8 head", ensure_bundle(None, weights="int4", kv="fp32")
    if "mixed" not in left_out:
        yield f"mixed weights, {MIXED_MB} MB", _mixed(fp32, work / f"mixed-{MIXED_MB}.{GENERATION}")
    yield "int8 KV cache", ensure_bundle(None, weights="fp32", kv="int8")
    yield TOGETHER, ensure_bundle(None, weights="int4", kv="int8")


def _mixed(fp32: Bundle, folder: Path) -> Bundle:
    """Bits per layer as the sensitivity of this model asks for; measured once, then from the cache."""
    if not (folder / INFO).is_file():
        quantize_bundle(fp32, folder, weights="mixed", kv="fp32", target_mb=MIXED_MB, progress=_say)
    return open_bundle(folder)


def interleaved(per_language: int) -> list[Document]:
    """The package's documents, languages in turn, so that a run of fewer is the beginning of a longer one."""
    every = default_documents()
    languages = [[d for d in every if d.language == language] for language in ("en", "zh")]
    return [d for pair in zip(*languages, strict=True) for d in pair][: 2 * per_language]


def docs(
    threads: int | None,
    per_language: int,
    factorial_documents: int,
    left_out: Sequence[str],
    minutes: float | None,
) -> None:
    """Measure every format and write the tables; what one part does alone is added when that is known.

    After `minutes` no further document is begun, and the page has those that were read until then.
    """
    started = time.perf_counter()
    until = None if minutes is None else started + 60 * minutes
    work = cache_folder() / "damage" / "docs"
    work.mkdir(parents=True, exist_ok=True)
    fp32 = ensure_bundle(None, weights="fp32", kv="fp32")
    documents = interleaved(per_language)
    candidates = list(formats(fp32, work, left_out))
    tokenizer = common_tokenizer(fp32, candidates[0][1], (d.text for d in documents))
    stores = {}
    for name, bundle in candidates:
        stores[name] = Store(work / key_of(mark_of(fp32), mark_of(bundle), code_mark()))
    noise, read = _score(fp32, candidates, documents, tokenizer, stores, threads, until)
    documents = documents[:read]
    seconds = sum(json.loads(_times_file(stores, n).read_text(encoding="utf-8")) for n in range(read))
    reports = []
    for name, bundle in candidates:
        settings = Settings(noise=True)
        found = report_of(fp32, bundle, documents, stores[name], noise[name], settings, {})
        reports.append((name, found))
        (work / f"{name}.json").write_text(json.dumps(found.to_json(), default=str), encoding="utf-8")
    write_docs(reports, [], 0, seconds)
    if not factorial_documents:
        return
    both, some = dict(candidates)[TOGETHER], documents[: 2 * factorial_documents]
    place = work / key_of(mark_of(fp32), mark_of(both), code_mark(), "factorial")
    parts = run_factorial(
        fp32,
        both,
        some,
        tokenizer,
        place,
        _say,
        together=stores[TOGETHER],
        window=forced.WINDOW,
        draws=2000,
        threads=threads,
    )
    write_docs(reports, parts, len(some), seconds)


def _say(what: str, share: float | None) -> None:
    print(f"{what} {share or 0:.0%}", file=sys.stderr, flush=True)


def _score(
    fp32: Bundle,
    candidates: Sequence[tuple[str, Bundle]],
    documents: Sequence,
    tokenizer: Tokenizer,
    stores: dict[str, Store],
    threads: int | None,
    until: float | None,
) -> tuple[dict[str, dict[str, list]], int]:
    """Rows of every document that is not stored yet; the noise of every bundle, and how many were read."""
    capacity = max(tokenizer.count(d.text) for d in documents) + len(tokenizer.prefix_ids())
    texts = [tokenizer.encode(document.text) for document in documents[:2]]  # one in each language
    noise: dict[str, dict[str, list]] = {}
    with ExitStack() as stack:
        session = stack.enter_context(Session(fp32, capacity=capacity, threads=threads))
        reference = Replayed(session)
        own = _noise_once(stores[candidates[0][0]].folder / "reference.json", fp32, session, texts)
        opened = {
            name: stack.enter_context(Session(bundle, capacity=capacity, threads=threads))
            for name, bundle in candidates
        }
        for name, bundle in candidates:
            found = _noise_once(stores[name].folder / "noise.json", bundle, opened[name], texts)
            noise[name] = {"reference": own, "candidate": found}
        for number, document in enumerate(documents):
            _say("documents", number / len(documents))
            kept = _times_file(stores, number).is_file()
            if not kept and until is not None and time.perf_counter() > until:
                return noise, number
            begun = time.perf_counter()
            for name, candidate in opened.items():
                if not stores[name].has(number):
                    stores[name].write(
                        number,
                        score_document(document, reference, candidate, tokenizer),
                    )
            if not kept:
                spent = time.perf_counter() - begun
                _times_file(stores, number).write_text(json.dumps(spent), encoding="utf-8")
    return noise, len(documents)


def _times_file(stores: dict[str, Store], number: int) -> Path:
    """Where it stands how many seconds a document took, all formats together; it is there when all are."""
    return next(iter(stores.values())).folder / f"seconds-{number}.json"


def _noise_once(file: Path, bundle: Bundle, session: Session, texts: Sequence[Sequence[int]]) -> list[Noise]:
    """The noise of a bundle, measured unless a run before this one did."""
    if not file.is_file():
        rows = [found.to_json() for found in measure_noise(bundle, session, texts)]
        file.write_text(json.dumps(rows), encoding="utf-8")
    return [Noise(**row) for row in json.loads(file.read_text(encoding="utf-8"))]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int)
    parser.add_argument("--without", nargs="*", default=[], help="formats to leave out: mixed")
    parser.add_argument("--documents", type=int, default=26, help="documents of each language")
    parser.add_argument("--factorial-documents", type=int, default=14, help="the same for one part at a time")
    parser.add_argument("--minutes", type=float, help="no further document is begun after so long")
    given = parser.parse_args()
    docs(given.threads, given.documents, given.factorial_documents, given.without, given.minutes)


if __name__ == "__main__":
    main()
