"""Planted breakdowns: faults of which it is known that the text is broken, and from which token on.

A fault stands between the engine and whoever chooses the token: it may change the logits (the model is
broken), the token (the sampler is broken) or what the engine has read (the memory is broken). Faults in the
weights themselves are another bundle, see `broken_bundle`. Which guard sees what is not known here.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import UserError

if TYPE_CHECKING:
    from seatrial.export.bundle import Bundle

Logits = NDArray[np.float32]

# In the logits, in the choice, in what was read, in the weights.
KINDS = (
    "flat-logits",
    "noisy-logits",
    "not-finite",
    "loop",
    "stuck-token",
    "hot-sampler",
    "scrambled-memory",
    "noised-weights",
    "flipped-bits",
)
IN_WEIGHTS = ("noised-weights", "flipped-bits")

_FLATTER = 4.0  # logits are divided by this
_NOISE = 6.0  # standard deviation of what is added to each logit, in nats
_HEAT = 2.5  # temperature of the broken sampler
_PHRASE = 7  # tokens of the loop
_SCRAMBLED = 48  # random tokens read in place of what was written
_SMALL = 4096  # elements: norms and constants stay as they are


@dataclass
class Fault:
    """One fault that begins at token `at` (0: with the first). Seeded; use one object for one generation."""

    kind: str
    at: int
    seed: int

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UserError(f"no planted fault {self.kind!r}; known: {', '.join(KINDS)}")
        self._rng = np.random.default_rng([self.seed, KINDS.index(self.kind)])

    def logits(self, index: int, logits: Logits) -> Logits:
        """What the guard and the choice see in place of `logits` (V,)."""
        if index < self.at:
            return logits
        if self.kind == "flat-logits":
            return logits / np.float32(_FLATTER)
        if self.kind == "noisy-logits":
            return logits + self._rng.normal(0.0, _NOISE, len(logits)).astype(np.float32)
        if self.kind == "not-finite":
            return np.full_like(logits, np.nan)
        return logits

    def choose(self, index: int, logits: Logits, written: list[int]) -> int:
        """The next token: the best one, unless the fault is in the choice."""
        best = int(np.nan_to_num(logits, nan=-np.inf).argmax())
        if index < self.at:
            return best
        if self.kind == "loop":
            return written[-_PHRASE] if len(written) >= _PHRASE else best
        if self.kind == "stuck-token":
            return written[-1] if index > self.at else best
        if self.kind == "hot-sampler":
            return self._draw(logits / np.float32(_HEAT))
        if self.kind == "flat-logits":
            return self._draw(logits)
        return best

    def scrambled(self, index: int, vocabulary: int) -> list[int]:
        """Tokens that the engine reads unasked before step `index`; mostly none."""
        if self.kind != "scrambled-memory" or index != self.at:
            return []
        return [int(t) for t in self._rng.integers(0, vocabulary, _SCRAMBLED)]

    def _draw(self, logits: Logits) -> int:
        weights = np.exp(logits.astype(np.float64) - float(logits.max()))
        return int(self._rng.choice(len(weights), p=weights / weights.sum()))


def broken_bundle(bundle: Bundle, out: Path, kind: str, *, severity: float, seed: int = 0) -> Path:
    """A copy of `bundle` with broken weights in `out`, all or nothing; the folder.

    "noised-weights" multiplies each scale (or fp32 weight) by exp(severity * N(0, 1)); "flipped-bits" flips
    each bit of the packed weights with the probability `severity`. Embedding and head stay as they are.
    `UserError` when the bundle has no weights in external data to break.
    """
    if kind not in IN_WEIGHTS:
        raise UserError(f"{kind!r} is no fault of weights; known: {', '.join(IN_WEIGHTS)}")
    from seatrial.export.bundle import INFO, write_info, writing_bundle

    rng = np.random.default_rng([seed, KINDS.index(kind)])
    size = sum(file.stat().st_size for file in bundle.folder.iterdir() if file.is_file())
    with writing_bundle(out, sources=[bundle.folder], needed_bytes=size) as folder:
        for file in bundle.folder.iterdir():
            if file.is_file() and file.name != INFO:
                shutil.copyfile(file, folder / file.name)
        touched = _spoil(
            folder / bundle.model_path.name, int(bundle.config["vocab_size"]), kind, severity, rng
        )
        if not touched:
            raise UserError(f"{bundle.folder} has no layer weights in external data for {kind} to break")
        planted = {"kind": kind, "severity": severity, "seed": seed, "tensors": touched}
        kept = {key: value for key, value in bundle.info.items() if key != "files"}
        write_info(folder, {**kept, "planted": planted})
    return out


def _spoil(model: Path, vocabulary: int, kind: str, severity: float, rng: np.random.Generator) -> int:
    """Breaks the layers' tensors in the data file; how many."""
    import onnx

    touched = 0
    graph = onnx.load(model, load_external_data=False).graph
    wanted = _of_layers(graph, vocabulary)
    for tensor in graph.initializer:
        place = {entry.key: entry.value for entry in tensor.external_data}
        elements = int(np.prod(tensor.dims))
        if not place or elements <= _SMALL or tensor.name not in wanted or vocabulary in tensor.dims:
            continue
        dtype = {1: np.float32, 2: np.uint8, 3: np.int8}.get(tensor.data_type)
        if dtype is None or (kind == "noised-weights") != (dtype is np.float32):
            continue
        data = np.memmap(
            model.parent / place["location"], dtype, "r+", int(place.get("offset", 0)), shape=(elements,)
        )
        data[:] = _SPOILERS[kind](data, severity, rng)
        data.flush()
        touched += 1
    return touched


def _of_layers(graph: Any, vocabulary: int) -> set[str]:
    """Names of what the products of the layers read: no embedding, no head, no tables of positions."""
    looked_up = {name for node in graph.node if node.op_type.startswith("Gather") for name in node.input}
    names: set[str] = set()
    for node in graph.node:
        rows = {attribute.name: attribute.i for attribute in node.attribute}.get("N")
        if node.op_type in ("MatMul", "MatMulNBits", "Gemm") and rows != vocabulary:
            names.update(node.input)
    return names - looked_up


def _noised(values: NDArray, severity: float, rng: np.random.Generator) -> NDArray:
    return values * np.exp(severity * rng.standard_normal(len(values), np.float32))


def _flipped(values: NDArray, severity: float, rng: np.random.Generator) -> NDArray:
    """Each bit with the probability `severity`."""
    bits = np.unpackbits(values.view(np.uint8))
    hit = rng.random(len(bits), np.float32) < severity
    return np.packbits(bits ^ hit).view(values.dtype)


_SPOILERS: dict[str, Callable[[NDArray, float, np.random.Generator], NDArray]] = {
    "noised-weights": _noised,
    "flipped-bits": _flipped,
}
