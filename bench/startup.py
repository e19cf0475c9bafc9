"""How long the light commands take beyond Python's own start, alternating in one run.

    python bench/startup.py

Each round starts every command once, `python -c pass` first; medians and the fastest of the rounds are
printed. Limits: `--help` 0.3 s, `plan` and an English `check` 0.5 s above `python -c pass`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from seatrial.samples import MEETING_DATE, summary_path

CONFIG = {
    "model_type": "llama", "hidden_size": 3072, "intermediate_size": 8192, "num_hidden_layers": 28,
    "num_attention_heads": 24, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256,
    "max_position_embeddings": 131072, "tie_word_embeddings": True,
}  # fmt: skip
LIMITS = {"--help": 0.3, "plan": 0.5, "check, English": 0.5}


def commands(folder: Path) -> dict[str, list[str]]:
    """Name -> command line; the first is what the others are compared with."""
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    ours = [sys.executable, "-m", "seatrial"]
    plan = [*ours, "plan", "--model", str(folder / "config.json"), "--device", "thin-laptop-8gb"]
    found = {"python -c pass": [sys.executable, "-c", "pass"], "--help": [*ours, "--help"], "plan": plan}
    for language, words in (("en", "English"), ("zh", "Chinese")):
        day = MEETING_DATE[language].isoformat()
        summary = str(summary_path(language))
        check = [*ours, "check", summary, f"sample:{language}", "--meeting-date", day, "--json"]
        found[f"check, {words}"] = check
    return found


def seconds_of(command: list[str], folder: Path) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        every = commands(Path(name))
        times: dict[str, list[float]] = {one: [] for one in every}
        for round_ in range(given.rounds + 1):
            for one, command in every.items():
                seconds = seconds_of(command, Path(name))
                if round_:  # the first fills the page cache and writes the compiled files
                    times[one].append(seconds)
    report(times)


def report(times: dict[str, list[float]]) -> None:
    """A row per command: median and fastest, and the median of what each round had above Python alone."""
    processor = platform.processor() or platform.machine()
    print(f"Python {platform.python_version()}, {processor}, {len(os.sched_getaffinity(0))} CPUs")
    print(f"{'command':16} {'median':>8} {'fastest':>8} {'above python':>13} {'limit':>6}")
    alone = times["python -c pass"]
    for one, found in times.items():
        above = median(each - python for each, python in zip(found, alone, strict=True))
        limit = LIMITS.get(one)
        told = "" if limit is None else f"{limit:.1f}"
        print(f"{one:16} {median(found):7.3f}s {min(found):7.3f}s {above:12.3f}s {told:>6}")


if __name__ == "__main__":
    main()
