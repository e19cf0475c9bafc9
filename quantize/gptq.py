"""GPTQ: round column by column and let the columns that follow make up for the error.

onnxruntime's own version returns rounded weights without the grid they lie on, so that packing them rounds a
second time; this one returns the codes. Source of the method: Frantar et al., "GPTQ: Accurate Post-Training
Quantization for Generative Pre-trained Transformers", 2022, algorithm 1 (no reordering of columns).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_DAMPING = 0.01  # of the mean diagonal, as in the paper


def gptq_codes(
    rows: NDArray[np.float32], moments: Array, *, bits: int, block: int, symmetric: bool
) -> tuple[NDArray[np.uint8], Array, NDArray[np.uint8]]:
    """Codes (N, K), scales and zero points (N * blocks, 1) for rows (N, K) and second moments (K, K).

    K must be a multiple of `block`.
    """
    left = rows.astype(np.float64)
    factor = inverse_factor(moments)
    codes = np.zeros(left.shape, np.uint8)
    scales, zeros = [], []
    for start in range(0, left.shape[1], block):
        end = start + block
        scale, zero = block_grid(left[:, start:end], bits, symmetric)
        errors = np.zeros((len(left), block))
        for column in range(start, end):
            code = np.clip(np.rint(left[:, column] / scale) + zero, 0, 2**bits - 1)
            error = (left[:, column] - (code - zero) * scale) / factor[column, column]
            left[:, column:end] -= np.outer(error, factor[column, column:end])
            codes[:, column], errors[:, column - start] = code, error
        left[:, end:] -= errors @ factor[start:end, end:]
        scales.append(scale)
        zeros.append(zero)
    return codes, np.stack(scales, 1).reshape(-1, 1), np.stack(zeros, 1).astype(np.uint8).reshape(-1, 1)


def inverse_factor(moments: Array) -> Array:
    """Upper Cholesky factor (K, K) of the damped inverse of the second moments."""
    damped = moments.copy()
    diagonal = np.diag(damped).copy()
    diagonal[diagonal == 0] = 1.0  # inputs that never move
    np.fill_diagonal(damped, diagonal + _DAMPING * diagonal.mean())
    return np.linalg.cholesky(np.linalg.inv(damped)).T


def block_grid(values: Array, bits: int, symmetric: bool) -> tuple[Array, Array]:
    """Scale and zero point (N,) of one block (N, block); blocks of zeros get the scale 1."""
    if symmetric:
        peak = np.take_along_axis(values, np.abs(values).argmax(1)[:, None], 1)[:, 0]
        scale = -peak / 2 ** (bits - 1)
        return np.where(scale == 0, 1.0, scale), np.full(len(values), 2.0 ** (bits - 1))
    low, high = np.minimum(values.min(1), 0), np.maximum(values.max(1), 0)
    scale = (high - low) / (2**bits - 1)
    scale = np.where(scale == 0, 1.0, scale)
    return scale, np.clip(np.rint(-low / scale), 0, 2**bits - 1)
