"""Faults of norms: epsilon, kind, weight, input scale, left out."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from seatrial.export.faults.mutations.graph import (
    DOWN,
    NORMS,
    OUT,
    SKIP_NORMS,
    Edit,
    Graph,
    Placed,
    Rng,
    layer_of,
    module_of,
    pick,
)

_QK_NORMS = ("q_norm", "k_norm")
# By what a norm reads or feeds, for weights that were folded into a nameless constant.
_BEHIND = ((OUT, "post_attention_layernorm"), (DOWN, "post_feedforward_layernorm"))
_AHEAD = ((("q_proj",), "input_layernorm"), (("gate_proj", "up_proj"), "pre_feedforward_layernorm"))


def _placed(graph: Graph, *types: str) -> list[tuple[onnx.NodeProto, Placed]]:
    """Norm nodes of these types whose place in the model is known."""
    found = [(node, norm_place(graph, node)) for node in graph.of_type(*types)]
    return [(node, place) for node, place in found if place is not None]


def scale_before_norm(factor: float) -> Edit:
    """A norm is given a scaled input, which the norm hides."""

    def edit(graph: Graph, rng: Rng) -> Placed | None:
        drawn = pick(rng, _placed(graph, *NORMS))
        if drawn is None:
            return None
        node, place = drawn
        value = node.input[0]
        name = graph.constant(f"{value}_factor", np.array(factor, dtype=np.float32))
        graph.insert(helper.make_node("Mul", [value, name], [f"{value}_scaled"]), node)
        node.input[0] = f"{value}_scaled"
        return place

    return edit


def change_epsilon(graph: Graph, rng: Rng) -> Placed | None:
    """A norm has another epsilon."""
    drawn = pick(rng, _placed(graph, *NORMS, *SKIP_NORMS))
    if drawn is None:
        return None
    node, place = drawn
    epsilon = next(a for a in node.attribute if a.name == "epsilon")
    epsilon.f = 1e-3 if epsilon.f < 5e-4 else 1e-6
    return place


def other_norm(graph: Graph, rng: Rng) -> Placed | None:
    """A norm that divides by the root mean square takes out the mean too."""
    drawn = pick(
        rng, [found for found in _placed(graph, NORMS[0], SKIP_NORMS[0]) if _weight(graph, found[0])]
    )
    if drawn is None:
        return None
    node, place = drawn
    if node.op_type == NORMS[0]:
        node.op_type, node.domain = NORMS[1], ""
        return place
    bias = list(node.input[3:4])
    del node.input[3:]
    node.op_type = SKIP_NORMS[1]
    node.input.extend(["", *bias] if bias else [])
    return place


def offset_weight(offset: float) -> Edit:
    """The weight of a norm is off by one: `1 + weight` was forgotten, or made where it should not be."""

    def edit(graph: Graph, rng: Rng) -> Placed | None:
        weighed = [(n, place, _weight(graph, n)) for n, place in _placed(graph, *NORMS, *SKIP_NORMS)]
        # A folded constant is one that took the 1 in: only such a norm can forget it.
        drawn = pick(rng, [found for found in weighed if found[2] and _is_named(found[2]) == (offset > 0)])
        if drawn is None:
            return None
        node, place, weight = drawn
        own = graph.constant(f"{weight}_off", graph.array(weight) + np.float32(offset))
        for slot, name in enumerate(node.input):
            if name == weight:
                node.input[slot] = own
        return place

    return edit


def exchange_norms(graph: Graph, rng: Rng) -> Placed | None:
    """Two norms of one layer have each other's weights, biases too."""
    named = [found for found in _placed(graph, *NORMS, *SKIP_NORMS) if _is_named(_weight(graph, found[0]))]
    pairs = [
        (_weight(graph, a), _weight(graph, b), here, there)
        for a, here in named
        for b, there in named
        if here.layer is not None and here.layer == there.layer and here.modules < there.modules
    ]
    alike = [pair for pair in pairs if graph.array(pair[0]).shape == graph.array(pair[1]).shape]
    drawn = pick(rng, alike)
    if drawn is None:
        return None
    one, two, here, there = drawn
    for kind in ("weight", "bias"):
        a, b = (name.removesuffix("weight") + kind for name in (one, two))
        if a in graph.weights and b in graph.weights:
            first, second = graph.array(a).copy(), graph.array(b).copy()
            graph.set_array(a, second)
            graph.set_array(b, first)
    return Placed(here.layer, (*here.modules, *there.modules))


def skip_qk_norm(graph: Graph, rng: Rng) -> Placed | None:
    """The norm of the queries or of the keys is left out."""
    named = [found for found in _placed(graph, *NORMS) if found[1].modules[0].endswith(_QK_NORMS)]
    drawn = pick(rng, named)
    if drawn is None:
        return None
    node, place = drawn
    graph.redirect(node.output[0], node.input[0])
    return place


def _weight(graph: Graph, node: onnx.NodeProto) -> str:
    """The weight that a norm multiplies by; "" when it is computed."""
    name = node.input[2 if node.op_type in SKIP_NORMS else 1]
    return name if name in graph.weights else ""


def _is_named(weight: str) -> bool:
    """Does it carry the source's name? A folded constant does not."""
    return weight.endswith((".weight", ".bias"))


def norm_place(graph: Graph, node: onnx.NodeProto) -> Placed | None:
    """Layer and module of a norm: by its weight's name, else by the products around it; None if neither
    tells.
    """
    weight = _weight(graph, node)
    if layer_of(weight) is not None:
        return Placed(layer_of(weight), (module_of(weight),))
    ahead = _product_ahead(graph, node)
    if _is_named(weight) or (ahead is not None and "logits" in _near_end(graph, ahead)):
        return Placed(None, ("final norm",))
    behind = _product_behind(graph, node.input[0])
    for name, words in ((behind, _BEHIND), (ahead.input[1] if ahead is not None else "", _AHEAD)):
        for kinds, module in words:
            if any(kind in name for kind in kinds):
                return Placed(layer_of(name), (module,))
    return None


def _product_behind(graph: Graph, value: str) -> str:
    """The matrix that makes `value`, its bias added; "" when no product does."""
    node = graph.maker(value)
    while node is not None and node.op_type == "Add":
        made = [name for name in node.input if name not in graph.weights]
        node = graph.maker(made[0]) if len(made) == 1 else None
    return node.input[1] if node is not None and node.op_type in ("MatMul", "FusedMatMul") else ""


def _product_ahead(graph: Graph, node: onnx.NodeProto) -> onnx.NodeProto | None:
    """The first product that the norm's result goes into."""
    return next((n for n in graph.users(node.output[0]) if n.op_type in ("MatMul", "FusedMatMul")), None)


def _near_end(graph: Graph, node: onnx.NodeProto) -> set[str]:
    """What a product makes, and what its users make of that, a few steps on."""
    names = set(node.output)
    for _ in range(5):
        names |= {out for name in names for user in graph.users(name) for out in user.output}
    return names
