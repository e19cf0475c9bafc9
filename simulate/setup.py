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
from seatrial.export.prepacked import prepare_mapped
from seatrial.export.session_graph import read_decoder
from seatrial.export.source import Source, resolve
from seatrial.export.tokenizer import Tokenizer
from seatrial.guards.memory import MemoryDecision, MemoryNeed, Way, decide, paged_bytes, would_fit_bytes
from seatrial.guards.policy import Policy, make_policy
from seatrial.guards.thresholds import ThresholdsFile, load_thresholds, mismatches
from seatrial.guards.transcript import Transcript, parse_transcript, windows
from seatrial.simulate.clock import BandwidthCurve, parse_curve
from seatrial.simulate.cost import ModelCost, model_cost
from seatrial.simulate.job import Hooks, RunJob
from seatrial.simulate.predict import bandwidth_Bps, memory_use
from seatrial.simulate.prepare import bundle_of, check_formats, formats_of
from seatrial.simulate.prompt import Prompt, default_prompt, own_prompt
from seatrial.simulate.timing import CHUNK_TOKENS, Timing
from seatrial.simulate.windows import HINT_TOKENS, Part, cut, longer
from seatrial.simulate.writer import Found, RunWay

# Private bytes of a child that holds no model: interpreter, numpy, onnxruntime and their arenas, as measured
# with a small session on Linux x86-64.
ENGINE_BYTES = 40_000_000
# onnxruntime's arena over the live tensors of a chunk, measured the same way.
ACTIVATION_FACTOR = 2.0
# Tokens that may melt together or fall apart where the transcript meets the template.
SEAM_TOKENS = 8

INT8_KV, MAPPED = "int8 KV cache", "mapped weights"


@dataclass(frozen=True)
class Basis:
    """What a job names, read and checked. `context` is the model's length in tokens."""

    job: RunJob
    device: Device
    runtime: Runtime
    curve: BandwidthCurve
    transcript: Transcript
    prompt: Prompt
    thresholds: ThresholdsFile
    policy: Policy
    source: Source
    bundle: Bundle
    weights: str
    kv: str
    tokenizer: Tokenizer
    context: int
    ceiling_bytes: int
    stand_in: Architecture | None
    notes: tuple[str, ...]

    def ids(self, text: str, budget: int, facts: tuple[str, ...] = ()) -> list[int]:
        """Token ids of the whole conversation for one part."""
        return self.tokenizer.chat(self.prompt.messages(text, budget, facts))


@dataclass(frozen=True)
class Setup:
    """A run that may begin. `ways[memory.chosen]` is where it begins; `capacity` is in positions.

    `would_fit_bytes`: the smallest ceiling under which the guard expects one of the ways to run.
    """

    basis: Basis
    parts: tuple[Part, ...]
    capacity: int
    ways: tuple[RunWay, ...]
    needs: tuple[MemoryNeed, ...]
    memory: MemoryDecision
    would_fit_bytes: float

    @property
    def job(self) -> RunJob:
        return self.basis.job

    @property
    def first_way(self) -> int:
        return self.memory.chosen if self.job.foresee_memory else 0


def set_up(job: RunJob, hooks: Hooks) -> Setup:
    """Reads and checks everything that `job` names; exports and quantizes when the bundle is missing.

    Raises `UserError` for whatever cannot be used.
    """
    basis = _basis(job, hooks)
    parts = _parts(basis, job.max_tokens)
    capacity = _capacity(basis, parts)
    kinds = _kinds(basis)
    needs = [_need(basis, capacity, kv, mapped) for _, kv, mapped in kinds]
    named = [Way(action, need) for (action, _, _), need in zip(kinds, needs, strict=True)]
    ways = tuple(
        RunWay(
            action,
            kv,
            mapped,
            _finder(basis, kv, mapped),
            _timer(basis, kv, need),
            _ballast(basis, capacity, need, kv, mapped),
        )
        for (action, kv, mapped), need in zip(kinds, needs, strict=True)
    )
    return Setup(
        basis=basis,
        parts=parts,
        capacity=capacity,
        ways=ways,
        needs=tuple(needs),
        memory=decide(named, basis.ceiling_bytes),
        would_fit_bytes=would_fit_bytes(named),
    )


