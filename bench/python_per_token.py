"""Microseconds of Python for a generated token, part by part: engine, sampling, guard, clock, and the event
that a run's child writes for its parent.

    python bench/python_per_token.py [BUNDLE]     # the embedded model, int4 weights, int8 KV, by default

One thread runs everything and its CPU time is taken, which a busy machine moves less than wall time. What
onnxruntime spends inside a run is taken off the engine's share. Medians over many greedy steps; the limit for
all parts together is 150 us at a vocabulary of 49k.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from seatrial.export.bundle import Bundle, open_bundle
from seatrial.export.session import Session
from seatrial.guards.breakdown import BreakdownGuard
from seatrial.simulate.child import Child
from seatrial.simulate.clock import VirtualClock
from seatrial.simulate.pace import Pacer
from seatrial.simulate.prepare import ensure_bundle

LIMIT_US = 150
PARTS = ("onnxruntime", "engine", "sampling", "guard", "clock", "event")


class Timed:
    """An onnxruntime session that notes the time spent inside its last run."""

    def __init__(self, engine: Any) -> None:
        self.engine, self.seconds = engine, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def run_with_iobinding(self, *arguments: Any) -> None:
        started = time.thread_time()
        self.engine.run_with_iobinding(*arguments)
        self.seconds = time.thread_time() - started


def measured(bundle: Bundle, steps: int) -> tuple[int, dict[str, list[float]]]:
    """Vocabulary size, and the seconds of each part for every step, done as a run's child does them."""
    taken: dict[str, list[float]] = {part: [] for part in PARTS}
    with Session(bundle, capacity=steps + 80, threads=1) as session:
        logits = session.prefill(list(range(100, 164)))
        timed = Timed(session._engine)
        session._engine = timed  # type: ignore[assignment]
        guard = BreakdownGuard(len(logits), source_ids=range(0, len(logits), 3))
        child, pacer, clock = Child(io.StringIO()), Pacer(), VirtualClock()
        for index in range(steps):
            times = [time.thread_time()]
            token = int(logits.argmax())
            times.append(time.thread_time())
            state = guard.observe(logits, token, best=token)
            times.append(time.thread_time())
            limited = pacer.pace(0.0)
            clock.advance(0.01)
            times.append(time.thread_time())
            child._tell_token(index, token, {"host_s": 0.01, "real_s": 0.01}, limited, state)
            times.append(time.thread_time())
            logits = session.step(token, copy=False)
            times.append(time.thread_time())
            sampling, guarding, pacing, telling, stepping = (b - a for a, b in pairwise(times))
            parts = (timed.seconds, stepping - timed.seconds, sampling, guarding, pacing, telling)
            for part, seconds in zip(PARTS, parts, strict=True):
                taken[part].append(seconds)
    return len(logits), taken


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundle", nargs="?", type=Path)
    parser.add_argument("--steps", type=int, default=400)
    arguments = parser.parse_args()
    given = arguments.bundle
    bundle = open_bundle(given) if given else ensure_bundle(None, weights="int4", kv="int8")
    vocabulary, taken = measured(bundle, arguments.steps)
    middles = {part: 1e6 * statistics.median(seconds) for part, seconds in taken.items()}
    print(f"vocabulary {vocabulary}, medians of {arguments.steps} tokens, CPU time of the one thread")
    for part, spent_us in middles.items():
        print(f"  {part:16}{spent_us:9.0f} us")
    python_us = sum(middles.values()) - middles["onnxruntime"]
    print(f"  {'all Python':16}{python_us:9.0f} us (limit {LIMIT_US})")


if __name__ == "__main__":
    main()
