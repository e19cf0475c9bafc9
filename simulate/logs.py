"""Fits a runtime on somebody's own log: llama-bench's CSV, JSON or JSON lines, or a trace of ours.

The device's runtime is where the fit starts and what it is drawn to, so a log of one model moves what it can
tell and leaves the rest. What was predicted before stands beside what was measured.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from seatrial.devices.device import Device
from seatrial.devices.runtime import Runtime
from seatrial.errors import UserError
from seatrial.export.architecture import Architecture
from seatrial.simulate.cost import ModelCost, model_cost
from seatrial.simulate.fit import Array, fit_one, predict, table_of
from seatrial.simulate.measured import KV_BYTES, Row, model_shape
from seatrial.simulate.predict import bandwidth_Bps, nominal_ops

# How far (in logarithms) a log may move each coefficient from the device's runtime: bytes, compute, layers;
# prefill.
DECODE_REACH, PREFILL_REACH = np.array([0.7, 1.0, 1.0]), np.array([1.5])
LLAMA_BENCH = ("model_size", "model_n_params", "n_prompt", "n_gen", "avg_ts")
SMALLEST = 1e-7


@attrs.frozen
class Compared:
    """One line of a log: seconds of its tokens measured, predicted before, and by the new fit."""

    row: Row
    predicted_s: float
    fitted_s: float


@attrs.frozen
class LogFit:
    """What a log says about a device: its lines, and the runtime's table with the fitted coefficients."""

    lines: tuple[Compared, ...]
    table: dict[str, Any]

    def error(self, *, fitted: bool) -> float:
        """Median relative error of tokens per second."""
        pairs = [(one.row.seconds, one.fitted_s if fitted else one.predicted_s) for one in self.lines]
        return float(np.median([abs(measured / told - 1) for measured, told in pairs]))


def read_log(path: Path, device: Device, runtime: Runtime, architecture: Architecture | None) -> list[Row]:
    """The measured lines of a log, on `device`.

    Raises:
        UserError: not a log that is known here, no usable line, or a trace without the model it is of.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as a log: {error}") from None
    records = _records(text, path)
    if records and records[0].get("event") == "trace":
        if architecture is None:
            raise UserError(f"{path}: a trace does not tell its model's shape; give the bundle with --model")
        rows = _trace_rows(records, device, runtime, architecture)
    else:
        missing = [name for name in LLAMA_BENCH if records and name not in records[0]]
        if not records or missing:
            raise UserError(
                f"{path}: neither llama-bench's CSV or JSON ({', '.join(missing or LLAMA_BENCH)}) nor a trace"
            )
        rows = [row for record in records for row in _bench_rows(record, device, runtime)]
    if not rows:
        raise UserError(f"{path}: no line with tokens per second above zero")
    return rows


def fit_log(rows: Sequence[Row], device: Device, runtime: Runtime, *, date: str, source: str) -> LogFit:
    """The runtime moved to a log's lines, and what it predicted before."""
    thetas = {"tg": _decode_theta(runtime), "pp": _prefill_theta(runtime)}
    fitted = {}
    for metric, reach in (("tg", DECODE_REACH), ("pp", PREFILL_REACH)):
        own = [row for row in rows if row.metric == metric]
        fitted[metric] = (
            fit_one(metric, table_of(own, {(): 1.0}), thetas[metric], reach) if own else thetas[metric]
        )
    lines = tuple(
        Compared(row, _seconds(row, thetas[row.metric]), _seconds(row, fitted[row.metric])) for row in rows
    )
    return LogFit(lines, _table(runtime, device, fitted, lines, date, source))


def _records(text: str, path: Path) -> list[dict[str, Any]]:
    """Records of a JSON list, JSON lines, or CSV with a header."""
    stripped = text.lstrip()
    try:
        if stripped.startswith("["):
            found = json.loads(stripped)
        elif stripped.startswith("{"):
            found = [json.loads(line) for line in stripped.splitlines() if line.strip()]
        else:
            found = list(csv.DictReader(io.StringIO(text)))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: broken JSON in line {error.lineno}") from None
    return [record for record in found if isinstance(record, dict)]


def _bench_rows(record: Mapping[str, Any], device: Device, runtime: Runtime) -> list[Row]:
    """Prompt or generation of one llama-bench line; lines with both are left out."""
    prompt, generated, depth = (_number(record.get(name)) for name in ("n_prompt", "n_gen", "n_depth"))
    speed, params, size = (_number(record.get(name)) for name in ("avg_ts", "model_n_params", "model_size"))
    if not speed > 0 or not size > 0 or not params > 0 or (prompt > 0) == (generated > 0):
        return []
    shape = model_shape(str(record.get("model_type") or record.get("model_filename") or ""), params)
    depth = depth if depth > 0 else 0.0
    tokens = int(prompt) if prompt > 0 else 1
    context = depth + (prompt / 2 if prompt > 0 else generated / 2)
    return [
        _row(
            device,
            runtime,
            metric="pp" if prompt > 0 else "tg",
            tokens=tokens,
            seconds=tokens / speed,
            params=params,
            layers=shape.layers,
            weight_bytes=size,
            kv_bytes=2.0 * shape.layers * shape.kv_width * KV_BYTES * context,
            attention_flops=4.0 * shape.layers * shape.hidden * context * tokens,
        )
    ]


