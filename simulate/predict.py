"""Seconds and bytes of a model on a machine with an engine: the formulas, without any job or search around
them.

Pure functions of (cost, device, runtime). The run's virtual clock and the plan use the same ones. Middle
values only, except where an `Interval` is returned.
"""

from __future__ import annotations

import itertools
import math

import attrs

from seatrial.devices.device import Device
from seatrial.devices.runtime import Interval, Runtime, Spread
from seatrial.simulate.cost import ModelCost

# Reading a file's pages again for every token, against the drive's sequential rate: quotients of measured
# seconds per token over (file bytes / sequential rate), five machines (Pi 5 with three drives settings, two
# laptops).
CLIFF = Spread(0.89, 6.8)


@attrs.frozen
class Memory:
    """Bytes that a job needs at its peak, by what they are for."""

    weights_bytes: float
    kv_bytes: float
    activation_bytes: float
    runtime_bytes: float

    @property
    def peak_bytes(self) -> float:
        """Their sum."""
        return self.weights_bytes + self.kv_bytes + self.activation_bytes + self.runtime_bytes


def bandwidth_Bps(device: Device, runtime: Runtime) -> float:
    """The bandwidth that the runtime's factors divide: nominal, or the measured one over decode's share of
    it.
    """
    measured = device.measured_bandwidth_Bps or math.nan
    if runtime.kind == "measured":
        return device.bandwidth_Bps
    if device.nominal_bandwidth_Bps is not None:
        return device.nominal_bandwidth_Bps
    return measured * runtime.decode.weight_factor * runtime.decode.measured_share


def decode_seconds(cost: ModelCost, device: Device, runtime: Runtime, context: float) -> float:
    """Seconds of one decoded token after `context` tokens."""
    return sum(decode_terms(cost, device, runtime, context).values())


def decode_terms(cost: ModelCost, device: Device, runtime: Runtime, context: float) -> dict[str, float]:
    """Seconds of one decoded token by term: bandwidth (weights and KV), compute, overhead."""
    decode, rate = runtime.decode, bandwidth_Bps(device, runtime)
    moved = decode.weight_factor * cost.weight_bytes_per_token + decode.kv_factor * cost.kv_read_bytes(
        context
    )
    flops = decode.compute_factor * cost.decode_flops(context)
    return {
        "bandwidth": moved / rate,
        "compute": flops / nominal_ops(device, runtime) if flops else 0.0,
        "overhead": decode.layer_s * cost.layers + decode.step_s,
    }


def prefill_seconds(
    cost: ModelCost, device: Device, runtime: Runtime, tokens: float, past: float = 0.0
) -> float:
    """Seconds of a prompt of `tokens` after `past` cached ones."""
    terms = prefill_terms(cost, device, runtime, tokens, past)
    return max(terms["compute"], terms["bandwidth"]) + terms["overhead"]


def prefill_terms(
    cost: ModelCost, device: Device, runtime: Runtime, tokens: float, past: float = 0.0
) -> dict[str, float]:
    """Seconds of a prompt by term: compute, the chunks' passes over the weights, overhead of the chunks."""
    ops, prefill = effective_ops(device, runtime), runtime.prefill
    attention = cost.attention_flops(tokens, past)
    matrices = cost.prefill_flops(tokens, past) - attention
    chunks = math.ceil(tokens / prefill.chunk_tokens)
    passes = chunks * runtime.decode.weight_factor * cost.weight_bytes_per_prefill_pass
    return {
        "compute": (matrices + attention * prefill.efficiency / prefill.attention_efficiency) / ops,
        "bandwidth": passes / bandwidth_Bps(device, runtime),
        "overhead": chunks * prefill.chunk_s,
    }


def nominal_ops(device: Device, runtime: Runtime) -> float:
    """Peak operations per second of the runtime's processor, from bandwidth where nobody knows it."""
    compute = device.compute.get(runtime.processor)
    if compute is None:
        return bandwidth_Bps(device, runtime) * runtime.prefill.ops_per_Bps
    return compute.nominal_ops or (compute.effective_ops or math.nan) / runtime.prefill.efficiency


