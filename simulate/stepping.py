"""Steps one bundle in this process and watches its memory: what `calibrate` starts as a process of its own.

The KV buffers are filled by moving the length: the kernels' work does not depend on what stands in them. It
knows seconds and bytes, and nothing of runtimes or devices.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from seatrial.export.session import Session

T = TypeVar("T")

CONTEXTS = (128, 4096)
PROMPT = 512
# A shorter prompt: what memory grows by between the two is the activations'.
SHORT_PROMPT = 128
# Many short turns: what disturbs the machine for a while then disturbs every context alike.
ROUNDS = 30
STEPS = 2
# A slow machine takes fewer turns of steps, but never so few that a median says nothing.
PATIENCE_S = 3.5
LEAST_ROUNDS = 10
QUIET = 1.15


def step_here(folder: Path, contexts: Sequence[int]) -> dict[str, Any]:
    """What the child does: opens the bundle, reads prompts, decodes at each context in turn, watches its
    memory.
    """
    from seatrial.export.bundle import open_bundle
    from seatrial.export.session import Session

    imported, far = private_bytes(), max(contexts) - PROMPT
    bundle = open_bundle(folder, check_hashes=False)
    session, opening = watched(lambda: Session(bundle, capacity=max(contexts) + STEPS + 1))
    with session:
        fill_cache(session)
        filled = private_bytes()
        prompt = [(17 * index) % 1000 + 5 for index in range(PROMPT)]
        _, short_peak = watched(lambda: session.prefill(prompt[:SHORT_PROMPT]))
        prompt_s: dict[int, list[float]] = {0: [], far: []}
        peaks: dict[int, int] = {}
        # The far prompt is the costly one; what it takes more than the near one before it is its past's, and
        # stays with the arena, so only first peaks tell the two apart.
        for past in (0, far, 0):
            session.length = past
            took_s, peak = watched(lambda: _timed(lambda: session.prefill(prompt)))
            prompt_s[past].append(took_s)
            peaks.setdefault(past, peak)
        steps, session_bytes = _steps_in_turn(session, contexts), session.kv_allocated_bytes
    ratios = [sorted(values)[int(0.9 * len(values))] / statistics.median(values) for values in steps.values()]
    return {
        "step_s": {context: statistics.median(values) for context, values in steps.items()},
        "prompt_s": {past: min(values) for past, values in prompt_s.items()},
        "noise": max(ratios),
        "imported_bytes": imported,
        "opening_bytes": opening,
        "filled_bytes": filled,
        "cache_bytes": session_bytes,
        "short_peak_bytes": short_peak,
        "peak_bytes": peaks[0],
        "far_peak_bytes": peaks[far],
    }


def fill_cache(session: Session) -> None:
    """Writes something into every row: untouched pages are all one page of zeros, which costs nothing to
    read.
    """
    session.length = session.capacity
    for rows in session.kv_rows().values():
        rows[...] = 1
    session.length = 0


def _steps_in_turn(session: Session, contexts: Sequence[int]) -> dict[int, list[float]]:
    """Seconds of single steps, the contexts taking turns in a changing order; the first turn warms up."""
    order, shuffle = list(contexts), random.Random(5)
    steps: dict[int, list[float]] = {context: [] for context in contexts}
    began = time.perf_counter()
    for turn in range(ROUNDS + 1):
        if turn > LEAST_ROUNDS and time.perf_counter() - began > PATIENCE_S:
            break
        shuffle.shuffle(order)
        for context in order:
            session.length = context
            seconds = [_timed(lambda: session.step(11)) for _ in range(STEPS)]
            if turn:
                steps[context] += seconds
    return undisturbed(steps)


def undisturbed(steps: Mapping[int, list[float]]) -> dict[int, list[float]]:
    """The steps of the turns that took about as long as the quick ones: a machine that is busy for a while
    says nothing about the formats.
    """
    turns = list(zip(*(zip(*[iter(values)] * STEPS, strict=True) for values in steps.values()), strict=True))
    sums = [sum(sum(pair) for pair in turn) for turn in turns]
    most = QUIET * sorted(sums)[len(sums) // 10]
    kept = [turn for turn, took in zip(turns, sums, strict=True) if took <= most]
    return {
        context: [seconds for turn in kept for seconds in turn[place]] for place, context in enumerate(steps)
    }


def watched(work: Callable[[], T]) -> tuple[T, int]:
    """What `work` returns, and the largest private memory of this process while it ran (every 2 ms)."""
    done, seen = threading.Event(), [private_bytes()]

    def watch() -> None:
        while not done.wait(0.002):
            seen.append(private_bytes())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        result = work()
    finally:
        done.set()
        watcher.join()
    return result, max([*seen, private_bytes()])


def private_bytes() -> int:
    """Resident memory of this process that is not file pages."""
    import psutil

    from seatrial.simulate.memory_watch import read_use

    return read_use(psutil.Process()).private_bytes


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """The child: one JSON document on stdout."""
    parser = argparse.ArgumentParser(description="Steps a bundle at contexts; one JSON document on stdout.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("contexts", type=int, nargs="+")
    options = parser.parse_args()
    print(json.dumps(step_here(options.folder, options.contexts)))


if __name__ == "__main__":
    main()
