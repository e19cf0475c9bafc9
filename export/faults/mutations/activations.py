"""Faults of activations: another one, or in another place."""

from __future__ import annotations

import onnx
from onnx import helper

from seatrial.export.faults.mutations.graph import (
    ACTIVATION,
    GATE,
    Graph,
    Placed,
    Rng,
    attributes_of,
    pick,
)


def other_gelu(graph: Graph, rng: Rng) -> Placed | None:
    """Exact GELU for the tanh one, or back."""
    node = pick(rng, graph.of_type("Gelu", "FastGelu", "BiasGelu"))
    if node is None:
        return None
    layer = graph.layer_near(node)
    if node.op_type == "Gelu":
        was = attributes_of(node).get("approximate", b"none")
        del node.attribute[:]
        node.attribute.append(helper.make_attribute("approximate", "none" if was == b"tanh" else "tanh"))
    else:
        node.op_type = "FastGelu" if node.op_type == "BiasGelu" else "Gelu"
    return Placed(layer, ACTIVATION)


def silu_after_product(graph: Graph, rng: Rng) -> Placed | None:
    """SiLU is applied to gate x up instead of to gate."""
    places = [found for node in graph.of_type("Sigmoid") if (found := _silu_and_product(graph, node))]
    found = pick(rng, places)
    if found is None:
        return None
    sigmoid, silu, product = found
    layer, after = graph.layer_near(sigmoid), product.output[0]
    for slot, name in enumerate(product.input):
        if name == silu.output[0]:
            product.input[slot] = sigmoid.input[0]
    graph.redirect(after, after + "_silu")
    new = [
        helper.make_node("Sigmoid", [after], [after + "_sigmoid"]),
        helper.make_node("Mul", [after, after + "_sigmoid"], [after + "_silu"]),
    ]
    graph.insert_after(product, new)
    return Placed(layer, ACTIVATION)


def _silu_and_product(
    graph: Graph, sigmoid: onnx.NodeProto
) -> tuple[onnx.NodeProto, onnx.NodeProto, onnx.NodeProto] | None:
    """The three nodes of a gated SiLU, from its sigmoid."""
    silu = next((n for n in graph.users(sigmoid.output[0]) if n.op_type == "Mul"), None)
    after = [] if silu is None else [n for n in graph.users(silu.output[0]) if n.op_type == "Mul"]
    return (sigmoid, silu, after[0]) if silu is not None and after else None


def activation_before(graph: Graph, rng: Rng) -> Placed | None:
    """SiLU is applied to the gate projection's input instead of its output."""
    linears = [(node, linear) for node in graph.of_type("Sigmoid") if (linear := _linear_of(graph, node))]
    found = pick(rng, linears)
    if found is None:
        return None
    sigmoid, linear = found
    layer, x = graph.layer_near(sigmoid), linear.input[0]
    silu = next(n for n in graph.users(sigmoid.output[0]) if n.op_type == "Mul")
    graph.insert(helper.make_node("Sigmoid", [x], [x + "_sigmoid"]), linear)
    graph.insert(helper.make_node("Mul", [x, x + "_sigmoid"], [x + "_silu"]), linear)
    linear.input[0] = x + "_silu"
    graph.redirect(silu.output[0], sigmoid.input[0])
    return Placed(layer, GATE)


def _linear_of(graph: Graph, sigmoid: onnx.NodeProto) -> onnx.NodeProto | None:
    """The product whose result, its bias added, goes into the sigmoid."""
    node = graph.maker(sigmoid.input[0])
    while node is not None and node.op_type == "Add":
        node = graph.maker(node.input[0])
    return node if node is not None and node.op_type == "MatMul" else None
