"""Does `--pace real` keep the device's pace, and what do clock and guards cost?

    python bench/pace.py [--tokens 200] [--rates 2GB/s 5GB/s 10GB/s] [--model BUNDLE]

Pace: the embedded model (int4, int8 KV) decodes against target bandwidths; achieved over target is the
bytes of the tokens over the seconds they really took, token by token from the trace, against the rate
asked for. A target that this machine cannot reach is shown as host-limited and proves nothing.

Cost: the same decode loop in one process, bare, with the breakdown guard, with guard and events, alternating
round by round; medians, as a share of the bare time per token.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
from dataclasses import asdict

import attrs
import numpy as np

from seatrial.devices.device import load_device
from seatrial.devices.runtime import load_runtime
from seatrial.devices.units import format_rate, parse_rate
from seatrial.export.architecture import read_architecture
from seatrial.export.bundle import Bundle
from seatrial.export.session import Session
from seatrial.export.session_graph import read_decoder
from seatrial.export.tokenizer import Tokenizer
from seatrial.guards.breakdown import BreakdownGuard
from seatrial.guards.thresholds import NEVER_REPEATS, Thresholds
from seatrial.simulate.ceiling import open_ceiling
from seatrial.simulate.child import Child
from seatrial.simulate.clock import BandwidthCurve
from seatrial.simulate.cost import model_cost
from seatrial.simulate.prepare import ensure_bundle, formats_of
from seatrial.simulate.timing import Timing
from seatrial.simulate.worker import Worker
from seatrial.textfile import read_transcript

# Never trips: the bench wants every token, not a good summary.
DEAF = Thresholds(
    entropy_nats=10.7,
    smoothed_enter_nats=10.7,
    repeat_times=NEVER_REPEATS,
    monotony_share=1.0,
    foreign_share=1.0,
)
NO_TIMES = {"host_s": 0.0, "real_s": 0.0}


def pace_row(worker: Worker, timing: Timing, prompt: list[int], tokens: int) -> str:
    """One target: device and real time per token, their quotient, and how often the host was too slow."""
    chunks = timing.prefill_s(len(prompt), 0, 0.0)
    steps = timing.decode_s(len(prompt), tokens, 0.0)
    events = list(
        worker.generate(
            keep=0, ids=prompt, max_tokens=tokens + 1, chunk=512, prefill_s=chunks, decode_s=steps
        )
    )
    rows = [event for event in events if event["event"] == "token" and event["index"] > 0]
    device_s = sum(steps[: len(rows)])
    real_s, host_s = (sum(row[key] for row in rows) for key in ("real_s", "host_s"))
    limited = sum(row["host_limited"] for row in rows) / len(rows)
    each_ms = [1e3 * seconds / len(rows) for seconds in (device_s, real_s, host_s)]
    return (
        f"{format_rate(timing.curve.rates_Bps[0]):>12} {len(rows):>7} {each_ms[0]:>10.2f} "
        f"{each_ms[1]:>10.2f} {device_s / real_s:>9.4f} {each_ms[2]:>9.2f} {limited:>8.1%}"
    )


def bench_pace(bundle: Bundle, rates: list[float], tokens: int) -> None:
    print(
        f"{'target':>12} {'tokens':>7} {'device ms':>10} {'real ms':>10} {'achieved':>9} "
        f"{'host ms':>9} {'limited':>8}"
    )
    device, runtime = load_device("thin-laptop-8gb"), load_runtime("reference")
    weights, kv = formats_of(bundle)
    cost = attrs.evolve(
        model_cost(read_architecture(bundle.folder), weights=weights, kv=kv),
        weight_bytes_per_token=float(read_decoder(bundle.model_path).weight_bytes_per_token),
    )
    prompt = Tokenizer.load(bundle.folder).encode(read_transcript("sample:en"))[:512]
    with open_ceiling(4_000_000_000) as ceiling, Worker(ceiling) as worker:
        worker.open(
            bundle=str(bundle.folder),
            capacity=len(prompt) + tokens + 64,
            threads=None,
            weights="heap",
            thresholds=asdict(DEAF),
            eos=[],
        )
        for rate in rates:
            timing = Timing(cost, device, runtime, BandwidthCurve.constant(rate))
            print(pace_row(worker, timing, prompt, tokens), flush=True)


def loop_s(session: Session, guard: BreakdownGuard | None, child: Child | None, tokens: int) -> float:
    """Seconds per token of a greedy loop with the given company."""
    session.reset()
    logits = session.prefill(list(range(1000, 1128)))
    began = time.perf_counter()
    for index in range(tokens):
        token = int(logits.argmax())
        state = guard.observe(logits, token) if guard is not None else None
        if child is not None and state is not None:
            child._tell_token(index, token, NO_TIMES, False, state)
        logits = session.step(token)
    return (time.perf_counter() - began) / tokens


def bench_cost(bundle: Bundle, tokens: int, rounds: int = 7) -> None:
    """Medians over alternating rounds, each against the bare loop of its own round."""
    vocabulary = Tokenizer.load(bundle.folder).vocabulary_size
    shares: dict[str, list[float]] = {"guard": [], "guard and events": []}
    with Session(bundle, capacity=512) as session:
        for _ in range(rounds):
            bare_s = loop_s(session, None, None, tokens)
            guard = BreakdownGuard(vocabulary, DEAF)
            shares["guard"].append(loop_s(session, guard, None, tokens) / bare_s - 1)
            guard = BreakdownGuard(vocabulary, DEAF)
            child = Child(io.StringIO())
            shares["guard and events"].append(loop_s(session, guard, child, tokens) / bare_s - 1)
        print(f"bare loop {1e3 * bare_s:.2f} ms/token in the last round; cost over it, {rounds} rounds:")
        for name, values in shares.items():
            spread = f"{min(values):+.2%} .. {max(values):+.2%}"
            print(f"  {name:<17} {statistics.median(values):+.2%}  ({spread})")
        print(f"  alone: {1e6 * company_s(vocabulary, tokens):.0f} us/token for guard and event")


def company_s(vocabulary: int, tokens: int) -> float:
    """Seconds of one guard observation and one event by themselves: no model beside them to disturb it."""
    logits = np.random.default_rng(7).normal(0, 3, vocabulary).astype(np.float32)
    times = []
    for _ in range(5):
        guard, child = BreakdownGuard(vocabulary, DEAF), Child(io.StringIO())
        began = time.perf_counter()
        for index in range(tokens):
            child._tell_token(index, index, NO_TIMES, False, guard.observe(logits, index))
        times.append((time.perf_counter() - began) / tokens)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--rates", nargs="+", type=parse_rate, default=[2e9, 5e9, 10e9])
    parser.add_argument("--model", default=None, help="a bundle or a model; the embedded one when left out")
    options = parser.parse_args()
    bundle = ensure_bundle(options.model, weights=None if options.model else "int4", kv="int8")
    bench_pace(bundle, options.rates, options.tokens)
    bench_cost(bundle, options.tokens)


if __name__ == "__main__":
    main()
