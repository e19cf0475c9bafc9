"""Was the reference quantized before we saw it? Its weights tell: few distinct values per block.

A float matrix has as many values in a block of 32 neighbours as there are places; one that came out of a
4-bit file has at most 16, whatever its type says. Agreement with such a reference is agreement with a
rounded model, so every report names it. A graph that says so itself, by its operators, is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from seatrial.errors import UserError
from seatrial.quantize.targets import Survey
from seatrial.quantize.tensors import TensorReader

BLOCK = 32
# Blocks looked at in one matrix, and matrices in one model: enough to see a format, not a scan of the file.
_BLOCKS, _MATRICES = 512, 24
_MARGIN = 2  # a stray value, the zeros of a padded row
_ROUNDED = {
    "MatMulNBits",
    "MatMulBnb4",
    "MatMulInteger",
    "MatMulIntegerToFloat",
    "DynamicQuantizeMatMul",
    "QLinearMatMul",
    "GatherBlockQuantized",
}
_CODES = {onnx.TensorProto.INT8, onnx.TensorProto.UINT8}


@dataclass(frozen=True)
class Provenance:
    """What the weights look like: the bits that explain them, None for full precision."""

    bits: int | None
    share: float  # of the matrices looked at

    def text(self) -> str:
        """One phrase for reports."""
        if self.bits is None:
            return "full precision (no sign of an earlier quantization in the weights)"
        return (
            f"already quantized to about {self.bits} bits before export "
            f"({self.share:.0%} of the matrices have few distinct values per block): "
            "figures are relative to that"
        )


def distinct_values(rows: NDArray, block: int = BLOCK) -> int:
    """The median number of distinct values in blocks of `block` neighbours of a matrix (N, K)."""
    whole = rows.shape[1] // block * block
    blocks = np.sort(np.asarray(rows[:, :whole], np.float32).reshape(-1, block), axis=1)
    return int(np.median((np.diff(blocks, axis=1) != 0).sum(axis=1) + 1))


def bits_of(count: int, block: int = BLOCK) -> int | None:
    """Bits that explain `count` distinct values in a block; None when the block would be no smaller."""
    for bits in (2, 3, 4):
        if count <= 2**bits + _MARGIN and 2**bits + _MARGIN < block:
            return bits
    return None


def provenance_of(found: Survey, reader: TensorReader) -> Provenance:
    """Look at a spread of the matrices, each along its rows (the direction that formats block)."""
    targets = [t for t in found.targets if t.width >= BLOCK]
    step = max(1, len(targets) // _MATRICES)
    votes = []
    for target in targets[::step]:
        values = reader.read(target.weight)
        rows = values if target.transposed else values.T
        few = max(1, _BLOCKS * BLOCK // rows.shape[1])
        stride = max(1, len(rows) // few)
        votes.append(bits_of(distinct_values(rows[::stride][:few])))
    quantized = [bits for bits in votes if bits is not None]
    if not votes or len(quantized) * 2 < len(votes):
        return Provenance(None, 1 - len(quantized) / len(votes) if votes else 1.0)
    return Provenance(int(np.median(quantized)), len(quantized) / len(votes))


def refuse_quantized(model: onnx.ModelProto, folder: Path) -> None:
    """Raises `UserError` for a graph with rounded weights or cache: it would be reported as rounded once."""
    weights = sorted({node.op_type for node in model.graph.node} & _ROUNDED)
    if weights:
        raise UserError(
            f"{folder} is quantized already ({', '.join(weights)}): give the float model it came from"
        )
    caches = [value for value in model.graph.input if value.name.startswith("past_key_values.")]
    if any(value.type.tensor_type.elem_type in _CODES for value in caches):
        raise UserError(f"the KV cache of {folder} is quantized already: give the float model it came from")
