"""What a memory ceiling does to fp32, int8 and int4, with weights on the heap and mapped.

    python bench/ceiling.py [--tokens 24] [--model MODEL]

For each format: ceilings of 2, 1 and 0.5 times the weights' bytes plus what a child without a model
takes, so that the weights are what is squeezed. Columns: outcome, ms/token (median of the last tokens)
and the first token's seconds, private and file-backed peak in MB. Then: int8 on the heap under 160 MB,
which is killed, and the automatic retry; private bytes of mapped int8 above an empty session; and
mapped over heap, ms/token with ample memory, alternating.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/simulate"))

from scripted import write_scripted_bundle

from seatrial.export.bundle import Bundle, open_bundle
from seatrial.export.prepacked import prepare_mapped
from seatrial.export.tokenizer import Tokenizer
from seatrial.guards.thresholds import NEVER_REPEATS, Thresholds
from seatrial.simulate.ceiling import drop_cached_pages, open_ceiling
from seatrial.simulate.job import RunJob
from seatrial.simulate.memory_watch import MemoryUse
from seatrial.simulate.prepare import ensure_bundle
from seatrial.simulate.run import run
from seatrial.simulate.worker import ChildDied, Worker
from seatrial.textfile import read_transcript

DEAF = Thresholds(
    entropy_nats=10.7,
    smoothed_enter_nats=10.7,
    repeat_times=NEVER_REPEATS,
    monotony_share=1.0,
    foreign_share=1.0,
)
AMPLE = 8_000_000_000


@dataclass(frozen=True)
class Row:
    outcome: str
    first_s: float | None
    ms_per_token: float | None
    peak: MemoryUse
    mechanism: str


def measure(bundle: Bundle, weights: str, ceiling_bytes: int, prompt: list[int], tokens: int) -> Row:
    """One child under one ceiling: how it ended, and its times and peaks."""
    packed = prepare_mapped(bundle) if weights == "mapped" else None
    drop_cached_pages(bundle.data_files if packed is None else packed.parent.iterdir())
    times: list[float] = []
    first_s, outcome, worker = None, "done", None
    began = time.perf_counter()
    with open_ceiling(ceiling_bytes, mapped=weights == "mapped") as ceiling:
        try:
            with Worker(ceiling) as worker:
                open_bundle_in(worker, bundle, weights, len(prompt) + tokens + 32)
                for event in worker.generate(**order(0, prompt, tokens)):
                    if event["event"] == "token":
                        first_s = first_s or time.perf_counter() - began
                        times.append(event["host_s"])
        except ChildDied as death:
            outcome = f"{death.detail[:24]} at {len(times) or 'start'}"
        mechanism = ceiling.mechanism
    steady = times[len(times) // 3 :] or times
    ms = 1e3 * statistics.median(steady) if len(times) > 1 else None
    return Row(outcome, first_s, ms, worker.watch.peak if worker else MemoryUse(), mechanism)


def open_bundle_in(
    worker: Worker, bundle: Bundle, weights: str, capacity: int, thresholds: Thresholds = DEAF
) -> None:
    worker.open(
        bundle=str(bundle.folder),
        capacity=capacity,
        threads=None,
        weights=weights,
        thresholds=asdict(thresholds),
        eos=[],
    )


def order(keep: int, ids: list[int], tokens: int) -> dict[str, Any]:
    """A generation without a clock."""
    return {
        "keep": keep,
        "ids": ids,
        "max_tokens": tokens,
        "chunk": 512,
        "prefill_s": None,
        "decode_s": None,
    }


def show(name: str, weights: str, ceiling: str, row: Row) -> None:
    ms = f"{row.ms_per_token:8.1f}" if row.ms_per_token else "       -"
    first = f"{row.first_s:6.2f}" if row.first_s else "     -"
    print(
        f"{name:<5} {weights:<7} {ceiling:>16} {row.outcome:<32} {ms} {first} "
        f"{row.peak.private_bytes / 1e6:8.1f} {row.peak.mapped_bytes / 1e6:8.1f}  {row.mechanism}",
        flush=True,
    )


def table(bundles: dict[str, Bundle], prompt: list[int], tokens: int, empty: MemoryUse) -> None:
    print(
        f"{'':<5} {'weights':<7} {'ceiling MB':>16} {'outcome':<32} {'ms/token':>8} {'first':>6} "
        f"{'private':>8} {'mapped':>8}"
    )
    for name, bundle in bundles.items():
        for factor in (2.0, 1.0, 0.5):
            ceiling = int(factor * bundle.weight_bytes + empty.private_bytes)
            for weights in ("heap", "mapped"):
                row = measure(bundle, weights, ceiling, prompt, tokens)
                show(name, weights, f"{ceiling / 1e6:.0f} ({factor:g}x)", row)


def empty_session(capacity: int) -> MemoryUse:
    """A child with a session that holds next to nothing: interpreter, libraries and the engine alone."""
    with tempfile.TemporaryDirectory() as folder:
        tiny = open_bundle(write_scripted_bundle(Path(folder) / "tiny", "Nothing."))
        with open_ceiling(AMPLE) as ceiling, Worker(ceiling) as worker:
            open_bundle_in(worker, tiny, "heap", capacity, Thresholds())
            list(worker.generate(**order(0, [1, 2, 3], 8)))
            return worker.close()


def ample(bundle: Bundle, prompt: list[int], empty: MemoryUse, tokens: int = 16, rounds: int = 15) -> None:
    """Mapped over heap with memory to spare: two children that write a few tokens in turn; and the mapped
    one's private bytes above an empty session.
    """
    prepare_mapped(bundle)
    ratios, capacity = [], len(prompt) + tokens + 32
    with (
        open_ceiling(AMPLE) as one,
        open_ceiling(AMPLE, mapped=True) as other,
        Worker(one) as heap,
        Worker(other) as mapped,
    ):
        for worker, weights in ((heap, "heap"), (mapped, "mapped")):
            open_bundle_in(worker, bundle, weights, capacity)
            few_tokens_s(worker, order(0, prompt, tokens))
        for _ in range(rounds):
            again = order(len(prompt) - 1, prompt[-1:], tokens)
            heap_s, (mapped_s, at_end) = few_tokens_s(heap, again)[0], few_tokens_s(mapped, again)
            ratios.append(mapped_s / heap_s)
        peak = mapped.close()
    told = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} .. {max(ratios):.3f}, {rounds} rounds)"
    above = [(private - empty.private_bytes) / 1e6 for private in (at_end, peak.private_bytes)]
    print(
        f"int8, ample memory: mapped over heap {told}; private bytes above an empty session: "
        f"{above[0]:.1f} MB while decoding, {above[1]:.1f} MB at the peak, opening included"
    )


def few_tokens_s(worker: Worker, again: dict[str, Any]) -> tuple[float, int]:
    """Median seconds of a few tokens, the first left out, and the child's private bytes at their end."""
    events = list(worker.generate(**again))
    times = [event["host_s"] for event in events if event["event"] == "token"]
    return statistics.median(times[1:]), events[-1]["memory"]["private_bytes"]


