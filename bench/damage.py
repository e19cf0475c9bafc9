"""Damage of the embedded model's formats: the docs' table, the cost of measuring, and its memory.

    python bench/damage.py --docs      every format against fp32; writes the table into docs/damage.md
    python bench/damage.py --cost      labels, KL and NLL against the prefill of both bundles, one run
    python bench/damage.py --memory    peak memory for few and for many documents

The reference is read once for all formats. The embedded model was 4-bit before it came here, so its figures
are relative to that. An interrupted `--docs` goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import onnxruntime

from seatrial.export.bundle import Bundle, open_bundle
from seatrial.export.cache import cache_folder
from seatrial.export.session import Session
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.bundle import quantize_bundle
from seatrial.quantize.damage import forced
from seatrial.quantize.damage.documents import Document
from seatrial.quantize.damage.factorial import Parts, build, run_factorial
from seatrial.quantize.damage.forced import Replayed, score_document
from seatrial.quantize.damage.heading import common_tokenizer, mark_of
from seatrial.quantize.damage.labels import label_text
from seatrial.quantize.damage.noise import Noise, measure_noise
from seatrial.quantize.damage.report import DamageReport
from seatrial.quantize.damage.run import Settings, default_documents, report_of
from seatrial.quantize.damage.store import Store, key_of
from seatrial.quantize.stats import Interval
from seatrial.simulate.prepare import ensure_bundle

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "damage.md"
BEGIN, END = "<!-- table: bench/damage.py --docs -->", "<!-- end of table -->"
MIXED_MB = 130
SHOWN = ("digit", "number_word", "date_time", "amount", "unit", "person", "organisation_place", "other")


def formats(fp32: Bundle, work: Path, left_out: Sequence[str] = ()) -> Iterator[tuple[str, Bundle]]:
    """Every format that is compared, made when it is not there yet."""
    yield "int8 weights", ensure_bundle(None, weights="int8", kv="fp32")
    yield "int4 weights, int8 head", ensure_bundle(None, weights="int4", kv="fp32")
    mixed = work / f"mixed-{MIXED_MB}"
    if "mixed" not in left_out:
        yield f"mixed weights, {MIXED_MB} MB", _once(mixed, lambda: _make_mixed(fp32, mixed))
    folder = work / "kv-int8"
    yield "int8 KV cache", _once(folder, lambda: build(fp32, Parts(None, None, 0, "int8"), folder))
    yield "int4 weights, int8 KV", ensure_bundle(None, weights="int4", kv="int8")


def _make_mixed(fp32: Bundle, folder: Path) -> None:
    """Bits per layer as the sensitivity of this model asks for; measured once, then from the cache."""
    quantize_bundle(fp32, folder, weights="mixed", kv="fp32", target_mb=MIXED_MB, progress=_say)


def _once(folder: Path, make: Callable[[], object]) -> Bundle:
    if not (folder / "seatrial.json").is_file():
        make()
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
        stores[name] = Store(work / key_of(mark_of(fp32), mark_of(bundle), "rows 1"))
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
    both, some = dict(candidates)["int4 weights, int8 KV"], documents[: 2 * factorial_documents]
    place = work / key_of(mark_of(fp32), mark_of(both), "factorial")
    parts = run_factorial(
        fp32, both, some, tokenizer, place, _say, window=forced.WINDOW, draws=2000, threads=threads
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
    ids = tokenizer.encode(documents[0].text)
    noise: dict[str, dict[str, list]] = {}
    with ExitStack() as stack:
        session = stack.enter_context(Session(fp32, capacity=capacity, threads=threads))
        reference = Replayed(session)
        own = _noise_once(stores[candidates[0][0]].folder / "reference.json", fp32, session, ids)
        opened = {
            name: stack.enter_context(Session(bundle, capacity=capacity, threads=threads))
            for name, bundle in candidates
        }
        for name, bundle in candidates:
            found = _noise_once(stores[name].folder / "noise.json", bundle, opened[name], ids)
            noise[name] = {"reference": own, "candidate": found}
        for number, document in enumerate(documents):
            _say("documents", number / len(documents))
            kept = _times_file(stores, number).is_file()
            if not kept and until is not None and time.perf_counter() > until:
                return noise, number
            begun = time.perf_counter()
            for name, candidate in opened.items():
                if not stores[name].has(number):
                    stores[name].write(number, score_document(document, reference, candidate, tokenizer))
            if not kept:
                spent = time.perf_counter() - begun
                _times_file(stores, number).write_text(json.dumps(spent), encoding="utf-8")
    return noise, len(documents)


def _times_file(stores: dict[str, Store], number: int) -> Path:
    """Where it stands how many seconds a document took, all formats together; it is there when all are."""
    return next(iter(stores.values())).folder / f"seconds-{number}.json"


def _noise_once(file: Path, bundle: Bundle, session: Session, ids: Sequence[int]) -> list[Noise]:
    """The noise of a bundle, measured unless a run before this one did."""
    if not file.is_file():
        rows = [found.to_json() for found in measure_noise(bundle, session, ids)]
        file.write_text(json.dumps(rows), encoding="utf-8")
    return [Noise(**row) for row in json.loads(file.read_text(encoding="utf-8"))]


def write_docs(
    reports: Sequence[tuple[str, DamageReport]], parts: Sequence[dict], of: int, seconds: float
) -> None:
    """Put the tables between the marks of the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    table = "\n".join(tables(reports, parts, of, seconds))
    part = PAGE.with_suffix(".part")
    part.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")
    part.replace(PAGE)
    print(f"wrote {PAGE.relative_to(ROOT)}")


