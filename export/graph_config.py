"""What an ONNX decoder graph itself says of its model: weight format, feed-forward width, tying, windows.

For folders of other exporters that come without config.json or seatrial.json. Only the graph is read, never
its data; what a graph does not show is left out, so that a reader who needs it names what is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import TensorProto, helper

from seatrial.errors import UserError
from seatrial.export.cache_shapes import whole_number

_INT8 = ("MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "QLinearMatMul")
_VIEWS = ("Transpose", "Reshape", "Identity", "Cast", "DequantizeLinear")
_LOOKUPS = ("Gather", "GatherBlockQuantized")


@dataclass(frozen=True)
class Matrix:
    """A weight that a product reads: `width` inputs to `rows` outputs, with the initializer behind it."""

    weight: str
    width: int
    rows: int
    bits: int


def matrices(proto: onnx.ModelProto) -> Iterator[Matrix]:
    """Every product with a constant matrix, in the order of the graph."""
    tensors = {tensor.name: tensor for tensor in proto.graph.initializer}
    makers = {name: node for node in proto.graph.node for name in node.output}
    for node in proto.graph.node:
        slot = 3 if node.op_type == "QLinearMatMul" else 1
        if len(node.input) <= slot:
            continue
        if node.op_type == "MatMulNBits":
            width, rows = whole_number(node, "K"), whole_number(node, "N")
            if width and rows:
                name = _origin(node.input[slot], makers)
                yield Matrix(name, width, rows, whole_number(node, "bits") or 4)
        elif node.op_type in ("MatMul", "Gemm", "FusedMatMul", *_INT8):
            found = tensors.get(_origin(node.input[slot], makers))
            if found is not None and len(found.dims) == 2:
                sides = list(found.dims)
                if _transposed(node, slot, makers):
                    sides.reverse()
                yield Matrix(found.name, sides[0], sides[1], _bits(found))


def _origin(name: str, makers: Mapping[str, onnx.NodeProto]) -> str:
    """The value behind nodes that only show it another way."""
    for _ in range(len(makers)):  # a damaged graph may go round in a circle
        if name not in makers or makers[name].op_type not in _VIEWS:
            break
        name = makers[name].input[0]
    return name


def _transposed(node: onnx.NodeProto, slot: int, makers: Mapping[str, onnx.NodeProto]) -> bool:
    turned, name = bool(whole_number(node, "transB")), node.input[slot]
    for _ in range(len(makers)):
        if name not in makers or makers[name].op_type not in _VIEWS:
            break
        turned ^= makers[name].op_type == "Transpose"
        name = makers[name].input[0]
    return turned


def _bits(tensor: TensorProto) -> int:
    if tensor.data_type in (TensorProto.INT4, TensorProto.UINT4):
        return 4
    return 8 * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize


def weight_format(proto: onnx.ModelProto) -> str:
    """int4, int8, fp16 or fp32: the format that most elements of the matrices have."""
    elements: Counter[int] = Counter()
    for matrix in {matrix.weight: matrix for matrix in matrices(proto)}.values():
        elements[matrix.bits] += matrix.width * matrix.rows
    if not elements:
        return "fp32"
    bits = elements.most_common(1)[0][0]
    return {4: "int4", 8: "int8", 16: "fp16"}.get(bits, "fp32" if bits >= 32 else f"int{bits}")


def shape_of_graph(proto: onnx.ModelProto, config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a config.json that the graph shows and `config` (of a genai_config.json) leaves out.

    Raises UserError when `config` lacks the figures by which the matrices are told apart.
    """
    for name in ("hidden_size", "num_attention_heads", "num_hidden_layers", "head_dim", "vocab_size"):
        if not isinstance(config.get(name), int):
            raise UserError(f"the decoder section of genai_config.json has no whole number for {name}")
    found: dict[str, Any] = {"tie_word_embeddings": _tied(proto, config["vocab_size"])}
    width = _ffn_width(proto, config)
    if width is not None:
        found["intermediate_size"] = width
    return found | _windows(proto)


def _tied(proto: onnx.ModelProto, vocabulary: int) -> bool:
    """Is the table that tokens are looked up in the matrix that makes the logits?"""
    makers = {name: node for node in proto.graph.node for name in node.output}
    tables = {_origin(n.input[0], makers) for n in proto.graph.node if n.op_type in _LOOKUPS}
    return any(matrix.weight in tables for matrix in matrices(proto) if matrix.rows == vocabulary)


def _ffn_width(proto: onnx.ModelProto, config: Mapping[str, Any]) -> int | None:
    """Inputs of the projections back to the hidden size that are not the attention's; None if none is."""
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    back = Counter(m.width for m in matrices(proto) if m.rows == hidden)
    back[config["num_attention_heads"] * config["head_dim"]] -= layers
    width, times = max(back.items(), key=lambda item: item[1], default=(0, 0))
    return width if times >= layers else None


def _windows(proto: onnx.ModelProto) -> dict[str, Any]:
    """The windows of attention nodes, where there are any."""
    nodes = [n for n in proto.graph.node if n.op_type == "GroupQueryAttention"]
    sizes = [whole_number(node, "local_window_size") for node in nodes]
    windows = {size for size in sizes if size > 0}
    if len(windows) != 1:
        return {}
    kinds = ["sliding_attention" if size > 0 else "full_attention" for size in sizes]
    return {"sliding_window": windows.pop(), "layer_types": kinds}
