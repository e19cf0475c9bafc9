"""Even out the inputs of matmuls before rounding: what makes a channel large moves into the weights.

A block of inputs is rounded with one scale at run time (accuracy level 4), and so is a block of weights. A
channel that is larger than its neighbours costs them their steps. y = W x does not change when the column of
a channel is multiplied by s and its input divided by s; the division goes where it is free: into the gain of
the norm before, or into the rows of the matmul whose product is the input. s is a power of the channel's
root mean square over calibration text. Sources of the idea: Xiao et al., "SmoothQuant", 2022, and Lin et al.,
"AWQ", 2023; `bench/quantize_page.py balance` measures the exponent.

Which matrix gets how many bits is not known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from seatrial.export.bundle import Bundle
from seatrial.export.runtime import open_session, session_options
from seatrial.export.session import usable_cpus
from seatrial.export.session_graph import load_graph
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.reading import empty_inputs
from seatrial.quantize.recipe import Recipe
from seatrial.quantize.targets import Survey, Target
from seatrial.quantize.tensors import TensorReader
from seatrial.quantize.texts import LANGUAGES, calibration_text

Vector = NDArray[np.float64]

# Half of the way: all of it would only move the outliers from the inputs to the weights.
EXPONENT = 0.5
# A channel that hardly moves is not scaled beyond this share of the largest.
_LEAST_SHARE = 1e-4
# Tokens of each language, read in pieces whose activations are in memory at once.
PIECE, PIECES = 96, 2
# Places of gain and shift among a norm's inputs: what the inputs' reciprocal factors go into.
_GAINS = {
    "SimplifiedLayerNormalization": (1,),
    "RMSNormalization": (1,),
    "LayerNormalization": (1, 2),
    "SkipSimplifiedLayerNormalization": (2,),
    "SkipLayerNormalization": (2, 3),
}


@dataclass(frozen=True)
class Fold:
    """An input of matmuls, and what its factors are taken out of: constant vectors, or a matmul's rows."""

    source: str
    targets: tuple[Target, ...]
    gains: tuple[str, ...] = ()
    maker: Target | None = None


@dataclass(frozen=True)
class Balance:
    """Multipliers by tensor, each shaped to broadcast over it, and the factors of every input (K,)."""

    multipliers: Mapping[str, tuple[NDArray[np.float32], ...]] = field(default_factory=dict)
    factors: Mapping[str, Vector] = field(default_factory=dict)


class BalancedReader(TensorReader):
    """Values after balancing."""

    def __init__(self, model: onnx.ModelProto, folder: Path, balance: Balance) -> None:
        super().__init__(model, folder)
        self._multipliers = balance.multipliers

    def read(self, name: str) -> NDArray:
        values = super().read(name)
        for multiplier in self._multipliers.get(name, ()):
            values = (values * multiplier).astype(values.dtype, copy=False)
        return values


def find_folds(model: onnx.ModelProto, found: Survey, recipe: Recipe) -> list[Fold]:
    """Inputs whose factors have somewhere to go. `found` must be the survey of `model`.

    The head is left alone: its matrix may be the embedding too. Products are taken only in front of 4 bits;
    8 bits lose by it (their weights round as finely as the inputs, and these are uneven from token to token).
    """
    readers = _readers(model)
    makers = {name: node for node in model.graph.node for name in node.output}
    uses = Counter(target.weight for target in found.targets)
    by_output = {target.node.output[0]: target for target in found.targets if uses[target.weight] == 1}
    folds = []
    for source, targets in _by_source(found).items():
        maker = makers.get(source)
        only_matmuls = len(readers[source]) == len(targets)
        own = all(uses[target.weight] == 1 and target.group != "head" for target in targets)
        if maker is None or maker.output[0] != source or not only_matmuls or not own:
            continue
        if gains := _gains(maker, model, readers, targets[0].width):
            folds.append(Fold(source, targets, gains=gains))
        elif all(recipe.format_of(t.group).bits == 4 for t in targets):
            before = _factor_before(maker, by_output, readers)
            if before is not None:
                folds.append(Fold(source, targets, maker=before))
    return folds


def _by_source(found: Survey) -> dict[str, tuple[Target, ...]]:
    sources: dict[str, tuple[Target, ...]] = {}
    for target in found.targets:
        sources[target.node.input[0]] = (*sources.get(target.node.input[0], ()), target)
    return sources