def tables(
    reports: Sequence[tuple[str, DamageReport]], parts: Sequence[dict], of: int, seconds: float
) -> list[str]:
    """Markdown: by class, language and format; whole items; one part at a time on `of` documents."""
    first = reports[0][1]
    lines = [
        f"Measured {date.today().isoformat()} on {machine()}, {first.tokens:,} tokens of "
        + " and ".join(f"{n} documents ({language})" for language, n in first.documents.items())
        + f". Reference: {first.reference.provenance}. Reading took {seconds / 60:.0f} minutes.",
        "",
    ]
    for language in ("en", "zh"):
        lines += [f"### {language}: KL in nats, harm in %, and times the damage of other tokens", ""]
        lines += ["| class | tokens | " + " | ".join(name for name, _ in reports) + " |"]
        lines += ["|---|---|" + "---|" * len(reports)]
        for name in SHOWN:
            cells = [_cell(report.languages[language][name]) for _, report in reports]
            tokens = first.languages[language][name].tokens
            lines.append(f"| {name} | {tokens:,} | " + " | ".join(cells) + " |")
        lines.append("")
    return [*lines, *_verdicts(reports), *_items(reports), *_parts(parts, of)]


def _cell(found) -> str:
    """KL with its interval, harm, and the ratio to other tokens of the same entropy."""
    text = f"{_with_ends(found.kl)}; {100 * found.kinds['harm'].value:.1f} %"
    return text if found.compared is None else f"{text}; x{_with_ends(found.compared.ratio, 2)}"


def _with_ends(found: Interval, digits: int = 3) -> str:
    return f"{found.value:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]"


