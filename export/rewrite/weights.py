"""Large weights are held out of the optimizer and come back untouched, read only when the file is written.

The library would fold every `Transpose(weight)` into a second copy in memory, and a tied head into a second
copy on disk. Here matrices become plain inputs while the library works, then initializers again; a matrix
that is used transposed at one place is stored transposed, lazily. It does not know what a matrix is for.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx_ir as ir

from seatrial.export.rewrite.matching import attribute


@dataclass
class Weights:
    """The matrices of a model while they are held out, by name."""

    tensors: dict[str, ir.TensorProtocol] = field(default_factory=dict)
    values: dict[str, ir.Value] = field(default_factory=dict)

    @classmethod
    def hold_out(cls, model: ir.Model) -> Weights:
        """Turn every float initializer of two or more dimensions into a graph input."""
        held = cls()
        graph = model.graph
        for name, value in list(graph.initializers.items()):
            tensor = value.const_value
            if tensor is None or len(tensor.shape) < 2 or not tensor.dtype.is_floating_point():
                continue
            if value.is_graph_input() or value.is_graph_output() or min(int(d) for d in tensor.shape) < 8:
                continue
            graph.initializers.pop(name)
            value.const_value = None
            value.shape, value.dtype = ir.Shape(tensor.shape), tensor.dtype
            graph.inputs.append(value)
            held.tensors[name], held.values[name] = tensor, value
        return held

    def put_back(self, model: ir.Model) -> None:
        """Make them initializers again, stored in the orientation in which the graph uses them."""
        graph = model.graph
        for name, value in self.values.items():
            graph.inputs.remove(value)
            value.const_value = self.tensors[name]
            graph.register_initializer(value)
        for node in list(graph):
            _store_transposed(node)


def _store_transposed(node: ir.Node) -> None:
    """`FusedMatMul(x, W, transB=1)` with a matrix used once becomes a plain `MatMul` with W stored
    transposed.

    A tied head keeps its one storage, and anything with a factor (`alpha`) keeps it.
    """
    if node.op_type != "FusedMatMul" or set(node.attributes) - {"transB", "alpha", "transA"}:
        return
    weight = node.inputs[1]
    plain = attribute(node, "alpha", 1.0) == 1.0 and not attribute(node, "transA", 0)
    if not plain or weight is None or weight.const_value is None or len(weight.uses()) != 1:
        return
    if not attribute(node, "transB", 0) or len(weight.const_value.shape) != 2:
        return
    set_initializer(weight, transposed(weight.const_value))
    node.domain, node.op_type = "", "MatMul"
    node.attributes.clear()


def set_initializer(value: ir.Value, tensor: ir.TensorProtocol) -> None:
    """Give an initializer another content and shape."""
    value.const_value = tensor
    value.shape, value.dtype = ir.Shape(tensor.shape), tensor.dtype


def transposed(tensor: ir.TensorProtocol) -> ir.LazyTensor:
    """The transposed matrix, made when it is asked for and not kept."""
    rows, columns = (int(d) for d in tensor.shape)

    def make() -> ir.TensorProtocol:
        return ir.tensor(np.ascontiguousarray(tensor.numpy().T))

    return ir.LazyTensor(make, dtype=tensor.dtype, shape=ir.Shape([columns, rows]), name=tensor.name)


def side_by_side(tensors: list[ir.TensorProtocol], name: str) -> ir.LazyTensor:
    """Arrays joined along their last axis, lazily."""
    first = [int(d) for d in tensors[0].shape]
    width = sum(int(tensor.shape[-1]) for tensor in tensors)

    def make() -> ir.TensorProtocol:
        return ir.tensor(np.concatenate([tensor.numpy() for tensor in tensors], axis=-1))

    return ir.LazyTensor(make, dtype=tensors[0].dtype, shape=ir.Shape([*first[:-1], width]), name=name)
