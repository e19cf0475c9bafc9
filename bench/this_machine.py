"""How far plans for this machine are from what it then does.

    seatrial devices measure --out here.toml
    python bench/this_machine.py --device here.toml [--pair int4/int8 ...]

The device file is written first and never touched. Then every pair of formats is run at contexts of 256 to
4096 tokens, each in a process of its own that opens the bundle, reads a real prompt of that length and writes
48 tokens: median milliseconds of a step and the peak of private memory, beside what `seatrial plan` says of
that job. Targets: decode within 5 % at the median and 12 % at most, memory within 10 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from seatrial.devices.device import load_device
from seatrial.devices.measure import read_bandwidth, usable_cores
from seatrial.devices.units import format_rate
from seatrial.export.prepacked import prepare_mapped
from seatrial.simulate.prepare import ensure_bundle
from seatrial.simulate.stepping import watched

CONTEXTS = (256, 512, 1024, 2048, 4096)
PAIRS = ("fp32/fp32", "fp32/int8", "int8/fp32", "int8/int8", "int4/fp32", "int4/int8")
STEPS = 48
DECODE_MEDIAN, DECODE_MOST, MEMORY_MOST = 0.05, 0.12, 0.10


def run_job(folder: Path, context: int) -> dict[str, float]:
    """The child: a prompt of `context` tokens, then the steps; seconds of each and the memory all the way."""
    from seatrial.export.bundle import open_bundle
    from seatrial.export.session import Session

    seconds: list[float] = []

    def job() -> float:
        with Session(open_bundle(folder, check_hashes=False), capacity=context + STEPS) as session:
            began = time.perf_counter()
            session.prefill([(31 * index) % 2000 + 5 for index in range(context)])
            prefill_s = time.perf_counter() - began
            for _ in range(STEPS):
                start = time.perf_counter()
                session.step(11)
                seconds.append(time.perf_counter() - start)
        return prefill_s

    prefill_s, peak = watched(job)
    return {"step_s": statistics.median(seconds), "prefill_s": prefill_s, "peak_bytes": peak}


def measured(folder: Path, context: int, rounds: int) -> dict[str, float]:
    """Medians over processes of their own; the largest memory."""
    command = [sys.executable, __file__, "--device", "none", "--child", str(folder), str(context)]
    runs = [
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(rounds)
    ]
    middle = {name: statistics.median(run[name] for run in runs) for name in ("step_s", "prefill_s")}
    return middle | {"peak_bytes": max(run["peak_bytes"] for run in runs)}


def predicted(folder: Path, device: Path, pair: str, context: int) -> dict[str, Any]:
    """The plan of the same job, from the command line."""
    weights, kv = pair.split("/")
    command = [sys.executable, "-m", "seatrial", "plan", "--model", str(folder), "--device", str(device)]
    command += ["--weights", weights, "--kv", kv, "--prompt-tokens", str(context), "--max-tokens", str(STEPS)]
    done = subprocess.run([*command, "--json"], check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def compare(folder: Path, device: Path, pair: str, rounds: int) -> list[dict[str, Any]]:
    """A row per context: predicted, measured, and the relative errors."""
    rows = []
    for context in CONTEXTS:
        told, seen = predicted(folder, device, pair, context), measured(folder, context, rounds)
        step_s, prefill_s = told["time"]["decode_ms_per_token"]["mid"] / 1e3, told["time"]["prefill_s"]["mid"]
        row = {
            "pair": pair,
            "context": context,
            "measured": seen,
            "predicted": {"step_s": step_s, "prefill_s": prefill_s, "memory": told["memory"]},
            "decode_error": step_s / seen["step_s"] - 1,
            "prefill_error": prefill_s / seen["prefill_s"] - 1,
            "memory_error": told["memory"]["peak_bytes"] / seen["peak_bytes"] - 1,
        }
        print_row(row)
        rows.append(row)
    return rows


def print_row(row: dict[str, Any]) -> None:
    seen, told = row["measured"], row["predicted"]
    steps_ms = f"{1e3 * told['step_s']:7.2f} {1e3 * seen['step_s']:7.2f} ms"
    print(
        f"{row['pair']:<10} {row['context']:>5}  decode {steps_ms} {row['decode_error']:+7.1%}  "
        f"prompt {told['prefill_s']:6.2f} {seen['prefill_s']:6.2f} s "
        f"{row['prefill_error']:+7.1%}  memory {told['memory']['peak_bytes'] / 1e6:6.0f} "
        f"{seen['peak_bytes'] / 1e6:6.0f} MB {row['memory_error']:+7.1%}",
        flush=True,
    )


def verdict(rows: list[dict[str, Any]]) -> bool:
    """Prints the figures against the targets; whether all are met."""
    decode = [abs(row["decode_error"]) for row in rows]
    memory = [abs(row["memory_error"]) for row in rows]
    prefill = [abs(row["prefill_error"]) for row in rows]
    figures = [
        ("decode, median", statistics.median(decode), DECODE_MEDIAN),
        ("decode, most", max(decode), DECODE_MOST),
        ("memory, most", max(memory), MEMORY_MOST),
    ]
    for name, value, limit in figures:
        print(f"{name}: {value:.1%}, target {limit:.0%}: {'met' if value <= limit else 'MISSED'}")
    print(f"memory, median: {statistics.median(memory):.1%}")
    print(f"prompt: median {statistics.median(prefill):.1%}, most {max(prefill):.1%} (no target)")
    return all(value <= limit for _, value, limit in figures)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", type=Path, required=True, help="written by `seatrial devices measure`")
    parser.add_argument("--pair", nargs="+", default=list(PAIRS), help="weights/kv of the embedded model")
    parser.add_argument("--rounds", type=int, default=1, help="processes per context")
    parser.add_argument("--json", type=Path, help="also write the rows here")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        print(json.dumps(run_job(Path(options.child[0]), int(options.child[1]))))
        return 0
    device, cores = load_device(str(options.device)), usable_cores()
    now = read_bandwidth(cores)
    print(f"read bandwidth: {format_rate(device.bandwidth_Bps)} in the file, {format_rate(now)} now")
    print(f"{'':17} predicted, measured, error")
    rows = []
    for pair in options.pair:
        bundle = ensure_bundle(None, *pair.split("/"))
        if bundle.kv.dtype == "int8":
            prepare_mapped(bundle)
        rows += compare(bundle.folder, options.device, pair, options.rounds)
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0 if verdict(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
