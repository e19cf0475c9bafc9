"""Turns a fit into runtime files: one per engine and vendor, one per kind of processor for engines nobody
measured.

Besides the fit it takes two small tables of measurements: speed by context depth (what the KV cache costs
against the weights, and attention against matrices) and peak memory over weights. What no table covers is
said in each file's note. Reading these files is `seatrial.devices.runtime`'s matter.
"""

from __future__ import annotations

import csv
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from seatrial.errors import UserError
from seatrial.simulate.fit import UNKNOWN_OPS, Fitted, Path_, path_of
from seatrial.simulate.measured import KV_BYTES, Row, model_shape

# Reading benchmarks reach about this share of nominal bandwidth (device profiles that carry both figures:
# 0.67-1.0).
READ_SHARE = 0.83
PROCESSOR_NAMES = {"cpu": "CPU", "gpu": "GPU", "npu": "NPU"}
ENGINE_NAMES = {
    "executorch-xnnpack": "ExecuTorch XNNPACK",
    "ik-llama-cpp-cpu": "ik_llama.cpp on the CPU",
    "llama-cpp-cpu": "llama.cpp on the CPU",
    "llama-cpp-cuda": "llama.cpp CUDA",
    "llama-cpp-hexagon": "llama.cpp Hexagon",
    "llama-cpp-hip": "llama.cpp HIP",
    "llama-cpp-metal": "llama.cpp Metal",
    "llama-cpp-opencl": "llama.cpp OpenCL",
    "llama-cpp-vulkan": "llama.cpp Vulkan",
    "mnn-cpu": "MNN on the CPU",
    "openvino-gpu": "OpenVINO GPU",
    "qualcomm-ai-engine": "Qualcomm AI Engine",
    "rkllm": "RKLLM",
    "t-mac-cpu": "T-MAC on the CPU",
}
# Engine in the table of context depths -> kind of processor whose KV reads it shows.
DEPTH_PROCESSORS = {"CPU": "cpu", "iGPU": "gpu", "NPU": "npu", "llama.cpp": "gpu"}


@attrs.frozen
class DepthRatios:
    """Time per byte of KV over time per byte of weights, by kind of processor; attention against matrix
    efficiency.
    """

    kv: dict[str, float]
    kv_without_flash: float
    attention: float


@attrs.frozen
class PeakMemory:
    """Peak = factor x weights + fixed bytes, with the median error of the fit and its rows."""

    factor: float
    fixed_bytes: float
    mdape: float
    rows: int


def depth_ratios(path: Path) -> DepthRatios:
    """Ratios from speeds at several context depths (medians over engines and models)."""
    groups: dict[tuple[str, str, str], list[tuple[float, float]]] = defaultdict(list)
    for record in _records(path):
        key = (record["backend"], record["model"], record["metric"])
        groups[key].append((float(record["depth_or_N"]), float(record["tok_per_s"])))
    kv: dict[str, list[float]] = defaultdict(list)
    without, attention = [], []
    for (backend, model, metric), points in groups.items():
        if metric == "pp_N_from_empty":
            if " fa" in backend:
                attention.append(_attention_ratio(model, points))
        elif "no-fa" in backend:
            without.append(_kv_ratio(model, metric, points))
        else:
            name = next(name for name in DEPTH_PROCESSORS if backend.startswith(name))
            kv[DEPTH_PROCESSORS[name]].append(_kv_ratio(model, metric, points))
    flash = {processor: float(np.median(values)) for processor, values in kv.items()}
    return DepthRatios(flash, float(np.median(without)), float(np.median(attention)))


def peak_memory(path: Path) -> dict[str, PeakMemory]:
    """Peak memory by engine: a straight line over the weights, least absolute error."""
    by_engine: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for record in _records(path):
        engine = {"OpenVINO GPU": "openvino-gpu", "RKLLM": "rkllm"}.get(record["runtime"])
        if engine is not None:
            pair = (float(record["weights_MiB"]) * 2**20, float(record["peak_MiB"]) * 2**20)
            by_engine[engine].append(pair)
    return {engine: _peak_line(pairs) for engine, pairs in by_engine.items()}


