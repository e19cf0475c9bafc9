"""Faults of the attention node and of its rotary embedding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import helper

from seatrial.export.faults.mutations.graph import Edit, Graph, Placed, Rng, attributes_of, pick


def change_attention(name: str, value: Callable[[float], float]) -> Edit:
    """An attribute of an attention node is another one, or gone where `value` gives 0."""

    def edit(graph: Graph, rng: Rng) -> Placed | None:
        node = pick(rng, [n for n in graph.of_type("GroupQueryAttention") if name in attributes_of(n)])
        if node is None:
            return None
        old = attributes_of(node)[name]
        node.attribute.remove(next(a for a in node.attribute if a.name == name))
        if (new := value(old)) or name == "scale":
            node.attribute.append(helper.make_attribute(name, type(old)(new)))
        return Placed(int(node.output[1].split(".")[1]), ("attention",))

    return edit


def rotary_base(graph: Graph, rng: Rng) -> Placed | None:
    """The rotary tables are those of another base."""
    names = graph.names("cos_cache")
    if not names:
        return None
    positions, width = graph.array(names[0]).shape
    base = float(rng.choice([500.0, 2e5, 3e6]))
    _set_tables(graph, names[0], positions, width, base)
    return Placed(None, ("rotary",))


def _set_tables(graph: Graph, name: str, positions: int, width: int, base: float) -> None:
    angles = np.arange(positions)[:, None] * base ** (-np.arange(width) / width)[None, :]
    graph.set_array(name, np.cos(angles).astype(np.float32))
    graph.set_array(name.replace("cos", "sin"), np.sin(angles).astype(np.float32))


def rotary_width(graph: Graph, rng: Rng) -> Placed | None:
    """All channels of a head are rotated where only a part should be."""
    del rng
    names = [name for name in graph.names("cos_cache") if graph.users(name)]
    whole = _head_width(graph)
    if not names or whole is None:
        return None
    positions, width = graph.array(names[0]).shape
    if whole <= 2 * width:
        return None
    _set_tables(graph, names[0], positions, whole // 2, 1e4)
    for node in graph.of_type("GroupQueryAttention"):
        for attribute in node.attribute:
            if attribute.name == "rotary_embedding_dim" and names[0] in node.input:
                attribute.i = whole
    return Placed(None, ("rotary",))


def _head_width(graph: Graph) -> int | None:
    """Channels of one head, from the cache's shape."""
    for value in graph.model.graph.input:
        if value.name == "past_key_values.0.key":
            return value.type.tensor_type.shape.dim[3].dim_value or None
    return None


def interleave_rotary(graph: Graph, rng: Rng) -> Placed | None:
    """The rotary pairs neighbours where it should pair halves."""
    del rng
    found = None
    for node in graph.of_type("GroupQueryAttention", "RotaryEmbedding"):
        for attribute in node.attribute:
            if attribute.name in ("rotary_interleaved", "interleaved"):
                attribute.i = 1 - attribute.i
                found = Placed(None, ("rotary",))
    return found


def frozen_length(graph: Graph, rng: Rng) -> Placed | None:
    """The number of valid tokens is the one of the example, whatever the mask says."""
    del rng
    node = graph.of_type("GroupQueryAttention")[0]
    old, old_total = node.input[5], node.input[6]
    graph.redirect(old, graph.constant("frozen_seqlens", np.array([4], dtype=np.int32)))
    graph.redirect(old_total, graph.constant("frozen_total", np.array(5, dtype=np.int32)))
    return Placed(None, ("graph",))
