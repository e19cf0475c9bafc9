"""What a run needs before the first token: device, model, prompt, windows, and the ways to fit the memory.

Everything that can be refused is refused here, before the output folder is touched and long before a child
starts. The fallbacks' order is decided in `run`; how a way is carried out is `writer`'s.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import attrs

from seatrial.devices.device import Device, load_device
from seatrial.devices.runtime import Runtime, load_runtime
from seatrial.devices.units import parse_rate
from seatrial.errors import UserError
from seatrial.export.architecture import Architecture, read_architecture
from seatrial.export.bundle import Bundle
from seatrial.export.source import Source, resolve
from seatrial.export.tokenizer import Tokenizer
from seatrial.guards.memory import MemoryDecision, MemoryNeed, Way, decide
from seatrial.guards.thresholds import ThresholdsFile, load_thresholds
from seatrial.guards.transcript import Transcript, parse_transcript, windows
from seatrial.simulate.clock import BandwidthCurve, parse_curve
from seatrial.simulate.cost import ModelCost, model_cost
from seatrial.simulate.job import Hooks, RunJob
from seatrial.simulate.predict import bandwidth_Bps, memory_use
from seatrial.simulate.prepare import bundle_of, formats_of
from seatrial.simulate.prompt import Prompt, default_prompt, own_prompt
from seatrial.simulate.timing import CHUNK_TOKENS, Timing
from seatrial.simulate.windows import HINT_TOKENS, Part, cut, longer
from seatrial.simulate.writer import RunWay

# Private bytes of a child that holds no model: interpreter, numpy, onnxruntime and their arenas, as measured
# with a small session on Linux x86-64.
ENGINE_BYTES = 40_000_000

INT8_KV, MAPPED = "int8 KV cache", "mapped weights"


@dataclass(frozen=True)
class Setup:
    """A run that may begin. `ways[first_way]` is where it begins; `capacity` is in positions."""

    job: RunJob
    device: Device
    runtime: Runtime
    curve: BandwidthCurve
    transcript: Transcript
    prompt: Prompt
    thresholds: ThresholdsFile
    source: Source
    bundle: Bundle
    weights: str
    tokenizer: Tokenizer
    context: int
    parts: tuple[Part, ...]
    capacity: int
    ceiling_bytes: int
    ways: tuple[RunWay, ...]
    memory: MemoryDecision
    stand_in: Architecture | None
    notes: tuple[str, ...]

    def ids(self, text: str, budget: int, facts: tuple[str, ...] = ()) -> list[int]:
        """Token ids of the whole conversation for one part."""
        return self.tokenizer.chat(self.prompt.messages(text, budget, facts))


def set_up(job: RunJob, hooks: Hooks) -> Setup:
    """Reads and checks everything that `job` names; exports and quantizes when the bundle is missing.

    Raises `UserError` for whatever cannot be used.
    """
    device = load_device(job.device)
    runtime = load_runtime(job.runtime or device.runtime)
    curve = _curve(job, device, runtime)
    transcript = parse_transcript(job.transcript)
    prompt = _prompt(job, transcript)
    thresholds = load_thresholds(job.thresholds) if job.thresholds else ThresholdsFile()
    stand_in = read_architecture(job.stand_in) if job.stand_in else None
    _check_numbers(job)
    ceiling_bytes = job.ceiling_bytes or device.available_bytes(job.other_programs_bytes)
    if ceiling_bytes <= 0:
        raise UserError(f"{device.id} has no memory left beside its system and the other programs")
    source = resolve(job.model, progress=hooks.stage)
    bundle = bundle_of(source, job.weights, job.kv, hooks.stage)
    tokenizer = Tokenizer.load(bundle.folder)
    context = _context(bundle)
    setup = Setup(
        job=job,
        device=device,
        runtime=runtime,
        curve=curve,
        transcript=transcript,
        prompt=prompt,
        thresholds=thresholds,
        source=source,
        bundle=bundle,
        weights=formats_of(bundle)[0],
        tokenizer=tokenizer,
        context=context,
        parts=(),
        capacity=0,
        ceiling_bytes=ceiling_bytes,
        ways=(),
        memory=decide([Way("", MemoryNeed(0, 0, 0, 0))], ceiling_bytes),
        stand_in=stand_in,
        notes=_notes(job, device, runtime, bundle),
    )
    setup = replace(setup, parts=_parts(setup, job.max_tokens))
    setup = replace(setup, capacity=_capacity(setup))
    return _with_ways(setup)


def _check_numbers(job: RunJob) -> None:
    if job.max_tokens < 1:
        raise UserError(f"--max-tokens is {job.max_tokens}: it must be at least 1")
    if job.deadline_s is not None and job.deadline_s <= 0:
        raise UserError(f"--deadline is {job.deadline_s} s: it must be above zero")
    if job.ballast and job.stand_in is None:
        raise UserError("--ballast takes the memory of a stand-in: give --stand-in CONFIG as well")
    if job.threads is not None and job.threads < 1:
        raise UserError(f"--threads is {job.threads}: it must be at least 1")


def _curve(job: RunJob, device: Device, runtime: Runtime) -> BandwidthCurve:
    if job.bandwidth_trace is not None:
        if job.bandwidth_Bps is not None:
            raise UserError("give --bandwidth or --bandwidth-trace, not both")
        try:
            text = job.bandwidth_trace.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot read the bandwidth trace {job.bandwidth_trace}: {error}") from None
        return parse_curve(text, str(job.bandwidth_trace), parse_rate)
    return BandwidthCurve.constant(job.bandwidth_Bps or bandwidth_Bps(device, runtime))


def _prompt(job: RunJob, transcript: Transcript) -> Prompt:
    if job.prompt is None:
        return default_prompt(transcript.text)
    try:
        template = job.prompt.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read the prompt file {job.prompt}: {error}") from None
    return own_prompt(template, transcript.text, job.prompt)


def _context(bundle: Bundle) -> int:
    value = bundle.config.get("max_position_embeddings") or bundle.config.get("n_positions")
    if not isinstance(value, int) or value < 1:
        raise UserError(f"{bundle.folder} does not say its context length (max_position_embeddings)")
    return value


def _notes(job: RunJob, device: Device, runtime: Runtime, bundle: Bundle) -> tuple[str, ...]:
    """What a reader must know about the figures; `--strict` refuses what is not what was asked."""
    notes = [f"{device.id}: {warning}" for warning in device.warnings]
    notes += [f"bundle: {warning}" for warning in bundle.warnings]
    if runtime.processor != "cpu":
        told = (
            f"{device.id} is modelled with its {runtime.processor.upper()}, but the model runs on a CPU here "
            "(CPUExecutionProvider): device times come from the device's stated figures and were not measured"
        )
        if job.strict:
            raise UserError(f"--strict: {told}; give a CPU runtime with --runtime, or drop --strict")
        notes.append(told)
    return tuple(notes)


def _parts(setup: Setup, budget: int) -> tuple[Part, ...]:
    count = setup.tokenizer.count
    overhead = len(setup.ids("", budget))
    whole = "\n".join(turn.labelled() for turn in setup.transcript.turns)
    parts = cut(
        count(whole),
        context=setup.context,
        overhead=overhead + 8,  # tokens that melt together at the seams of the template
        budget=budget,
        count=count,
        into_windows=lambda most: windows(setup.transcript, most, count),
    )
    return tuple(parts)


def _capacity(setup: Setup) -> int:
    """Positions for the longest part, its longer summary and hints; at most the context."""
    longest = max(
        len(setup.ids(part.text, part.budget)) + max(part.budget, longer(part.budget) + HINT_TOKENS)
        for part in setup.parts
    )
    return min(setup.context, -(-longest // 64) * 64)


def _with_ways(setup: Setup) -> Setup:
    """The ways to run, in the order of the fallbacks, and the one the memory guard begins with."""
    kinds: list[tuple[str, str, bool]] = [("", setup.job.kv, setup.job.mapped)]
    may_requantize = setup.source.kind not in ("bundle", "onnx") and setup.weights != "fp32"
    if setup.job.kv == "fp32" and may_requantize:
        kinds.append((INT8_KV, "int8", setup.job.mapped))
    if not setup.job.mapped:
        kinds.append((MAPPED, kinds[-1][1], True))
    needs = [_need(setup, kv, mapped) for _, kv, mapped in kinds]
    decision = decide(
        [Way(action, need) for (action, _, _), need in zip(kinds, needs, strict=True)], setup.ceiling_bytes
    )
    ways = tuple(
        RunWay(
            action, kv, mapped, _finder(setup, kv), _timer(setup, kv, need), _ballast(setup, need, kv, mapped)
        )
        for (action, kv, mapped), need in zip(kinds, needs, strict=True)
    )
    return replace(setup, ways=ways, memory=decision)


def _finder(setup: Setup, kv: str) -> Callable[[], Bundle]:
    if kv == setup.job.kv:
        return lambda: setup.bundle
    return lambda: bundle_of(setup.source, setup.weights, kv)


def _cost(setup: Setup, bundle: Bundle, kv: str) -> ModelCost:
    """Bytes and FLOPs of the model that is timed: the stand-in's target, else the bundle itself."""
    if setup.stand_in is not None:
        return model_cost(setup.stand_in, weights=setup.weights, kv=kv)
    cost = model_cost(read_architecture(bundle.folder), weights=setup.weights, kv=kv)
    weight_bytes = float(bundle.weight_bytes)
    return attrs.evolve(
        cost,
        weight_bytes=weight_bytes,
        weight_bytes_per_token=weight_bytes,
        weight_bytes_per_prefill_pass=weight_bytes,
    )


