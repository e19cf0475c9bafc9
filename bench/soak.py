"""Fifty runs in one process: does memory, a descriptor, a control group or a cache file pile up?

    python bench/soak.py [--runs 50] [--model MODEL]

The tiny scripted model of the tests by default (a run takes well under a second); `--model` takes a real
one. Prints the footprint after the warm-up and after every tenth run, and the growth; exit code 1 if
anything grew.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests/simulate"))

from scripted import write_scripted_bundle
from soak import Footprint, growth, soak

from seatrial.simulate.job import RunJob
from seatrial.simulate.run import run

TRANSCRIPT = (
    "Anna Lindqvist: Good morning, the budget of the trade fair is $35,000.\nBen Okoro: Fine with me.\n"
)
MEMORY_ALLOWANCE_BYTES = 8_000_000


def show(number: int, found: Footprint) -> None:
    told = "  ".join(f"{name} {value}" for name, value in asdict(found).items() if name != "private_bytes")
    print(f"run {number:>3}: {found.private_bytes / 1e6:7.1f} MB private  {told}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--model", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or str(
            write_scripted_bundle(Path(folder) / "model", "The budget of the trade fair is $35,000.")
        )
        job = RunJob(TRANSCRIPT, "rpi5", Path(folder) / "out", model=model, max_tokens=60)
        found = soak(lambda _: run(job), runs=options.runs, warm_up=5)
    for number in range(0, len(found), 10):
        show(number, found[number])
    grown = growth(found)
    print(f"growth over {options.runs} runs: {grown}")
    memory = grown.pop("private_bytes")
    return int(memory > MEMORY_ALLOWANCE_BYTES or any(amount > 0 for amount in grown.values()))


if __name__ == "__main__":
    sys.exit(main())
