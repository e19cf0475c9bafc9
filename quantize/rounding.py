"""How the codes of a block are chosen: round to nearest, k_quant, HQQ, GPTQ.

Every function takes float32 rows (N, K) and gives a `PackedWeight`. onnxruntime's own quantizers do the
work where it has them; the last block of a ragged row is filled with zeros, which never widen a block's
range in an asymmetric format (it holds zero anyway) and cost nothing in the product.

What none of them knows: which matrix this is, and whether it was quantized before.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from onnxruntime.capi._pybind_state import quantize_matmul_4bits, quantize_matmul_8bits

from seatrial.errors import UserError
from seatrial.quantize.packing import (
    Floats,
    PackedWeight,
    block_count,
    check_format,
    pack_codes,
    pack_zero_points,
)

ALGORITHMS = ("rtn", "k_quant", "hqq", "gptq")
# k_quant and HQQ hold several float copies of what they work on: this many rows' elements at a time.
_ELEMENTS_AT_ONCE = 1 << 21


def quantize_rows(
    rows: Floats,
    *,
    bits: int,
    block: int,
    symmetric: bool = True,
    algorithm: str = "rtn",
    second_moments: NDArray[np.floating] | None = None,
) -> PackedWeight:
    """Quantize a matrix (N, K), blocks along K.

    `second_moments` (K, K) is sum(x x^T) of the inputs that the matrix sees; GPTQ needs it, the others do
    not. Raises `UserError` for a format without a kernel or a combination that an algorithm does not have.
    """
    check_format(bits, block)
    if algorithm == "rtn":
        return _round_to_nearest(rows, bits, block, symmetric)
    if algorithm == "gptq":
        return _gptq(rows, bits, block, symmetric, second_moments)
    if symmetric:
        raise UserError(
            f"{algorithm} is an asymmetric algorithm: ask for asymmetric blocks or for rtn or gptq"
        )
    by_name: dict[str, Callable[[Floats, int, int], PackedWeight]] = {"k_quant": _k_quant, "hqq": _hqq}
    if algorithm not in by_name:
        raise UserError(f"unknown algorithm {algorithm!r}: use one of {', '.join(ALGORITHMS)}")
    step = max(1, _ELEMENTS_AT_ONCE // rows.shape[1])
    pieces = [by_name[algorithm](rows[at : at + step], bits, block) for at in range(0, len(rows), step)]
    return _stack(pieces)


def _stack(pieces: list[PackedWeight]) -> PackedWeight:
    first = pieces[0]
    zero_points = None if first.zero_points is None else np.concatenate([p.zero_points for p in pieces])
    packed, scales = (np.concatenate([getattr(p, name) for p in pieces]) for name in ("packed", "scales"))
    return PackedWeight(first.bits, first.block, first.width, packed, scales, zero_points)


def _padded(rows: Floats, block: int) -> Floats:
    """Rows (N, blocks * block), zeros behind a ragged end."""
    missing = -rows.shape[1] % block
    return np.pad(rows, ((0, 0), (0, missing))) if missing else rows


def _round_to_nearest(rows: Floats, bits: int, block: int, symmetric: bool) -> PackedWeight:
    """onnxruntime's own kernel, which takes the matrix as (K, N)."""
    count, width = rows.shape
    blocks = block_count(width, block)
    columns = np.ascontiguousarray(_padded(rows, block).T)
    packed = np.zeros((count, blocks, block * bits // 8), np.uint8)
    scales = np.zeros((count, blocks), np.float32)
    zero_points = np.zeros((count, -(-blocks * bits // 8)), np.uint8)
    kernel = {4: quantize_matmul_4bits, 8: quantize_matmul_8bits}[bits]
    kernel(
        packed,
        columns,
        scales.reshape(-1),
        zero_points.reshape(-1),
        block,
        count,
        columns.shape[0],
        symmetric,
    )
    return PackedWeight(bits, block, width, packed, scales, None if symmetric else zero_points)


def _k_quant(rows: Floats, bits: int, block: int) -> PackedWeight:
    """llama.cpp's search for scale and minimum, as onnxruntime has it."""
    from onnxruntime.quantization.neural_compressor.weight_only import quant_tensor_k_quant_cpu

    blocks = _padded(rows, block).reshape(-1, block)
    with np.errstate(divide="ignore", invalid="ignore"):  # constant blocks: put right below
        codes, scales, zero_points = quant_tensor_k_quant_cpu(blocks, bits, block)
    codes, scales, zero_points = _without_empty_blocks(blocks, codes, scales, zero_points, bits)
    return _from_codes(codes, scales, zero_points, rows, bits, block)


def _without_empty_blocks(
    blocks: Floats, codes: NDArray, scales: NDArray, zero_points: NDArray, bits: int
) -> tuple[NDArray, NDArray, NDArray]:
    """Blocks of one repeated value, where the search divides by zero: the value is the scale, or all is 0."""
    constant = blocks.min(axis=1) == blocks.max(axis=1)
    value = blocks[:, :1]
    one = np.where(value == 0, 0, 1)
    middle = 2 ** (bits - 1)
    codes = np.where(constant[:, None], middle + one, codes)
    scales = np.where(constant[:, None], np.where(value == 0, 1.0, value), scales)
    return codes, scales, np.where(constant[:, None], middle, zero_points)


def _from_codes(
    codes: NDArray, scales: NDArray, zero_points: NDArray, rows: Floats, bits: int, block: int
) -> PackedWeight:
    """Codes (N * blocks, block) with one scale and zero point each, packed."""
    count, width = rows.shape
    blocks = block_count(width, block)
    return PackedWeight(
        bits=bits,
        block=block,
        width=width,
        packed=pack_codes(codes.astype(np.uint8).reshape(count, blocks, block), bits),
        scales=scales.astype(np.float32).reshape(count, blocks),
        zero_points=pack_zero_points(zero_points.astype(np.uint8).reshape(count, blocks), bits),
    )


def _hqq(rows: Floats, bits: int, block: int) -> PackedWeight:
    """Half-quadratic quantization as onnxruntime has it: float zero points, and torch to find them."""
    try:
        import torch
    except ImportError as error:
        raise UserError("hqq needs torch: install seatrial[export], or use rtn, k_quant or gptq") from error
    from onnxruntime.quantization.matmul_nbits_quantizer import (
        HQQWeightOnlyQuantConfig,
        HQQWeightOnlyQuantizer,
    )

    solver = HQQWeightOnlyQuantizer(HQQWeightOnlyQuantConfig(block_size=block, bits=bits))
    given = torch.from_numpy(np.ascontiguousarray(_padded(rows, block)))
    codes, scales, zero_points = solver.quantize_internal(given, bits=bits, group_size=block)
    count, blocks = len(rows), block_count(rows.shape[1], block)
    packed = pack_codes(codes.numpy().astype(np.uint8).reshape(count, blocks, block), bits)
    floats = [part.numpy().astype(np.float32).reshape(count, blocks) for part in (scales, zero_points)]
    return PackedWeight(bits, block, rows.shape[1], packed, floats[0], floats[1])


def _gptq(
    rows: Floats, bits: int, block: int, symmetric: bool, second_moments: NDArray[np.floating] | None
) -> PackedWeight:
    from seatrial.quantize.gptq import gptq_codes

    if second_moments is None:
        raise UserError("gptq needs calibration: quantize a whole bundle with it, not a single matrix")
    padded = _padded(rows, block)
    moments = np.pad(np.asarray(second_moments, np.float64), (0, padded.shape[1] - rows.shape[1]))
    codes, scales, zero_points = gptq_codes(padded, moments, bits=bits, block=block, symmetric=symmetric)
    weight = _from_codes(codes.reshape(-1, block), scales, zero_points, rows, bits, block)
    if symmetric:
        return PackedWeight(bits, block, weight.width, weight.packed, weight.scales, None)
    return weight
