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

_PIECE = (
    1 << 15
)  # values: two buffers stay in the second-level cache, and few are cold at a step's first touch


def _has_vector_exp2() -> bool:
    """Whether numpy brings its own vector code for exp2 here: it does with AVX-512, else libm is called."""
    found = np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", [])
    return bool({"X86_V4", "AVX512_SKX"} & set(found))


# Powers of two where they are faster (half the time of np.exp with AVX-512), else of e. x is counted in
# `_UNIT` nats, so that the square of the power of x is e to the x nats.
_POWER, _UNIT = (np.exp2, 2.0 * math.log(2.0)) if _has_vector_exp2() else (np.exp, 2.0)
_PER_NAT = np.float32(1.0 / _UNIT)
_NOTHING = np.float32(0.0)


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
    model's weights have pushed out everything else. With r = e^(x/2), the three sums are products of r and
    r x alone: sum e^x = r.r, sum x e^x = r.(r x), sum x x e^x = (r x).(r x).
    """

    def __init__(self, vocabulary_size: int) -> None:
        if vocabulary_size < 1:
            raise UserError(f"vocabulary_size is {vocabulary_size}, it must be at least 1")
        self.vocabulary_size = vocabulary_size
        pieces = -(-vocabulary_size // _PIECE)
        size = -(-vocabulary_size // pieces)
        root, x = np.empty(size, np.float32), np.empty(size, np.float32)
        # (first value, the one after the last, and the buffers cut to that length), made once
        self._pieces = [
            (first, last, root[: last - first], x[: last - first])
            for first in range(0, vocabulary_size, size)
            for last in [min(first + size, vocabulary_size)]
        ]
        self._wide: NDArray[np.float32] | None = None

    def measure(
        self, logits: NDArray[np.floating], token: int | None = None, *, best: int | None = None
    ) -> Signals:
        """Signals of `logits` (V,), any float type. `token` is the chosen one, for its log-probability.

        `best` is `logits.argmax()` for a caller that knows it already, as a greedy sampler does.
        """
        row = self._checked(logits, token)
        if best is None:
            best = int(row.argmax())  # the place of the first NaN where there is one
        peak = float(row[best])
        if not math.isfinite(peak):
            return _NOT_FINITE
        with np.errstate(over="ignore", invalid="ignore"):
            rest, mean, square, second = self._sums(row, row[best], best)
        total = 1.0 + rest  # x is 0 for the best: it stands in no other sum
        mean, square, log_total = mean / total, square / total, math.log1p(rest)
        return Signals(
            entropy=max(0.0, log_total - _UNIT * mean),
            max_prob=1.0 / total,
            margin=(1.0 - second * second) / total,
            varentropy=max(0.0, _UNIT * _UNIT * (square - mean * mean)),
            logprob=math.nan if token is None else float(row[token]) - peak - log_total,
        )

    def _sums(
        self, row: NDArray[np.float32], peak: np.float32, best: int
    ) -> tuple[float, float, float, float]:
        """Over all but the best: sums of e^x, x e^x and x x e^x with x in `_UNIT`, and the largest root."""
        total = mean = square = second = 0.0
        for first, last, root, x in self._pieces:
            np.subtract(row[first:last], peak, x)
            np.multiply(x, _PER_NAT, x)
            _POWER(x, root)
            if first <= best < last:
                root[best - first] = _NOTHING
            second = max(second, float(root.max()))
            total += float(root.dot(root))
            np.multiply(root, x, x)
            part = float(root.dot(x))
            if math.isnan(part):  # 0 * -inf of a masked entry: seen here, not looked for in every row
                np.fmin(x, _NOTHING, x)
                part = float(root.dot(x))
            mean += part
            square += float(x.dot(x))
        return total, mean, square, second

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
        if row.dtype == np.float32:
            return row
        if self._wide is None:
            self._wide = np.empty(self.vocabulary_size, np.float32)
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
