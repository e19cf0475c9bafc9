"""Speed of planning: start-up of `seatrial plan` beside `python -c pass`, plans per second of `plan_many`.

python bench/plan.py [--rounds 7]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from seatrial.devices.device import load_device
from seatrial.devices.runtime import load_runtime
from seatrial.export.architecture import architecture_of_config
from seatrial.simulate.batch import plan_many
from seatrial.simulate.cost import model_cost

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


def main() -> None:
    """Prints what was measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    plan_s, pass_s = start_up(options.rounds)
    print(f"seatrial plan: {plan_s:.3f} s, python -c pass: {pass_s:.3f} s, ratio {plan_s / pass_s:.1f}")
    print(f"plan_many: {plans_per_second():.3g} plans/s")


if __name__ == "__main__":
    main()
