"""Query, key and value projections become one matrix product, handed to the attention node as one packed
tensor.

Applies where all three are plain projections of the same value (biases too), or slices of one that was
already packed in that order. It leaves everything else alone: a norm on queries, a different order per head.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from seatrial.export.rewrite.matching import attribute, constant, insert_after, last_dim, made_by
from seatrial.export.rewrite.weights import side_by_side


@dataclass(frozen=True)
class _Linear:
    """A projection: `x @ weight (+ bias)`."""

    x: ir.Value
    weight: ir.Value
    bias: ir.Value | None


def pack_projections(model: ir.Model) -> int:
    """Pack as many attention nodes as can be; returns how many."""
    packed = 0
    for node in [node for node in model.graph if node.op_type == "GroupQueryAttention"]:
        sides = list(node.inputs[:3])
        if any(side is None for side in sides):
            continue
        joined = _already_packed(sides) or _pack(model.graph, node, sides)
        if joined is not None:
            node.replace_input_with(0, joined)
            node.replace_input_with(1, None)
            node.replace_input_with(2, None)
            packed += 1
    return packed


def _already_packed(sides: list[ir.Value | None]) -> ir.Value | None:
    """The packed value behind three neighbouring slices (or one split) in the order q, k, v."""
    nodes = [made_by(side, "Slice", "Split") for side in sides]
    sources = [None if node is None else node.inputs[0] for node in nodes]
    whole = sources[0]
    if whole is None or any(source is not whole for source in sources):
        return None
    spans = [_span(side) for side in sides]
    at = 0
    for span in spans:
        if span is None or span[0] != at:
            return None
        at = span[1]
    return whole if at == last_dim(whole) else None


def _span(value: ir.Value | None) -> tuple[int, int] | None:
    """`[start, end)` of the last axis that a slice or one output of an even split takes."""
    node = None if value is None else value.producer()
    if node is None or value is None or (width := last_dim(value)) is None:
        return None
    if node.op_type == "Split":
        if attribute(node, "axis", 0) not in (-1, 2):
            return None
        before = [last_dim(output) for output in node.outputs[: list(node.outputs).index(value)]]
        return None if None in before else (sum(w or 0 for w in before), sum(w or 0 for w in before) + width)
    starts, axes, steps = (constant(node.inputs[i]) if len(node.inputs) > i else None for i in (1, 3, 4))
    if starts is None or axes is None or starts.size != 1 or axes.reshape(-1)[0] not in (-1, 2):
        return None
    if steps is not None and steps.reshape(-1)[0] != 1:
        return None
    start = int(starts.reshape(-1)[0])
    return start, start + width


def _pack(graph: ir.Graph, node: ir.Node, sides: list[ir.Value | None]) -> ir.Value | None:
    """One MatMul (and one Add) in place of three."""
    linears = [_linear(side) for side in sides]
    first = linears[0]
    if first is None or any(linear is None or linear.x is not first.x for linear in linears):
        return None
    found = [linear for linear in linears if linear is not None]
    name = _packed_name([linear.weight.name or "" for linear in found])
    product = ir.Node("", "MatMul", [first.x, _join(graph, [linear.weight for linear in found], name)])
    width = sum(last_dim(linear.weight) or 0 for linear in found)
    shape = None if sides[0] is None or sides[0].shape is None else ir.Shape([*sides[0].shape[:2], width])
    new, result = [product], product.outputs[0]
    if any(linear.bias is not None for linear in found):
        bias = _join_biases(graph, found, name)
        new.append(ir.Node("", "Add", [result, bias]))
        result = new[-1].outputs[0]
    insert_after(new, node)
    for each in new:
        each.outputs[0].shape, each.outputs[0].dtype = shape, ir.DataType.FLOAT
    return result


def _linear(value: ir.Value | None) -> _Linear | None:
    """The projection behind a value, if its weight is a constant used nowhere else."""
    add = made_by(value, "Add")
    bias = None
    if add is not None:
        bias = next((v for v in add.inputs if v is not None and v.is_initializer()), None)
        value = next((v for v in add.inputs if v is not bias), None)
        if bias is None or bias.const_value is None or len(bias.const_value.shape) != 1:
            return None
    product = made_by(value, "MatMul")
    if product is None or product.inputs[0] is None or product.inputs[1] is None:
        return None
    weight = product.inputs[1]
    if weight.const_value is None or len(weight.const_value.shape) != 2 or len(weight.uses()) != 1:
        return None
    return _Linear(product.inputs[0], weight, bias)


def _join(graph: ir.Graph, values: list[ir.Value], name: str) -> ir.Value:
    tensors = [value.const_value for value in values if value.const_value is not None]
    return _initializer(graph, side_by_side(tensors, name))


def _join_biases(graph: ir.Graph, linears: list[_Linear], weight_name: str) -> ir.Value:
    """Biases side by side; a projection without one gets zeros."""
    parts: list[ir.TensorProtocol] = []
    for linear in linears:
        if linear.bias is not None and linear.bias.const_value is not None:
            parts.append(linear.bias.const_value)
        else:
            parts.append(ir.tensor(np.zeros(last_dim(linear.weight) or 0, dtype=np.float32)))
    return _initializer(graph, side_by_side(parts, weight_name.removesuffix(".weight") + ".bias"))


def _initializer(graph: ir.Graph, tensor: ir.LazyTensor) -> ir.Value:
    value = ir.Value(
        name=tensor.name, shape=ir.Shape(tensor.shape), type=ir.TensorType(tensor.dtype), const_value=tensor
    )
    graph.register_initializer(value)
    return value


def _packed_name(names: list[str]) -> str:
    """`...attn.q_proj.weight` and its neighbours -> `...attn.q_proj+k_proj+v_proj.weight`."""
    parts = [name.split(".") for name in names]
    common = next((i for i, pieces in enumerate(zip(*parts, strict=False)) if len(set(pieces)) > 1), 0)
    middle = "+".join(piece[common] if common < len(piece) else "w" for piece in parts)
    return ".".join([*parts[0][:common], middle, *parts[0][common + 1 :]])
