"""The quantization step itself, and the engine's Python: seconds, private peak, microseconds per token.

    python bench/quantize.py [BUNDLE]     # the embedded model as fp32 by default

The step runs in a child whose memory is watched; the limit of 1.2 times the float weights is printed
beside it. The Python per token is a step's wall time minus the time inside onnxruntime, medians over many
steps, with the sampling (argmax) and the breakdown guard that a run has.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from watch import watch

from seatrial.export.bundle import Bundle, open_bundle
from seatrial.export.session import Session
from seatrial.guards.breakdown import BreakdownGuard
from seatrial.simulate.prepare import ensure_bundle

CODE = "import sys; from seatrial.cli import main; main(sys.argv[1:])"


def step_of_quantization(bundle: Bundle, weights: str) -> None:
    """Time and memory of `seatrial quantize` as a command, from start to exit."""
    with tempfile.TemporaryDirectory() as scratch:
        out = str(Path(scratch) / "out")
        seen = watch(["-c", CODE, "quantize", str(bundle.folder), out, "--weights", weights, "--quiet"])
        print(seen.output)
    limit = 1.2 * bundle.weight_bytes
    print(
        f"{weights}: {seen.seconds:.1f} s, private peak {seen.private_bytes / 1e6:.0f} MB "
        f"(limit {limit / 1e6:.0f} MB), mapped {seen.mapped_bytes / 1e6:.0f} MB\n"
    )


class Timed:
    """An onnxruntime session that adds up the time spent inside it."""

    def __init__(self, engine: Any) -> None:
        self.engine, self.seconds = engine, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def run_with_iobinding(self, *arguments: Any) -> None:
        started = time.thread_time()
        self.engine.run_with_iobinding(*arguments)
        self.seconds += time.thread_time() - started


def python_per_token(bundle: Bundle, steps: int = 200) -> None:
    """CPU time of a generated token outside of onnxruntime (one thread runs all)."""
    with Session(bundle, capacity=steps + 80, threads=1) as session:
        logits = session.prefill([1] * 64)
        timed = Timed(session._engine)
        session._engine = timed  # type: ignore[assignment]
        guard = BreakdownGuard(len(logits))
        engine_only, guarded = [], []
        for _ in range(steps):
            before, started = timed.seconds, time.thread_time()
            logits = session.step(7)
            stepped = time.thread_time()
            guard.observe(logits, int(np.argmax(logits)))
            done = time.thread_time()
            inside = timed.seconds - before
            engine_only.append(stepped - started - inside)
            guarded.append(done - started - inside)
    for name, values in (("engine", engine_only), ("engine, argmax and guard", guarded)):
        spent_us = statistics.median(values) * 1e6
        print(f"Python per token at {len(logits)} ids, {name}: {spent_us:.0f} us (limit 150)")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundle", nargs="?", type=Path)
    arguments = parser.parse_args()
    bundle = open_bundle(arguments.bundle) if arguments.bundle else ensure_bundle(None, weights="fp32")
    for weights in ("int4", "int8"):
        step_of_quantization(bundle, weights)
    with tempfile.TemporaryDirectory() as scratch:
        from seatrial.quantize.bundle import quantize_bundle

        made = quantize_bundle(bundle, Path(scratch) / "int4", weights="int4", kv="int8")
        python_per_token(open_bundle(made.out))


if __name__ == "__main__":
    main()
