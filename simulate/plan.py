"""The plan: what a job takes on a device with a runtime, whether it fits, what binds, what could be given up.

Pure functions of (architecture, device, runtime, job). Seconds carry the runtime's interval. Past the memory
available it models the cliff: a dense model read in order through an LRU cache is read again for every token.
"""

from __future__ import annotations

from typing import Any

import attrs

from seatrial.devices.device import Device
from seatrial.devices.runtime import Interval, Runtime
from seatrial.devices.units import format_bytes, format_rate
from seatrial.errors import UserError
from seatrial.export.architecture import Architecture
from seatrial.simulate.cost import ModelCost, model_cost
from seatrial.simulate.predict import (
    CLIFF,
    Memory,
    cliff_seconds,
    deadline_tokens,
    decode_seconds,
    decode_terms,
    decode_total_seconds,
    effective_ops,
    load_interval,
    memory_use,
    prefill_seconds,
    prefill_spread,
    prefill_terms,
)

__all__ = [
    "Job",
    "Plan",
    "deadline_tokens",
    "decode_seconds",
    "memory_use",
    "plan",
    "prefill_seconds",
]

CONTEXTS = (256, 1024, 4096)


@attrs.frozen
class Job:
    """What is asked: prompt and summary in tokens, formats, and the limits around them.

    `limit_tokens` is the length a runtime is told to reserve for; None means it was not set.
    """

    prompt_tokens: int = 4200
    max_tokens: int = 400
    weights: str | None = None
    kv: str | None = None
    limit_tokens: int | None = None
    ceiling_bytes: int | None = None
    other_programs_bytes: int = 0
    deadline_s: float | None = None
    mapped_weights: bool = False
    sustained: bool = False

    def __attrs_post_init__(self) -> None:
        for name in ("prompt_tokens", "max_tokens"):
            if getattr(self, name) <= 0:
                raise UserError(f"{name} is {getattr(self, name)}; it must be above zero")
        if self.limit_tokens is not None and self.limit_tokens < self.tokens:
            raise UserError(f"a limit of {self.limit_tokens} tokens is below the {self.tokens} of the job")

    @property
    def tokens(self) -> int:
        """Context at the end of the job."""
        return self.prompt_tokens + self.max_tokens


@attrs.frozen
class Plan:
    """A job on a device: bytes, seconds, what binds, what to give up."""

    device: Device
    runtime: Runtime
    cost: ModelCost
    job: Job
    memory: Memory
    available_bytes: int
    fits: bool
    load_s: Interval | None
    prefill_s: Interval
    decode_s: Interval
    total_s: Interval
    decode_by_context: tuple[tuple[int, Interval], ...]
    bound_prefill: str
    bound_decode: str
    fallbacks: tuple[dict[str, Any], ...] = ()
    budget: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The plan's document: seconds and milliseconds as named, sizes in bytes."""
        document = {
            "device": self.device.id,
            "runtime": self.runtime.id,
            "model": self.cost.name,
            "weights": self.cost.weights,
            "kv": self.cost.kv.name,
            "job": {"prompt_tokens": self.job.prompt_tokens, "max_tokens": self.job.max_tokens},
            "memory": self._memory_json(),
            "time": self._time_json(),
            "bound": {"prefill": self.bound_prefill, "decode": self.bound_decode},
            "terms": self._terms_json(),
            "fallbacks": list(self.fallbacks),
            "notes": list(self.notes),
        }
        return document if self.budget is None else document | {"budget": self.budget}

    def _memory_json(self) -> dict[str, Any]:
        return {
            "weights_bytes": round(self.memory.weights_bytes),
            "kv_bytes": round(self.memory.kv_bytes),
            "activation_bytes": round(self.memory.activation_bytes),
            "runtime_bytes": round(self.memory.runtime_bytes),
            "peak_bytes": round(self.memory.peak_bytes),
            "available_bytes": self.available_bytes,
            "fits": self.fits,
        }

    def _time_json(self) -> dict[str, Any]:
        return {
            "load_s": self.load_s.to_json() if self.load_s else None,
            "prefill_s": self.prefill_s.to_json(),
            "decode_ms_per_token": self.decode_s.times(1e3).to_json(),
            "total_s": self.total_s.to_json(),
            "decode_ms_by_context": [
                {"context": context, **seconds.times(1e3).to_json()}
                for context, seconds in self.decode_by_context
            ],
        }

    def _terms_json(self) -> dict[str, Any]:
        """The terms behind the middle values, so that nobody has to guess which are in."""
        middle = self.job.prompt_tokens + self.job.max_tokens / 2
        return {
            "weight_bytes_per_token": round(self.cost.weight_bytes_per_token),
            "kv_bytes_per_token": round(self.cost.kv_read_bytes(middle)),
            "bandwidth_Bps": self.device.bandwidth_Bps,
            "weight_factor": self.runtime.decode.weight_factor,
            "kv_factor": self.runtime.decode.kv_factor,
            "step_s": self.runtime.decode.step_s,
            "prefill_flops": self.cost.prefill_flops(self.job.prompt_tokens),
            "decode_flops_per_token": self.cost.decode_flops(middle),
            "effective_ops": effective_ops(self.device, self.runtime),
        }