def _basis(job: RunJob, hooks: Hooks) -> Basis:
    _check_numbers(job)
    device = load_device(job.device)
    runtime = load_runtime(job.runtime or device.runtime)
    curve = _curve(job, device, runtime)
    transcript = parse_transcript(job.transcript)
    prompt = _prompt(job, transcript)
    thresholds = load_thresholds(job.thresholds) if job.thresholds else ThresholdsFile()
    stand_in = read_architecture(job.stand_in) if job.stand_in else None
    ceiling_bytes = job.ceiling_bytes or device.available_bytes(job.other_programs_bytes)
    if ceiling_bytes <= 0:
        raise UserError(f"{device.id} has no memory left beside its system and the other programs")
    notes = _notes(job, device, runtime)
    source = resolve(job.model, progress=hooks.stage)
    bundle = bundle_of(source, job.weights, job.kv, hooks.stage)
    weights, kv = formats_of(bundle)
    made = mismatches(thresholds.made, model=source.name, weights=weights, kv=kv)
    return Basis(
        job=job,
        device=device,
        runtime=runtime,
        curve=curve,
        transcript=transcript,
        prompt=prompt,
        thresholds=thresholds,
        policy=make_policy(thresholds.numbers, thresholds.names),
        source=source,
        bundle=bundle,
        weights=weights,
        kv=kv,
        tokenizer=Tokenizer.load(bundle.folder),
        context=_context(bundle),
        ceiling_bytes=ceiling_bytes,
        stand_in=stand_in,
        notes=(*notes, *(f"bundle: {warning}" for warning in bundle.warnings), *made),
    )


def _check_numbers(job: RunJob) -> None:
    check_formats(job.weights, job.kv)
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
        raise UserError(
            f"{bundle.folder} does not say its context length (max_position_embeddings in config.json); "
            "copy the model's config.json into the folder"
        )
    return value


def _notes(job: RunJob, device: Device, runtime: Runtime) -> tuple[str, ...]:
    """What a reader must know about the figures; `--strict` refuses what is not what was asked."""
    notes = [f"{device.id}: {warning}" for warning in device.warnings]
    if runtime.processor != "cpu":
        told = (
            f"{device.id} is modelled with its {runtime.processor.upper()}, but the model runs on a CPU here "
            "(CPUExecutionProvider): device times come from the device's stated figures and were not measured"
        )
        if job.strict:
            raise UserError(f"--strict: {told}; give a CPU runtime with --runtime, or drop --strict")
        notes.append(told)
    return tuple(notes)


def _parts(basis: Basis, budget: int) -> tuple[Part, ...]:
    count = basis.tokenizer.count
    whole = "\n".join(turn.labelled() for turn in basis.transcript.turns)
    parts = cut(
        count(whole),
        context=basis.context,
        overhead=len(basis.ids("", budget)) + SEAM_TOKENS,
        budget=budget,
        count=count,
        into_windows=lambda most: windows(basis.transcript, most, count),
    )
    return tuple(parts)


