"""From a float bundle to a quantized one: survey, quantize, calibrate, write, prove, measure.

The one place where the parts of this room meet. The float reference runs from its mapped file, so that the
whole step stays near the size of the file in memory.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import onnx
import onnxruntime as ort

from seatrial.errors import UserError
from seatrial.export.bundle import DATA, INFO, MODEL, Bundle, open_bundle, write_info, writing_bundle
from seatrial.export.session import Session
from seatrial.export.session_graph import load_graph
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.agreement import Agreement, compare
from seatrial.quantize.balance import BalancedReader, balance, find_folds
from seatrial.quantize.kv_cache import (
    KV_BITS,
    Granularity,
    KvScales,
    clipped,
    peaks_of,
    quantize_cache,
    scales_from,
)
from seatrial.quantize.liveness import inspect_cache, inspect_run, inspect_weights
from seatrial.quantize.moments import balanced_moments, second_moments
from seatrial.quantize.planning import plan_mixed
from seatrial.quantize.provenance import provenance_of, refuse_quantized
from seatrial.quantize.recipe import KEPT, Recipe, recipe_for
from seatrial.quantize.result import QuantizeResult
from seatrial.quantize.targets import MATMULS, Survey, survey
from seatrial.quantize.tensors import TensorReader
from seatrial.quantize.texts import LANGUAGES, calibration_text, evaluation_text
from seatrial.quantize.weights import Progress, WeightReport, quantize_weights, tie_copies

# A model where less than this share of the weight bytes became small is not "quantized".
WEIGHT_FLOOR = 0.9


@dataclass(frozen=True)
class _Job:
    """Everything that does not change on the way."""

    bundle: Bundle
    kv: str
    granularity: Granularity
    recipe: Recipe | None  # None keeps the weights as they are
    found: Survey
    reader: TensorReader
    tokenizer: Tokenizer
    progress: Progress


def quantize_bundle(
    bundle: Bundle,
    out: Path,
    *,
    weights: str = "int4",
    kv: str = "int8",
    recipe: Recipe | None = None,
    target_mb: float | None = None,
    target_kl: float | None = None,
    operators: Iterable[str] = MATMULS,
    granularity: Granularity = "channel",
    floor: float = WEIGHT_FLOOR,
    progress: Progress | None = None,
) -> QuantizeResult:
    """Quantize `bundle` into the folder `out`.

    Args:
        weights: "int4" or "int8", block 32 and an 8-bit head, unless a `recipe` says otherwise; "mixed" picks
            4 or 8 bits for each group of matrices by a measurement, for one of the two targets; "fp32" keeps
            them, for a bundle whose cache alone is quantized.
        kv: "int8", "int4" or "fp32".
        operators: kinds of matmul to quantize; unknown names are refused.
        granularity: one cache scale per "channel", or per "tensor" with a warning where that loses channels.
        floor: share of the weight bytes, 0 to 1, below which the result is failed and nothing is written.
        progress: called with what is going on and the share done, 0 to 1.

    Raises `UserError` for an unknown format, a graph without weights, or a cache that cannot be quantized. A
    result that is `failed` has left nothing in `out`.
    """
    if kv not in ("fp32", *KV_BITS):
        raise UserError(f"unknown KV cache {kv!r}: use fp32, {', '.join(KV_BITS)}")
    if (weights, kv) == (KEPT, "fp32"):
        raise UserError("fp32 weights and cache leave nothing to do: ask for --kv int8 or other weights")
    model = load_graph(bundle.model_path)
    refuse_quantized(model, bundle.folder)
    found, reader = survey(model, operators), TensorReader(model, bundle.folder)
    tie_copies(found, reader)
    job = _Job(
        bundle=bundle,
        kv=kv,
        granularity=granularity,
        recipe=_recipe(bundle, weights, recipe, target_mb, target_kl, progress),
        found=found,
        reader=reader,
        tokenizer=Tokenizer.load(bundle.folder),
        progress=progress or _silent,
    )
    failed = _Failed()
    try:
        needed_bytes = bundle.weight_bytes // (1 if job.recipe is None else 2)
        with writing_bundle(out, sources=[bundle.folder], needed_bytes=needed_bytes) as folder:
            result = _fill(job, model, folder, out, floor, weights)
            if result.failed:
                raise failed
            _describe(bundle, folder, result)
    except _Failed:
        pass
    return result


def _recipe(
    bundle: Bundle,
    weights: str,
    recipe: Recipe | None,
    target_mb: float | None,
    target_kl: float | None,
    progress: Progress | None,
) -> Recipe | None:
    """The recipe that was asked for; None where the weights stay."""
    if weights == "mixed":
        return plan_mixed(bundle, target_mb=target_mb, target_kl=target_kl, base=recipe, progress=progress)[0]
    if (target_mb, target_kl) != (None, None):
        raise UserError(f"a target belongs to --weights mixed, not to {weights}")
    if weights == KEPT:
        return None
    return recipe or recipe_for(weights)


def _silent(_what: str, _share: float | None) -> None:
    """Progress that goes nowhere."""


class _Failed(Exception):
    """Takes a half-made bundle back; never leaves this module."""


def _fill(
    job: _Job, model: onnx.ModelProto, folder: Path, out: Path, floor: float, weights: str
) -> QuantizeResult:
    """Everything but `seatrial.json`, in the temporary folder."""
    seconds: dict[str, float] = {}
    with ExitStack() as stack:
        started = time.perf_counter()
        provenance = provenance_of(job.found, job.reader)
        report, balanced_inputs = _store_weights(job, model, folder / DATA)
        seconds["weights"] = time.perf_counter() - started
        reference = stack.enter_context(_reference(job.bundle))
        scales = _calibrate(job, reference, seconds)
        if scales is not None:
            quantize_cache(model, scales)
        (folder / MODEL).write_bytes(model.SerializeToString())
        _copy_texts(job.bundle.folder, folder)
        candidate = stack.enter_context(Session(open_bundle(folder), capacity=reference.capacity))
        agreement, saturated = _measure(job, reference, candidate, seconds)
        checks = [
            *(inspect_weights(folder / MODEL, floor, report.weight_bytes_share) if job.recipe else ()),
            *inspect_cache(folder / MODEL, job.kv, job.bundle.kv.layers),
            *inspect_run(agreement, candidate.weight_bytes_per_token, _expected_bytes(report, reference)),
        ]
    return QuantizeResult(
        out=out,
        weights=weights,
        kv=job.kv,
        matmuls=report.matmuls,
        of=report.of,
        weight_bytes_share=report.weight_bytes_share,
        refused=report.refused,
        formats=report.formats,
        tied=report.tied,
        balanced_inputs=balanced_inputs,
        sizes=_sizes(job.bundle.folder, folder),
        agreement=agreement,
        provenance=provenance.text(),
        checks=tuple(checks),
        kv_cache=_describe_cache(scales, saturated),
        seconds=seconds,
        warnings=() if scales is None else scales.warnings,
    )


def _store_weights(job: _Job, model: onnx.ModelProto, data: Path) -> tuple[WeightReport, int]:
    """Quantized as the recipe says, or copied tensor by tensor; and how many inputs were evened out."""
    if job.recipe is None:
        copied = quantize_weights(model, Survey(), job.reader, recipe_for("int8"), data)
        return replace(copied, of=job.found.of, weight_elements=job.found.weight_elements), 0
    job.progress("balancing", None)
    folds = find_folds(model, job.found, job.recipe) if job.recipe.balanced else []
    evened = balance(job.bundle, folds)
    moments = None
    if "gptq" in job.recipe.algorithms():
        moments = balanced_moments(second_moments(job.bundle), evened.factors)
    reader = BalancedReader(model, job.bundle.folder, evened)
    report = quantize_weights(
        model, job.found, reader, job.recipe, data, moments=moments, progress=job.progress
    )
    return report, len(folds)


def _reference(bundle: Bundle) -> Session:
    """The float model on its mapped file: no second copy of the weights in memory."""
    tokenizer = Tokenizer.load(bundle.folder)
    texts = [text(language) for language in LANGUAGES for text in (calibration_text, evaluation_text)]
    return Session(bundle, capacity=max(map(tokenizer.count, texts)), weights="mapped")


def _calibrate(job: _Job, reference: Session, seconds: dict[str, float]) -> KvScales | None:
    if job.kv == "fp32":
        return None
    started = time.perf_counter()
    job.progress("calibrating the KV cache", None)
    texts = [job.tokenizer.encode(calibration_text(language)) for language in LANGUAGES]
    peaks = peaks_of(reference, texts)
    scales = scales_from(peaks, bits=KV_BITS[job.kv], granularity=job.granularity)
    seconds["calibration"] = time.perf_counter() - started
    return scales


def _measure(
    job: _Job, reference: Session, candidate: Session, seconds: dict[str, float]
) -> tuple[dict[str, Agreement], float]:
    """Agreement per language, and the share of cache values at the ends of their range."""
    started = time.perf_counter()
    agreement: dict[str, Agreement] = {}
    at_ends = values = 0
    for done, language in enumerate(LANGUAGES):
        job.progress("measuring agreement", done / len(LANGUAGES))
        ids = job.tokenizer.encode(evaluation_text(language))
        agreement[language] = compare(reference, candidate, ids)
        if job.kv != "fp32":
            for rows in candidate.kv_rows().values():
                at_ends += clipped(rows, KV_BITS[job.kv])
                values += rows.size * 8 // KV_BITS[job.kv]
    job.progress("measuring agreement", 1.0)
    seconds["measuring"] = time.perf_counter() - started
    return agreement, at_ends / values if values else 0.0


def _expected_bytes(report: WeightReport, reference: Session) -> int:
    """Weight bytes per token as computed: what stayed float, plus the packed parts."""
    return reference.weight_bytes_per_token - report.read_float_bytes + report.read_bytes


def _describe_cache(scales: KvScales | None, saturated: float) -> dict[str, object]:
    if scales is None:
        return {}
    return {
        "bits": scales.bits,
        "granularity": scales.granularity,
        "headroom": scales.headroom,
        "share_at_the_ends": saturated,
    }


def _copy_texts(source: Path, folder: Path) -> None:
    """Config, tokenizer and templates; not the graph, its data or the old description."""
    for file in source.iterdir():
        if file.is_file() and file.suffix in (".json", ".jinja", ".model", ".txt") and file.name != INFO:
            shutil.copyfile(file, folder / file.name)


def _sizes(source: Path, folder: Path) -> dict[str, int]:
    return {"reference": _model_bytes(source), "quantized": _model_bytes(folder)}


def _model_bytes(folder: Path) -> int:
    """Bytes of graph and data files."""
    return sum(file.stat().st_size for file in folder.iterdir() if file.name.startswith(MODEL))


def _describe(bundle: Bundle, folder: Path, result: QuantizeResult) -> None:
    """`seatrial.json`: what the source said of itself, and what was done to it."""
    kept = {key: value for key, value in bundle.info.items() if key not in ("files", "checks")}
    versions = {**kept.get("versions", {}), "onnxruntime": ort.__version__, "onnx": onnx.__version__}
    write_info(folder, {**kept, **result.to_json(), "versions": versions})
