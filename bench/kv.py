"""The KV cache: how much headroom its scales need, what it costs in prefill, what it saves in memory.

python bench/kv.py headroom [BUNDLE]      # KL on text that was not calibrated on
python bench/kv.py prefill INT8 FP32      # two bundles with the same weights: CPU seconds of a prefill
python bench/kv.py memory INT8 FP32       # private peak of reading 4096 tokens and stepping 8
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from watch import watch

from seatrial.export.bundle import Bundle, open_bundle
from seatrial.export.prepacked import prepare_mapped
from seatrial.export.session import Session
from seatrial.export.session_graph import load_graph
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.agreement import compare
from seatrial.quantize.kv_cache import Granularity, clipped, peaks_of, quantize_cache, scales_from
from seatrial.quantize.texts import LANGUAGES, calibration_text, evaluation_text
from seatrial.simulate.prepare import ensure_bundle

TOKENS = 4096
HEADROOMS: dict[Granularity, list[float]] = {"channel": [1.0, 1.1, 1.25, 1.5, 2.0], "tensor": [1.0, 1.25]}


def tokens_for(count: int) -> list[int]:
    """Fixed tokens without a pattern."""
    return [100 + (place * 7919 + place * place * 31) % 40_000 for place in range(count)]


def headroom(bundle: Bundle) -> None:
    """Float weights, quantized cache: the cache's own damage."""
    tokenizer = Tokenizer.load(bundle.folder)
    with (
        Session(bundle, capacity=2048, weights="mapped") as reference,
        tempfile.TemporaryDirectory() as scratch,
    ):
        peaks = peaks_of(reference, [tokenizer.encode(calibration_text(x)) for x in LANGUAGES])
        print(
            f"{'':10}{'headroom':>9}{'bits':>5}"
            + "".join(f"{'KL ' + x:>10}{'top ' + x:>8}" for x in LANGUAGES)
        )
        for granularity, factors in HEADROOMS.items():
            for bits in (8, 4):
                for factor in factors:
                    scales = scales_from(peaks, bits=bits, granularity=granularity, headroom=factor)
                    model = load_graph(bundle.model_path)
                    quantize_cache(model, scales)
                    coded = _beside(bundle, model.SerializeToString(), Path(scratch))
                    _row(reference, coded, tokenizer, f"{granularity:10}{factor:9.2f}{bits:5}", bits)


def _beside(bundle: Bundle, graph: bytes, scratch: Path) -> Bundle:
    """A bundle with another graph and the same data."""
    for file in bundle.folder.iterdir():
        link = scratch / file.name
        if not link.exists() and file.name != bundle.model_path.name:
            link.write_bytes(file.read_bytes())
    (scratch / "seatrial.json").unlink(missing_ok=True)
    (scratch / bundle.model_path.name).write_bytes(graph)
    return open_bundle(scratch, check_hashes=False)


def _row(reference: Session, coded: Bundle, tokenizer: Tokenizer, name: str, bits: int) -> None:
    line, ends = name, 0
    with Session(coded, capacity=2048, weights="mapped", prefill="direct") as session:
        for language in LANGUAGES:
            found = compare(reference, session, tokenizer.encode(evaluation_text(language)))
            line += f"{found.kl:10.5f}{found.same_top1:8.3f}"
            ends += sum(clipped(rows, bits) for rows in session.kv_rows().values())
    print(f"{line}  {ends} values at the ends")


def prefill(int8: Bundle, fp32: Bundle, rounds: int = 5) -> None:
    """CPU seconds, which a busy machine moves less than wall time; alternating."""
    sessions = {
        "fp32 cache": Session(fp32, capacity=TOKENS, threads=1),
        "int8, node's own": Session(int8, capacity=TOKENS, threads=1, prefill="direct"),
        "int8, in float": Session(int8, capacity=TOKENS, threads=1),
    }
    for count in (512, TOKENS):
        seconds: dict[str, list[float]] = {name: [] for name in sessions}
        for _ in range(rounds):
            for name, session in sessions.items():
                session.reset()
                started = time.process_time()
                session.prefill(tokens_for(count))
                seconds[name].append(time.process_time() - started)
        base = seconds["fp32 cache"]
        for name, taken in seconds.items():
            ratio = statistics.median(b / t for b, t in zip(base, taken, strict=True))
            spent_s = statistics.median(taken)
            print(f"prefill {count:5} {name:18}{spent_s:8.3f} s CPU  {ratio:.2f}x the fp32 cache")


def memory(int8: Bundle, fp32: Bundle) -> None:
    """A child each. The packed file is made before: that takes the weights on the heap, once."""
    prepare_mapped(int8)
    peaks = {}
    for name, bundle in (("int8", int8), ("fp32", fp32)):
        seen = watch([__file__, "run", str(bundle.folder)])
        peaks[name] = seen.private_bytes
        private, mapped = seen.private_bytes / 1e6, seen.mapped_bytes / 1e6
        print(f"{name} cache: private peak {private:.0f} MB, mapped {mapped:.0f} MB")
    print(f"int8 saves {(peaks['fp32'] - peaks['int8']) / 1e6:.0f} MB")


def run(bundle: Bundle) -> None:
    """What `memory` watches."""
    with Session(bundle, capacity=TOKENS + 8, threads=1) as session:
        session.prefill(tokens_for(TOKENS))
        for token in range(8):
            session.step(token)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["headroom", "prefill", "memory", "run"])
    parser.add_argument("bundle", nargs="*", type=Path)
    arguments = parser.parse_args()
    bundles = [open_bundle(path, check_hashes=False) for path in arguments.bundle]
    if arguments.what == "headroom":
        headroom(bundles[0] if bundles else ensure_bundle(None, weights="fp32"))
        return
    if arguments.what == "run":
        run(bundles[0])
        return
    if not bundles:
        bundles = [ensure_bundle(None, weights="int4", kv=kv) for kv in ("int8", "fp32")]
    {"prefill": prefill, "memory": memory}[arguments.what](*bundles)


if __name__ == "__main__":
    sys.exit(main())
