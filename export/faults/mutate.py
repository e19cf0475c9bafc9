"""Faults put into correct graphs on purpose: the suite that the fault finder is measured with.

Each fault edits a copy of a graph the way a wrong exporter would have written it. Family, layer and place
are drawn by seed; a fault that a graph has no place for says so. It is the only part that knows how our
graphs look.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

Rng = np.random.Generator
Edit = Callable[["Graph", Rng], "Placed | None"]


@dataclass(frozen=True)
class Placed:
    """Where a fault was put: the layer (None outside of them) and a word of the place, as a parameter's
    name has it.
    """

    layer: int | None
    module: str  # words that a right answer's place may hold, separated by |

    def matches(self, place: str) -> bool:
        """Does an answer's place mean this one?"""
        layer = self.layer is None or place.startswith(f"layer {self.layer}")
        return layer and any(word.split(".")[-1] in place for word in self.module.split("|"))


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

    def users(self, value: str) -> list[onnx.NodeProto]:
        return [node for node in self.nodes if value in node.input]

    def maker(self, value: str) -> onnx.NodeProto | None:
        return next((node for node in self.nodes if value in node.output), None)

    def of_type(self, *types: str) -> list[onnx.NodeProto]:
        return [node for node in self.nodes if node.op_type in types]

    def insert(self, node: onnx.NodeProto, before: onnx.NodeProto) -> None:
        self.nodes.insert(list(self.nodes).index(before), node)

    def redirect(self, old: str, new: str, keep: onnx.NodeProto | None = None) -> None:
        """Every use of `old` reads `new`, except in `keep`."""
        for node in self.nodes:
            if node is not keep and node != keep:
                for slot, name in enumerate(node.input):
                    if name == old:
                        node.input[slot] = new

    def constant(self, name: str, value: np.ndarray) -> str:
        self.model.graph.initializer.append(numpy_helper.from_array(value, name))
        self.weights[name] = self.model.graph.initializer[-1]
        return name


def layer_of(name: str) -> int | None:
    """The layer number in a parameter's name."""
    return next((int(part) for part in name.split(".") if part.isdigit()), None)


def module_of(name: str) -> str:
    """The module part of a parameter's name, without layer and kind."""
    parts = name.split(".")
    at = next((i for i, part in enumerate(parts) if part.isdigit()), -1)
    return ".".join(parts[at + 1 : -1])


def _pick(rng: Rng, found: list[str]) -> str | None:
    return None if not found else found[int(rng.integers(len(found)))]


Q, K, V = ("q_proj.", "query"), ("k_proj.", "key"), ("v_proj.",)
OUT = ("o_proj", "out_proj", "attn.c_proj", "self_attn.dense", "attention.dense")
UP = ("up_proj", "c_fc", "fc1", "dense_h_to_4h")
DOWN = ("down_proj", "mlp.c_proj", "fc2", "dense_4h_to_h")
GATE = ("gate_proj",)


def _packed_span(graph: Graph, name: str, which: int) -> slice:
    """The columns of q, k or v in a packed array."""
    node = next(n for n in graph.of_type("GroupQueryAttention"))
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    heads, kv = attributes["num_heads"], attributes["kv_num_heads"]
    width = graph.array(name).shape[-1] // (heads + 2 * kv)
    starts = [0, heads * width, (heads + kv) * width, (heads + 2 * kv) * width]
    return slice(starts[which], starts[which + 1])


def drop_bias(*words: str) -> Edit:
    """The bias of one projection becomes zeros."""

    def edit(graph: Graph, rng: Rng) -> Placed | None:
        name = _pick(rng, [n for n in graph.names(*words) if n.endswith(".bias") and "+" not in n])
        if name is None:
            return None
        graph.set_array(name, np.zeros_like(graph.array(name)))
        return Placed(layer_of(name), module_of(name) if layer_of(name) is not None else "head")

    return edit


def drop_packed_bias(which: int) -> Edit:
    """The bias of q, k or v inside a packed projection becomes zeros."""
    label = ("q_proj", "k_proj", "v_proj")[which]

    def edit(graph: Graph, rng: Rng) -> Placed | None:
        name = _pick(rng, [n for n in graph.names("q_proj+k_proj") if n.endswith(".bias")])
        if name is None:
            return drop_bias(label)(graph, rng)
        value = graph.array(name).copy()
        value[_packed_span(graph, name, which)] = 0
        graph.set_array(name, value)
        return Placed(layer_of(name), f"{label}|attn|qkv")

    return edit


