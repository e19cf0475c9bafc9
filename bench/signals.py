"""Milliseconds per token of the guard's signals, beside plainer ways to the same figures.

    python bench/signals.py [--rounds 300]

Rows of random logits, one at a time as in decoding, one thread. Variants alternate within a round, so that a
busy machine slows all of them; look at the ratios. "guard" is all that the breakdown guard does for a token.
Each call is timed right after one of its own kind, and pays for no other's pages. "warm": nothing stands
between the two; "cold": 48 MB are read, as weights are between two tokens, and the row is written anew.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from seatrial.guards.breakdown import BreakdownGuard
from seatrial.guards.signals import SignalMeter, signals

SIZES = (49_152, 151_936)


def by_the_book(row: np.ndarray, token: int) -> tuple[float, ...]:
    """The definitions, as one would write them first: float64, a new array for each step."""
    wide = row.astype(np.float64)
    log_p = wide - wide.max()
    log_p -= np.log(np.exp(log_p).sum())
    p = np.exp(log_p)
    entropy = -(p * log_p).sum()
    best, second = np.sort(p)[-1:-3:-1]
    return entropy, best, best - second, (p * (log_p + entropy) ** 2).sum(), log_p[token]


def plain_float32(row: np.ndarray, token: int) -> tuple[float, ...]:
    """The same with care for time but without buffers."""
    x = row - row.max()
    e = np.exp(x)
    total = e.sum()
    mean = float((e * x).sum() / total)
    square = float((e * x * x).sum() / total)
    second, best = np.partition(e, -2)[-2:]
    return (
        np.log(total) - mean,
        best / total,
        (best - second) / total,
        square - mean**2,
        x[token] - np.log(total),
    )


def sampled(guard: BreakdownGuard, row: np.ndarray) -> None:
    """A step of the run: the best token is looked for once, for both."""
    best = int(row.argmax())
    guard.observe(row, best, best=best)


def measured(size: int, rounds: int, weights: np.ndarray | None) -> dict[str, list[float]]:
    """Milliseconds of each variant; `weights` is what is read before each call, None for warm caches."""
    rng = np.random.default_rng(0)
    rows = (rng.standard_normal((8, size)) * 3).astype(np.float32)
    halves = rows.astype(np.float16)
    tokens = rng.integers(size, size=len(rows)).tolist()
    meter, guard = SignalMeter(size), BreakdownGuard(size, source_ids=range(0, size, 3))
    variants: dict[str, Callable[[int], object]] = {
        "seatrial": lambda i: meter.measure(rows[i], 5),
        "seatrial, fp16 rows": lambda i: meter.measure(halves[i], 5),
        "seatrial, new meter each time": lambda i: signals(rows[i], 5),
        "guard": lambda i: guard.observe(rows[i], tokens[i]),
        "greedy sampler and guard": lambda i: sampled(guard, rows[i]),
        "plain float32": lambda i: plain_float32(rows[i], 5),
        "by the book, float64": lambda i: by_the_book(rows[i], 5),
        "np.exp alone": lambda i: np.exp(rows[i]),
    }
    taken: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(rounds):
        for name, variant in variants.items():
            variant(number % len(rows))
            if weights is not None:
                weights.sum()
                rows[number % len(rows)] = rows[number % len(rows)].copy()
            began = time.perf_counter()
            variant(number % len(rows))
            taken[name].append(1e3 * (time.perf_counter() - began))
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    weights = np.ones(12_000_000, np.float32)
    for size in SIZES:
        warm, cold = measured(size, options.rounds, None), measured(size, options.rounds // 4, weights)
        print(f"\nvocabulary {size:<21}{'warm':>8}{'':11}{'cold':>8}")
        ours = [float(np.median(taken["seatrial"])) for taken in (warm, cold)]
        for name in warm:
            middle = [float(np.median(taken[name])) for taken in (warm, cold)]
            told = (f"{m:8.3f} ms  x{m / o:5.2f}" for m, o in zip(middle, ours, strict=True))
            print(f"  {name:30}{'  '.join(told)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