def runtime_tables(
    rows: Sequence[Row], fitted: Fitted, depth: DepthRatios, peaks: Mapping[str, PeakMemory], *, date: str
) -> dict[str, dict[str, Any]]:
    """The content of every runtime file, by its name."""
    tables = {}
    for path in sorted({path_of(row) for row in rows}):
        own = [row for row in rows if path_of(row) == path]
        identifier = runtime_id(path)
        tables[identifier] = _engine_table(path, own, fitted, depth, peaks.get(path[1]), date)
    for processor in ("cpu", "gpu", "npu"):
        tables[f"generic-{processor}"] = _class_table(processor, rows, fitted, depth, date)
    return tables


def runtime_id(path: Path_) -> str:
    """`llama-cpp-metal`, `llama-cpp-vulkan-amd`: the vendor only where one engine runs on several."""
    engine, vendor = path[1], path[-1]
    if vendor.endswith("-server"):
        return f"{engine}-server"
    return f"{engine}-{vendor}" if engine == "llama-cpp-vulkan" else engine


def _engine_table(
    path: Path_, own: list[Row], fitted: Fitted, depth: DepthRatios, peak: PeakMemory | None, date: str
) -> dict[str, Any]:
    processor, engine, vendor = path[0], path[1], path[-1]
    chips = len({row.chip for row in own})
    few = chips < 3 or not any(row.firm for row in own)
    note = (
        f"only {chips} chip(s) measured, or soft figures: the interval leans on its kind of processor"
        if few
        else ""
    )
    name = ENGINE_NAMES.get(engine, engine)
    if runtime_id(path) != engine:
        name = f"{name} ({vendor})"
    return _table(
        name=name,
        kind="fitted",
        processor=processor,
        engine=engine,
        decode=_level(fitted.decode.levels, path),
        prefill=_level(fitted.prefill.levels, path),
        halves=(fitted.half_width("tg", path), fitted.half_width("pp", path)),
        ops_per_Bps=_ratio(fitted, processor, vendor),
        depth=depth,
        peak=peak,
        fit=_fit_entry(own, fitted, date, note),
    )


def _class_table(
    processor: str, rows: Sequence[Row], fitted: Fitted, depth: DepthRatios, date: str
) -> dict[str, Any]:
    """An engine nobody measured: the processor kind's middle, the error on engines left out."""
    own = [row for row in rows if row.processor == processor]
    note = "a class of engines, not one: no engine like it was measured here"
    return _table(
        name=f"Any engine on a {PROCESSOR_NAMES[processor]}",
        kind="class",
        processor=processor,
        engine="generic",
        decode=_level(fitted.decode.levels, (processor,)),
        prefill=_level(fitted.prefill.levels, (processor,)),
        halves=(fitted.unseen_half_width("tg", (processor,)), fitted.unseen_half_width("pp", (processor,))),
        ops_per_Bps=_ratio(fitted, processor, ""),
        depth=depth,
        peak=None,
        fit=_fit_entry(own, fitted, date, note),
    )


def _table(
    *,
    name: str,
    kind: str,
    processor: str,
    engine: str,
    decode: Sequence[float],
    prefill: Sequence[float],
    halves: tuple[float, float],
    ops_per_Bps: float,
    depth: DepthRatios,
    peak: PeakMemory | None,
    fit: dict[str, Any],
) -> dict[str, Any]:
    a, c, b = (math.exp(value) for value in decode)
    efficiency = math.exp(prefill[0])
    llama = "llama" in engine
    unknown = math.hypot(halves[1], UNKNOWN_OPS)
    return {
        "name": name,
        "processor": processor,
        "kind": kind,
        "weights": "q4_k" if llama else "int4",
        "kv": "fp16",
        "decode": {
            "weight_factor": a,
            "kv_factor": a * depth.kv[processor],
            "compute_factor": c,
            "layer_s": b,
            "step_s": 0.0,
            "low": math.exp(-halves[0]),
            "high": math.exp(halves[0]),
            "measured_share": 1.0 / max(1.0, a * READ_SHARE),
        },
        "prefill": {
            "efficiency": efficiency,
            "attention_efficiency": efficiency * min(1.0, depth.attention),
            "chunk_tokens": 512,
            "chunk_s": 0.0,
            "low": math.exp(-halves[1]),
            "high": math.exp(halves[1]),
            "ops_per_Bps": ops_per_Bps,
            "fallback_low": math.exp(-unknown),
            "fallback_high": math.exp(unknown),
        },
        "memory": {
            "runtime": _size(
                peak.fixed_bytes if peak else {"cpu": 150e6, "gpu": 400e6, "npu": 300e6}[processor]
            ),
            "weight_peak_factor": peak.factor if peak else 1.0,
            "activation_factor": 1.0,
            "kv_layout": "windowed" if llama else "full",
            "kv_reserve": "used",
            "note": f"fitted on {peak.rows} measured peaks, median error {peak.mdape:.2f}"
            if peak
            else "assumed",
        },
        "fit": fit,
    }


