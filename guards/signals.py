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

# e^-80 of the best token's probability: 150,000 such entries add 1e-26 to any of the sums below.
_NEGLIGIBLE = np.float32(-80.0)


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
    """Signals of one row after another, without allocating: a vocabulary of 150,000 costs about 0.1 ms a
    row.
    """

    def __init__(self, vocabulary_size: int) -> None:
        if vocabulary_size < 1:
            raise UserError(f"vocabulary_size is {vocabulary_size}, it must be at least 1")
        self.vocabulary_size = vocabulary_size
        self._wide = np.empty(vocabulary_size, np.float32)
        self._x = np.empty(vocabulary_size, np.float32)
        self._e = np.empty(vocabulary_size, np.float32)
        self._one = np.ones(vocabulary_size, np.float32)  # e @ one: a BLAS sum, faster than e.sum()

    def measure(self, logits: NDArray[np.floating], token: int | None = None) -> Signals:
        """Signals of `logits` (V,), any float type. `token` is the chosen one, for its log-probability."""
        row = self._checked(logits, token)
        best = int(row.argmax())  # the place of the first NaN where there is one
        peak = row[best]
        if not math.isfinite(peak):
            return _NOT_FINITE
        x, e = self._x, self._e
        np.subtract(row, peak, out=x)
        np.exp(x, out=e)
        chosen = math.nan if token is None else float(x[token])
        total = float(e @ self._one)
        mean, square = self._moments(total)
        e[best] = 0.0
        second = float(e.max())
        return Signals(
            entropy=max(0.0, math.log(total) - mean),
            max_prob=1.0 / total,
            margin=(1.0 - second) / total,
            varentropy=max(0.0, square - mean * mean),
            logprob=chosen - math.log(total),
        )

    def _moments(self, total: float) -> tuple[float, float]:
        """E[x] and E[x^2] under p = e / total; leaves x without -inf."""
        x, e = self._x, self._e
        with np.errstate(invalid="ignore"):
            mean = float(e @ x)
            if math.isnan(mean):  # 0 * -inf: seen here, not looked for in every row
                np.maximum(x, _NEGLIGIBLE, out=x)
                mean = float(e @ x)
        square = float(np.multiply(e, x, out=self._wide) @ x)
        return mean / total, square / total

    def _checked(self, logits: NDArray[np.floating], token: int | None) -> NDArray[np.floating]:
        row = np.asarray(logits)
        if row.shape != (self.vocabulary_size,):
            raise UserError(
                f"logits have the shape {row.shape}, one row of ({self.vocabulary_size},) is needed"
            )
        if row.dtype.kind != "f":
            raise UserError(f"logits are {row.dtype}, a float type is needed")
        if token is not None and not 0 <= token < self.vocabulary_size:
            raise UserError(f"token {token} is outside the vocabulary of {self.vocabulary_size}")
        if row.dtype == np.float32:
            return row
        # Widened first: two fp16 values can lie further apart than fp16 can say.
        np.copyto(self._wide, row, casting="same_kind")
        return self._wide


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
