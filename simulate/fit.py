"""Fits how engines use machines on published measurements: a small hierarchy, robust, with earned intervals.

A decoded token takes `a (W + KV) / B + c F / ops + b layers`, a prompt `F / (e ops)` or its passes over the
weights. Coefficients are estimated in logarithms for everything, then per kind of processor, per engine, and
per engine and vendor; each level is drawn to the one above, so that an engine seen once stays near its kind.
Intervals are the errors on chips that were left out. Nothing here knows which rows will be asked for later.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import attrs
import numpy as np
from numpy.typing import NDArray

from seatrial.simulate.measured import Row

Array = NDArray[np.float64]
Path_ = tuple[str, ...]

ERROR_SCALE = 0.12
SOFT_WEIGHT = 0.5
COVERAGE = 0.90
# Middle and spread (in logarithms) before any data: a = 1.4, c = 1, b = 0.1 ms a layer.
DECODE_ROOT = (math.log(1.4), math.log(1.0), math.log(1e-4))
DECODE_SPREADS = ((1.0, 2.0, 2.0), (0.3, 0.7, 0.7), (0.3, 0.7, 0.7), (0.2, 0.4, 0.4))
PREFILL_ROOT = (math.log(0.4),)
PREFILL_SPREADS = ((2.0,), (0.7,), (0.7,), (0.7,))
# A chip whose compute nobody knows: compute per bandwidth varies about threefold around its vendor's median.
UNKNOWN_OPS = math.log(3.0)
# How many left-out chips of its own an engine needs before its own error counts as much as its kind's.
SCALE_CHIPS = 2.0


@attrs.frozen
class Table:
    """Rows as columns: logarithms of seconds, features, weights, and who they belong to."""

    rows: tuple[Row, ...]
    log_s: Array
    features: Array
    weights: Array

    def where(self, keep: Array) -> Table:
        """The rows where `keep` is true."""
        chosen = tuple(row for row, kept in zip(self.rows, keep, strict=True) if kept)
        return Table(chosen, self.log_s[keep], self.features[keep], self.weights[keep])


@attrs.frozen
class Model:
    """Coefficients (logarithms) per path of the hierarchy, for one metric."""

    metric: str
    levels: dict[Path_, Array]

    def coefficients(self, row: Row) -> Array:
        """Those of the deepest level known for the row's engine."""
        path = path_of(row)
        return next(
            self.levels[path[:depth]] for depth in range(len(path), -1, -1) if path[:depth] in self.levels
        )


@attrs.frozen
class Fitted:
    """Both metrics: coefficients, error scale per path, and the multiple of it that covers 90 %."""

    decode: Model
    prefill: Model
    decode_scales: dict[Path_, float]
    prefill_scales: dict[Path_, float]
    decode_multiple: float
    prefill_multiple: float
    unseen: dict[tuple[str, Path_], float]
    ops_per_Bps: dict[Path_, float]

    def seconds(self, row: Row) -> float:
        """Predicted seconds of the row's tokens."""
        model = self.decode if row.metric == "tg" else self.prefill
        features = feature_row(row, self.ops_per_Bps)
        return float(np.exp(predict(model.metric, model.coefficients(row), features[None, :])[0]))

    def interval(self, row: Row) -> tuple[float, float]:
        """Ends of the 90 % interval of `seconds`."""
        half, middle = self.half_width(row.metric, path_of(row)), self.seconds(row)
        if row.ops is None and row.metric == "pp":
            half = math.hypot(half, UNKNOWN_OPS)
        return middle * math.exp(-half), middle * math.exp(half)

    def half_width(self, metric: str, path: Path_) -> float:
        """Half the interval in logarithms; for an engine or vendor not seen, the error on ones that were left
        out.
        """
        scales = self.decode_scales if metric == "tg" else self.prefill_scales
        multiple = self.decode_multiple if metric == "tg" else self.prefill_multiple
        known = next(path[:depth] for depth in range(len(path), -1, -1) if path[:depth] in scales)
        return scales[known] * multiple if known == path else self.unseen_half_width(metric, known)

    def unseen_half_width(self, metric: str, path: Path_) -> float:
        """The same for anything not seen below `path`."""
        known = next(
            path[:depth] for depth in range(len(path), -1, -1) if (metric, path[:depth]) in self.unseen
        )
        return self.unseen[metric, known]


def path_of(row: Row) -> Path_:
    """Kind of processor, engine, and for GPUs the vendor; servers' accelerators are a vendor of their own.

    A CPU engine has one set of kernels per instruction set, so its cores' peak says more than their maker.
    """
    if row.processor == "cpu":
        return (row.processor, row.engine)
    maker = f"{row.vendor}-server" if row.device_class == "server gpu" else row.vendor
    return (row.processor, row.engine, maker)


