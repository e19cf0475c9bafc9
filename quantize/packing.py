"""Codes, scales and zero points of block-quantized weights, packed the way `MatMulNBits` reads them.

One row of the matrix is cut into blocks of `block` neighbours; value = (code - zero_point) * scale. Without
zero points the implied one is 2 ** (bits - 1). Two 4-bit codes share a byte, the first in the low nibble;
4-bit zero points are packed the same way along the blocks of a row, an odd row ending in an unused high
nibble. Source of the layout: onnxruntime's operator documentation of com.microsoft.MatMulNBits.

Pure functions over arrays; how codes are chosen is in rounding.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import UserError

Codes = NDArray[np.uint8]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class PackedWeight:
    """A matrix of `rows` x `width` (N x K) in blocks, packed.

    Shapes: packed (N, blocks, block * bits / 8), scales (N, blocks), zero_points (N, ceil(blocks * bits / 8))
    as uint8, or None where the zero point is implied, or (N, blocks) float32 (HQQ).
    """

    bits: int
    block: int
    width: int
    packed: Codes
    scales: Floats
    zero_points: Codes | Floats | None = None

    @property
    def rows(self) -> int:
        return int(self.packed.shape[0])

    @property
    def blocks(self) -> int:
        return int(self.packed.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of codes, scales and zero points."""
        zero_bytes = 0 if self.zero_points is None else self.zero_points.nbytes
        return self.packed.nbytes + self.scales.nbytes + zero_bytes


def check_format(bits: int, block: int) -> None:
    """Refuse formats that no kernel reads."""
    if bits not in (4, 8):
        raise UserError(f"weights can have 4 or 8 bits, got {bits}: use int4 or int8")
    if block not in (16, 32, 64, 128, 256):
        raise UserError(f"the block size must be 16, 32, 64, 128 or 256, got {block}")


def block_count(width: int, block: int) -> int:
    """Blocks in a row; the last one may be ragged."""
    return -(-width // block)


def pack_codes(codes: Codes, bits: int) -> Codes:
    """Codes (..., n) to bytes (..., n * bits / 8); n must be even for 4 bits."""
    if bits == 8:
        return codes
    return (codes[..., 0::2] | (codes[..., 1::2] << 4)).astype(np.uint8)


def unpack_codes(packed: Codes, bits: int) -> Codes:
    """Bytes (..., m) to codes (..., m * 8 / bits), the inverse of `pack_codes`."""
    if bits == 8:
        return packed
    return np.stack([packed & 0x0F, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)


def pack_zero_points(zero_points: Codes, bits: int) -> Codes:
    """Zero points (N, blocks) to bytes (N, ceil(blocks * bits / 8)), as they are: 0 stays 0."""
    if bits == 4 and zero_points.shape[1] % 2:
        zero_points = np.pad(zero_points, ((0, 0), (0, 1)))
    return pack_codes(zero_points, bits)


def unpack_zero_points(packed: Codes, bits: int, blocks: int) -> Codes:
    """The inverse of `pack_zero_points`."""
    return unpack_codes(packed, bits)[:, :blocks]


def zero_points_of(weight: PackedWeight) -> Floats:
    """Zero points (N, blocks) as numbers, the implied one where none are stored."""
    if weight.zero_points is None:
        return np.full((weight.rows, weight.blocks), 2 ** (weight.bits - 1), np.float32)
    if weight.zero_points.dtype == np.uint8:
        stored = weight.zero_points.view(np.uint8)
        return unpack_zero_points(stored, weight.bits, weight.blocks).astype(np.float32)
    return weight.zero_points.astype(np.float32)


def dequantize(weight: PackedWeight) -> Floats:
    """The matrix (N, K) that the packed form stands for."""
    codes = unpack_codes(weight.packed, weight.bits).astype(np.float32)
    values = (codes - zero_points_of(weight)[..., None]) * weight.scales[..., None]
    return values.reshape(weight.rows, -1)[:, : weight.width]
