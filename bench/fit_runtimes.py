"""Fits every runtime on published measurements and writes them as TOML.

    python bench/fit_runtimes.py MEASURED --out devices/runtimes [--date 2026-11-29]

MEASURED is a folder with throughput.csv, context_depth.csv and memory_measured.csv.
"""

from __future__ import annotations

import argparse
import csv
import datetime
from pathlib import Path

from seatrial.devices.toml import toml_text
from seatrial.simulate.fit import fit
from seatrial.simulate.measured import read_throughput
from seatrial.simulate.runtimes import depth_ratios, peak_memory, runtime_tables


def cliff_quotients(path: Path) -> list[float]:
    """Measured seconds per token of models that did not fit, over bytes at the drive's rate."""
    with path.open(encoding="utf-8", newline="") as file:
        records = list(csv.DictReader(file))
    found = []
    for record in records:
        if record["seq_read_MBps"] and record["tok_per_s"]:
            size = float(record["model_file_GB"].lstrip("~")) * 1e9
            read_s = size / (float(record["seq_read_MBps"]) * 1e6)
            found.append(round(1 / float(record["tok_per_s"]) / read_s, 2))
    return sorted(found)


def main() -> None:
    """Reads, fits, writes; prints a line per runtime."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("measured", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--date", default=datetime.date.today().isoformat())
    options = parser.parse_args()
    rows = read_throughput(options.measured / "throughput.csv")
    depth = depth_ratios(options.measured / "context_depth.csv")
    peaks = peak_memory(options.measured / "memory_measured.csv")
    tables = runtime_tables(rows, fit(rows), depth, peaks, date=options.date)
    print(f"KV against weights, per byte: {depth.kv}; without flash attention {depth.kv_without_flash:.2f}")
    print(f"attention against matrices, efficiency: {depth.attention:.2f}")
    cliff = cliff_quotients(options.measured / "paging.csv")
    print(f"past the ceiling, seconds per token over bytes/rate: {cliff}")
    for name, table in tables.items():
        head = "# Written by bench/fit_runtimes.py; do not edit by hand.\n"
        (options.out / f"{name}.toml").write_text(head + toml_text(table), encoding="utf-8")
        decode, prefill, made = table["decode"], table["prefill"], table["fit"]
        print(
            f"{name:26s} decode x{decode['weight_factor']:.2f} {decode['layer_s'] * 1e3:.3f} ms/layer "
            f"[{decode['low']:.2f}, {decode['high']:.2f}] rows {made['decode_rows']:3d} "
            f"chips {made['decode_chips']:2d}"
            f" prefill e={prefill['efficiency']:.2f} [{prefill['low']:.2f}, {prefill['high']:.2f}]"
        )


if __name__ == "__main__":
    main()