def fit(rows: Sequence[Row]) -> Fitted:
    """Everything from rows: coefficients, then the errors on each chip left out, then the intervals."""
    ratios = ops_ratios(rows)
    decode, prefill = (table_of([r for r in rows if r.metric == m], ratios) for m in ("tg", "pp"))
    decode_scales, decode_multiple = spreads(left_out_errors("tg", decode))
    prefill_scales, prefill_multiple = spreads(left_out_errors("pp", prefill))
    return Fitted(
        decode=Model("tg", fit_levels("tg", decode)),
        prefill=Model("pp", fit_levels("pp", prefill)),
        decode_scales=decode_scales,
        prefill_scales=prefill_scales,
        decode_multiple=decode_multiple,
        prefill_multiple=prefill_multiple,
        unseen=unseen_errors("tg", decode) | unseen_errors("pp", prefill),
        ops_per_Bps=ratios,
    )


def ops_ratios(rows: Iterable[Row]) -> dict[Path_, float]:
    """Median peak operations per byte of bandwidth, for chips whose compute nobody knows."""
    found: dict[Path_, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row.ops is not None:
            for path in ((), (row.processor,), (row.processor, row.vendor)):
                found[path][row.device] = row.ops / row.bandwidth_Bps
    return {path: float(np.median(list(values.values()))) for path, values in found.items()}


def table_of(rows: Sequence[Row], ratios: dict[Path_, float]) -> Table:
    """Columns of the rows; a chip's rows together weigh like the root of their number."""
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        counts[row.chip] += 1
    weights = [(1.0 if row.firm else SOFT_WEIGHT) / math.sqrt(counts[row.chip]) for row in rows]
    features = np.array([feature_row(row, ratios) for row in rows]).reshape(len(rows), 4)
    return Table(tuple(rows), np.log([row.seconds for row in rows]), features, np.array(weights))


def feature_row(row: Row, ratios: dict[Path_, float]) -> Array:
    """Seconds that bytes, FLOPs and layers would take at nominal rates: (bytes/B, F/ops, layers, passes x
    W/B).
    """
    ratio = _deepest(ratios, (row.processor, row.vendor)) if row.ops is None else 0.0
    ops = row.ops if row.ops is not None else row.bandwidth_Bps * ratio
    flops = 2.0 * row.params * row.tokens + row.attention_flops
    passes = math.ceil(row.tokens / 512)
    return np.array(
        [
            (row.weight_bytes + row.kv_bytes) / row.bandwidth_Bps,
            flops / ops,
            row.layers,
            passes * row.weight_bytes / row.bandwidth_Bps,
        ]
    )


def predict(metric: str, theta: Array, features: Array) -> Array:
    """Logarithm of seconds; `theta` are logarithms of (a, c, b) or of (e,)."""
    if metric == "tg":
        a, c, b = np.exp(theta)
        return np.log(a * features[:, 0] + c * features[:, 1] + b * features[:, 2])
    return np.log(np.maximum(features[:, 1] * np.exp(-theta[0]), features[:, 3]))


def slopes(metric: str, theta: Array, features: Array) -> Array:
    """Derivatives of `predict` by each of `theta`: the share of each term, or -1 where compute binds."""
    if metric == "tg":
        terms = features[:, :3] * np.exp(theta)
        return np.asarray(terms / terms.sum(axis=1, keepdims=True), np.float64)
    binds = features[:, 1] * np.exp(-theta[0]) >= features[:, 3]
    return np.where(binds, -1.0, 0.0)[:, None]


def fit_levels(
    metric: str,
    table: Table,
    paths: Iterable[Path_] | None = None,
    start: dict[Path_, Array] | None = None,
) -> dict[Path_, Array]:
    """Coefficients of every level on `paths` (all by default), from the top down; `start` is a guess."""
    root, level_spreads = _priors(metric)
    levels: dict[Path_, Array] = {}
    wanted = {path_of(row) for row in table.rows} if paths is None else set(paths)
    every = sorted({path[:depth] for path in wanted for depth in range(len(path) + 1)}, key=len)
    belongs = [path_of(row) for row in table.rows]
    for path in every:
        keep = np.array([own[: len(path)] == path for own in belongs], dtype=bool)
        prior = root if not path else levels[path[:-1]]
        part = table.where(keep)
        spread, guess = np.array(level_spreads[len(path)]), (start or {}).get(path, prior)
        levels[path] = fit_one(metric, part, prior, spread, guess) if keep.any() else prior
    return levels


def fit_one(metric: str, table: Table, prior: Array, spread: Array, start: Array | None = None) -> Array:
    """Robust least squares in logarithms with a normal prior (Levenberg-Marquardt, pseudo-Huber loss)."""
    theta, damping = (prior if start is None else start).copy(), 1e-3
    best = _loss(metric, table, theta, prior, spread)
    for _ in range(50):
        step = _step(metric, table, theta, prior, spread, damping)
        candidate = theta + np.clip(step, -1.0, 1.0)
        loss = _loss(metric, table, candidate, prior, spread)
        if loss < best:
            gained, theta, best, damping = best - loss, candidate, loss, damping / 3
            if gained < 1e-6:
                break
        else:
            damping *= 6
            if damping > 1e7:
                break
    return theta


def left_out_errors(
    metric: str, table: Table, *, key: Callable[[Row], str] | None = None
) -> list[tuple[Row, float]]:
    """Each row with log(measured / predicted) when all rows of its chip (or other key) were left out."""
    key = key or (lambda row: row.chip)
    errors, whole = [], fit_levels(metric, table)
    for group in dict.fromkeys(key(row) for row in table.rows):
        out = np.array([key(row) == group for row in table.rows], dtype=bool)
        left, asked = table.where(~out), table.where(out)
        model = Model(metric, fit_levels(metric, left, {path_of(row) for row in asked.rows}, whole))
        for index, row in enumerate(asked.rows):
            predicted = predict(metric, model.coefficients(row), asked.features[index : index + 1])[0]
            errors.append((row, float(asked.log_s[index] - predicted)))
    return errors


def unseen_errors(metric: str, table: Table) -> dict[tuple[str, Path_], float]:
    """Half-width for a child that the fit never saw, by its parent: engines of a kind, vendors of an engine.

    A parent with one child only tells nothing about others: its own parent's figure holds.
    """
    found: dict[tuple[str, Path_], float] = {}
    for depth in (1, 2):
        errors = left_out_errors(metric, table, key=partial(_name_at, depth + 1))
        if depth == 1:
            found[metric, ()] = chip_quantile([(row.chip, abs(error)) for row, error in errors])
        for parent in {path_of(row)[:depth] for row, _ in errors}:
            below = [(row, error) for row, error in errors if path_of(row)[:depth] == parent]
            if len({path_of(row)[: depth + 1] for row, _ in below}) > 1:
                found[metric, parent] = chip_quantile([(row.chip, abs(error)) for row, error in below])
    return found


def spreads(errors: list[tuple[Row, float]]) -> tuple[dict[Path_, float], float]:
    """Mean absolute error per path, drawn to the level above, and the multiple that covers 90 % of the firm
    rows.
    """
    scales: dict[Path_, float] = {}
    paths = {path_of(row)[:depth] for row, _ in errors for depth in range(4) if depth <= len(path_of(row))}
    for path in sorted(paths, key=len):
        by_chip: dict[str, list[float]] = defaultdict(list)
        for row, error in errors:
            if path_of(row)[: len(path)] == path:
                by_chip[row.chip].append(abs(error))
        means = [float(np.mean(values)) for values in by_chip.values()]
        above = scales[path[:-1]] if path else float(np.median(means))
        scales[path] = (SCALE_CHIPS * above + sum(means)) / (SCALE_CHIPS + len(means))
    firm = [(row, error) for row, error in errors if row.firm] or errors
    return scales, chip_quantile([(row.chip, abs(error) / scales[path_of(row)]) for row, error in firm])


def chip_quantile(scored: list[tuple[str, float]]) -> float:
    """The value below which 90 % of a *new* chip's rows lie: every chip weighs the same, and one is still to
    come.
    """
    counts: dict[str, int] = defaultdict(int)
    for chip, _ in scored:
        counts[chip] += 1
    level = min(1.0, COVERAGE * (len(counts) + 1) / len(counts)) * len(counts)
    reached = 0.0
    for chip, value in sorted(scored, key=lambda pair: pair[1]):
        reached += 1.0 / counts[chip]
        if reached >= level - 1e-9:
            return value
    return max(value for _, value in scored)


def _name_at(depth: int, row: Row) -> str:
    return "/".join(path_of(row)[:depth])


def _priors(metric: str) -> tuple[Array, tuple[tuple[float, ...], ...]]:
    if metric == "tg":
        return np.array(DECODE_ROOT), DECODE_SPREADS
    return np.array(PREFILL_ROOT), PREFILL_SPREADS


def _loss(metric: str, table: Table, theta: Array, prior: Array, spread: Array) -> float:
    scaled = (predict(metric, theta, table.features) - table.log_s) / ERROR_SCALE
    robust = 2 * (np.sqrt(1 + scaled**2) - 1)
    return float(table.weights @ robust + np.sum(((theta - prior) / spread) ** 2))


def _step(metric: str, table: Table, theta: Array, prior: Array, spread: Array, damping: float) -> Array:
    error = predict(metric, theta, table.features) - table.log_s
    jacobian = slopes(metric, theta, table.features)
    weights = table.weights / np.sqrt(1 + (error / ERROR_SCALE) ** 2) / ERROR_SCALE**2
    normal = jacobian.T @ (weights[:, None] * jacobian) + np.diag(1 / spread**2)
    gradient = jacobian.T @ (weights * error) + (theta - prior) / spread**2
    damped = normal + damping * np.diag(np.diag(normal))
    return np.asarray(np.linalg.solve(damped, -gradient), dtype=np.float64)


def _deepest(values: dict[Path_, float], path: Path_) -> float:
    return next(values[path[:depth]] for depth in range(len(path), -1, -1) if path[:depth] in values)
