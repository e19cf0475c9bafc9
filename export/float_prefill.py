"""Prefill of an int8 cache at the speed of a float one.

onnxruntime's attention with an int8 cache takes 3 times as long as with a float one when it reads many
tokens at once (it multiplies row by row), though not for a single token. So pieces of a prompt run through
a second graph: each layer turns the rows it has so far into float, attends in float, and gives back only
the new rows, quantized with the same scales. Extra memory: the float rows of one layer at a time (9 bytes
per head, channel and position, keys and values), and the mapped weight file that both graphs share.

New rows attend to each other before they are rounded, so a prefill in one piece is slightly closer to the
float cache than the node's own arithmetic.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

PAST_LENGTH = "past_length"
_K_SCALE, _V_SCALE = 12, 13
_QUANTIZED_ONLY = {"k_quant_type", "v_quant_type", "kv_cache_bit_width"}
# DequantizeLinear takes a scale per head and channel from opset 21 on; nothing that a decoder uses changed
# its meaning since 18, so that graphs from there on can be raised in memory.
_OPSET, _RAISED_FROM = 21, 18
# One block holds all rows, however many there are.
_ALL_ROWS = 1 << 30


def can_attend_in_float(model: onnx.ModelProto) -> bool:
    """Whether `with_float_attention` applies: every cache input is int8, and the opset not an old one."""
    past = [value for value in model.graph.input if value.name.startswith("past_key_values.")]
    coded = bool(past) and all(v.type.tensor_type.elem_type == TensorProto.INT8 for v in past)
    return coded and _standard_opset(model).version >= _RAISED_FROM


def _standard_opset(model: onnx.ModelProto) -> onnx.OperatorSetIdProto:
    return next(entry for entry in model.opset_import if entry.domain in ("", "ai.onnx"))


def with_float_attention(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy of `model` whose int8 attention nodes attend in float.

    It takes the whole cache buffers and `past_length` (int64 [1]); its `present.*` outputs hold only the new
    rows, (1, kv_heads, new tokens, head_dim) int8.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    opset = _standard_opset(changed)
    opset.version = max(opset.version, _OPSET)
    graph = changed.graph
    per_channel = {tensor.name for tensor in graph.initializer if len(tensor.dims) == 4}
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        quantized = node.op_type == "GroupQueryAttention" and len(node.input) > _V_SCALE
        nodes += _in_float(node, per_channel) if quantized else [node]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    graph.initializer.extend(_constants())
    graph.input.append(helper.make_tensor_value_info(PAST_LENGTH, TensorProto.INT64, [1]))
    for output in graph.output:
        if output.name.startswith("present."):
            output.type.tensor_type.shape.dim[2].dim_param = "new_tokens"
    del graph.value_info[:]
    return changed


def _constants() -> list[onnx.TensorProto]:
    whole = {"zero": [0], "end": [2**31 - 1], "tokens": [2], "same": [0, 0]}
    ends = {"least": -128.0, "most": 127.0}
    return [
        *(numpy_helper.from_array(np.array(v, np.int64), f"float_prefill/{n}") for n, v in whole.items()),
        *(numpy_helper.from_array(np.array(v, np.float32), f"float_prefill/{n}") for n, v in ends.items()),
    ]


def _in_float(node: onnx.NodeProto, per_channel: set[str]) -> list[onnx.NodeProto]:
    """One quantized attention node as: rows to float, float attention, new rows back to int8.

    `per_channel`: names of the scales of shape (1, kv_heads, 1, head_dim); the others hold one value.
    """
    inputs = list(node.input)
    scales = {3: inputs[_K_SCALE], 4: inputs[_V_SCALE]}
    length = f"{inputs[3]}/length"
    before = _length_after(inputs[0], length)
    for place, scale in scales.items():
        before += _to_float(inputs[place], scale, length, scale in per_channel)
        inputs[place] = f"{inputs[place]}/float"
    presents = [f"{name}/float" for name in node.output[1:3]]
    outputs = [f"{node.output[0]}/early", *presents]
    attention = helper.make_node(
        node.op_type, _trimmed(inputs[:_K_SCALE]), outputs, node.name, domain=node.domain
    )
    attention.attribute.extend(a for a in node.attribute if a.name not in _QUANTIZED_ONLY)
    after: list[onnx.NodeProto] = []
    for source, scale, result in zip(presents, scales.values(), node.output[1:3], strict=True):
        after += _to_int8(source, scale, result)
    return [*before, attention, *after, *_once_rounded(node)]


def _once_rounded(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """Give the attention's output on only when its new rows are rounded.

    Nothing in the model needs the rounded rows, so onnxruntime would round those of all layers at the end and
    keep all of them in float until then. The reshape changes nothing: its batch is that of the rounded rows.
    """
    output, key, value = node.output[0], node.output[1], node.output[2]
    return [
        helper.make_node("Shape", [key], [f"{key}/batch"], start=0, end=1),
        helper.make_node("Shape", [value], [f"{value}/batch"], start=0, end=1),
        helper.make_node("Mul", [f"{key}/batch", f"{value}/batch"], [f"{output}/batch"]),
        helper.make_node("Concat", [f"{output}/batch", "float_prefill/same"], [f"{output}/shape"], axis=0),
        helper.make_node("Reshape", [f"{output}/early", f"{output}/shape"], [output]),
    ]


def _trimmed(inputs: list[str]) -> list[str]:
    while inputs and not inputs[-1]:
        inputs = inputs[:-1]
    return inputs


def _length_after(query: str, result: str) -> list[onnx.NodeProto]:
    """The past's length, known only once this layer's query is.

    Otherwise nothing would keep onnxruntime from turning the caches of all layers into float first.
    """
    return [
        helper.make_node("Shape", [query], [f"{result}/batch"], start=0, end=1),
        helper.make_node("Mul", [f"{result}/batch", "float_prefill/zero"], [f"{result}/nothing"]),
        helper.make_node("Add", [PAST_LENGTH, f"{result}/nothing"], [result]),
    ]


def _to_float(source: str, scale: str, length: str, per_channel: bool) -> list[onnx.NodeProto]:
    """The rows that hold something, as float: (1, kv_heads, past_length, head_dim)."""
    result, places = f"{source}/float", ["float_prefill/zero", length, "float_prefill/tokens"]
    nodes = [helper.make_node("Slice", [source, *places], [f"{result}/rows"])]
    blocks: dict[str, int] = {}
    if per_channel:
        blocks = {"axis": 2, "block_size": _ALL_ROWS}
        # Nothing read so far is no block at all, and then the operator wants no scales either.
        nodes.append(helper.make_node("Slice", [scale, *places], [f"{result}/scale"]))
        scale = f"{result}/scale"
    return [*nodes, helper.make_node("DequantizeLinear", [f"{result}/rows", scale], [result], **blocks)]


def _to_int8(source: str, scale: str, result: str) -> list[onnx.NodeProto]:
    """The new rows with the rounding of the attention node: to nearest, ties to even, clipped."""
    places = [PAST_LENGTH, "float_prefill/end", "float_prefill/tokens"]
    return [
        helper.make_node("Slice", [source, *places], [f"{result}/rows"]),
        helper.make_node("Div", [f"{result}/rows", scale], [f"{result}/scaled"]),
        helper.make_node("Round", [f"{result}/scaled"], [f"{result}/rounded"]),
        helper.make_node(
            "Clip", [f"{result}/rounded", "float_prefill/least", "float_prefill/most"], [f"{result}/clipped"]
        ),
        helper.make_node("Cast", [f"{result}/clipped"], [result], to=TensorProto.INT8),
    ]
