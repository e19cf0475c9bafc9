"""Faults outside of single modules: embedding, head, layers, branches of the residual stream."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from seatrial.export.anatomy import find_anatomy
from seatrial.export.faults.mutations.graph import (
    DOWN,
    OUT,
    SKIP_NORMS,
    Graph,
    Placed,
    Rng,
    attributes_of,
    layer_of,
    module_of,
    pick,
)


def embedding_scale(graph: Graph, rng: Rng) -> Placed | None:
    """The factor on the embedding is missing."""
    del rng
    gather = graph.of_type("Gather")[0]
    for node in graph.users(gather.output[0]):
        if node.op_type == "Mul":
            graph.redirect(node.output[0], gather.output[0])
            return Placed(None, ("embedding",))
    return None


def shift_positions(graph: Graph, rng: Rng) -> Placed | None:
    """Learned positions are counted from one."""
    del rng
    tables = [n for n in graph.names("wpe", "embed_positions") if graph.users(n)]
    if not tables:
        return None
    graph.set_array(tables[0], np.roll(graph.array(tables[0]), -1, 0))
    return Placed(None, ("embedding",))


def branch_scale(graph: Graph, rng: Rng) -> Placed | None:
    """The factor on what a branch adds to the residual stream is missing."""
    places = [(node, name) for node in graph.of_type("Mul") if (name := _scaled_branch(graph, node))]
    found = pick(rng, places)
    if found is None:
        return None
    node, name = found
    graph.redirect(node.output[0], next(value for value in node.input if value not in graph.weights))
    return Placed(layer_of(name), (module_of(name),))


def _scaled_branch(graph: Graph, node: onnx.NodeProto) -> str:
    """The matrix whose result this node multiplies by one number; "" when it is another kind of product."""
    values = [name for name in node.input if name not in graph.weights]
    factors = [graph.array(name) for name in node.input if name in graph.weights]
    if len(values) != 1 or len(factors) != 1 or factors[0].size != 1:
        return ""
    maker = graph.maker(values[0])
    if maker is not None and maker.op_type == "Add":
        made = [name for name in maker.input if name not in graph.weights]
        maker = graph.maker(made[0]) if len(made) == 1 else None
    if maker is None or maker.op_type != "MatMul" or not any(w in maker.input[1] for w in (*OUT, *DOWN)):
        return ""
    return maker.input[1]


def store_tied_twice(graph: Graph, rng: Rng) -> Placed | None:
    """The head gets a transposed copy of the embedding."""
    del rng
    head = next((node for node in graph.of_type("FusedMatMul") if _is_tied_head(graph, node)), None)
    if head is None:
        return None
    alpha = np.float32(attributes_of(head).get("alpha", 1.0))
    head.input[1] = graph.constant("head_copy", np.ascontiguousarray(graph.array(head.input[1]).T) * alpha)
    head.op_type, head.domain = "MatMul", ""
    del head.attribute[:]
    return Placed(None, ("head",))


def _is_tied_head(graph: Graph, node: onnx.NodeProto) -> bool:
    near_logits = node.output[0] == "logits" or len(graph.users(node.output[0])) <= 3
    return near_logits and node.input[1] in graph.weights and len(graph.users(node.input[1])) >= 2


def skip_layer(graph: Graph, rng: Rng) -> Placed | None:
    """One layer's output is its input."""
    anatomy = find_anatomy(graph.model)
    number = int(rng.integers(1, len(anatomy.layers)))
    before, after = anatomy.layers[number - 1].joins[-1], anatomy.layers[number].joins[-1]
    maker = graph.maker(after)
    if maker is None:
        return None
    if maker.op_type not in SKIP_NORMS:
        graph.redirect(after, before)
        return Placed(number)
    # The sum inside the node becomes the layer's input plus nothing.
    nothing, other = graph.constant("nothing", np.zeros(1, np.float32)), maker.input[0]
    graph.insert(helper.make_node("Mul", [other, nothing], [other + "_none"]), maker)
    maker.input[0], maker.input[1] = other + "_none", before
    bias = 3 if "Simplified" in maker.op_type else 4
    if len(maker.input) > bias and maker.input[bias]:
        maker.input[bias] = graph.constant("no_bias", np.zeros_like(graph.array(maker.input[bias])))
    return Placed(number)
