"""What one row of logits says about the model's certainty, in nats over the whole vocabulary.

With x = logits - max and p = softmax(x): entropy H = ln(sum e^x) - E[x]; varentropy = Var[x] (the variance of
-ln p); margin = p of the best token minus p of the second best. A masked entry (-inf) has probability zero
and adds nothing: 0 * -inf is taken as its limit, 0. NaN, +inf, or a row with nothing but -inf is "not
finite".

The raw softmax on purpose: temperature, top-k and penalties belong to the sampler and would hide what the
model knew. What a high value *means* is not known here; see `breakdown`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import UserError

# 2^-115 (or e^-115) of the best token's probability: 150,000 such entries add nothing to the sums below.
_NEGLIGIBLE = np.float32(-115.0)
_PIECE = 1 << 15  # values: four buffers of them fit into the second-level cache


def _has_vector_exp2() -> bool:
    """Whether numpy brings its own vector code for exp2 here: it does with AVX-512, else libm is called."""
    found = np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", [])
    return bool({"X86_V4", "AVX512_SKX"} & set(found))


# Powers of two where they are faster (half the time of np.exp with AVX-512), else of e; x in `_UNIT` nats.
_POWER, _UNIT = (np.exp2, math.log(2.0)) if _has_vector_exp2() else (np.exp, 1.0)
_PER_NAT = np.float32(1.0 / _UNIT)


@dataclass(frozen=True)
class Signals:
    """Certainty at one step. Probabilities are shares of one, the rest is in nats (varentropy: nats squared).

    `finite` False means that the row held NaN, +inf or only -inf; every figure is then NaN.
    `logprob` is NaN when no token was named.
    """

    entropy: float
    max_prob: float
    margin: float
    varentropy: float
    logprob: float
    finite: bool = True


_NOT_FINITE = Signals(math.nan, math.nan, math.nan, math.nan, math.nan, finite=False)


class SignalMeter:
    """Signals of one row after another, without allocating.

    A row is read in pieces whose intermediate values stay in the processor's cache: between two tokens the
    model's weights have pushed out everything else.
    """

    def __init__(self, vocabulary_size: int) -> None:
        if vocabulary_size < 1:
            raise UserError(f"vocabulary_size is {vocabulary_size}, it must be at least 1")
        self.vocabulary_size = vocabulary_size
        pieces = -(-vocabulary_size // _PIECE)
        self._size = -(-vocabulary_size // pieces)
        self._x = np.empty(self._size, np.float32)
        self._e = np.empty(self._size, np.float32)
        self._ex = np.empty(self._size, np.float32)
        self._one = np.ones(self._size, np.float32)  # e @ one: a BLAS sum, faster than e.sum()

    def measure(self, logits: NDArray[np.floating], token: int | None = None) -> Signals:
        """Signals of `logits` (V,), any float type. `token` is the chosen one, for its log-probability."""
        row = self._checked(logits, token)
        best = int(row.argmax())  # the place of the first NaN where there is one
        peak = float(row[best])
        if not math.isfinite(peak):
            return _NOT_FINITE
        total = mean = square = second = 0.0
        with np.errstate(invalid="ignore"):
            for start in range(0, self.vocabulary_size, self._size):
                sums = self._piece(row[start : start + self._size], np.float32(peak), best - start)
                total += sums[0]
                mean += sums[1]
                square += sums[2]
                second = max(second, sums[3])
        mean, square = mean / total, square / total
        return Signals(
            entropy=max(0.0, math.log(total) - _UNIT * mean),
            max_prob=1.0 / total,
            margin=(1.0 - second) / total,
            varentropy=max(0.0, _UNIT * _UNIT * (square - mean * mean)),
            logprob=math.nan if token is None else float(row[token]) - peak - math.log(total),
        )

    def _piece(
        self, row: NDArray[np.float32], peak: np.float32, best: int
    ) -> tuple[float, float, float, float]:
        """Sums of e, e*x and e*x*x, and the largest e but that at `best`; x = row - peak in `_UNIT`."""
        size = len(row)
        x, e, ex, one = self._x[:size], self._e[:size], self._ex[:size], self._one[:size]
        np.subtract(row, peak, out=x)
        if _UNIT != 1.0:
            np.multiply(x, _PER_NAT, out=x)
        _POWER(x, out=e)
        total, mean = float(e @ one), float(e @ x)
        if math.isnan(mean):  # 0 * -inf: seen here, not looked for in every row
            np.maximum(x, _NEGLIGIBLE, out=x)
            mean = float(e @ x)
        square = float(np.multiply(e, x, out=ex) @ x)
        if 0 <= best < size:
            e[best] = 0.0
        return total, mean, square, float(e.max())

    def _checked(self, logits: NDArray[np.floating], token: int | None) -> NDArray[np.float32]:
        row = np.asarray(logits)
        if row.shape != (self.vocabulary_size,):
            raise UserError(
                f"logits have the shape {row.shape}, one row of ({self.vocabulary_size},) is needed"
            )
        if row.dtype.kind != "f":
            raise UserError(f"logits are {row.dtype}, a float type is needed")
        if token is not None and not 0 <= token < self.vocabulary_size:
            raise UserError(f"token {token} is outside the vocabulary of {self.vocabulary_size}")
        # Widened first: two fp16 values can lie further apart than fp16 can say.
        return row.astype(np.float32, copy=False)


def signals(logits: NDArray[np.floating], token: int | None = None) -> Signals:
    """Signals of one row (V,); keep a `SignalMeter` where there are many."""
    row = np.asarray(logits)
    if row.ndim != 1:
        raise UserError(f"logits have the shape {row.shape}, one row is needed (signals_of_rows takes many)")
    return SignalMeter(row.shape[0]).measure(row, token)


def signals_of_rows(logits: NDArray[np.floating], tokens: Sequence[int] | None = None) -> list[Signals]:
    """Signals of each row of (T, V), with the token chosen at each where `tokens` is given: bit for bit as
    one by one.
    """
    rows = np.asarray(logits)
    if rows.ndim != 2:
        raise UserError(f"logits have the shape {rows.shape}, (tokens, vocabulary) is needed")
    if tokens is not None and len(tokens) != rows.shape[0]:
        raise UserError(f"{len(tokens)} tokens for {rows.shape[0]} rows of logits: one each is needed")
    meter = SignalMeter(rows.shape[1])
    return [meter.measure(row, None if tokens is None else tokens[t]) for t, row in enumerate(rows)]