def retry(model: str | None) -> None:
    """int8 under 160 MB, begun on the heap although it cannot fit: what the run does about it."""
    with tempfile.TemporaryDirectory() as folder:
        text = read_transcript("sample:en")[:1200]
        job = RunJob(
            text,
            "rpi5",
            Path(folder) / "out",
            model=model,
            weights="int8",
            kv="int8",
            max_tokens=24,
            ceiling_bytes=160_000_000,
            foresee_memory=False,
        )
        result = run(job)
    deaths = [f"{death['way']}: {death['detail']}" for death in result.deaths]
    taken = [f"{fallback.trigger} -> {fallback.action}" for fallback in result.fallbacks]
    print(f"int8 heap at 160 MB: {deaths}; {taken}; wrote {result.decode.tokens} tokens, {result.status}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--model", default=None)
    options = parser.parse_args()
    bundles = {
        "fp32": ensure_bundle(options.model, "fp32", "fp32"),
        "int8": ensure_bundle(options.model, "int8", "int8"),
        "int4": ensure_bundle(options.model, "int4", "int8"),
    }
    prompt = Tokenizer.load(bundles["int4"].folder).encode(read_transcript("sample:en"))[:128]
    empty = empty_session(len(prompt) + options.tokens + 32)
    print(f"an empty session: {empty.private_bytes / 1e6:.1f} MB private")
    table(bundles, prompt, options.tokens, empty)
    ample(bundles["int8"], prompt, empty)
    retry(options.model)


if __name__ == "__main__":
    main()