def _verdicts(reports: Sequence[tuple[str, DamageReport]]) -> list[str]:
    lines = [
        "### Verdicts, both languages together",
        "",
        "| class | " + " | ".join(n for n, _ in reports) + " |",
    ]
    lines.append("|---|" + "---|" * len(reports))
    for name in SHOWN[:-1]:
        cells = []
        for _, report in reports:
            found = report.classes[name]
            tested = f" (p {found.p_adjusted:.3f}; seen from +{found.compared.detectable:.0%})"
            cells.append(f"{found.verdict}{tested if found.enough else ''}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    floors = ", ".join(f"{name} {report.floor:.1e}" for name, report in reports)
    return [*lines, "", f"Noise floors, KL in nats: {floors}.", ""]


def _items(reports: Sequence[tuple[str, DamageReport]]) -> list[str]:
    lines = ["### Whole figures and names: harmed of those right before", ""]
    lines += ["| class | " + " | ".join(n for n, _ in reports) + " |", "|---|" + "---|" * len(reports)]
    for name in ("digit", "number_word", "date_time", "amount", "person", "organisation_place"):
        cells = []
        for _, report in reports:
            item = report.items[name]
            rate = f"{100 * item.harm.value:.1f} % [{100 * item.harm.low:.1f}, {100 * item.harm.high:.1f}]"
            cells.append(f"{item.harmed} of {item.right}: {rate}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    told = []
    for name, report in reports:
        guard = report.guard
        told.append(
            f"{name}: {guard['caught']} of {guard['damaged']} caught, {guard['escaped']} escape, "
            f"{guard['no_figure']} no figure any more"
        )
    return [*lines, "", "Damaged figures and the number guard: " + "; ".join(told) + ".", ""]


def _parts(parts: Sequence[dict], of: int) -> list[str]:
    if not parts:
        return []
    title = "### One part at a time (int4 weights, int8 head, int8 KV): KL in nats, en / zh"
    lines = [title, "", f"From the float reference, on the first {of} of the documents above.", ""]
    lines += ["| part | " + " | ".join(SHOWN) + " |", "|---|" + "---|" * len(SHOWN)]
    for row in parts:
        cells = [
            " / ".join(f"{row['languages'][language][name]['kl']['value']:.4f}" for language in ("en", "zh"))
            for name in SHOWN
        ]
        lines.append(f"| {row['variant']} | " + " | ".join(cells) + " |")
    return lines


def machine() -> str:
    """Processor, threads and versions, without the machine's name."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        models = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        processor = models[0] if models else processor
    return f"{processor}, {len(os.sched_getaffinity(0))} CPUs, onnxruntime {onnxruntime.__version__}"


def cost(threads: int | None, rounds: int, count: int) -> None:
    """Both prefills alone against the whole measurement, document by document, alternating.

    Between the two stands reading with the logits of every position, which a comparison needs and a prefill
    leaves out: what is above that is labels, KL and NLL. Wall time and processor time: the second is that of
    a machine which does other things as well. With an int8 cache a prefill reads in float, while damage must
    read through the rounded cache to see what that does.
    """
    fp32 = ensure_bundle(None, weights="fp32", kv="fp32")
    documents = interleaved(26)[:count]
    label_text(documents[-1].text)  # loads the Chinese tagger, once for a run of any length
    for kv in ("fp32", "int8"):
        candidate = ensure_bundle(None, weights="int4", kv=kv)
        ratios = np.median(_cost_rounds(fp32, candidate, documents, threads, rounds), axis=0)
        for name, (rows, whole) in zip(("wall", "processor"), ratios.T, strict=True):
            print(
                f"int4 weights, {kv} KV, {name}, of both prefills: logits of every position {rows:.2f}, "
                f"all {whole:.2f} (limit 1.5), so labels, KL and NLL {whole - rows:.2f}"
            )


def _cost_rounds(
    fp32: Bundle, candidate: Bundle, documents: Sequence[Document], threads: int | None, rounds: int
) -> list[np.ndarray]:
    """(rows, whole) over (wall, processor) of each round but the first, which warms up."""
    tokenizer = Tokenizer.load(fp32.folder)
    capacity = max(tokenizer.count(d.text) for d in documents)
    found = []
    with (
        Session(fp32, capacity=capacity, threads=threads) as left,
        Session(candidate, capacity=capacity, threads=threads) as right,
    ):
        for _ in range(rounds + 1):
            seconds = np.zeros((3, 2))
            for document in documents:
                ids = tokenizer.encode(document.text)
                seconds[0] += _timed(lambda ids=ids: [_prefill(each, ids) for each in (left, right)])
                seconds[1] += _timed(lambda ids=ids: [_every_row(each, ids) for each in (left, right)])
                seconds[2] += _timed(lambda d=document: score_document(d, left, right, tokenizer))
            found.append(seconds[1:] / seconds[0])
            print(f"  seconds {np.round(seconds[:, 0], 2)}", file=sys.stderr, flush=True)
    return found[1:]


def _every_row(session: Session, ids: Sequence[int]) -> None:
    for _ in session.score_chunks(ids, chunk=forced.ROWS):
        pass


def _prefill(session: Session, ids: Sequence[int]) -> None:
    session.reset()
    session.prefill(ids)


def _timed(work) -> np.ndarray:
    """Seconds of wall time and of processor time."""
    started = np.array([time.perf_counter(), time.process_time()])
    work()
    return np.array([time.perf_counter(), time.process_time()]) - started


def memory() -> None:
    """Peak resident memory of the measurement over 8 and over 64 documents, a process each."""
    for repeats in (1, 8):
        command = [sys.executable, __file__, "--memory-of", str(repeats)]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip())


def memory_of(repeats: int) -> None:
    """One measurement of 8 documents, `repeats` times over, and its peak."""
    from seatrial.quantize.damage.run import measure_damage

    int4 = ensure_bundle(None, weights="int4", kv="int8")
    some = [d for number, d in enumerate(default_documents()) if number % 7 == 0]
    documents = [replace(d, name=f"{d.name}/{n}") for n in range(repeats) for d in some]
    with _scratch() as folder:
        measure_damage(int4, int4, documents, Settings(work=folder, noise=False))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(documents)} documents: peak {peak:.0f} MiB")


@contextmanager
def _scratch() -> Iterator[Path]:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--without", nargs="*", default=[], help="formats that --docs leaves out: mixed")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of --cost after the first")
    parser.add_argument("--documents", type=int, default=26, help="documents of each language for --docs")
    parser.add_argument("--factorial-documents", type=int, default=14, help="the same for one part at a time")
    parser.add_argument("--minutes", type=float, help="--docs begins no further document after so long")
    given = parser.parse_args()
    if given.memory_of:
        memory_of(given.memory_of)
    if given.docs:
        docs(given.threads, given.documents, given.factorial_documents, given.without, given.minutes)
    if given.cost:
        cost(given.threads, given.rounds, given.documents if given.documents < 26 else 8)
    if given.memory:
        memory()


if __name__ == "__main__":
    main()
