"""Which parts of a model suffer most from few bits: measured, one group of matrices at a time.

The float graph is opened once with its weights as inputs that have a default; for each group only its
matrices are replaced by their rounded values and the calibration text is read again. Where their inputs are
evened out first (balance.py), so are they: rounded with the factors, and the factors taken back. KL from the
unchanged model, in nats, averaged over positions of texts in both languages. Activations stay float, so this
is the weights' share alone.

Results are kept in the cache under the model's content and the formats; what to do with them is mixed.py's
part.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import helper

from seatrial.export.bundle import Bundle
from seatrial.export.cache import cache_folder
from seatrial.export.files import sha256_of
from seatrial.export.runtime import open_session, session_options
from seatrial.export.session import usable_cpus
from seatrial.export.session_graph import load_graph
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.agreement import kl_rows
from seatrial.quantize.balance import Balance, balance, find_folds
from seatrial.quantize.packing import dequantize
from seatrial.quantize.reading import empty_inputs
from seatrial.quantize.recipe import GENERATION, Format, Recipe
from seatrial.quantize.rounding import quantize_rows
from seatrial.quantize.targets import Survey, Target, survey
from seatrial.quantize.tensors import TensorReader
from seatrial.quantize.texts import LANGUAGES, calibration_text
from seatrial.quantize.weights import Progress

# Tokens of each language: enough to rank 60 groups whose effects differ by factors, quick enough to wait for.
TOKENS = 160


@dataclass(frozen=True)
class Sensitivity:
    """KL (nats) of each group when it alone is stored as `format`."""

    format: str
    kl: Mapping[str, float]


class Probe:
    """The float model with replaceable weights."""

    def __init__(self, bundle: Bundle, threads: int | None = None) -> None:
        self.model = model = load_graph(bundle.model_path)
        self.found = survey(model)
        self.reader = TensorReader(model, bundle.folder)
        for name in {target.weight for target in self.found.targets}:
            _make_replaceable(model, name)
        options = session_options(threads or usable_cpus())
        # Replaceable weights cannot be packed in advance, and the others stay mapped.
        options.add_session_config_entry("session.disable_prepacking", "1")
        self._engine = open_session(model.SerializeToString(), options, bundle.folder)

    def logits(
        self, ids: Sequence[int], replaced: Mapping[str, NDArray] | None = None
    ) -> NDArray[np.float32]:
        """Float32 logits (T, V) of a text, with some weights replaced."""
        feeds = {**empty_inputs(self._engine, ids), **(replaced or {})}
        return self._engine.run(["logits"], feeds)[0][0].astype(np.float32, copy=False)


def measure_sensitivity(
    bundle: Bundle,
    low: Format,
    *,
    balanced: bool = True,
    progress: Progress | None = None,
    tokens: int = TOKENS,
) -> Sensitivity:
    """KL of every group in `low`, from the cache when this model and format were measured before."""
    file = cache_folder() / "sensitivity" / f"{_key(bundle, low, balanced, tokens)}.json"
    if file.is_file():
        return Sensitivity(low.name(), json.loads(file.read_text(encoding="utf-8")))
    probe = Probe(bundle)
    evened = (
        balance(bundle, find_folds(probe.model, probe.found, Recipe(low, low))) if balanced else Balance()
    )
    measured = _measure(probe, _texts(bundle, tokens), low, evened, progress)
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(measured, indent=1), encoding="utf-8")
    partial.replace(file)
    return Sensitivity(low.name(), measured)


def _measure(
    probe: Probe, texts: list[list[int]], low: Format, evened: Balance, progress: Progress | None
) -> dict[str, float]:
    plain = [probe.logits(ids) for ids in texts]
    groups = groups_of(probe.found)
    measured: dict[str, float] = {}
    for done, (group, targets) in enumerate(groups.items()):
        replaced = {
            target.weight: rounded(
                probe.reader.read(target.weight), target, low, evened.multipliers.get(target.weight, ())
            )
            for target in targets
        }
        rows = [kl_rows(p, probe.logits(ids, replaced)) for p, ids in zip(plain, texts, strict=True)]
        # Each language counts the same, however many tokens it needs.
        measured[group] = float(np.mean([row.mean() for row in rows]))
        if progress is not None:
            progress("measuring sensitivity", (done + 1) / len(groups))
    return measured


def groups_of(found: Survey) -> dict[str, list[Target]]:
    """Targets by group, one per matrix."""
    groups: dict[str, dict[str, Target]] = {}
    for target in found.targets:
        groups.setdefault(target.group, {})[target.weight] = target
    return {group: list(members.values()) for group, members in groups.items()}


def rounded(
    values: NDArray, target: Target, low: Format, multipliers: Sequence[NDArray[np.float32]] = ()
) -> NDArray:
    """A target's matrix in its own orientation and type after a round trip through `low`.

    With `multipliers` it is evened out for the trip: what these took out of the inputs is in the model's
    other half, which is not replaced, so it is taken back.
    """
    factor = math.prod(multipliers[1:], start=multipliers[0]) if multipliers else None
    evened = values if factor is None else values * factor
    rows = np.asarray(evened if target.transposed else evened.T, np.float32)
    # GPTQ needs inputs; for a ranking its grid is what counts, and that is the one of rounding to nearest.
    algorithm = "rtn" if low.algorithm == "gptq" else low.algorithm
    packed = quantize_rows(rows, bits=low.bits, block=low.block, symmetric=low.symmetric, algorithm=algorithm)
    back = dequantize(packed) if target.transposed else dequantize(packed).T
    return np.ascontiguousarray(back if factor is None else back / factor).astype(values.dtype)


def _make_replaceable(model: onnx.ModelProto, name: str) -> None:
    tensor = next(t for t in model.graph.initializer if t.name == name)
    model.graph.input.append(helper.make_tensor_value_info(name, tensor.data_type, list(tensor.dims)))


def _texts(bundle: Bundle, tokens: int) -> list[list[int]]:
    tokenizer = Tokenizer.load(bundle.folder)
    return [tokenizer.encode(calibration_text(language))[:tokens] for language in LANGUAGES]


def _key(bundle: Bundle, low: Format, balanced: bool, tokens: int) -> str:
    """Content of the model, the format and the text; `GENERATION` stands for how weights are evened out."""
    digest = hashlib.sha256(Path(bundle.model_path).read_bytes())
    for file in bundle.data_files:
        digest.update(
            (bundle.info.get("files", {}).get(file.name, {}).get("sha256") or sha256_of(file)).encode()
        )
    texts = "".join(calibration_text(language) for language in LANGUAGES)
    digest.update(f"{low.name()} {GENERATION if balanced else 0} {tokens} {ort.__version__} {texts}".encode())
    return digest.hexdigest()[:24]
