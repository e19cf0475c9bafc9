"""Every file operation of an export, a quantization, a packing and a run fails in turn, or the process
dies there.

    python bench/faults.py [--jobs export quantize prepack run] [--how fail kill size]

The sweeps of `tests/simulate/test_every_write.py`, those of an export whole and not in part. One line per
sweep: how many faults there were, what was found at the target after them, whether anything was broken or a
temporary file outlived a failure, and whether the next undisturbed job worked (after an export: from every
kind of leftovers). Exit code 1 if not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "tests/simulate"
WHOLE = {
    "export": {"int8", "fp32"},
    "quantize": {"int8", "int4"},
    "prepack": {"nothing", "whole"},
    "run": {"nothing", "The budget of the trade fair is $35,000."},
}


def sweep(how: str, job: str) -> bool:
    """Runs one sweep and prints its line; whether all was well. An export meets all kinds in one sweep."""
    script, *options = ["fault_in_fork.py", job] if job == "export" else ["nth_operation.py", how, job]
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(FOLDER / script), *options, str(Path(folder) / "work")],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(FOLDER), *sys.path[1:]])},
        )
    if done.returncode:
        print(f"{job:<9} {how:<5} the driver failed: {done.stderr.strip().splitlines()[-1]}")
        return False
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    again = [row for row in rows if "again" in (row.get("how"), row.get("at"))]
    faults = [row for row in rows if row not in again and row.get("how") != "none"]
    return tell(how, job, faults, again, time.monotonic() - began)


def tell(how: str, job: str, rows: list[dict[str, Any]], again: list[dict[str, Any]], seconds: float) -> bool:
    wrong = [row for row in rows if "surprise" in row or row["found"] not in WHOLE[job]]
    left = [row for row in rows if row.get("code") == 1 and row["left"]]
    works = all(row["code"] == 0 and not row["left"] for row in again)
    found = ", ".join(
        f"{count}x {what[:24]}" for what, count in Counter(r.get("found", "?") for r in rows).items()
    )
    verdict = "ok" if works and again and not wrong and not left else f"NOT OK {wrong[:1]} {left[:1]}"
    print(
        f"{job:<9} {how:<5} {len(rows):>3} faults; found {found}; next job works: {works} ({len(again)}x); "
        f"{verdict}; {seconds:.0f} s",
        flush=True,
    )
    return verdict == "ok"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", nargs="+", choices=WHOLE, default=list(WHOLE))
    parser.add_argument(
        "--how", nargs="+", choices=("fail", "kill", "size"), default=["fail", "kill", "size"]
    )
    options = parser.parse_args()
    fine = [sweep(how, job) for job in options.jobs if job != "export" for how in options.how]
    fine += [sweep("all", "export")] if "export" in options.jobs else []
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