def _fit_entry(own: list[Row], fitted: Fitted, date: str, note: str) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "date": date,
        "data": "published measurements, chips and sources in the documentation",
    }
    for label, metric in (("decode", "tg"), ("prefill", "pp")):
        rows = [row for row in own if row.metric == metric]
        entry[f"{label}_rows"] = len(rows)
        entry[f"{label}_chips"] = len({row.chip for row in rows})
        if rows:
            errors = [abs(fitted.seconds(row) / row.seconds - 1) for row in rows]
            entry[f"{label}_mdape"] = float(np.median(errors))
    if note:
        entry["note"] = note
    return entry


def _level(levels: Mapping[Path_, Any], path: Path_) -> Any:
    return next(levels[path[:depth]] for depth in range(len(path), -1, -1) if path[:depth] in levels)


def _ratio(fitted: Fitted, processor: str, vendor: str) -> float:
    return float(_level(fitted.ops_per_Bps, (processor, vendor.removesuffix("-server"))))


def _kv_ratio(model: str, metric: str, points: list[tuple[float, float]]) -> float:
    """Slope of a step's time over KV bytes, against its time at no context over the weight bytes."""
    shape = model_shape(model, _params_of(model))
    per_token = 2.0 * shape.layers * shape.kv_width * KV_BYTES
    # "N from empty" averages over the contexts 0 ... N.
    share = 0.5 if metric == "tg_N_from_empty" else 1.0
    contexts = np.array([share * depth for depth, _ in points])
    seconds = np.array([1.0 / speed for _, speed in points])
    slope, start = _robust_line(contexts * per_token, seconds)
    return slope / (start / (_params_of(model) * 4.5 / 8))


def _attention_ratio(model: str, points: list[tuple[float, float]]) -> float:
    """Efficiency of attention over that of the matrices, from the time per prompt token."""
    shape, params = model_shape(model, _params_of(model)), _params_of(model)
    long = [(tokens, speed) for tokens, speed in points if tokens >= 512]
    flops = np.array([2.0 * shape.layers * shape.hidden * tokens for tokens, _ in long])
    slope, start = _robust_line(flops, np.array([1.0 / speed for _, speed in long]))
    return (start / (2 * params)) / slope


def _robust_line(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Theil-Sen slope and intercept."""
    slopes = [
        (y[j] - y[i]) / (x[j] - x[i]) for i in range(len(x)) for j in range(i + 1, len(x)) if x[i] != x[j]
    ]
    slope = float(np.median(slopes))
    return slope, float(np.median(y - slope * x))


def _params_of(model: str) -> float:
    """Parameters from a name such as `LLaMA 3.1 8B`."""
    found = re.search(r"([0-9.]+)\s*B\b", model)
    if found is None:
        raise UserError(f"{model!r}: no number of parameters in the name")
    return float(found[1]) * 1e9


def _peak_line(pairs: list[tuple[float, float]]) -> PeakMemory:
    weights, peaks = (np.array(column) for column in zip(*pairs, strict=True))
    factors = np.linspace(1.0, 1.6, 121)
    best = min(
        factors, key=lambda f: float(np.sum(np.abs(peaks - f * weights - np.median(peaks - f * weights))))
    )
    fixed = max(0.0, float(np.median(peaks - best * weights)))
    errors = np.abs((best * weights + fixed) / peaks - 1)
    return PeakMemory(float(best), fixed, float(np.median(errors)), len(pairs))


def _records(path: Path) -> list[dict[str, str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error}") from None


def _size(amount: float) -> str:
    return f"{round(amount / 1e6)}MB"
