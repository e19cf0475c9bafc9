"""What a session must know about a decoder graph before it runs, and the one edit it makes to it in memory.

The graph is read without its weights. The edit: an input `logits_from` that lets the head see only the hidden
states from one position on, so that a prefill pays for one row of logits and not for all (with a 49k
vocabulary that is 15 % of a 512-token prefill). The file on disk stays as it is.

It does not know what the weights mean, and nothing about devices or clocks.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import TensorProto, helper

from seatrial.errors import UserError
from seatrial.export.cache_shapes import settle_cache_shapes

LOGITS_FROM = "logits_from"
_PAST = re.compile(r"^past_key_values\.(\d+)\.(key|value)$")
_GROUP_QUERY = "GroupQueryAttention"
# Element-wise steps that may stand between the head and the logits (soft caps, scales, biases, casts).
_AFTER_HEAD = {"Cast", "Mul", "Div", "Tanh", "Add", "Identity"}
_HEADS = {"MatMul", "MatMulNBits", "Gemm", "FusedMatMul", "MatMulInteger", "DynamicQuantizeMatMul"}
_LOOKUPS = {"Gather", "GatherBlockQuantized"}


@dataclass(frozen=True)
class DecoderGraph:
    """A decoder graph ready for a session: names, kind of cache, bytes of weights.

    `model` has no weights in it: external data stays in its file in `folder`.
    """

    model: onnx.ModelProto
    folder: Path
    past: tuple[str, ...]  # names of the cache inputs, layer by layer
    present: tuple[str, ...]  # the outputs that continue them
    shared_cache: bool  # every cache input may be the same buffer as its output
    has_logits_from: bool
    weight_bytes_per_token: int


def read_decoder(path: Path) -> DecoderGraph:
    """Read `path` (a decoder with the conventional names) and prepare it.

    Raises `UserError` when the file is not an ONNX model or not a decoder with a cache.
    """
    model = load_graph(path)
    past = _past_names(model, path)
    present = tuple(name.replace("past_key_values.", "present.") for name in past)
    missing = {*present, "logits"} - {output.name for output in model.graph.output}
    if missing:
        raise UserError(f"{path} has no output {min(missing)}: export it again as a decoder with a KV cache")
    return DecoderGraph(
        model=model,
        folder=path.parent,
        past=past,
        present=present,
        shared_cache=_all_in_group_query(model, past, present),
        has_logits_from=add_logits_from(model),
        weight_bytes_per_token=weight_bytes_per_token(model),
    )


def load_graph(path: Path) -> onnx.ModelProto:
    """The model at `path` with its external data left on disk; `UserError` when it is no ONNX model."""
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:  # protobuf's DecodeError is not part of onnx's interface
        raise UserError(f"{path} cannot be read as an ONNX model ({error}): export it again") from error
    if not model.graph.node:
        raise UserError(f"{path} holds no operators (an empty or cut file): export it again")
    settle_cache_shapes(model)
    return model


def _past_names(model: onnx.ModelProto, path: Path) -> tuple[str, ...]:
    found = [(int(m[1]), m[2], v.name) for v in model.graph.input if (m := _PAST.match(v.name))]
    if not found:
        raise UserError(
            f"{path} has no past_key_values inputs: a decoder with a KV cache is needed, export it again"
        )
    return tuple(name for _, _, name in sorted(found))


def _all_in_group_query(model: onnx.ModelProto, past: tuple[str, ...], present: tuple[str, ...]) -> bool:
    """Whether every cache tensor goes straight into, and comes straight out of, an attention node."""
    pairs: set[tuple[str, str]] = set()
    for node in model.graph.node:
        inside = node.op_type == _GROUP_QUERY and len(node.input) > 4 and len(node.output) > 2
        if inside:
            pairs |= {(node.input[3], node.output[1]), (node.input[4], node.output[2])}
        elif set(node.input) & set(past):
            return False
    return set(zip(past, present, strict=True)) <= pairs


def add_logits_from(model: onnx.ModelProto) -> bool:
    """Add the input `logits_from` (int64 [1]): logits are computed from that position of the piece on.

    False, and the graph untouched, when the head cannot be found with certainty.
    """
    head = find_head(model)
    if head is None:
        return False
    hidden, cut = head.input[0], f"{head.input[0]}/from"
    constants = {"ends": [2**31 - 1], "axes": [1]}
    names = {key: f"{cut}_{key}" for key in constants}
    for key, value in constants.items():
        model.graph.initializer.append(helper.make_tensor(names[key], TensorProto.INT64, [1], value))
    model.graph.input.append(helper.make_tensor_value_info(LOGITS_FROM, TensorProto.INT64, [1]))
    inputs = [hidden, LOGITS_FROM, names["ends"], names["axes"]]
    where = next(index for index, node in enumerate(model.graph.node) if node is head or node == head)
    model.graph.node.insert(where, helper.make_node("Slice", inputs, [cut], name="seatrial_logits_from"))
    model.graph.node[where + 1].input[0] = cut
    _forget_logits_shape(model)
    return True


def find_head(model: onnx.ModelProto) -> onnx.NodeProto | None:
    """The matmul that makes the logits, when only element-wise steps follow it and nothing else reads it."""
    maker = {name: node for node in model.graph.node for name in node.output}
    constants = {tensor.name for tensor in model.graph.initializer} | {
        name for node in model.graph.node if node.op_type == "Constant" for name in node.output
    }
    node = maker.get("logits")
    while node is not None and node.op_type in _AFTER_HEAD:
        moving = [name for name in node.input if name and name not in constants]
        node = maker.get(moving[0]) if len(moving) == 1 else None
    if node is None or node.op_type not in _HEADS or node.input[0] in constants:
        return None
    return node


def _forget_logits_shape(model: onnx.ModelProto) -> None:
    """The logits' number of positions is now free: drop what the graph says about it."""
    for output in model.graph.output:
        if output.name == "logits" and len(output.type.tensor_type.shape.dim) > 1:
            output.type.tensor_type.shape.dim[1].dim_param = "logits_positions"
    del model.graph.value_info[:]


def tensor_bytes(tensor: onnx.TensorProto) -> int:
    """Bytes of an initializer, from its type and shape (so external data need not be there)."""
    item_bits = {TensorProto.INT4: 4, TensorProto.UINT4: 4}.get(tensor.data_type)
    if item_bits is None:
        item_bits = 8 * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    return math.ceil(math.prod(tensor.dims) * item_bits / 8)


def weight_bytes_per_token(model: onnx.ModelProto) -> int:
    """Bytes of weights that one token reads: all of them but tables that are only looked up by row."""
    rows = {node.input[0] for node in model.graph.node if node.op_type in _LOOKUPS}
    rows |= {node.input[2] for node in model.graph.node if node.op_type == "GatherBlockQuantized"}
    rotary = {name for node in model.graph.node if node.op_type == _GROUP_QUERY for name in node.input[7:9]}
    whole = {
        name
        for node in model.graph.node
        for place, name in enumerate(node.input)
        if not (node.op_type in _LOOKUPS and place in (0, 2, 3))
    }
    only_rows = (rows - whole) | rotary
    return sum(tensor_bytes(t) for t in model.graph.initializer if t.name not in only_rows)