def _capacity(basis: Basis, parts: tuple[Part, ...]) -> int:
    """Positions for the longest part, its longer summary and hints; at most the context."""
    longest = max(
        len(basis.ids(part.text, part.budget)) + max(part.budget, longer(part.budget) + HINT_TOKENS)
        for part in parts
    )
    return min(basis.context, -(-longest // 64) * 64)


def _kinds(basis: Basis) -> list[tuple[str, str, bool]]:
    """(action, kv, mapped) of the ways to run, in the order of the fallbacks."""
    job = basis.job
    kinds: list[tuple[str, str, bool]] = [("", basis.kv, job.mapped)]
    if basis.kv == "fp32" and basis.source.kind not in ("bundle", "onnx") and basis.weights != "fp32":
        kinds.append((INT8_KV, "int8", job.mapped))
    if not job.mapped:
        kinds.append((MAPPED, kinds[-1][1], True))
    return kinds


def _finder(basis: Basis, kv: str, mapped: bool) -> Callable[[], Found]:
    """Finds the bundle of a way when the way is taken. Packing needs the weights on the heap once: not
    below the ceiling, so it is done here and not in the child.
    """

    def find() -> Found:
        bundle = basis.bundle if kv == basis.kv else bundle_of(basis.source, basis.weights, kv)
        # A session with an int8 cache reads prompts through the packed file too.
        packed = prepare_mapped(bundle) if mapped or bundle.kv.dtype != "float32" else None
        return Found(bundle, (*bundle.data_files, *(packed.parent.iterdir() if packed else ())))

    return find


def _cost(basis: Basis, bundle: Bundle, kv: str) -> ModelCost:
    """Bytes and FLOPs of the model that is timed: the stand-in's target, else the bundle itself."""
    if basis.stand_in is not None:
        return model_cost(basis.stand_in, weights=_scheme(basis.weights), kv=kv)
    cost = model_cost(read_architecture(bundle.folder), weights=_scheme(basis.weights), kv=kv)
    read_bytes = float(read_decoder(bundle.model_path).weight_bytes_per_token)
    return attrs.evolve(
        cost,
        weight_bytes=float(bundle.weight_bytes),
        weight_bytes_per_token=read_bytes,
        weight_bytes_per_prefill_pass=read_bytes,
    )


def _scheme(weights: str) -> str:
    """The cost model's name of a weight format. Mixed weights are mostly int4; a bundle's real bytes replace
    the computed ones, a stand-in is priced as int4.
    """
    return "int4" if weights == "mixed" else weights


def _need(basis: Basis, capacity: int, kv: str, mapped: bool) -> MemoryNeed:
    """What a way needs: of the model itself on this engine, or of the stand-in's target on the runtime."""
    if basis.stand_in is None:
        return real_need(basis, capacity, kv, mapped)
    cost = model_cost(basis.stand_in, weights=_scheme(basis.weights), kv=kv)
    use = memory_use(cost, basis.runtime, tokens=capacity, limit=None, prompt_tokens=capacity)
    return MemoryNeed(use.weights_bytes, use.kv_bytes, use.activation_bytes, use.runtime_bytes, mapped)


def real_need(basis: Basis, capacity: int, kv: str, mapped: bool) -> MemoryNeed:
    """Bytes that the child really takes."""
    bundle, layout = basis.bundle, basis.bundle.kv
    cost = model_cost(read_architecture(bundle.folder), weights=_scheme(basis.weights), kv=kv)
    kv_bytes = capacity * replace(layout, dtype={"fp32": "float32"}.get(kv, kv)).bytes_per_token()
    activation_bytes = ACTIVATION_FACTOR * cost.activation_bytes(CHUNK_TOKENS)
    return MemoryNeed(float(bundle.weight_bytes), kv_bytes, activation_bytes, ENGINE_BYTES, mapped)


def _timer(basis: Basis, kv: str, need: MemoryNeed) -> Callable[[Bundle], Timing]:
    paged = paged_bytes(need, basis.ceiling_bytes)

    def timing(bundle: Bundle) -> Timing:
        cost = _cost(basis, bundle, kv)
        # A runtime measured on this machine knows each pair of formats by itself.
        runtime = basis.runtime.for_formats(cost.weights, cost.kv.name)
        return Timing(cost, basis.device, runtime, basis.curve, paged)

    return timing


def _ballast(basis: Basis, capacity: int, need: MemoryNeed, kv: str, mapped: bool) -> int:
    """What is missing to the stand-in's private bytes."""
    if not basis.job.ballast:
        return 0
    return max(0, round(need.private_bytes - real_need(basis, capacity, kv, mapped).private_bytes))


def resolve_out(folder: Path) -> Path:
    """The output folder as an absolute path: it is printed, and read by people in other folders."""
    return folder.expanduser().absolute()
