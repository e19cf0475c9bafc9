"""How far plans are from measurements on devices that the fit never saw.

    python bench/fidelity.py MEASURED [--json]
    python bench/fidelity.py [MEASURED] --test FILE [--json]

MEASURED is a folder with throughput.csv (default: $SEATRIAL_MEASURED). Every chip is left out in turn and
predicted from the others, then every vendor; intervals are earned inside each fit, on chips left out of that
fit. With --test, a file of the same columns is predicted from all of MEASURED instead. Errors are those of
tokens per second, on firm rows; beside them bandwidth alone (a roofline) and a constant efficiency of 0.55.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from seatrial.devices.runtime import load_runtime, runtime_names
from seatrial.simulate.fit import feature_row, fit, path_of, predict
from seatrial.simulate.measured import Row, read_throughput
from seatrial.simulate.runtimes import runtime_id

CONSTANT_EFFICIENCY = 0.55
TARGETS = {
    "decode MdAPE": 0.12,
    "decode MAPE": 0.22,
    "prefill MdAPE": 0.25,
    "width": 1.9,
    "coverage": (0.80, 0.95),
}


@attrs.frozen
class Prediction:
    """A row with the middle and the ends of its predicted seconds."""

    row: Row
    mid: float
    low: float
    high: float


def left_out(rows: Sequence[Row], key: Callable[[Row], str]) -> list[Prediction]:
    """Every row predicted by a fit that saw none of its group."""
    found = []
    for group in dict.fromkeys(key(row) for row in rows):
        fitted = fit([row for row in rows if key(row) != group])
        found += _predictions(fitted, [row for row in rows if key(row) == group])
    return found


def scored(rows: Sequence[Row], test: Sequence[Row]) -> list[Prediction]:
    """`test` predicted by a fit of `rows`."""
    return _predictions(fit(rows), test)


def shipped(test: Sequence[Row]) -> list[Prediction]:
    """`test` predicted by the runtimes that come with the package, as a plan would."""
    return [shipped_prediction(row) for row in test]


def shipped_prediction(row: Row) -> Prediction:
    """One row by the runtime of its engine and vendor, else by that of its kind of processor."""
    name = runtime_id(path_of(row))
    runtime = load_runtime(name if name in runtime_names() else f"generic-{row.processor}")
    decode, prefill = runtime.decode, runtime.prefill
    ops = row.ops if row.ops is not None else prefill.ops_per_Bps * row.bandwidth_Bps
    if row.metric == "tg":
        coefficients, spread = [decode.weight_factor, decode.compute_factor, decode.layer_s], decode.spread
    else:
        coefficients = [prefill.efficiency]
        spread = prefill.spread if row.ops is not None else prefill.fallback_spread
    features = feature_row(attrs.evolve(row, ops=ops), {})[None, :]
    mid = float(np.exp(predict(row.metric, np.log(coefficients), features)[0]))
    return Prediction(row, mid, mid * spread.low, mid * spread.high)


def _predictions(fitted: Any, asked: Sequence[Row]) -> list[Prediction]:
    return [Prediction(row, fitted.seconds(row), *fitted.interval(row)) for row in asked]


def speed_errors(predictions: Sequence[Prediction], middle: Callable[[Prediction], float]) -> np.ndarray:
    """Relative errors of tokens per second: measured seconds over predicted seconds, less one."""
    return np.array([abs(p.row.seconds / middle(p) - 1) for p in predictions])


def summary(predictions: Sequence[Prediction], metric: str) -> dict[str, Any]:
    """Errors, coverage and width on the rows of one metric."""
    chosen = [p for p in predictions if p.row.metric == metric]
    if not chosen:
        return {"rows": 0}
    errors = speed_errors(chosen, lambda p: p.mid)
    inside = [p.low <= p.row.seconds <= p.high for p in chosen]
    widths = [p.high / p.low for p in chosen]
    result = {
        "rows": len(chosen),
        "chips": len({p.row.chip for p in chosen}),
        "mdape": float(np.median(errors)),
        "mape": float(np.mean(errors)),
        "coverage": float(np.mean(inside)),
        "median_width": float(np.median(widths)),
    }
    if metric == "tg":
        for name, factor in (("roofline", 1.0), ("constant_0.55", 1 / CONSTANT_EFFICIENCY)):
            rough = speed_errors(chosen, lambda p, f=factor: f * p.row.weight_bytes / p.row.bandwidth_Bps)
            result[name] = {"mdape": float(np.median(rough)), "mape": float(np.mean(rough))}
    return result


def report(title: str, predictions: Sequence[Prediction]) -> dict[str, Any]:
    """Both metrics on firm rows, soft rows apart, and each engine."""
    firm = [p for p in predictions if p.row.firm]
    soft = [p for p in predictions if not p.row.firm]
    engines: dict[str, list[Prediction]] = defaultdict(list)
    for p in predictions:
        engines[f"{p.row.engine}/{p.row.vendor}{'' if p.row.firm else ' (soft)'}"].append(p)
    return {
        "title": title,
        "decode": summary(firm, "tg"),
        "prefill": summary(firm, "pp"),
        "decode_soft": summary(soft, "tg"),
        "prefill_soft": summary(soft, "pp"),
        "engines": {
            name: {"decode": summary(part, "tg"), "prefill": summary(part, "pp")}
            for name, part in sorted(engines.items())
        },
    }


def print_report(made: dict[str, Any]) -> None:
    """The report as lines."""
    print(f"\n== {made['title']}")
    for name in ("decode", "prefill", "decode_soft", "prefill_soft"):
        print(f"{name:13s} {_line(made[name])}")
    for name in ("roofline", "constant_0.55"):
        rough = made["decode"].get(name)
        if rough:
            print(f"{name:13s} decode MdAPE {rough['mdape']:.1%} MAPE {rough['mape']:.1%}")
    for name, parts in made["engines"].items():
        for metric in ("decode", "prefill"):
            if parts[metric]["rows"]:
                print(f"  {name:42s} {metric:8s} {_line(parts[metric])}")


def verdicts(made: dict[str, Any]) -> list[str]:
    """The targets, each met or missed."""
    decode, prefill = made["decode"], made["prefill"]
    low, high = TARGETS["coverage"]
    figures = [
        ("decode MdAPE", decode["mdape"], decode["mdape"] <= TARGETS["decode MdAPE"]),
        ("decode MAPE", decode["mape"], decode["mape"] <= TARGETS["decode MAPE"]),
        ("decode coverage", decode["coverage"], low <= decode["coverage"] <= high),
        ("decode median width", decode["median_width"], decode["median_width"] <= TARGETS["width"]),
    ]
    if prefill["rows"]:
        figures += [
            ("prefill MdAPE", prefill["mdape"], prefill["mdape"] <= TARGETS["prefill MdAPE"]),
            ("prefill coverage", prefill["coverage"], low <= prefill["coverage"] <= high),
            ("prefill median width", prefill["median_width"], prefill["median_width"] <= TARGETS["width"]),
        ]
    return [f"{name}: {value:.3f} {'met' if met else 'MISSED'}" for name, value, met in figures]


def _line(part: dict[str, Any]) -> str:
    if not part["rows"]:
        return "no rows"
    return (
        f"rows {part['rows']:3d} chips {part['chips']:2d} MdAPE {part['mdape']:6.1%} MAPE {part['mape']:6.1%}"
        f" coverage {part['coverage']:4.0%} width x{part['median_width']:.2f}"
    )


def main() -> int:
    """Prints the reports; exit code 1 when a target on firm rows is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("measured", type=Path, nargs="?", default=os.environ.get("SEATRIAL_MEASURED"))
    parser.add_argument("--test", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.measured is None and options.test is None:
        parser.error("MEASURED, a folder with throughput.csv, or $SEATRIAL_MEASURED is needed")
    rows = read_throughput(Path(options.measured) / "throughput.csv") if options.measured else []
    if options.test is not None:
        test = read_throughput(options.test)
        how = "fitted on all of MEASURED" if rows else "by the runtimes that come with the package"
        reports = [report(f"{options.test.name}, {how}", scored(rows, test) if rows else shipped(test))]
    else:
        reports = [
            report("each chip left out", left_out(rows, lambda row: row.chip)),
            report("each vendor left out (no target)", left_out(rows, lambda row: row.vendor)),
        ]
    if options.json:
        print(json.dumps(reports, indent=2))
    else:
        for made in reports:
            print_report(made)
        print("\ntargets, firm rows:", "; ".join(verdicts(reports[0])))
    return 1 if any("MISSED" in line for line in verdicts(reports[0])) else 0


if __name__ == "__main__":
    sys.exit(main())