def _readers(model: onnx.ModelProto) -> dict[str, list[onnx.NodeProto]]:
    readers: dict[str, list[onnx.NodeProto]] = {output.name: [output] for output in model.graph.output}
    for node in model.graph.node:
        inner = [i for a in node.attribute if a.HasField("g") for n in a.g.node for i in n.input]
        for name in (*node.input, *inner):
            readers.setdefault(name, []).append(node)
    return readers


def _gains(
    norm: onnx.NodeProto, model: onnx.ModelProto, readers: Mapping[str, Sequence[object]], width: int
) -> tuple[str, ...]:
    """Constant vectors that the norm's output is proportional to and that nobody else reads; () if none."""
    constants = {t.name for t in model.graph.initializer if list(t.dims) == [width]}
    if norm.op_type == "Mul":  # what is left of a norm that was not fused
        names = tuple(name for name in norm.input if name in constants)
    else:
        places = [place for place in _GAINS.get(norm.op_type, ()) if place < len(norm.input)]
        names = tuple(norm.input[place] for place in places if norm.input[place])
    own = all(name in constants and len(readers[name]) == 1 for name in names)
    return names if own else ()


def _factor_before(
    product: onnx.NodeProto, by_output: Mapping[str, Target], readers: Mapping[str, Sequence[object]]
) -> Target | None:
    """A plain matmul that is one factor of the product and feeds nothing else."""
    if product.op_type != "Mul":
        return None
    for name in reversed(product.input):
        target = by_output.get(name)
        if target is not None and target.node.op_type == "MatMul" and len(readers[name]) == 1:
            return target
    return None


def balance(bundle: Bundle, folds: Sequence[Fold], exponent: float = EXPONENT) -> Balance:
    """Measure the inputs of `folds` and derive the multipliers."""
    sizes = root_mean_squares(bundle, sorted({fold.source for fold in folds}))
    return balance_from(folds, sizes, exponent)


def balance_from(folds: Sequence[Fold], sizes: Mapping[str, Vector], exponent: float = EXPONENT) -> Balance:
    """Multipliers from the inputs' root mean squares (K,)."""
    multipliers: dict[str, tuple[NDArray[np.float32], ...]] = {}
    factors = {fold.source: channel_factors(sizes[fold.source], exponent) for fold in folds}

    def scale(name: str, vector: Vector, axis: int | None) -> None:
        shaped = vector if axis is None else np.expand_dims(vector, 1 - axis)
        multipliers[name] = (*multipliers.get(name, ()), shaped.astype(np.float32))

    for fold in folds:
        of = factors[fold.source]
        for target in fold.targets:
            scale(target.weight, of, 1 if target.transposed else 0)
        for name in fold.gains:
            scale(name, 1 / of, None)
        if fold.maker is not None:
            scale(fold.maker.weight, 1 / of, 0 if fold.maker.transposed else 1)
    return Balance(multipliers, factors)


def channel_factors(sizes: Vector, exponent: float) -> Vector:
    """(size / typical size) ** exponent of every channel; all one for inputs that never move."""
    largest = float(sizes.max())
    if not np.isfinite(largest) or largest <= 0:
        return np.ones_like(sizes)
    logs = np.log(np.maximum(sizes, _LEAST_SHARE * largest))
    return np.exp(exponent * (logs - logs.mean()))


def root_mean_squares(bundle: Bundle, sources: Sequence[str]) -> dict[str, Vector]:
    """Root mean square of every channel of some tensors (K,), over calibration text in both languages.

    The first position is left out: models park an outlier there that no other token has.
    """
    if not sources:
        return {}
    model = load_graph(bundle.model_path)
    present = {output.name for output in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in sources if name not in present)
    options = session_options(usable_cpus())
    options.add_session_config_entry("session.disable_prepacking", "1")
    engine = open_session(model.SerializeToString(), options, bundle.folder)
    squares: dict[str, Vector] = {}
    for ids in _pieces(bundle):
        for name, values in zip(sources, engine.run(list(sources), empty_inputs(engine, ids)), strict=True):
            rows = values.reshape(-1, values.shape[-1])[1:].astype(np.float64)
            squares[name] = squares.get(name, np.float64(0)) + (rows * rows).mean(axis=0)
    return {name: np.sqrt(total / (len(LANGUAGES) * PIECES)) for name, total in squares.items()}


def _pieces(bundle: Bundle) -> list[list[int]]:
    tokenizer = Tokenizer.load(bundle.folder)
    texts = [tokenizer.encode(calibration_text(language)) for language in LANGUAGES]
    return [ids[at : at + PIECE] for ids in texts for at in range(0, PIECE * PIECES, PIECE)]