def _trace_rows(
    records: Sequence[Mapping[str, Any]], device: Device, runtime: Runtime, architecture: Architecture
) -> list[Row]:
    """Chunks and tokens of a trace as its host took them; the context grows with what was read."""
    weights = "stored" if architecture.stored else runtime.weights
    cost, position = model_cost(architecture, weights=weights, kv=runtime.kv), 0
    rows = []
    for record in records:
        seconds = _number(record.get("host_s"))
        if record.get("event") == "prefill" and seconds > 0:
            tokens = int(_number(record.get("tokens")))
            rows.append(_cost_row(device, runtime, cost, architecture, "pp", tokens, position, seconds))
            position += tokens
        elif record.get("event") == "token" and record.get("index") and seconds > 0:
            rows.append(_cost_row(device, runtime, cost, architecture, "tg", 1, position, seconds))
            position += 1
    return rows


def _cost_row(
    device: Device,
    runtime: Runtime,
    cost: ModelCost,
    architecture: Architecture,
    metric: str,
    tokens: int,
    past: int,
    seconds: float,
) -> Row:
    return _row(
        device,
        runtime,
        metric=metric,
        tokens=tokens,
        seconds=seconds,
        params=float(architecture.active_params),
        layers=cost.layers,
        weight_bytes=cost.weight_bytes_per_token,
        kv_bytes=cost.kv_read_bytes(past),
        attention_flops=cost.attention_flops(tokens, past),
    )


def _row(device: Device, runtime: Runtime, **figures: Any) -> Row:
    return Row(
        device=device.id,
        chip=device.chip,
        vendor=device.vendor.lower(),
        device_class=device.device_class,
        engine=runtime.id,
        processor=runtime.processor,
        firm=True,
        bandwidth_Bps=bandwidth_Bps(device, runtime),
        ops=nominal_ops(device, runtime),
        **figures,
    )


def _decode_theta(runtime: Runtime) -> Array:
    decode = runtime.decode
    return np.log(np.maximum([decode.weight_factor, decode.compute_factor, decode.layer_s], SMALLEST))


def _prefill_theta(runtime: Runtime) -> Array:
    return np.log([runtime.prefill.efficiency])


def _seconds(row: Row, theta: Array) -> float:
    features = table_of([row], {(): 1.0}).features
    return float(np.exp(predict(row.metric, theta, features)[0]))


def _table(
    runtime: Runtime,
    device: Device,
    fitted: Mapping[str, Array],
    lines: Sequence[Compared],
    date: str,
    source: str,
) -> dict[str, Any]:
    """The runtime's table with fitted coefficients; the interval is the fit's own error, 5 % at the least."""
    a, c, b = (float(value) for value in np.exp(fitted["tg"]))
    efficiency = float(np.exp(fitted["pp"][0]))
    decode, prefill, memory = (
        attrs.asdict(part) for part in (runtime.decode, runtime.prefill, runtime.memory)
    )
    halves = {
        metric: _half(lines, metric, spread)
        for metric, spread in (("tg", runtime.decode), ("pp", runtime.prefill))
    }
    for part, metric in ((decode, "tg"), (prefill, "pp")):
        part.pop("spread")
        part |= {"low": math.exp(-halves[metric]), "high": math.exp(halves[metric])}
    share = decode["kv_factor"] / decode["weight_factor"]
    decode |= {"weight_factor": a, "kv_factor": a * share, "compute_factor": c, "layer_s": b}
    share = prefill["attention_efficiency"] / prefill["efficiency"]
    prefill |= {"efficiency": efficiency, "attention_efficiency": efficiency * share}
    fallback = prefill.pop("fallback_spread")
    prefill |= {"fallback_low": fallback["low"], "fallback_high": fallback["high"]}
    memory["runtime"] = f"{memory.pop('runtime_bytes')}B"
    rows = {metric: sum(line.row.metric == metric for line in lines) for metric in ("tg", "pp")}
    return {
        "name": f"{runtime.name}, fitted on {device.name}",
        "processor": runtime.processor,
        "kind": "fitted",
        "weights": runtime.weights,
        "kv": runtime.kv,
        "decode": decode,
        "prefill": prefill,
        "memory": memory,
        "fit": {
            "date": date,
            "data": source,
            "decode_rows": rows["tg"],
            "decode_chips": int(rows["tg"] > 0),
            "prefill_rows": rows["pp"],
            "prefill_chips": int(rows["pp"] > 0),
            "note": f"one device's own log; starts from {runtime.id}",
        },
    }


def _half(lines: Sequence[Compared], metric: str, part: Any) -> float:
    errors = [abs(math.log(line.row.seconds / line.fitted_s)) for line in lines if line.row.metric == metric]
    return max(0.05, float(np.quantile(errors, 0.9))) if errors else math.log(part.spread.high)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
