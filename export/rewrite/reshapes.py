"""Chains of reshapes that end in the shape they began with are removed; dynamic target shapes become static
ones.

Around every attention node the exporter writes (B, T, H*D) -> (B, T, H, D) -> (B, T, H*D), with the target
shape computed at run time. It does not touch a reshape whose shapes are not known.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes

from seatrial.export.rewrite.matching import made_by, same_shape


def drop_reshapes(model: ir.Model) -> int:
    """Remove reshapes that undo each other; returns how many."""
    dropped = 0
    for node in list(model.graph):
        if node.op_type == "Reshape" and node.inputs[0] is not None and _forward_origin(node):
            dropped += 1
    for node in list(model.graph):
        if node.op_type == "Reshape":
            _make_static(model.graph, node)
    passes.RemoveUnusedNodesPass()(model)
    return dropped


def _forward_origin(node: ir.Node) -> bool:
    """Use the earliest value behind this chain of reshapes that has the same shape as its end."""
    origin = node.inputs[0]
    best = origin if origin is not None and same_shape(origin, node.outputs[0]) else None
    while (earlier := made_by(origin, "Reshape")) is not None:
        origin = earlier.inputs[0]
        if origin is not None and same_shape(origin, node.outputs[0]):
            best = origin
    if best is None:
        return False
    ir.convenience.replace_all_uses_with(node.outputs[0], best, replace_graph_outputs=True)
    return True


def _make_static(graph: ir.Graph, node: ir.Node) -> None:
    """Write the target shape as constants where leading dimensions are those of the input (0 copies them)."""
    source, target = node.inputs[0], node.outputs[0]
    if source is None or source.shape is None or target.shape is None or not target.shape:
        return
    figures: list[int] = []
    for axis, dim in enumerate(target.shape):
        if isinstance(dim, int):
            figures.append(dim)
        elif axis < len(source.shape) and axis < 2 and source.shape[axis] == dim and dim.value is not None:
            figures.append(0)
        else:
            return
    if 0 in [dim for dim in target.shape if isinstance(dim, int)]:
        return
    node.replace_input_with(1, shape_constant(graph, figures))
    node.attributes.pop("allowzero", None)


def shape_constant(graph: ir.Graph, figures: list[int]) -> ir.Value:
    """An int64 initializer holding `figures`, shared between equal ones."""
    name = "shape_" + "_".join(str(figure).replace("-", "m") for figure in figures)
    if name in graph.initializers:
        return graph.initializers[name]
    tensor = ir.tensor(np.array(figures, dtype=np.int64), name=name)
    value = ir.Value(name=name, shape=tensor.shape, type=ir.TensorType(ir.DataType.INT64), const_value=tensor)
    graph.register_initializer(value)
    return value
