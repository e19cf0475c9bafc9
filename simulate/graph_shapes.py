"""Shapes of every tensor in an ONNX graph, by onnx's own inference with the dimensions that the caller gives.

Weights are not loaded: an initializer's shape and type are in the graph. The contrib operators of onnxruntime
get their shape rules from `seatrial.simulate.contrib_shapes` while the inference runs. A tensor whose shape
cannot be inferred stays unknown and is told; nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import TensorProto, numpy_helper, shape_inference
from onnx.external_data_helper import uses_external_data
from onnx.reference import ReferenceEvaluator

from seatrial.errors import UserError
from seatrial.simulate.contrib_shapes import contrib_schemas

TYPE_BITS = {
    TensorProto.FLOAT: 32,
    TensorProto.UINT8: 8,
    TensorProto.INT8: 8,
    TensorProto.UINT16: 16,
    TensorProto.INT16: 16,
    TensorProto.INT32: 32,
    TensorProto.INT64: 64,
    TensorProto.BOOL: 8,
    TensorProto.FLOAT16: 16,
    TensorProto.DOUBLE: 64,
    TensorProto.UINT32: 32,
    TensorProto.UINT64: 64,
    TensorProto.BFLOAT16: 16,
    TensorProto.FLOAT8E4M3FN: 8,
    TensorProto.FLOAT8E5M2: 8,
    TensorProto.UINT4: 4,
    TensorProto.INT4: 4,
}
# Rounds of inference and folding; each resolves one more layer of shapes that depend on shapes.
MAX_ROUNDS = 12
FOLDED_MARK = "computed from shapes"
SMALL, LARGEST_FOLDED = 256, 1 << 16
FOLDED = frozenset(
    [
        *(
            "Add",
            "Cast",
            "CastLike",
            "Ceil",
            "Concat",
            "ConstantOfShape",
            "Div",
            "Equal",
            "Expand",
        ),
        *(
            "Floor",
            "Gather",
            "Greater",
            "Identity",
            "Less",
            "Max",
            "Min",
            "Mod",
            "Mul",
            "Neg",
            "Not",
            "Range",
        ),
        *("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Size", "Slice", "Squeeze", "Sub"),
        *("Transpose", "Unsqueeze", "Where"),
    ]
)
RESHAPING = frozenset(("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"))
CACHE_NAME = re.compile(
    r"^(past|present)(_key_values)?[._]|past_key_values|(^|[._])(past|present)_(key|value)"
)


@attrs.frozen
class Tensor:
    """Shape, bits per scalar, and what the tensor is: weight, kv or activation.

    `origin` is the initializer behind a weight that is only seen under another shape.
    """

    name: str
    shape: tuple[int, ...]
    bits: int
    kind: str
    origin: str = ""

    @property
    def scalars(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> float:
        """Size in memory."""
        return self.scalars * self.bits / 8


@attrs.frozen
class Graph:
    """Nodes in order, the tensors whose shapes are known, and small constants by name."""

    nodes: tuple[onnx.NodeProto, ...]
    tensors: dict[str, Tensor]
    constants: dict[str, onnx.TensorProto]
    notes: tuple[str, ...]


def read_graph(path: Path, dims: Mapping[str, int]) -> Graph:
    """The graph in `path` with `dims` put in place of its named dimensions.

    Raises:
        UserError: no ONNX file there, a dimension that was not given (all are named), or given and unknown.
    """
    model = _load(path)
    notes = _set_dimensions(model, dims, path)
    inferred = _infer(model, path)
    tensors = _tensors(inferred)
    constants = {initializer.name: initializer for initializer in inferred.graph.initializer}
    constants |= {
        node.output[0]: attribute.t
        for node in inferred.graph.node
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.name == "value"
    }
    return Graph(tuple(inferred.graph.node), tensors, constants, tuple(notes))


def graph_file(path: Path) -> Path:
    """The ONNX file meant by `path`: itself, or `model.onnx` in a folder."""
    if path.is_dir():
        found = path / "model.onnx"
        others = sorted(path.glob("*.onnx"))
        if not found.is_file() and len(others) == 1:
            found = others[0]
        if not found.is_file():
            raise UserError(f"{path}: model.onnx, or one ONNX file, is needed in the folder")
        return found
    if not path.is_file():
        raise UserError(f"{path}: no such file or folder; an ONNX file or a folder with model.onnx is needed")
    return path


def _load(path: Path) -> onnx.ModelProto:
    try:
        model = onnx.load(str(path), load_external_data=False)
    except (DecodeError, OSError, ValueError) as error:
        raise UserError(f"{path}: not a readable ONNX file ({type(error).__name__})") from None
    if not model.graph.node:
        raise UserError(f"{path}: an ONNX file without operators")
    return model


def _set_dimensions(model: onnx.ModelProto, dims: Mapping[str, int], path: Path) -> list[str]:
    """Puts numbers in place of the inputs' named dimensions; forgets the outputs'."""
    weights = {initializer.name for initializer in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in weights]
    names = list(dict.fromkeys(dim.dim_param for dim in _dimensions(inputs) if dim.dim_param))
    values, notes = _dimension_values(names, dims, path)
    for value in inputs:
        for index, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.dim_param:
                dim.dim_value = values[dim.dim_param]
            elif not dim.HasField("dim_value"):
                raise UserError(
                    f"{path}: dimension {index} of the input {value.name} has neither name nor number"
                )
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    return notes


def _dimensions(inputs: list[Any]) -> list[Any]:
    return [dim for value in inputs for dim in value.type.tensor_type.shape.dim]


def _dimension_values(
    names: list[str], dims: Mapping[str, int], path: Path
) -> tuple[dict[str, int], list[str]]:
    """A number for every name: given in full or by its beginning, a sum of others, or an empty past."""
    values: dict[str, int] = {}
    for given, number in dims.items():
        matched = [name for name in names if name == given]
        matched = matched or [name for name in names if name.startswith(given) and "+" not in name]
        if len(matched) != 1:
            listed = ", ".join(names) or "none"
            raise UserError(
                f"{path}: --dim {given} names {len(matched)} of its dimensions; they are: {listed}"
            )
        values[matched[0]] = number
    notes = []
    for name in names:
        if name not in values and name.startswith("past") and "+" not in name:
            values[name] = 0
            notes.append(f"{name} was not given: an empty past")
    for name in names:
        if name not in values:
            total = _derived(name, values)
            if total is not None:
                values[name] = total
    missing = [name for name in names if name not in values]
    if missing:
        raise UserError(f"{path}: dimensions to be given: {' '.join(f'--dim {name}=N' for name in missing)}")
    return values, notes


def _derived(name: str, values: Mapping[str, int]) -> int | None:
    """A dimension that is a sum of known ones by its name: `a + b`, or `total...` for past and sequence."""
    parts = [part.strip() for part in name.split("+")]
    if len(parts) > 1:
        numbers = [values.get(part, int(part) if part.isdigit() else None) for part in parts]
        return sum(n for n in numbers if n is not None) if None not in numbers else None
    if name.startswith("total"):
        past = [number for key, number in values.items() if key.startswith("past")]
        sequence = [number for key, number in values.items() if key.startswith("seq")]
        return past[0] + sequence[0] if past and sequence else None
    return None


def _infer(model: onnx.ModelProto, path: Path) -> onnx.ModelProto:
    """The model with the shapes that onnx infers.

    onnx carries constants through few operators (not through Range), so what depends on shapes alone is
    computed between rounds and put back as a constant, until a round finds nothing new.
    """
    try:
        with contrib_schemas():
            for _ in range(MAX_ROUNDS):
                inferred: onnx.ModelProto = shape_inference.infer_shapes(model, data_prop=True)
                if not _fold_constants(model, _tensors(inferred)):
                    break
    except (shape_inference.InferenceError, RuntimeError) as error:
        raise UserError(f"{path}: its shapes cannot be inferred with these dimensions: {error}") from None
    return inferred


def _fold_constants(model: onnx.ModelProto, tensors: Mapping[str, Tensor]) -> bool:
    """Computes nodes that depend on shapes and small constants only; True if there were any."""
    known: dict[str, Any] = {
        initializer.name: numpy_helper.to_array(initializer)
        for initializer in model.graph.initializer
        if not uses_external_data(initializer) and prod(initializer.dims) <= SMALL
    }
    known |= {
        node.output[0]: numpy_helper.to_array(attribute.t)
        for node in model.graph.node
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.name == "value" and prod(attribute.t.dims) <= SMALL
    }
    kept = []
    for node in model.graph.node:
        value = _value_of(node, known, tensors)
        if value is None:
            kept.append(node)
            continue
        known[node.output[0]] = value
        folded = numpy_helper.from_array(value, node.output[0])
        folded.doc_string = FOLDED_MARK
        model.graph.initializer.append(folded)
    found = len(kept) < len(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return found


def _value_of(node: onnx.NodeProto, known: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Any:
    """The node's value as an array, None where it depends on data, is large, or is no plain computation."""
    if node.op_type == "Shape" and node.input[0] in tensors:
        part = {attribute.name: attribute.i for attribute in node.attribute}
        return np.array(tensors[node.input[0]].shape[part.get("start") : part.get("end")], dtype=np.int64)
    names = [name for name in node.input if name]
    plain = node.op_type in FOLDED and len(node.output) == 1
    if not plain or any(name not in known for name in names):
        return None
    try:
        value = ReferenceEvaluator(node).run(None, {name: known[name] for name in names})[0]
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        # An operator that the reference does not compute stays in the graph, where the inference may know it.
        return None
    return value if isinstance(value, np.ndarray) and value.size <= LARGEST_FOLDED else None


