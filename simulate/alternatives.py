"""What would have happened with other weights, another cache or another device: planned, never measured.

Pure: the same plan as `seatrial plan`, over the few changes a reader of a run asks about.
"""

from __future__ import annotations

from typing import Any

from seatrial.devices.device import Device, device_names, load_device
from seatrial.devices.runtime import Runtime, load_runtime
from seatrial.export.architecture import Architecture
from seatrial.simulate.plan import Job, Plan, plan

FORMATS = (("fp32", "fp32"), ("int8", "fp32"), ("int8", "int8"), ("int4", "fp32"), ("int4", "int8"))


def planned_as_run(architecture: Architecture, device: Device, runtime: Runtime, job: Job) -> dict[str, Any]:
    """The plan of what was run: the document of `seatrial plan`."""
    return plan(architecture, device, runtime, job).to_json()


def alternatives(
    architecture: Architecture, device: Device, runtime: Runtime, job: Job
) -> list[dict[str, Any]]:
    """Rows of plans: this device in every format, then every other device in the formats of `job`.

    Each row has device, weights, kv, peak_bytes, available_bytes, fits, and seconds as low, mid, high.
    """
    here = [
        plan(architecture, device, runtime, _with(job, weights, kv, job.ceiling_bytes))
        for weights, kv in FORMATS
    ]
    others = [load_device(name) for name in device_names() if name != device.id]
    there = [
        plan(architecture, other, load_runtime(other.runtime), _with(job, job.weights, job.kv, None))
        for other in others
    ]
    return [_row(each) for each in (*here, *sorted(there, key=lambda each: each.total_s.mid))]


def _with(job: Job, weights: str | None, kv: str | None, ceiling_bytes: int | None) -> Job:
    return Job(
        prompt_tokens=job.prompt_tokens,
        max_tokens=job.max_tokens,
        weights=weights,
        kv=kv,
        ceiling_bytes=ceiling_bytes,
    )


def _row(each: Plan) -> dict[str, Any]:
    return {
        "device": each.device.id,
        "runtime": each.runtime.id,
        "weights": each.cost.weights,
        "kv": each.cost.kv.name,
        "peak_bytes": round(each.memory.peak_bytes),
        "available_bytes": each.available_bytes,
        "fits": each.fits,
        "prefill_s": each.prefill_s.to_json(),
        "decode_ms_per_token": each.decode_s.times(1e3).to_json(),
        "total_s": each.total_s.to_json(),
    }
