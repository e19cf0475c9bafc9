"""What measuring damage costs: its time against the prefill of both bundles, and its memory.

python bench/damage_cost.py             labels, KL and NLL against both prefills, document by document
python bench/damage_cost.py --memory    peak memory for few and for many documents, a process each
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from damage import interleaved
from damage_page import machine

from seatrial.export.bundle import Bundle
from seatrial.export.session import Session
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.damage import forced
from seatrial.quantize.damage.documents import Document
from seatrial.quantize.damage.forced import score_document
from seatrial.quantize.damage.labels import label_text
from seatrial.quantize.damage.run import Settings, default_documents, measure_damage
from seatrial.simulate.prepare import ensure_bundle

READINGS = ("prefill", "prefill through the rounded cache", "logits of every position", "all")


def cost(threads: int | None, rounds: int, count: int) -> None:
    """Both prefills alone against the whole measurement, document by document, alternating.

    Between the two stand what damage must read and a prefill need not: every position's logits, and with an
    int8 cache the keys and values as they are rounded (a prefill attends to the new ones in float). What is
    above that is labels, KL and NLL. Processor time is that of a machine which does other things as well.
    """
    fp32 = ensure_bundle(None, weights="fp32", kv="fp32")
    documents = interleaved(26)[:count]
    label_text(documents[-1].text)  # loads the Chinese tagger, once for a run of any length
    print(machine())
    for kv in ("fp32", "int8"):
        candidate = ensure_bundle(None, weights="int4", kv=kv)
        ratios = np.median(_cost_rounds(fp32, candidate, documents, threads, rounds), axis=0)
        for name, (direct, rows, whole) in zip(("wall", "processor"), ratios.T, strict=True):
            print(
                f"int4 weights, {kv} KV, {name} time over both prefills: {whole:.2f} (limit 1.5); of that "
                f"reading through the rounded cache {direct - 1:+.2f}, every position's logits "
                f"{rows - direct:+.2f}, labels, KL and NLL {whole - rows:+.2f}"
            )


def _cost_rounds(
    fp32: Bundle, candidate: Bundle, documents: Sequence[Document], threads: int | None, rounds: int
) -> list[np.ndarray]:
    """Readings but the first over the first, (3, 2) for wall and processor; the first round warms up."""
    tokenizer = Tokenizer.load(fp32.folder)
    capacity = max(tokenizer.count(d.text) for d in documents)
    found = []
    with (
        Session(fp32, capacity=capacity, threads=threads) as left,
        Session(candidate, capacity=capacity, threads=threads) as right,
        Session(candidate, capacity=capacity, threads=threads, prefill="direct") as direct,
    ):
        for _ in range(rounds + 1):
            seconds = np.zeros((len(READINGS), 2))
            for document in documents:
                ids = tokenizer.encode(document.text)
                seconds[0] += _timed(lambda ids=ids: [_prefill(each, ids) for each in (left, right)])
                seconds[1] += _timed(lambda ids=ids: [_prefill(each, ids) for each in (left, direct)])
                seconds[2] += _timed(lambda ids=ids: [_every_row(each, ids) for each in (left, right)])
                seconds[3] += _timed(lambda d=document: score_document(d, left, right, tokenizer))
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
    int4 = ensure_bundle(None, weights="int4", kv="int8")
    some = [d for number, d in enumerate(default_documents()) if number % 7 == 0]
    documents = [replace(d, name=f"{d.name}/{n}") for n in range(repeats) for d in some]
    with tempfile.TemporaryDirectory() as folder:
        measure_damage(int4, int4, documents, Settings(work=Path(folder), noise=False))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(documents)} documents: peak {peak:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--memory-of", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--rounds", type=int, default=3, help="rounds after the first, which warms up")
    parser.add_argument("--documents", type=int, default=8)
    given = parser.parse_args()
    if given.memory_of:
        memory_of(given.memory_of)
    elif given.memory:
        memory()
    else:
        cost(given.threads, given.rounds, given.documents)


if __name__ == "__main__":
    main()
