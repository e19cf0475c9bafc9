"""Steps a bundle on this machine at two contexts and makes a runtime of what came out.

The bundle runs in a process of its own (`stepping`), so that its memory is seen apart. A straight line in
the context is all that is fitted per pair of formats; what several pairs share (the time that no byte
explains) comes from all of them.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from seatrial.devices.device import Device
from seatrial.errors import UserError
from seatrial.export.architecture import read_architecture
from seatrial.simulate.cost import ModelCost, model_cost
from seatrial.simulate.formats import KV
from seatrial.simulate.stepping import CONTEXTS, PROMPT, SHORT_PROMPT, STEPS

# Above this, or where reading memory was so much slower beside it, other programs were busy.
NOISY, SLOWED = 1.3, 0.8
# The line is straight to a few per cent on contexts in between, and a machine does not repeat itself better.
SPREAD = 1.12
MEMORY_FIELDS = (
    "imported_bytes",
    "opening_bytes",
    "filled_bytes",
    "cache_bytes",
    "short_peak_bytes",
    "peak_bytes",
    "far_peak_bytes",
)


@attrs.frozen
class Calibration:
    """One bundle on this machine: median seconds by context and of prompts, private bytes.

    Memory: after the imports, the peak while the bundle is opened, with the cache filled (`cache_bytes` of it
    are the buffers'), then peaks of a short prompt and of a whole one without and with a long past.
    """

    weights: str
    kv: str
    step_s: dict[int, float]
    prompt_s: dict[int, float]
    noise: float
    imported_bytes: int
    opening_bytes: int
    filled_bytes: int
    cache_bytes: int
    short_peak_bytes: int
    peak_bytes: int
    far_peak_bytes: int
    cost: ModelCost

    @property
    def slope_s(self) -> float:
        """Seconds that one more token of context adds to a step."""
        low, high = min(self.step_s), max(self.step_s)
        return (self.step_s[high] - self.step_s[low]) / (high - low)

    @property
    def start_s(self) -> float:
        """Seconds of a step without any context."""
        return self.step_s[min(self.step_s)] - self.slope_s * min(self.step_s)


def calibrate(folder: Path, *, contexts: Sequence[int] = CONTEXTS, timeout_s: float = 300.0) -> Calibration:
    """Steps the bundle in `folder` in a child process.

    Raises:
        UserError: no bundle there, too short for the contexts, or the child failed (its last line is told).
    """
    from seatrial.export.bundle import open_bundle
    from seatrial.export.prepacked import prepare_mapped
    from seatrial.export.session_graph import read_decoder

    bundle = open_bundle(folder, check_hashes=False)
    architecture = read_architecture(bundle.folder)
    usable = [context for context in contexts if context + STEPS < (architecture.max_positions or 1 << 30)]
    if len(usable) < 2:
        raise UserError(f"{folder}: two contexts below {architecture.max_positions} positions are needed")
    if bundle.kv.dtype == "int8":
        prepare_mapped(
            bundle
        )  # made once; a run finds it made, and so must the child whose memory is watched
    command = [sys.executable, "-m", "seatrial.simulate.stepping", str(bundle.folder), *map(str, usable)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise UserError(f"{folder}: calibration failed: {lines[-1]}")
    measured = json.loads(done.stdout)
    kv = {"float32": "fp32", "float16": "fp16"}.get(bundle.kv.dtype, bundle.kv.dtype)
    weights = str(bundle.info.get("weights") or "fp32")
    cost = model_cost(architecture, weights="stored", kv=kv if kv in KV else "fp32")
    read_bytes = float(read_decoder(bundle.model_path).weight_bytes_per_token)
    cost = attrs.evolve(
        cost,
        weight_bytes=float(bundle.weight_bytes),
        weight_bytes_per_token=read_bytes,
        weight_bytes_per_prefill_pass=read_bytes,
    )
    return Calibration(
        weights=weights,
        kv=kv,
        step_s={int(context): seconds for context, seconds in measured["step_s"].items()},
        prompt_s={int(past): seconds for past, seconds in measured["prompt_s"].items()},
        noise=measured["noise"],
        **{field: measured[field] for field in MEMORY_FIELDS},
        cost=cost,
    )


def quickest(one: Calibration, other: Calibration) -> Calibration:
    """The shorter time of each kind from two visits to one bundle; the memory of the first."""
    return attrs.evolve(
        one,
        step_s={context: min(seconds, other.step_s[context]) for context, seconds in one.step_s.items()},
        prompt_s={past: min(seconds, other.prompt_s[past]) for past, seconds in one.prompt_s.items()},
        noise=min(one.noise, other.noise),
    )


def measured_runtime(
    device: Device, found: Sequence[Calibration], *, date: str, ops: float
) -> dict[str, Any]:
    """The table of a runtime from calibrations on `device`, whose measured bandwidth and compute its factors
    divide.
    """
    rate = device.bandwidth_Bps
    factor, step_s = shared_terms([(one.cost.weight_bytes_per_token / rate, one.start_s) for one in found])
    runtime_bytes = round(statistics.median(one.imported_bytes for one in found))
    pairs = {f"{one.weights}/{one.kv}": _pair(one, rate, step_s, ops, runtime_bytes) for one in found}
    first = next(iter(pairs.values()))
    return {
        "name": "this project's engine (onnxruntime), measured",
        "processor": "cpu",
        "kind": "measured",
        "weights": found[0].weights,
        "kv": found[0].kv,
        "decode": {
            "weight_factor": factor,
            "kv_factor": statistics.median(pair["kv_factor"] for pair in pairs.values()),
            "compute_factor": 0.0,
            "layer_s": 0.0,
            "step_s": step_s,
            "low": 1 / SPREAD,
            "high": SPREAD,
            "measured_share": 1.0,
        },
        "prefill": {
            "efficiency": first["efficiency"],
            "attention_efficiency": first["attention_efficiency"],
            "chunk_tokens": PROMPT,
            "chunk_s": 0.0,
            "low": 1 / SPREAD,
            "high": SPREAD,
            "ops_per_Bps": ops / rate,
            "fallback_low": 1 / SPREAD,
            "fallback_high": SPREAD,
        },
        "memory": {
            "runtime": f"{runtime_bytes}B",
            **{
                name: statistics.median(pair[name] for pair in pairs.values())
                for name in (
                    "weight_peak_factor",
                    "opening_factor",
                    "activation_factor",
                    "prompt_bytes_per_token",
                )
            },
            "kv_layout": "full",
            "kv_reserve": "used",
        },
        "fit": {
            "date": date,
            "data": "stepped on this machine",
            "decode_rows": sum(len(one.step_s) for one in found),
            "decode_chips": 1,
            "prefill_rows": sum(len(one.prompt_s) for one in found),
            "prefill_chips": 1,
            "note": f"slowest tenth of the steps over the median: {max(one.noise for one in found):.2f}",
        },
        "formats": pairs,
    }


def shared_terms(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Factor and constant of `seconds = factor x (bytes / rate) + constant`, neither negative.

    With one point, or points that would make the constant negative, everything is the bytes'.
    """
    x, y = [point[0] for point in points], [point[1] for point in points]
    if len(points) > 1 and max(x) > min(x):
        slope, constant = statistics.linear_regression(x, y)
        if slope > 0 and constant > 0 and constant < min(y):
            return slope, constant
    return sum(y) / sum(x), 0.0


def _pair(one: Calibration, rate: float, step_s: float, ops: float, runtime_bytes: int) -> dict[str, float]:
    cost = one.cost
    kv_per_token = cost.kv_read_bytes(1.0) / rate
    efficiency, attention = _prompt_efficiencies(one, ops)
    return {
        "weight_factor": max(1e-6, (one.start_s - step_s) / (cost.weight_bytes_per_token / rate)),
        "kv_factor": max(1e-6, one.slope_s / kv_per_token),
        "efficiency": efficiency,
        "attention_efficiency": attention,
        **_memory_factors(one, runtime_bytes),
    }


def _memory_factors(one: Calibration, runtime_bytes: int) -> dict[str, float]:
    """What a prompt adds per token of it and of its past, over the formula's; the rest is the weights'."""
    cost = one.cost
    grown = cost.activation_bytes(PROMPT) - cost.activation_bytes(SHORT_PROMPT)
    activation = max(0.1, (one.peak_bytes - one.short_peak_bytes) / grown)
    held = one.peak_bytes - runtime_bytes - one.cache_bytes - activation * cost.activation_bytes(PROMPT)
    return {
        "weight_peak_factor": max(1e-6, held / cost.weight_bytes),
        "opening_factor": max(0.0, (one.opening_bytes - runtime_bytes) / cost.weight_bytes),
        "activation_factor": activation,
        "prompt_bytes_per_token": max(0.0, (one.far_peak_bytes - one.peak_bytes) / max(one.prompt_s)),
    }


def _prompt_efficiencies(one: Calibration, ops: float) -> tuple[float, float]:
    """Shares of `ops` that matrices and attention reach, from a prompt at an empty and at a long past."""
    cost, (near, far) = one.cost, (min(one.prompt_s), max(one.prompt_s))
    more_flops = cost.attention_flops(PROMPT, far) - cost.attention_flops(PROMPT, near)
    more_s = one.prompt_s[far] - one.prompt_s[near]
    attention = more_flops / (more_s * ops) if more_s > 0 and more_flops > 0 else 1.0
    own = cost.attention_flops(PROMPT, near)
    left = one.prompt_s[near] - own / (attention * ops)
    matrices = (cost.prefill_flops(PROMPT) - cost.attention_flops(PROMPT)) / ops
    return matrices / max(left, 0.1 * one.prompt_s[near]), attention


def as_mapping(one: Calibration) -> Mapping[str, Any]:
    """The measured figures for a report."""
    return {
        "weights": one.weights,
        "kv": one.kv,
        "step_ms": {context: seconds * 1e3 for context, seconds in one.step_s.items()},
        "prompt_s": one.prompt_s,
        "peak_private_bytes": one.peak_bytes,
        "noise": one.noise,
    }
