"""A small graph in memory that can be edited, and where an edit was made.

It is the only part that knows how our graphs look: names of weights, packed projections, fused norms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import onnx
from onnx import helper, numpy_helper

Rng = np.random.Generator
T = TypeVar("T")
Edit = Callable[["Graph", Rng], "Placed | None"]

# What the projections are called, whatever the family.
Q, K, V = ("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value")
PACKED = ("c_attn", "qkv_proj", "query_key_value")
OUT = ("o_proj", "out_proj", "attn.c_proj", "self_attn.dense", "attention.dense")
UP = ("up_proj", "c_fc", "fc1", "dense_h_to_4h")
DOWN = ("down_proj", "mlp.c_proj", "fc2", "dense_4h_to_h")
GATE = ("gate_proj", "gate_up_proj")
ACTIVATION = ("act", "act_fn", "activation_fn", "activation")
NORMS = ("SimplifiedLayerNormalization", "LayerNormalization")
SKIP_NORMS = ("SkipSimplifiedLayerNormalization", "SkipLayerNormalization")


@dataclass(frozen=True)
class Placed:
    """Where a fault was put: the layer (None outside of them) and the names that its place may be called by.

    A name is a module's, as the torch model has it, from the end: `up_proj` is `mlp.up_proj` too.
    """

    layer: int | None
    modules: tuple[str, ...] = ()

    def matches(self, place: str) -> bool:
        """Does an answer's place mean exactly this one?"""
        layer, _, module = place.partition(", ")
        if self.layer is None:
            return any(_ends_with(place, name) or _ends_with(module, name) for name in self.modules)
        if layer != f"layer {self.layer}":
            return False
        return any(_ends_with(module, name) for name in self.modules) if self.modules else not module

    def text(self) -> str:
        """For people."""
        layer = [] if self.layer is None else [f"layer {self.layer}"]
        return ", ".join([*layer, *self.modules[:1]])


def _ends_with(module: str, name: str) -> bool:
    return module == name or module.endswith("." + name)


class Graph:
    """A small model in memory, weights inside, with the look-ups that edits need."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        self.nodes = self.model.graph.node
        self.weights = {tensor.name: tensor for tensor in self.model.graph.initializer}

    def array(self, name: str) -> np.ndarray:
        return numpy_helper.to_array(self.weights[name])

    def set_array(self, name: str, value: np.ndarray) -> None:
        self.weights[name].CopyFrom(numpy_helper.from_array(np.ascontiguousarray(value), name))

    def names(self, *words: str) -> list[str]:
        """Weights whose name holds one of the words."""
        return [name for name in self.weights if any(word in name for word in words)]

    def biases(self, *words: str) -> list[str]:
        return [name for name in self.names(*words) if name.endswith(".bias")]

    def matrices(self, *words: str) -> list[str]:
        named = [name for name in self.names(*words) if name.endswith(".weight")]
        return [name for name in named if len(self.weights[name].dims) == 2]

    def users(self, value: str) -> list[onnx.NodeProto]:
        return [node for node in self.nodes if value in node.input]

    def maker(self, value: str) -> onnx.NodeProto | None:
        return next((node for node in self.nodes if value in node.output), None)

    def of_type(self, *types: str) -> list[onnx.NodeProto]:
        return [node for node in self.nodes if node.op_type in types]

    def index(self, node: onnx.NodeProto) -> int:
        return next(i for i, other in enumerate(self.nodes) if other.output == node.output)

    def insert(self, node: onnx.NodeProto, before: onnx.NodeProto) -> None:
        self.nodes.insert(self.index(before), node)

    def insert_after(self, maker: onnx.NodeProto, nodes: list[onnx.NodeProto]) -> None:
        at = self.index(maker) + 1
        for offset, node in enumerate(nodes):
            self.nodes.insert(at + offset, node)

    def redirect(self, old: str, new: str) -> None:
        """Every use of `old` reads `new`."""
        for node in self.nodes:
            for slot, name in enumerate(node.input):
                if name == old:
                    node.input[slot] = new

    def constant(self, name: str, value: np.ndarray) -> str:
        self.model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        self.weights[name] = self.model.graph.initializer[-1]
        return name

    def layer_near(self, node: onnx.NodeProto) -> int | None:
        """The layer of the nearest named weight at or before a node."""
        for earlier in reversed(list(self.nodes)[: self.index(node) + 1]):
            for name in earlier.input:
                if name in self.weights and (found := layer_of(name)) is not None:
                    return found
        return None

    def heads(self) -> tuple[int, int]:
        """Query heads and KV heads."""
        known = attributes_of(self.of_type("GroupQueryAttention")[0])
        return known["num_heads"], known["kv_num_heads"]

    def packed_span(self, name: str, which: int) -> slice:
        """The columns of q, k or v in a packed array."""
        heads, kv = self.heads()
        width = self.array(name).shape[-1] // (heads + 2 * kv)
        starts = [0, heads * width, (heads + kv) * width, (heads + 2 * kv) * width]
        return slice(starts[which], starts[which + 1])


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def layer_of(name: str) -> int | None:
    """The layer number in a parameter's name."""
    return next((int(part) for part in name.split(".") if part.isdigit()), None)


def module_of(name: str) -> str:
    """The module part of a parameter's name, without layer and kind."""
    parts = name.split(".")
    at = next((i for i, part in enumerate(parts) if part.isdigit()), -1)
    return ".".join(parts[at + 1 : -1])


def place_of(name: str) -> Placed:
    """The place of a named parameter; outside of the layers it is the head's."""
    layer = layer_of(name)
    return Placed(layer, (module_of(name),)) if layer is not None else Placed(None, ("head",))


def pick(rng: Rng, found: Sequence[T]) -> T | None:
    """One of `found` by draw; None when there is none."""
    return None if not found else found[int(rng.integers(len(found)))]
