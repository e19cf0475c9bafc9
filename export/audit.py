"""Is every parameter of the source in the graph, once, unchanged and in its place? Judged by values, not by
names.

A matrix is recognized by its products with a random vector, so a packed, transposed or scaled copy is found
wherever it lies, and no second copy of the weights is held in memory. It does not run the model; what a
fault does is for `faults` to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from onnx import TensorProto, numpy_helper

from seatrial.export.graph_file import GraphFile

Status = Literal["used", "missing", "transposed", "scaled", "moved", "twice", "extra"]
_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)
_SMALLEST = 8  # shorter vectors prove nothing
_CLOSE = 1e-5


@dataclass(frozen=True)
class AuditRow:
    """One source parameter, or one graph weight that no parameter explains."""

    name: str
    status: Status
    detail: str = ""


@dataclass
class _Stored:
    """A weight of the graph with what is compared: products per row and per column."""

    name: str
    shape: tuple[int, ...]
    rows: np.ndarray  # (K,) or the vector itself
    columns: np.ndarray  # (N,), empty for vectors
    covered: list[str] = field(default_factory=list)


def audit(model: Any, graph: GraphFile) -> list[AuditRow]:
    """Rows for every parameter (tied ones once) and for unexplained weights."""
    stored = list(_stored(graph))
    tied: dict[int, list[str]] = {}
    parameters: dict[int, np.ndarray] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        tied.setdefault(id(parameter), []).append(name)
        parameters[id(parameter)] = parameter.detach().numpy()
    rows = [_place(tied[key], value, stored) for key, value in parameters.items()]
    for name, buffer in model.named_buffers():
        if buffer.is_floating_point() and buffer.numel() >= _SMALLEST:
            _place([name], buffer.detach().numpy(), stored)
    tables = {
        name
        for node in graph.proto.graph.node
        for name in list(node.input)[7:9]
        if "Attention" in node.op_type
    }
    rows += [
        AuditRow(item.name, "extra", f"shape {list(item.shape)} is no parameter of the source")
        for item in stored
        if not item.covered and item.name not in tables and np.abs(item.rows).max() > 0
    ]
    return rows


def _stored(graph: GraphFile) -> Iterator[_Stored]:
    for tensor in graph.proto.graph.initializer:
        if tensor.data_type not in _FLOATS or int(np.prod(list(tensor.dims))) < _SMALLEST:
            continue
        value = load_tensor(tensor, graph.path.parent).astype(np.float32).squeeze()
        if value.ndim == 1:
            yield _Stored(tensor.name, value.shape, value, np.zeros(0))
        elif value.ndim == 2:
            rows, columns = value @ _random(value.shape[1]), _random(value.shape[0]) @ value
            yield _Stored(tensor.name, value.shape, rows, columns)


def load_tensor(tensor: TensorProto, folder: Path) -> np.ndarray:
    """The content of one tensor, also from its data file."""
    if tensor.data_location != TensorProto.EXTERNAL:
        return numpy_helper.to_array(tensor)
    return numpy_helper.to_array(tensor, base_dir=str(folder))


def _random(length: int) -> np.ndarray:
    return np.random.default_rng(length).standard_normal(length).astype(np.float32)


def _place(names: list[str], value: np.ndarray, stored: list[_Stored]) -> AuditRow:
    """Where a parameter is in the graph."""
    name = names[0]
    value = value.squeeze()
    if value.ndim > 2 or value.size < _SMALLEST:
        return AuditRow(name, "used", "too small or of too many dimensions to be judged")
    found = _vector(value, stored) if value.ndim == 1 else _matrix(value, stored)
    if not found:
        return AuditRow(name, "missing", "no weight of the graph holds it")
    for item, _, _ in found:
        item.covered.append(name)
    exact = [hit for hit in found if hit[1] == "used"]
    if len({item.name for item, _, _ in found}) > 1 and value.ndim == 2:
        places = ", ".join(sorted(item.name for item, _, _ in found))
        return AuditRow(name, "twice", f"stored {len(found)} times: {places}")
    item, status, detail = (exact or found)[0]
    return AuditRow(name, status, detail or item.name)


def _vector(value: np.ndarray, stored: list[_Stored]) -> list[tuple[_Stored, Status, str]]:
    hits: list[tuple[_Stored, Status, str]] = []
    for item in stored:
        if len(item.shape) == 1:
            for offset in (0.0, 1.0):  # a norm that multiplies by 1 + weight
                factor = _inside(value + np.float32(offset), item.rows)
                if factor is not None:
                    hits.append(_hit(item, factor))
                    break
    return hits


def _matrix(value: np.ndarray, stored: list[_Stored]) -> list[tuple[_Stored, Status, str]]:
    """`value` (A, B) is looked for as rows or columns of a stored matrix, possibly packed with others."""
    a, b = value.shape
    by_row, by_column = value @ _random(b), _random(a) @ value
    hits: list[tuple[_Stored, Status, str]] = []
    for item in stored:
        if len(item.shape) != 2:
            continue
        found = [
            (factor, turned)
            for side, vector, length, turned in (
                (item.rows, by_row, item.shape[1] == b, False),
                (item.columns, by_row, item.shape[0] == b, True),
                (item.columns, by_column, item.shape[0] == a, False),
                (item.rows, by_column, item.shape[1] == a, True),
            )
            if length and (factor := _inside(vector, side)) is not None
        ]
        if found:
            hits.append(_hit(item, found[0][0]))
    return hits


def _hit(item: _Stored, factor: float) -> tuple[_Stored, Status, str]:
    if abs(factor - 1) <= 1e-4:
        return item, "used", ""
    return item, "scaled", f"{factor:.4g} times in {item.name}"


def _inside(needle: np.ndarray, hay: np.ndarray) -> float | None:
    """The factor by which `needle` appears as a contiguous part of `hay`; None when it does not."""
    n = len(needle)
    if n > len(hay) or not np.abs(needle).max():
        return None
    if n == len(hay):
        factor = float(needle @ hay) / float(needle @ needle)
        close = factor and np.abs(hay - factor * needle).max() <= 10 * _CLOSE * np.abs(factor * needle).max()
        return factor if close else None
    pivot = int(np.argmax(np.abs(needle)))
    candidates = hay[pivot : len(hay) - n + pivot + 1]
    for factor in (1.0, 0.5, 0.25, 2.0, 4.0):
        near = np.flatnonzero(
            np.abs(candidates - factor * needle[pivot]) <= _CLOSE * abs(factor * needle[pivot]) * 10
        )
        for start in near[:64]:
            part = hay[start : start + n]
            if np.abs(part - factor * needle).max() <= 10 * _CLOSE * np.abs(factor * needle).max():
                return factor
    return None