def effective_ops(device: Device, runtime: Runtime) -> float:
    """Operations per second that prefill reaches: a stated effective figure, else its share of the peak."""
    compute = device.compute.get(runtime.processor)
    if compute is not None and compute.effective_ops is not None:
        return compute.effective_ops
    return nominal_ops(device, runtime) * runtime.prefill.efficiency


def prefill_spread(device: Device, runtime: Runtime) -> Spread:
    """The interval of prefill: wider where the machine's compute is not known."""
    known = runtime.processor in device.compute
    return runtime.prefill.spread if known else runtime.prefill.fallback_spread


def decode_total_seconds(
    cost: ModelCost, device: Device, runtime: Runtime, context: int, tokens: int
) -> float:
    """Seconds of `tokens` decoded one after another, the first after `context` tokens.

    The KV term is linear in the context up to each window, so the sum is closed between the windows' edges.
    """
    edges = {context, context + tokens}
    edges |= {g.window for g in cost.groups if g.window and context < g.window < context + tokens}
    total, ordered = 0.0, sorted(edges)
    for start, end in itertools.pairwise(ordered):
        first = decode_seconds(cost, device, runtime, start)
        last = decode_seconds(cost, device, runtime, end - 1)
        total += (end - start) * (first + last) / 2
    return total


def deadline_tokens(
    cost: ModelCost, device: Device, runtime: Runtime, *, prompt_tokens: int, deadline_s: float, wanted: int
) -> int:
    """The longest summary, at most `wanted` tokens, whose middle estimate ends before the deadline; 0 if none
    does.
    """
    left = deadline_s - prefill_seconds(cost, device, runtime, prompt_tokens)
    low, high = 0, wanted
    while low < high:
        tokens = (low + high + 1) // 2
        fits = decode_total_seconds(cost, device, runtime, prompt_tokens, tokens) <= left
        low, high = (tokens, high) if fits else (low, tokens - 1)
    return low


def cliff_seconds(cost: ModelCost, device: Device) -> float | None:
    """Seconds per token when mapped weights do not fit: all read again; None without a storage rate."""
    if device.storage_read_Bps is None:
        return None
    return cost.weight_bytes_per_prefill_pass / device.storage_read_Bps


def load_interval(cost: ModelCost, device: Device) -> Interval | None:
    """Seconds to read the weights once from storage; files come at 50-100 % of the sequential rate."""
    if device.storage_read_Bps is None:
        return None
    return Spread(1.0, 2.0).around(cost.weight_bytes / device.storage_read_Bps)


def memory_use(
    cost: ModelCost, runtime: Runtime, *, tokens: int, limit: int | None, prompt_tokens: int
) -> Memory:
    """Peak bytes for a context of `tokens`; `limit` is the length a runtime reserves where it reserves by
    limit.
    """
    held = limit if runtime.memory.kv_reserve == "limit" and limit is not None else tokens
    kv = cost.kv_stored(held, windowed=runtime.memory.kv_layout == "windowed")
    chunk = min(prompt_tokens, runtime.prefill.chunk_tokens)
    scores = 4.0 * chunk * tokens * cost.query_heads if runtime.memory.scores_materialised else 0.0
    past = runtime.memory.prompt_bytes_per_token * (prompt_tokens - chunk)
    kv_bytes = kv.total * runtime.memory.kv_copies
    activation_bytes = runtime.memory.activation_factor * cost.activation_bytes(chunk) + scores + past
    # The cache and the activations come after opening, so only what exceeds both is more memory.
    opening = cost.weight_bytes * runtime.memory.opening_factor - kv_bytes - activation_bytes
    return Memory(
        weights_bytes=max(cost.weight_bytes * runtime.memory.weight_peak_factor, opening),
        kv_bytes=kv_bytes,
        activation_bytes=activation_bytes,
        runtime_bytes=float(runtime.memory.runtime_bytes),
    )
