"""Many plans at once: the formulas of `predict` over arrays of prompts and summaries, for sweeps and
searches.

One model on one device with one runtime; lengths and bandwidths are arrays that broadcast. The middle values
equal those of `plan`, which the tests hold it to. It makes no notes and searches no fallbacks.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from seatrial.devices.device import Device
from seatrial.devices.runtime import Runtime
from seatrial.errors import UserError
from seatrial.simulate.cost import FP32_BYTES, AttentionGroup, ModelCost
from seatrial.simulate.predict import bandwidth_Bps, effective_ops, nominal_ops, prefill_spread

Array = NDArray[np.float64]


@attrs.frozen
class Plans:
    """Figures of many jobs: arrays of one shape; seconds and bytes as named."""

    prefill_s: Array
    decode_s_per_token: Array
    total_s: Array
    total_low_s: Array
    total_high_s: Array
    kv_bytes: Array
    peak_bytes: Array
    fits: NDArray[np.bool_]


def plan_many(
    cost: ModelCost,
    device: Device,
    runtime: Runtime,
    *,
    prompt_tokens: ArrayLike,
    max_tokens: ArrayLike,
    bandwidth: ArrayLike | None = None,
    available_bytes: int | None = None,
) -> Plans:
    """Plans of all jobs. `bandwidth` (bytes per second) replaces the device's.

    Raises:
        UserError: a length that is not above zero.
    """
    runtime = runtime.for_formats(cost.weights, cost.kv.name)
    prompts, tokens, rates = np.broadcast_arrays(
        np.asarray(prompt_tokens, np.float64),
        np.asarray(max_tokens, np.float64),
        np.asarray(bandwidth_Bps(device, runtime) if bandwidth is None else bandwidth, np.float64),
    )
    if prompts.size and (prompts.min() <= 0 or tokens.min() <= 0 or rates.min() <= 0):
        raise UserError("prompts, summaries and bandwidths must be above zero")
    prefill_s = _prefill_s(cost, device, runtime, prompts, rates)
    decode_s = _decode_s(cost, device, runtime, prompts, tokens, rates)
    kv_bytes = _kv_bytes(cost, runtime, prompts + tokens)
    passing = kv_bytes + _activation_bytes(cost, runtime, prompts, tokens)
    opening = cost.weight_bytes * runtime.memory.opening_factor + runtime.memory.runtime_bytes
    peak = np.maximum(_fixed_bytes(cost, runtime) + passing, opening)
    spread, decode = prefill_spread(device, runtime), runtime.decode.spread
    available = device.available_bytes() if available_bytes is None else available_bytes
    return Plans(
        prefill_s=prefill_s,
        decode_s_per_token=decode_s / tokens,
        total_s=prefill_s + decode_s,
        total_low_s=prefill_s * spread.low + decode_s * decode.low,
        total_high_s=prefill_s * spread.high + decode_s * decode.high,
        kv_bytes=kv_bytes,
        peak_bytes=peak,
        fits=peak <= available,
    )


def _prefill_s(cost: ModelCost, device: Device, runtime: Runtime, prompts: Array, rates: Array) -> Array:
    prefill, ops = runtime.prefill, effective_ops(device, runtime)
    attention = sum(
        (g.layers * g.flops_per_context_token * _seen_by(prompts, g.window) for g in cost.groups),
        start=np.zeros_like(prompts),
    )
    matrices = prompts * cost.matmul_flops_per_token + cost.head_flops_per_token
    compute = (matrices + attention * prefill.efficiency / prefill.attention_efficiency) / ops
    chunks = np.ceil(prompts / prefill.chunk_tokens)
    reading = chunks * runtime.decode.weight_factor * cost.weight_bytes_per_prefill_pass / rates
    return np.maximum(compute, reading) + chunks * prefill.chunk_s


def _decode_s(
    cost: ModelCost, device: Device, runtime: Runtime, prompts: Array, tokens: Array, rates: Array
) -> Array:
    decode = runtime.decode
    weights = tokens * decode.weight_factor * cost.weight_bytes_per_token
    kv = np.zeros_like(prompts)
    flops = tokens * (cost.matmul_flops_per_token + cost.head_flops_per_token)
    for group in cost.groups:
        contexts = _summed(prompts, tokens, group.window)
        kv = kv + group.layers * _vector_bytes(cost, group) * contexts
        seen = contexts + tokens if group.window is None else _summed(prompts + 1, tokens, group.window)
        flops = flops + group.layers * group.flops_per_context_token * seen
    compute = decode.compute_factor * flops / nominal_ops(device, runtime) if decode.compute_factor else 0.0
    overhead = tokens * (decode.layer_s * cost.layers + decode.step_s)
    return np.asarray((weights + decode.kv_factor * kv) / rates + compute + overhead, np.float64)


def _summed(first: Array, count: Array, window: int | None) -> Array:
    """Sum of min(context, window) over the contexts first, first + 1, ..., first + count - 1."""
    whole = count * first + count * (count - 1) / 2
    if window is None:
        return whole
    # How many of the contexts lie below the window, and are counted as they are.
    below = np.clip(window - first, 0, count)
    return below * first + below * (below - 1) / 2 + (count - below) * window


def _seen_by(prompts: Array, window: int | None) -> Array:
    """Sum of the contexts that the tokens of a prompt see, themselves included."""
    return _summed(np.ones_like(prompts), prompts, window)


def _vector_bytes(cost: ModelCost, group: AttentionGroup) -> float:
    return group.elements * cost.kv.bytes_per_scalar + group.vectors * cost.kv.scale_bytes_per_vector


def _kv_bytes(cost: ModelCost, runtime: Runtime, held: Array) -> Array:
    windowed = runtime.memory.kv_layout == "windowed"
    total = np.zeros_like(held)
    for group in cost.groups:
        tokens = np.minimum(held, group.window) if windowed and group.window is not None else held
        total = total + group.stored_layers * _vector_bytes(cost, group) * tokens
    return total * runtime.memory.kv_copies


def _fixed_bytes(cost: ModelCost, runtime: Runtime) -> float:
    return cost.weight_bytes * runtime.memory.weight_peak_factor + runtime.memory.runtime_bytes


def _activation_bytes(cost: ModelCost, runtime: Runtime, prompts: Array, tokens: Array) -> Array:
    chunk = np.minimum(prompts, runtime.prefill.chunk_tokens)
    live = FP32_BYTES * (chunk * (3 * cost.hidden + 2 * cost.ffn_width) + cost.vocabulary)
    scores = (
        4.0 * chunk * (prompts + tokens) * cost.query_heads if runtime.memory.scores_materialised else 0.0
    )
    past = runtime.memory.prompt_bytes_per_token * (prompts - chunk)
    return runtime.memory.activation_factor * live + scores + past