def move_bias(graph: Graph, rng: Rng) -> Placed | None:
    """The bias of the up projection is added to the down projection's, cut or padded to its length."""
    name = _pick(rng, [n for n in graph.names(*UP) if n.endswith(".bias")])
    if name is None:
        return None
    target = next(
        (n for n in graph.names(*DOWN) if n.endswith(".bias") and layer_of(n) == layer_of(name)), None
    )
    if target is None:
        return None
    source, sum_ = graph.array(name), graph.array(target).copy()
    length = min(len(source), len(sum_))
    sum_[:length] += source[:length]
    graph.set_array(target, sum_)
    graph.set_array(name, np.zeros_like(source))
    return Placed(layer_of(name), module_of(name))


def cut_bias(graph: Graph, rng: Rng) -> Placed | None:
    """The second half of a bias is missing."""
    name = _pick(rng, [n for n in graph.names(*OUT, *UP, *DOWN, *GATE) if n.endswith(".bias")])
    if name is None:
        return None
    value = graph.array(name).copy()
    value[len(value) // 2 :] = 0
    graph.set_array(name, value)
    return Placed(layer_of(name), module_of(name))


def half_of_sum(*words: str) -> Edit:
    """Half of the input channels of a projection contribute nothing."""

    def edit(graph: Graph, rng: Rng) -> Placed | None:
        name = _pick(
            rng, [n for n in graph.names(*words) if n.endswith(".weight") and graph.array(n).ndim == 2]
        )
        if name is None:
            return None
        value = graph.array(name).copy()
        inputs = value.T if _reads_transposed(graph, name) else value  # (in, out), a view
        half = len(inputs) // 2
        inputs[slice(half, None) if rng.integers(2) else slice(0, half)] = 0
        graph.set_array(name, value)
        return Placed(layer_of(name), module_of(name))

    return edit


def _reads_transposed(graph: Graph, name: str) -> bool:
    """Does the product that uses this matrix take it as (out, in)?"""
    return any(a.name == "transB" and a.i for node in graph.users(name) for a in node.attribute)


def swap_gate_up(graph: Graph, rng: Rng) -> Placed | None:
    """Gate and up projections are exchanged, biases too; or the halves of a packed one."""
    gate = _pick(rng, [n for n in graph.names("gate_proj") if n.endswith(".weight")])
    if gate is None:
        packed = _pick(rng, [n for n in graph.names("gate_up_proj") if n.endswith(".weight")])
        if packed is None:
            return None
        value = graph.array(packed)
        graph.set_array(packed, np.roll(value, value.shape[1] // 2, 1))
        return Placed(layer_of(packed), module_of(packed))
    for kind in (".weight", ".bias"):
        a, b = gate.replace(".weight", kind), gate.replace("gate_proj", "up_proj").replace(".weight", kind)
        if a in graph.weights and b in graph.weights:
            one, two = graph.array(a).copy(), graph.array(b).copy()
            graph.set_array(a, two)
            graph.set_array(b, one)
    return Placed(layer_of(gate), "gate_proj|up_proj")


def transpose_square(graph: Graph, rng: Rng) -> Placed | None:
    """A square matrix is stored transposed."""
    squares = [
        n for n in graph.names(*OUT, "q_proj.weight") if n.endswith(".weight") and graph.array(n).ndim == 2
    ]
    name = _pick(rng, [n for n in squares if graph.array(n).shape[0] == graph.array(n).shape[1]])
    if name is None:
        return None
    graph.set_array(name, graph.array(name).T)
    return Placed(layer_of(name), module_of(name))


def scale_residual_branch(factor: float) -> Edit:
    """What a projection gives is scaled: in the matrix and, where it has one, the bias."""

    def edit(graph: Graph, rng: Rng) -> Placed | None:
        name = _pick(
            rng, [n for n in graph.names(*OUT, *DOWN) if n.endswith(".weight") and graph.array(n).ndim == 2]
        )
        if name is None:
            return None
        graph.set_array(name, graph.array(name) * np.float32(factor))
        bias = name.removesuffix("weight") + "bias"
        if bias in graph.weights:
            graph.set_array(bias, graph.array(bias) * np.float32(factor))
        return Placed(layer_of(name), module_of(name))

    return edit


def scale_before_norm(factor: float) -> Edit:
    """A norm is given a scaled input, which the norm hides."""

    def edit(graph: Graph, rng: Rng) -> Placed | None:
        norms = graph.of_type("SimplifiedLayerNormalization", "LayerNormalization")
        if not norms:
            return None
        node = norms[int(rng.integers(len(norms)))]
        value = node.input[0]
        factor_name = graph.constant(f"{value}_factor", np.array(factor, dtype=np.float32))
        graph.insert(helper.make_node("Mul", [value, factor_name], [f"{value}_scaled"]), node)
        node.input[0] = f"{value}_scaled"
        return Placed(layer_of(node.input[1]), module_of(node.input[1]) or "norm|ln")

    return edit


def change_epsilon(graph: Graph, rng: Rng) -> Placed | None:
    """A norm has another epsilon."""
    norms = [n for n in graph.nodes if any(a.name == "epsilon" for a in n.attribute)]
    if not norms:
        return None
    node = norms[int(rng.integers(len(norms)))]
    for attribute in node.attribute:
        if attribute.name == "epsilon":
            attribute.f = 1e-3 if attribute.f < 5e-4 else 1e-6
    weight = next((name for name in node.input if name in graph.weights), "")
    return Placed(layer_of(weight), "norm|ln|layer")


def change_attention(name: str, value: Callable[[float], float]) -> Edit:
    """An attribute of an attention node is another one, or gone where `value` gives 0."""

    def edit(graph: Graph, rng: Rng) -> Placed | None:
        nodes = [n for n in graph.of_type("GroupQueryAttention") if any(a.name == name for a in n.attribute)]
        if not nodes:
            return None
        node = nodes[int(rng.integers(len(nodes)))]
        for attribute in list(node.attribute):
            if attribute.name == name:
                old = helper.get_attribute_value(attribute)
                node.attribute.remove(attribute)
                if (new := value(old)) or name == "scale":
                    node.attribute.append(helper.make_attribute(name, type(old)(new)))
        layer = int(node.output[1].split(".")[1])
        return Placed(layer, "attention")

    return edit


def regroup_heads(graph: Graph, rng: Rng) -> Placed | None:
    """Query heads are ordered so that they meet the wrong KV heads."""
    name = _pick(rng, [n for n in graph.names("q_proj+k_proj") if n.endswith(".weight")])
    if name is None:
        return None
    node = graph.of_type("GroupQueryAttention")[0]
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    heads, kv = attributes["num_heads"], attributes["kv_num_heads"]
    if heads == kv:
        return None
    order = np.arange(heads).reshape(kv, heads // kv).T.reshape(-1)
    span = _packed_span(graph, name, 0)
    for each in (name, name.replace(".weight", ".bias")):
        if each in graph.weights:
            value = graph.array(each).copy()
            part = value[..., span]
            part = part.reshape(*part.shape[:-1], heads, -1)[..., np.argsort(order), :].reshape(part.shape)
            value[..., span] = part
            graph.set_array(each, value)
    out = next(
        (n for n in graph.names(*OUT) if layer_of(n) == layer_of(name) and n.endswith(".weight")), None
    )
    if out is None:
        return None
    value = graph.array(out)
    rows = value.reshape(heads, -1, value.shape[1])[np.argsort(order)].reshape(value.shape)
    graph.set_array(out, rows)
    return Placed(layer_of(name), "attention")


def rotary_base(graph: Graph, rng: Rng) -> Placed | None:
    """The rotary tables are those of another base."""
    names = graph.names("cos_cache")
    if not names:
        return None
    cos = graph.array(names[0])
    width = cos.shape[1]
    base = float(rng.choice([500.0, 2e5, 3e6]))
    angles = np.arange(len(cos))[:, None] * base ** (-np.arange(width) / width)[None, :]
    graph.set_array(names[0], np.cos(angles).astype(np.float32))
    graph.set_array(names[0].replace("cos", "sin"), np.sin(angles).astype(np.float32))
    return Placed(None, "rotary")


def interleave_rotary(graph: Graph, rng: Rng) -> Placed | None:
    """The rotary pairs neighbours where it should pair halves."""
    del rng
    found = None
    for node in graph.of_type("GroupQueryAttention", "RotaryEmbedding"):
        for attribute in node.attribute:
            if attribute.name in ("rotary_interleaved", "interleaved"):
                attribute.i = 1 - attribute.i
                found = Placed(None, "rotary")
    return found


def other_gelu(graph: Graph, rng: Rng) -> Placed | None:
    """Exact GELU for the tanh one, or back."""
    nodes = graph.of_type("Gelu", "FastGelu", "BiasGelu")
    if not nodes:
        return None
    node = nodes[int(rng.integers(len(nodes)))]
    layer = _layer_near(graph, node)
    if node.op_type == "Gelu":
        was = next(
            (helper.get_attribute_value(a) for a in node.attribute if a.name == "approximate"), b"none"
        )
        for attribute in list(node.attribute):
            node.attribute.remove(attribute)
        node.attribute.append(helper.make_attribute("approximate", "none" if was == b"tanh" else "tanh"))
    else:
        node.op_type = "FastGelu" if node.op_type == "BiasGelu" else "Gelu"
    return Placed(layer, "act|gate|fc|mlp")


def _layer_near(graph: Graph, node: onnx.NodeProto) -> int | None:
    """The layer of the nearest named weight before a node."""
    at = list(graph.nodes).index(node)
    for earlier in reversed(list(graph.nodes)[: at + 1]):
        for name in earlier.input:
            if name in graph.weights and (found := layer_of(name)) is not None:
                return found
    return None


def silu_after_product(graph: Graph, rng: Rng) -> Placed | None:
    """SiLU is applied to gate x up instead of to gate."""
    places = []
    for sigmoid in graph.of_type("Sigmoid"):
        silu = next((n for n in graph.users(sigmoid.output[0]) if n.op_type == "Mul"), None)
        product = (
            None
            if silu is None
            else next((n for n in graph.users(silu.output[0]) if n.op_type == "Mul"), None)
        )
        if silu is not None and product is not None:
            places.append((sigmoid, silu, product))
    if not places:
        return None
    sigmoid, silu, product = places[int(rng.integers(len(places)))]
    gate, after = sigmoid.input[0], product.output[0]
    for slot, name in enumerate(product.input):
        if name == silu.output[0]:
            product.input[slot] = gate
    new = [
        helper.make_node("Sigmoid", [after], [after + "_sigmoid"]),
        helper.make_node("Mul", [after, after + "_sigmoid"], [after + "_silu"]),
    ]
    graph.redirect(after, after + "_silu")
    at = list(graph.nodes).index(product)
    for offset, node in enumerate(new):
        graph.nodes.insert(at + 1 + offset, node)
    layer = _layer_near(graph, sigmoid)
    return Placed(layer, "act|gate|fc|mlp")


def activation_before(graph: Graph, rng: Rng) -> Placed | None:
    """SiLU is applied to the gate projection's input instead of its output."""
    places = [
        n
        for n in graph.of_type("Sigmoid")
        if (m := graph.maker(n.input[0])) is not None and m.op_type in ("MatMul", "Add")
    ]
    if not places:
        return None
    sigmoid = places[int(rng.integers(len(places)))]
    layer = _layer_near(graph, sigmoid)
    silu = next(n for n in graph.users(sigmoid.output[0]) if n.op_type == "Mul")
    linear = graph.maker(sigmoid.input[0])
    while linear is not None and linear.op_type != "MatMul":
        linear = graph.maker(linear.input[0])
    if linear is None:
        return None
    x = linear.input[0]
    graph.insert(helper.make_node("Sigmoid", [x], [x + "_sigmoid"]), linear)
    graph.insert(helper.make_node("Mul", [x, x + "_sigmoid"], [x + "_silu"]), linear)
    linear.input[0] = x + "_silu"
    graph.redirect(silu.output[0], sigmoid.input[0])
    return Placed(layer, "gate|mlp|fc")


def embedding_scale(graph: Graph, rng: Rng) -> Placed | None:
    """The factor on the embedding is missing."""
    del rng
    gather = graph.of_type("Gather")[0]
    for node in graph.users(gather.output[0]):
        if node.op_type == "Mul":
            graph.redirect(node.output[0], gather.output[0])
            return Placed(None, "embedding")
    return None


def frozen_length(graph: Graph, rng: Rng) -> Placed | None:
    """The number of valid tokens is the one of the example, whatever the mask says."""
    del rng
    node = graph.of_type("GroupQueryAttention")[0]
    frozen = graph.constant("frozen_seqlens", np.array([4], dtype=np.int32))
    total = graph.constant("frozen_total", np.array(5, dtype=np.int32))
    old, old_total = node.input[5], node.input[6]
    graph.redirect(old, frozen)
    graph.redirect(old_total, total)
    return Placed(None, "graph")


def store_tied_twice(graph: Graph, rng: Rng) -> Placed | None:
    """The head gets a transposed copy of the embedding."""
    del rng
    head = next(
        (
            n
            for n in graph.of_type("FusedMatMul")
            if n.output[0] == "logits" or len(graph.users(n.output[0])) <= 3
        ),
        None,
    )
    if head is None or head.input[1] not in graph.weights or len(graph.users(head.input[1])) < 2:
        return None
    alpha = next((helper.get_attribute_value(a) for a in head.attribute if a.name == "alpha"), 1.0)
    copied = graph.constant(
        "head_copy", np.ascontiguousarray(graph.array(head.input[1]).T) * np.float32(alpha)
    )
    head.input[1] = copied
    head.op_type, head.domain = "MatMul", ""
    del head.attribute[:]
    return Placed(None, "head")


def skip_layer(graph: Graph, rng: Rng) -> Placed | None:
    """One layer's output is its input."""
    from seatrial.export.anatomy import find_anatomy

    anatomy = find_anatomy(graph.model)
    number = int(rng.integers(1, len(anatomy.layers)))
    before, after = anatomy.layers[number - 1].joins[-1], anatomy.layers[number].joins[-1]
    maker = graph.maker(after)
    if maker is None:
        return None
    if maker.op_type.startswith("Skip"):
        # The sum inside the node becomes the layer's input plus nothing.
        zero = graph.constant("nothing", np.zeros(1, dtype=np.float32))
        other = next(name for name in maker.input[:2])
        graph.insert(helper.make_node("Mul", [other, zero], [other + "_none"]), maker)
        maker.input[0], maker.input[1] = other + "_none", before
        if len(maker.input) > 3 and "Simplified" in maker.op_type and maker.input[3]:
            maker.input[3] = graph.constant("no_bias", np.zeros_like(graph.array(maker.input[3])))
        if len(maker.input) > 4 and maker.input[4]:
            maker.input[4] = graph.constant("no_bias", np.zeros_like(graph.array(maker.input[4])))
    else:
        graph.redirect(after, before)
    return Placed(number, "layer")


# name, kinds that name it rightly, edit
SUITE: tuple[tuple[str, tuple[str, ...], Edit], ...] = (
    ("q bias dropped", ("bias dropped",), drop_packed_bias(0)),
    ("k bias dropped", ("bias dropped",), drop_packed_bias(1)),
    ("v bias dropped", ("bias dropped",), drop_packed_bias(2)),
    ("o bias dropped", ("bias dropped",), drop_bias(*OUT)),
    ("up bias dropped", ("bias dropped",), drop_bias(*UP)),
    ("down bias dropped", ("bias dropped",), drop_bias(*DOWN)),
    ("head bias dropped", ("bias dropped",), drop_bias("lm_head", "embed_out")),
    ("bias moved to another projection", ("bias moved",), move_bias),
    ("bias truncated", ("bias truncated",), cut_bias),
    ("GELU of the other kind", ("activation differs",), other_gelu),
    ("SiLU after the gate product", ("activation after the product",), silu_after_product),
    ("activation before the projection", ("activation before the projection",), activation_before),
    ("scale 1/2 on a branch", ("scale wrong",), scale_residual_branch(0.5)),
    ("scale 1/4 on a branch", ("scale wrong",), scale_residual_branch(0.25)),
    ("scale 1/2 before a norm", ("scale wrong",), scale_before_norm(0.5)),
    ("scale 1/4 before a norm", ("scale wrong",), scale_before_norm(0.25)),
    ("half of the o projection's inputs", ("half of a sum missing",), half_of_sum(*OUT)),
    ("half of the down projection's inputs", ("half of a sum missing",), half_of_sum(*DOWN)),
    ("gate and up swapped", ("projections swapped",), swap_gate_up),
    ("square weight transposed", ("weight transposed",), transpose_square),
    ("rotary base wrong", ("rotary base wrong",), rotary_base),
    ("rotary halves interleaved", ("rotary layout wrong",), interleave_rotary),
    ("KV grouping wrong", ("head grouping wrong",), regroup_heads),
    ("window ignored", ("window wrong",), change_attention("local_window_size", lambda _: 0)),
    ("soft cap dropped", ("soft cap dropped",), change_attention("softcap", lambda _: 0.0)),
    ("epsilon wrong", ("epsilon wrong",), change_epsilon),
    ("attention scale wrong", ("attention scale wrong",), change_attention("scale", lambda s: s * 2)),
    ("embedding scale missing", ("embedding scale missing",), embedding_scale),
    ("lengths frozen at the example's", ("frozen length",), frozen_length),
    ("tied embedding stored twice", ("tied embedding stored twice",), store_tied_twice),
    ("one layer skipped", ("layer skipped",), skip_layer),
)
