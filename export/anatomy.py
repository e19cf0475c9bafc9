"""Where the layers are in an ONNX graph that anybody may have made: found by its shape, not by names.

Layer N is anchored at the node that makes `present.N.key`. The residual stream is what every path from the
token embedding to the logits must go through; the nodes where it takes in a branch are its joins. Names of
weights, the exporter and the operators' fusions do not matter. It runs nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import onnx

from seatrial.errors import UserError

_PRIME = (1 << 61) - 1
_PRESENT_KEY = re.compile(r"present\.(\d+)\.key")
_SHAPES = ("Shape", "Size")
_SKIP_NORMS = ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")


class BareLayer(UserError):
    """A layer of the graph adds nothing to the residual stream."""

    def __init__(self, layer: int) -> None:
        super().__init__(f"layer {layer} of the graph adds nothing to the residual stream")
        self.layer = layer


@dataclass
class LayerParts:
    """One layer: the node index of its attention anchor and the values of its joins, in order.

    The last join is the layer's output before the next norm; a sequential layer has another after its
    attention.
    """

    anchor: int
    joins: list[str] = field(default_factory=list)


@dataclass
class Anatomy:
    """Layers in order, and the value that the first one reads (the embedding, scaled or not)."""

    layers: list[LayerParts]
    embedding: str

    def residuals(self) -> list[str]:
        """The value of each layer's output."""
        return [layer.joins[-1] for layer in self.layers]


def find_anatomy(proto: onnx.ModelProto) -> Anatomy:
    """The layers of a decoder graph. Sums inside skip-norm nodes get a name in `proto` where they had none.

    Raises UserError when the graph has no present.N.key outputs or its layers do not show.
    """
    nodes = list(proto.graph.node)
    maker = {output: index for index, node in enumerate(nodes) for output in node.output if output}
    start = _embedding_node(proto)
    forward, backward = _path_counts(nodes, maker, start, maker[_logits(proto)])
    total = forward[maker[_logits(proto)]]
    cuts = [i for i in range(len(nodes)) if forward[i] and forward[i] * backward[i] % _PRIME == total]
    joins = [i for i in cuts if _is_join(nodes[i], maker, forward)]
    anchors = _anchors(proto, nodes, maker, forward, backward)
    layers = [LayerParts(anchor) for anchor in anchors]
    for join in joins:
        before = [number for number, anchor in enumerate(anchors) if anchor < join]
        if before:
            layers[before[-1]].joins.append(join_value(nodes[join]))
    bare = [number for number, layer in enumerate(layers) if not layer.joins]
    if bare:
        raise BareLayer(bare[0])
    first = [join for join in joins if join < anchors[0]]
    start_node = first[-1] if first else _stream_start(cuts, anchors)
    return Anatomy(layers, join_value(nodes[start_node]))


def _logits(proto: onnx.ModelProto) -> str:
    names = [output.name for output in proto.graph.output]
    return "logits" if "logits" in names else names[0]


def _embedding_node(proto: onnx.ModelProto) -> int:
    """The node that looks tokens up: the first gather whose indices come from input_ids."""
    reached = {"input_ids"}
    for index, node in enumerate(proto.graph.node):
        if node.op_type.startswith(("Gather", "Embed")) and any(name in reached for name in node.input[1:]):
            return index
        if node.op_type in ("Reshape", "Cast", "Identity", "Flatten") and node.input[0] in reached:
            reached.update(node.output)
    raise UserError("the graph does not look up input_ids in an embedding; it is no decoder of a known shape")


def _path_counts(
    nodes: list[onnx.NodeProto], maker: dict[str, int], start: int, end: int
) -> tuple[list[int], list[int]]:
    """Numbers of paths from `start` to each node and from each node to `end`, modulo a large prime.

    A shape is not the value: what only passes on how long something is makes no path.
    """
    forward, backward = [0] * len(nodes), [0] * len(nodes)
    forward[start] = backward[end] = 1
    for index, node in enumerate(nodes):
        if index != start and node.op_type not in _SHAPES:
            forward[index] = sum(forward[maker[name]] for name in node.input if name in maker) % _PRIME
    for index in range(len(nodes) - 1, -1, -1):
        for name in nodes[index].input if nodes[index].op_type not in _SHAPES else ():
            if name in maker:
                backward[maker[name]] = (backward[maker[name]] + backward[index]) % _PRIME
    return forward, backward


def _is_join(node: onnx.NodeProto, maker: dict[str, int], forward: list[int]) -> bool:
    """Does a sum take in two values that both depend on the tokens?"""
    if node.op_type not in ("Add", "Sum", *_SKIP_NORMS):
        return False
    return sum(name in maker and forward[maker[name]] > 0 for name in node.input) >= 2


def _anchors(
    proto: onnx.ModelProto,
    nodes: list[onnx.NodeProto],
    maker: dict[str, int],
    forward: list[int],
    backward: list[int],
) -> list[int]:
    """Per layer, the node on the way from embedding to logits that makes its present key."""
    found: dict[int, int] = {}
    for output in proto.graph.output:
        if (match := _PRESENT_KEY.fullmatch(output.name)) and output.name in maker:
            index = maker[output.name]
            while not (forward[index] and backward[index]):
                earlier = [maker[name] for name in nodes[index].input if name in maker]
                if not earlier:
                    break
                index = max(earlier)
            found[int(match.group(1))] = index
    if not found or sorted(found) != list(range(len(found))):
        raise UserError(
            "the graph has no outputs present.0.key, present.1.key, ...; a decoder with KV cache is needed"
        )
    return [found[number] for number in range(len(found))]


def _stream_start(cuts: list[int], anchors: list[int]) -> int:
    """The last node before the first layer's branches open: the embedding or what scales it."""
    before = [cut for cut in cuts if cut < anchors[0]]
    return before[-1] if before else anchors[0]


def join_value(node: onnx.NodeProto) -> str:
    """The sum that a join makes; a skip-norm's sum is its fourth output and gets a name when it has none."""
    if node.op_type not in _SKIP_NORMS:
        return node.output[0]
    while len(node.output) < 4:
        node.output.append("")
    if not node.output[3]:
        node.output[3] = node.output[0] + "_sum"
    return node.output[3]
