"""What to give up so that a job fits its memory or its deadline: the smallest changes, each with its cost.

The search tries changes of format alone, then the longest summary that clears the limits, then the longest
prompt, each alone before any pair. It knows what a change costs in bytes and seconds; what it does to the
text is told by `seatrial damage`, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import attrs

from seatrial.devices.device import Device
from seatrial.devices.runtime import Runtime
from seatrial.devices.units import format_bytes, format_time
from seatrial.export.architecture import Architecture
from seatrial.simulate.plan import Job, Plan, plan
from seatrial.simulate.predict import deadline_tokens

SHORTEST_SUMMARY = 32
SHORTEST_PROMPT = 256
KV_ORDER = ("fp32", "fp16", "int8")
WEIGHT_ORDER = ("fp32", "fp16", "int8", "int4")


@attrs.frozen
class Change:
    """One thing to give up: its name and the fields of a job that it changes."""

    name: str
    fields: dict[str, Any]


def with_fallbacks(architecture: Architecture, device: Device, runtime: Runtime, made: Plan) -> Plan:
    """`made` with the fallbacks that clear its limits; unchanged where it keeps them all."""
    if clears(made):
        return made
    found = list(_clearing(architecture, device, runtime, made))
    if not found:
        found = [
            {"action": "none", "effect": "no change of format or length clears the limits on this device"}
        ]
    return attrs.evolve(made, fallbacks=tuple(found))


def rebudgeted(
    architecture: Architecture, nominal: Device, measured: Device, runtime: Runtime, job: Job
) -> Plan:
    """The plan at a measured bandwidth, with the longest summary that still ends in time.

    In time is the job's deadline, else the total that the nominal bandwidth had promised.
    """
    made = plan(architecture, measured, runtime, job)
    promised = plan(architecture, nominal, runtime, job).total_s.mid
    limit_s = promised if job.deadline_s is None else job.deadline_s
    tokens = deadline_tokens(
        made.cost,
        measured,
        runtime.for_formats(made.cost.weights, made.cost.kv.name),
        prompt_tokens=job.prompt_tokens,
        deadline_s=limit_s,
        wanted=job.max_tokens,
    )
    why = "the total at nominal bandwidth" if job.deadline_s is None else "the deadline"
    budget = {"limit_s": limit_s, "max_tokens": tokens, "instead_of": job.max_tokens, "keeps": why}
    return attrs.evolve(made, budget=budget)


def clears(made: Plan) -> bool:
    """Whether a plan keeps memory and deadline (by its middle estimate)."""
    in_memory = made.fits or (made.job.mapped_weights and private_bytes(made) <= made.available_bytes)
    return in_memory and (made.job.deadline_s is None or made.total_s.mid <= made.job.deadline_s)


def private_bytes(made: Plan) -> float:
    """Memory that cannot be given back when weights are mapped: all but the weights."""
    return made.memory.peak_bytes - made.memory.weights_bytes


def _clearing(
    architecture: Architecture, device: Device, runtime: Runtime, made: Plan
) -> Iterator[dict[str, Any]]:
    """Sets of changes that clear the limits, smallest first; supersets of one that clears are left out."""

    def attempt(job: Job) -> Plan:
        return plan(architecture, device, runtime, job)

    formats = _format_changes(made)
    kept: list[tuple[set[str], Job]] = []
    for count in range(len(formats) + 1):
        for chosen in combinations(formats, count):
            names = {change.name for change in chosen}
            job = made.job
            for change in chosen:
                job = attrs.evolve(job, **change.fields)
            for lengths, tried in _lengths(job, attempt):
                if not clears(tried):
                    continue
                if not any(done <= names and _as_long(other, tried.job) for done, other in kept):
                    kept.append((names, tried.job))
                    yield _entry([*(change.name for change in chosen), *lengths], made, tried)
                break


def _as_long(one: Job, other: Job) -> bool:
    """Whether `one` keeps at least the lengths of `other`."""
    return one.max_tokens >= other.max_tokens and one.prompt_tokens >= other.prompt_tokens


def _format_changes(made: Plan) -> list[Change]:
    changes = [Change(f"{name} KV cache", {"kv": name}) for name in _after(KV_ORDER, made.cost.kv.name)]
    changes += [
        Change(f"{name} weights", {"weights": name}) for name in _after(WEIGHT_ORDER, made.cost.weights)
    ]
    if not made.job.mapped_weights and not made.fits:
        changes.append(Change("mapped weights", {"mapped_weights": True}))
    return changes


def _after(order: tuple[str, ...], current: str) -> tuple[str, ...]:
    """Formats smaller than the current one; none for formats outside the order, which are small already."""
    return order[order.index(current) + 1 :] if current in order else ()


def _lengths(job: Job, attempt: Callable[[Job], Plan]) -> Iterator[tuple[list[str], Plan]]:
    """The job as it is, with the longest summary that clears, with the longest prompt that clears."""
    tried = attempt(job)
    yield [], tried
    summary = _longest(job, "max_tokens", SHORTEST_SUMMARY, attempt)
    if summary is not None:
        yield (
            [f"summary of {summary} tokens instead of {job.max_tokens}"],
            attempt(attrs.evolve(job, max_tokens=summary)),
        )
        return
    prompt = _longest(job, "prompt_tokens", SHORTEST_PROMPT, attempt)
    if prompt is not None:
        yield (
            [f"prompt of {prompt} tokens instead of {job.prompt_tokens}"],
            attempt(attrs.evolve(job, prompt_tokens=prompt)),
        )


def _longest(job: Job, field: str, shortest: int, attempt: Callable[[Job], Plan]) -> int | None:
    """The largest value of a length that clears all limits (they only grow with it); None if not even the
    shortest.
    """
    low, high = shortest, getattr(job, field)

    def keeps(length: int) -> bool:
        fields: dict[str, Any] = {field: length}
        return clears(attempt(attrs.evolve(job, **fields)))

    if low >= high or not keeps(low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle - 1)
    return low


def _entry(names: list[str], before: Plan, after: Plan) -> dict[str, Any]:
    effect = (
        f"total {format_time(before.total_s.mid)} -> {format_time(after.total_s.mid)}, "
        f"peak {format_bytes(before.memory.peak_bytes)} -> {format_bytes(after.memory.peak_bytes)}"
    )
    if after.job.mapped_weights and not after.fits:
        effect += "; weights are read from storage again for every token"
    return {
        "action": " and ".join(names),
        "effect": effect,
        "total_s": after.total_s.to_json(),
        "peak_bytes": round(after.memory.peak_bytes),
        "max_tokens": after.job.max_tokens,
        "prompt_tokens": after.job.prompt_tokens,
        "weights": after.cost.weights,
        "kv": after.cost.kv.name,
        "mapped_weights": after.job.mapped_weights,
    }