def plan(architecture: Architecture, device: Device, runtime: Runtime, job: Job) -> Plan:
    """What `job` takes for this model on this device with this runtime."""
    cost = job_cost(architecture, runtime, job)
    runtime = runtime.for_formats(cost.weights, cost.kv.name)
    memory = job_memory(architecture, cost, runtime, job)
    available = available_bytes(device, job)
    fits = memory.peak_bytes <= available
    slow_decode, slow_prefill = heat(device, job)
    prefill = prefill_seconds(cost, device, runtime, job.prompt_tokens) * slow_prefill
    prefill_s = prefill_spread(device, runtime).around(prefill)
    whole = decode_total_seconds(cost, device, runtime, job.prompt_tokens, job.max_tokens) * slow_decode
    decode_s = runtime.decode.spread.around(whole / job.max_tokens)
    by_context = _by_context(cost, device, runtime, job)
    bound = _decode_bound(cost, device, runtime, job)
    cliff = cliff_seconds(cost, device)
    if not fits and job.mapped_weights and cliff is not None:
        # Every pass over the weights, a prompt's chunks as well as a token, reads the file again.
        chunks = -(-job.prompt_tokens // runtime.prefill.chunk_tokens)
        prefill_s, decode_s = prefill_s + CLIFF.around(cliff * chunks), CLIFF.around(cliff)
        by_context = [(context, CLIFF.around(cliff)) for context, _ in by_context]
        bound = "storage"
    return Plan(
        device=device,
        runtime=runtime,
        cost=cost,
        job=job,
        memory=memory,
        available_bytes=available,
        fits=fits,
        load_s=load_interval(cost, device),
        prefill_s=prefill_s,
        decode_s=decode_s,
        total_s=prefill_s + decode_s.times(job.max_tokens),
        decode_by_context=tuple(by_context),
        bound_prefill=_prefill_bound(cost, device, runtime, job),
        bound_decode=bound,
        notes=tuple(_notes(architecture, device, runtime, job, memory, fits)),
    )


def job_cost(architecture: Architecture, runtime: Runtime, job: Job) -> ModelCost:
    """The model's cost in the job's formats, or the file's own, or the runtime's."""
    weights = job.weights or ("stored" if architecture.stored else runtime.weights)
    stored_kv = architecture.stored.kv if architecture.stored else None
    kv = job.kv or stored_kv or runtime.kv
    return model_cost(architecture, weights=weights, kv=kv, latent_cache=runtime.memory.latent_cache)


def job_memory(architecture: Architecture, cost: ModelCost, runtime: Runtime, job: Job) -> Memory:
    """Peak bytes; a runtime that reserves by limit takes the model's whole length where none was set."""
    limit = job.limit_tokens or architecture.max_positions
    return memory_use(cost, runtime, tokens=job.tokens, limit=limit, prompt_tokens=job.prompt_tokens)


def available_bytes(device: Device, job: Job) -> int:
    """Memory left on the device, or the ceiling where that is lower."""
    free = device.available_bytes(job.other_programs_bytes)
    return free if job.ceiling_bytes is None else min(free, job.ceiling_bytes)


def heat(device: Device, job: Job) -> tuple[float, float]:
    """How much longer decode and prefill take once the machine is hot; 1 where no curve was measured or asked
    for.
    """
    if not job.sustained or device.sustained is None:
        return 1.0, 1.0
    return 1.0 / device.sustained.decode, 1.0 / device.sustained.prefill


def _by_context(cost: ModelCost, device: Device, runtime: Runtime, job: Job) -> list[tuple[int, Interval]]:
    contexts = sorted({*(c for c in CONTEXTS if c < job.tokens), job.prompt_tokens, job.tokens})
    spread, slow = runtime.decode.spread, heat(device, job)[0]
    return [(n, spread.around(slow * decode_seconds(cost, device, runtime, n))) for n in contexts]


def _decode_bound(cost: ModelCost, device: Device, runtime: Runtime, job: Job) -> str:
    """The largest term of a step in the middle of the summary."""
    terms = decode_terms(cost, device, runtime, job.prompt_tokens + job.max_tokens / 2)
    return max(terms, key=lambda name: terms[name])


def _prefill_bound(cost: ModelCost, device: Device, runtime: Runtime, job: Job) -> str:
    """The largest term of the prompt."""
    terms = prefill_terms(cost, device, runtime, job.prompt_tokens)
    return max(terms, key=lambda name: terms[name])


def _notes(
    architecture: Architecture, device: Device, runtime: Runtime, job: Job, memory: Memory, fits: bool
) -> list[str]:
    notes = [*architecture.notes, *device.warnings]
    positions = architecture.max_positions
    if positions is not None and job.tokens > positions:
        notes.append(
            f"{job.tokens} tokens exceed the {positions} positions the model was made for: read in windows"
        )
    if runtime.memory.kv_reserve == "limit" and job.limit_tokens is None:
        notes.append(
            f"no length limit was set: this runtime reserves the cache for all {positions} positions"
        )
    if any(layer.window for layer in architecture.layers):
        kept = "only the window" if runtime.memory.kv_layout == "windowed" else "the full length"
        notes.append(f"windowed layers: this runtime is taken to keep {kept} of them in memory")
    if architecture.experts:
        notes.append(
            "mixture of experts: all experts are in memory, the active ones are read per token; weights "
            "paged from storage have no such bound"
        )
    notes += _device_notes(device, runtime)
    if job.sustained and device.sustained is None:
        notes.append("no curve of sustained load was measured on this device: speeds are those of a cool one")
    if not fits:
        lacking = format_bytes(memory.peak_bytes - available_bytes(device, job))
        notes.append(f"does not fit: {lacking} too much; without mapped weights it ends in out of memory")
    return notes


def _device_notes(device: Device, runtime: Runtime) -> list[str]:
    notes = []
    if runtime.fit.note and runtime.kind != "measured":
        notes.append(f"runtime {runtime.id}: {runtime.fit.note}")
    if runtime.processor not in device.compute:
        notes.append(f"no compute figure for this {runtime.processor}: prefill is estimated from bandwidth")
    if device.nominal_bandwidth_Bps is None:
        notes.append(
            f"bandwidth is a measured one ({device.measured_kind}): {format_rate(device.bandwidth_Bps)}"
        )
    return notes