def _tensors(model: onnx.ModelProto) -> dict[str, Tensor]:
    """Every tensor of known shape; a reshaped weight stays a weight."""
    found = _stated_tensors(model)
    for node in model.graph.node:
        behind = found.get(node.input[0]) if node.op_type in RESHAPING and node.input else None
        if behind is not None and behind.kind == "weight" and node.output[0] in found:
            found[node.output[0]] = attrs.evolve(found[node.output[0]], kind="weight", origin=behind.origin)
    return found


def _stated_tensors(model: onnx.ModelProto) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for value in [*model.graph.input, *model.graph.value_info, *model.graph.output]:
        shape = [
            dim.dim_value if dim.HasField("dim_value") else None for dim in value.type.tensor_type.shape.dim
        ]
        known = value.type.tensor_type.HasField("shape") and None not in shape
        bits = TYPE_BITS.get(value.type.tensor_type.elem_type)
        if known and bits is not None:
            kind = "kv" if CACHE_NAME.search(value.name) else "activation"
            found[value.name] = Tensor(value.name, tuple(n for n in shape if n is not None), bits, kind)
    for initializer in model.graph.initializer:
        bits = TYPE_BITS.get(initializer.data_type, 32)
        kind = "activation" if initializer.doc_string == FOLDED_MARK else "weight"
        name = initializer.name
        found[name] = Tensor(name, tuple(initializer.dims), bits, kind, name)
    for node in model.graph.node:
        if node.op_type == "Constant":
            name = node.output[0]
            for attribute in node.attribute:
                if attribute.name == "value":
                    bits = TYPE_BITS.get(attribute.t.data_type, 32)
                    found[name] = Tensor(name, tuple(attribute.t.dims), bits, "weight", name)
    return found
