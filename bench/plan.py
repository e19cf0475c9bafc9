"""Speed of planning, and how far plans are from this machine.

    python bench/plan.py                       # start-up beside `python -c pass`, plans per second     python
bench/plan.py --bundle FOLDER ...   # also: each bundle stepped at six contexts and in a whole job

A bundle's runtime is made from two contexts (128 and the farthest), as `seatrial devices measure` does; the
contexts in between are predicted and measured, all in turn in one process, so that a busy machine disturbs
them alike.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from seatrial.devices.device import device_from_table, load_device
from seatrial.devices.runtime import load_runtime, runtime_from_table
from seatrial.export.architecture import architecture_of_config
from seatrial.simulate.batch import plan_many
from seatrial.simulate.calibrate import CONTEXTS, calibrate, measured_runtime, peak_during
from seatrial.simulate.cost import model_cost
from seatrial.simulate.predict import decode_seconds, memory_use

BETWEEN = (256, 512, 1024, 2048)
JOB = (1500, 40)
CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 28,
    "hidden_size": 3072,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
    "max_position_embeddings": 131072,
}


def start_up(rounds: int) -> tuple[float, float]:
    """Median seconds of `seatrial plan` and of an empty interpreter, alternating."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(CONFIG), encoding="utf-8")
        planning = [sys.executable, "-m", "seatrial", "plan", "--model", str(config), "--json"]
        seconds: dict[str, list[float]] = {"plan": [], "pass": []}
        for _ in range(rounds):
            for name, command in (("plan", planning), ("pass", [sys.executable, "-c", "pass"])):
                start = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                seconds[name].append(time.perf_counter() - start)
    return statistics.median(seconds["plan"]), statistics.median(seconds["pass"])


def plans_per_second(count: int = 100_000) -> float:
    """Plans of `plan_many` per second, best of five."""
    cost = model_cost(architecture_of_config(CONFIG, name="bench"), weights="int4", kv="int8")
    device, runtime = load_device("thin-laptop-8gb"), load_runtime("reference")
    prompts = np.arange(1, count + 1) % 8000 + 1
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        plan_many(cost, device, runtime, prompt_tokens=prompts, max_tokens=400)
        seconds.append(time.perf_counter() - start)
    return count / min(seconds)


def check_bundle(folder: Path) -> dict[str, Any]:
    """Errors of the contexts in between, and of a job's peak memory, for one bundle."""
    found = calibrate(folder, contexts=(*CONTEXTS, *BETWEEN))
    far = max(found.step_s)
    ends = attrs.evolve(found, step_s={c: found.step_s[c] for c in (min(found.step_s), far)})
    device = bare_device()
    table = measured_runtime(device, [ends], date="2026-01-01", ops=1e11)
    runtime = runtime_from_table("bench", table).for_formats(found.weights, found.kv)
    errors = {
        context: decode_seconds(found.cost, device, runtime, context) / seconds - 1
        for context, seconds in found.step_s.items()
    }
    peak = peak_of_job(folder)
    told = memory_use(found.cost, runtime, tokens=sum(JOB), limit=None, prompt_tokens=JOB[0]).peak_bytes
    return {
        "weights": found.weights,
        "kv": found.kv,
        "step_ms": {context: seconds * 1e3 for context, seconds in sorted(found.step_s.items())},
        "errors": dict(sorted(errors.items())),
        "noise": found.noise,
        "peak_bytes": peak,
        "predicted_peak_bytes": told,
        "peak_error": told / peak - 1,
    }


def bare_device() -> Any:
    """A machine of round figures: the runtime's factors are relative to them."""
    return device_from_table(
        "here",
        {
            "name": "here",
            "vendor": "none",
            "chip": "none",
            "class": "desktop",
            "confidence": "measured",
            "runtime": "measured",
            "memory": {"total": "16GB", "source": "not used"},
            "system": {"reserved": "1GB", "source": "not used"},
            "bandwidth": {"measured": {"value": "10GB/s", "kind": "read", "source": "unit of the factors"}},
            "compute": {
                "cpu": {"nominal": "100GFLOPS", "precision": "fp32", "source": "unit of the factors"}
            },
        },
    )


def peak_of_job(folder: Path) -> int:
    """Private bytes at the end of a prompt and a summary in a process of its own."""
    done = subprocess.run(
        [sys.executable, __file__, "--job", str(folder)], check=True, capture_output=True, text=True
    )
    return int(json.loads(done.stdout))


def run_job(folder: Path) -> int:
    """The child: a real prompt, a real summary, its private memory watched all the way."""
    from seatrial.export.bundle import open_bundle
    from seatrial.export.session import Session

    with Session(open_bundle(folder, check_hashes=False), capacity=sum(JOB)) as session:
        prompt = [(31 * index) % 2000 + 5 for index in range(JOB[0])]

        def job() -> None:
            session.prefill(prompt)
            for _ in range(JOB[1] - 1):
                session.step(11)

        return peak_during(job)


def print_bundles(checked: Sequence[dict[str, Any]]) -> None:
    """A line per bundle, then the errors over all."""
    for one in checked:
        steps = " ".join(f"{context}:{ms:.2f}" for context, ms in one["step_ms"].items())
        errors = " ".join(f"{context}:{error:+.1%}" for context, error in one["errors"].items())
        print(f"{one['weights']}/{one['kv']}: ms {steps}\n  error {errors}; noise {one['noise']:.2f}")
        peaks = (
            f"measured {one['peak_bytes'] / 1e6:.0f} MB, predicted {one['predicted_peak_bytes'] / 1e6:.0f} MB"
        )
        print(f"  peak private of {JOB[0]} + {JOB[1]} tokens: {peaks} ({one['peak_error']:+.1%})")
    between = [
        abs(error) for one in checked for context, error in one["errors"].items() if context in BETWEEN
    ]
    every = [abs(error) for one in checked for error in one["errors"].values()]
    print(
        f"decode, contexts that were not stepped for the fit: median {statistics.median(between):.1%}, "
        f"largest {max(between):.1%}; all contexts: median {statistics.median(every):.1%}"
    )
    print(f"peak memory: largest error {max(abs(one['peak_error']) for one in checked):.1%}")


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bundle", type=Path, action="append", default=[])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job is not None:
        print(json.dumps(run_job(options.job)))
        return
    plan_s, pass_s = start_up(options.rounds)
    print(f"seatrial plan: {plan_s:.3f} s, python -c pass: {pass_s:.3f} s, ratio {plan_s / pass_s:.1f}")
    print(f"plan_many: {plans_per_second():.3g} plans/s")
    if options.bundle:
        print_bundles([check_bundle(folder) for folder in options.bundle])


if __name__ == "__main__":
    main()
