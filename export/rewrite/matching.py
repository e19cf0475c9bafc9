"""Small questions about a graph, asked by the rewrites: who makes this value, is it that constant?"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir


def made_by(value: ir.Value | None, *op_types: str) -> ir.Node | None:
    """The node that makes `value`, when it is one of these operators."""
    node = None if value is None else value.producer()
    return node if node is not None and node.op_type in op_types else None


def constant(value: ir.Value | None) -> np.ndarray | None:
    """The value of a small constant; None for anything else."""
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None or tensor.size > 4096 else tensor.numpy()


def attribute(node: ir.Node, name: str, default: Any = None) -> Any:
    """An attribute's plain value."""
    found = node.attributes.get(name)
    return default if found is None else found.value


def swaps_heads(node: ir.Node | None) -> bool:
    """Is it the Transpose between (B, T, H, D) and (B, H, T, D)?"""
    return node is not None and tuple(attribute(node, "perm", ())) == (0, 2, 1, 3)


def last_dim(value: ir.Value | None) -> int | None:
    """The static size of the last dimension, where it is known."""
    if value is None or value.shape is None or not len(value.shape):
        return None
    size = value.shape[-1]
    return size if isinstance(size, int) else None


def same_shape(a: ir.Value, b: ir.Value) -> bool:
    """Do two values have the same known shape, symbols included?"""
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return False
    return all(x == y and _known(x) for x, y in zip(a.shape, b.shape, strict=True))


def _known(dim: Any) -> bool:
    return isinstance(dim, int) or getattr(dim, "value", None) is not None


def insert_after(new: list[ir.Node], anchor: ir.Node) -> None:
    """Put nodes into the anchor's graph, right before it."""
    assert_graph = anchor.graph
    if assert_graph is None:
        raise ValueError(f"node {anchor.name} belongs to no graph")
    assert_graph.insert_before(anchor, new)
