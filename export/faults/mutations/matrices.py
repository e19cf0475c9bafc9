"""Faults of matrices: halves missing, transposed, swapped, scaled, heads and layers in another order."""

from __future__ import annotations

import numpy as np
from onnx import helper

from seatrial.export.faults.mutations.graph import (
    DOWN,
    OUT,
    PACKED,
    Edit,
    Graph,
    Placed,
    Rng,
    layer_of,
    pick,
    place_of,
)


def half_of_sum(*words: str) -> Edit:
    """Half of the input channels of a projection contribute nothing."""

    def edit(graph: Graph, rng: Rng) -> Placed | None:
        name = pick(rng, graph.matrices(*words))
        if name is None:
            return None
        value = graph.array(name).copy()
        inputs = value.T if _reads_transposed(graph, name) else value  # (in, out), a view
        half = len(inputs) // 2
        inputs[slice(half, None) if rng.integers(2) else slice(0, half)] = 0
        graph.set_array(name, value)
        return place_of(name)

    return edit


def _reads_transposed(graph: Graph, name: str) -> bool:
    """Does the product that uses this matrix take it as (out, in)?"""
    return any(a.name == "transB" and a.i for node in graph.users(name) for a in node.attribute)


def swap_gate_up(graph: Graph, rng: Rng) -> Placed | None:
    """Gate and up projections are exchanged, biases too; or the halves of a packed one."""
    gate = pick(rng, graph.matrices("gate_proj"))
    if gate is None:
        packed = pick(rng, graph.matrices("gate_up_proj"))
        if packed is None:
            return None
        value = graph.array(packed)
        graph.set_array(packed, np.roll(value, value.shape[1] // 2, 1))
        return place_of(packed)
    for kind in (".weight", ".bias"):
        a, b = gate.replace(".weight", kind), gate.replace("gate_proj", "up_proj").replace(".weight", kind)
        if a in graph.weights and b in graph.weights:
            _exchange(graph, a, b)
    return Placed(layer_of(gate), ("gate_proj", "up_proj"))


def _exchange(graph: Graph, a: str, b: str) -> None:
    one, two = graph.array(a).copy(), graph.array(b).copy()
    graph.set_array(a, two)
    graph.set_array(b, one)


def transpose_square(graph: Graph, rng: Rng) -> Placed | None:
    """A square matrix is stored transposed."""
    squares = [n for n in graph.matrices(*OUT, "q_proj.weight") if len(set(graph.array(n).shape)) == 1]
    name = pick(rng, squares)
    if name is None:
        return None
    graph.set_array(name, graph.array(name).T)
    return place_of(name)


def scale_branch(factor: float) -> Edit:
    """What a projection gives is scaled: in the matrix and, where it has one, the bias."""

    def edit(graph: Graph, rng: Rng) -> Placed | None:
        name = pick(rng, graph.matrices(*OUT, *DOWN))
        if name is None:
            return None
        for kind in ("weight", "bias"):
            if (each := name.removesuffix("weight") + kind) in graph.weights:
                graph.set_array(each, graph.array(each) * np.float32(factor))
        return place_of(name)

    return edit


def regroup_heads(graph: Graph, rng: Rng) -> Placed | None:
    """Query heads are ordered so that they meet the wrong KV heads."""
    heads, kv = graph.heads()
    name = pick(rng, graph.matrices("q_proj+k_proj"))
    if name is None or heads == kv:
        return None
    order = np.argsort(np.arange(heads).reshape(kv, heads // kv).T.reshape(-1))
    outputs = [n for n in graph.matrices(*OUT) if layer_of(n) == layer_of(name)]
    if not outputs:
        return None
    _reorder(graph, name, 0, order)
    value = graph.array(outputs[0])
    graph.set_array(outputs[0], value.reshape(heads, -1, value.shape[1])[order].reshape(value.shape))
    return Placed(layer_of(name), ("attention",))


def permute_kv_heads(graph: Graph, rng: Rng) -> Placed | None:
    """Keys and values of the KV heads come in another order than the query heads expect."""
    _, kv = graph.heads()
    packed = [n for n in graph.matrices("q_proj+k_proj", *PACKED) if "query_key_value" not in n]
    name = pick(rng, packed)
    if name is None or kv < 2:
        return None
    order = np.roll(np.arange(kv), 1)
    for which in (1, 2):
        _reorder(graph, name, which, order)
    return Placed(layer_of(name), ("attention",))


def _reorder(graph: Graph, name: str, which: int, order: np.ndarray) -> None:
    """Put the heads of q, k or v (0, 1, 2) in a packed projection into another order, biases too."""
    span = graph.packed_span(name, which)
    for each in (name, name.removesuffix("weight") + "bias"):
        if each in graph.weights:
            value = graph.array(each).copy()
            part = value[..., span]
            value[..., span] = part.reshape(*part.shape[:-1], len(order), -1)[..., order, :].reshape(
                part.shape
            )
            graph.set_array(each, value)


def exchange_layers(graph: Graph, rng: Rng) -> Placed | None:
    """Two layers have each other's weights."""
    layers = sorted({found for name in graph.weights if (found := layer_of(name)) is not None})
    if len(layers) < 2:
        return None
    first, second = sorted(rng.permutation(layers)[:2].tolist())
    suffixes = {(_inside(n), n) for n in graph.weights if layer_of(n) == first}
    others = {_inside(n): n for n in graph.weights if layer_of(n) == second}
    shared = {suffix for suffix, _ in suffixes}
    # Norms that were folded into nameless constants would stay behind.
    if shared != set(others) or not any("norm" in suffix or "ln_" in suffix for suffix in shared):
        return None
    for suffix, name in suffixes:
        _exchange(graph, name, others[suffix])
    return Placed(first)


def _inside(name: str) -> str:
    """A parameter's name without what stands before its layer's number."""
    parts = name.split(".")
    return ".".join(parts[next(i for i, part in enumerate(parts) if part.isdigit()) + 1 :])


def scale_logits(factor: float) -> Edit:
    """The logits are scaled by a factor that does not belong there."""

    def edit(graph: Graph, rng: Rng) -> Placed | None:
        del rng
        maker = graph.maker("logits")
        if maker is None:
            return None
        maker.output[list(maker.output).index("logits")] = "logits_right"
        name = graph.constant("logits_factor", np.array(factor, np.float32))
        graph.insert_after(maker, [helper.make_node("Mul", ["logits_right", name], ["logits"])])
        return Placed(None, ("head",))

    return edit
