"""Faults of biases: dropped, moved, cut, added twice."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from seatrial.export.faults.mutations.graph import (
    DOWN,
    GATE,
    OUT,
    PACKED,
    UP,
    Edit,
    Graph,
    K,
    Placed,
    Q,
    Rng,
    V,
    layer_of,
    module_of,
    pick,
    place_of,
)

Change = Callable[[np.ndarray], np.ndarray]


def change_bias(change: Change, *words: str) -> Edit:
    """The bias of one projection becomes another one."""

    def edit(graph: Graph, rng: Rng) -> Placed | None:
        name = pick(rng, [n for n in graph.biases(*words) if "+" not in n])
        if name is None:
            return None
        graph.set_array(name, change(graph.array(name)))
        return place_of(name)

    return edit


def change_packed_bias(change: Change, which: int) -> Edit:
    """The bias of q, k or v becomes another one, inside a packed projection or in its own."""
    words = (Q, K, V)[which]

    def edit(graph: Graph, rng: Rng) -> Placed | None:
        packed = [n for n in graph.biases("q_proj+k_proj", *PACKED) if _fits(graph, n)]
        name = pick(rng, packed)
        if name is None:
            return change_bias(change, *words)(graph, rng)
        value, span = graph.array(name).copy(), graph.packed_span(name, which)
        value[span] = change(value[span])
        graph.set_array(name, value)
        return Placed(layer_of(name), (*words, *PACKED))

    return edit


def _fits(graph: Graph, name: str) -> bool:
    """Are q, k and v one behind the other? Where each head has its own three it is another layout."""
    heads, kv = graph.heads()
    return "query_key_value" not in name and graph.array(name).shape[-1] % (heads + 2 * kv) == 0


def dropped(bias: np.ndarray) -> np.ndarray:
    return np.zeros_like(bias)


def doubled(bias: np.ndarray) -> np.ndarray:
    return bias * 2


def halved(bias: np.ndarray) -> np.ndarray:
    """The second half is missing."""
    cut = bias.copy()
    cut[len(cut) // 2 :] = 0
    return cut


def cut_bias(graph: Graph, rng: Rng) -> Placed | None:
    """The second half of a bias is missing."""
    return change_bias(halved, *OUT, *UP, *DOWN, *GATE)(graph, rng)


def move_bias(graph: Graph, rng: Rng) -> Placed | None:
    """The bias of the up projection is added to the down projection's, cut or padded to its length."""
    name = pick(rng, graph.biases(*UP))
    targets = [] if name is None else [n for n in graph.biases(*DOWN) if layer_of(n) == layer_of(name)]
    if name is None or not targets:
        return None
    source, total = graph.array(name), graph.array(targets[0]).copy()
    length = min(len(source), len(total))
    total[:length] += source[:length]
    graph.set_array(targets[0], total)
    graph.set_array(name, np.zeros_like(source))
    return Placed(layer_of(name), (module_of(name),))