def _need(setup: Setup, kv: str, mapped: bool) -> MemoryNeed:
    """What this way needs: of the model itself on this engine, or of the stand-in's target on the runtime."""
    if setup.stand_in is not None:
        return _stand_in_need(setup, kv, mapped)
    return real_need(setup, kv, mapped)


def real_need(setup: Setup, kv: str, mapped: bool) -> MemoryNeed:
    """Bytes that the child really takes."""
    bundle = setup.bundle
    cost = model_cost(read_architecture(bundle.folder), weights=setup.weights, kv=kv)
    item = {"fp32": 4, "int8": 1}.get(kv, 2)
    layout = bundle.kv
    kv_bytes = 2 * layout.layers * layout.kv_heads * layout.head_dim * item * setup.capacity
    return MemoryNeed(
        float(bundle.weight_bytes), kv_bytes, 2 * cost.activation_bytes(CHUNK_TOKENS), ENGINE_BYTES, mapped
    )


def _stand_in_need(setup: Setup, kv: str, mapped: bool) -> MemoryNeed:
    cost = _cost(setup, setup.bundle, kv)
    use = memory_use(cost, setup.runtime, tokens=setup.capacity, limit=None, prompt_tokens=setup.capacity)
    return MemoryNeed(use.weights_bytes, use.kv_bytes, use.activation_bytes, use.runtime_bytes, mapped)


def _timer(setup: Setup, kv: str, need: MemoryNeed) -> Callable[[Bundle], Timing]:
    from seatrial.guards.memory import paged_bytes

    paged = paged_bytes(need, setup.ceiling_bytes)
    return lambda bundle: Timing(_cost(setup, bundle, kv), setup.device, setup.runtime, setup.curve, paged)


def _ballast(setup: Setup, need: MemoryNeed, kv: str, mapped: bool) -> int:
    if not setup.job.ballast:
        return 0
    return max(0, round(need.private_bytes - real_need(setup, kv, mapped).private_bytes))


def resolve_out(folder: Path) -> Path:
    """The output folder as an absolute path: it is printed, and read by people in other folders."""
    return folder.expanduser().absolute()
