"""The fixed sides of a KV cache, where an exporter left them open.

onnxruntime-genai's builder names the width of a head (`kv_cache_dim`) instead of stating it, and an engine
that makes the buffers needs the figure. The attention nodes have it: their KV heads as an attribute, and the
width of a head as the share of the next projection's inputs. What no node shows stays open.
"""

from __future__ import annotations

import re

import onnx

_CACHE = re.compile(r"(?:past_key_values|present)\.(\d+)\.(?:key|value)")


def settle_cache_shapes(proto: onnx.ModelProto) -> None:
    """Write KV heads and head width into the cache's inputs and outputs of `proto` that leave them open."""
    open_ends = [value for value in (*proto.graph.input, *proto.graph.output) if _is_open(value)]
    if not open_ends:
        return
    sides = _sides_of_layers(proto)
    for value in open_ends:
        layer = _layer(value.name)
        if layer in sides:
            dims = value.type.tensor_type.shape.dim
            for place, size in zip((1, 3), sides[layer], strict=True):
                if not dims[place].dim_value:
                    dims[place].dim_value = size


def _is_open(value: onnx.ValueInfoProto) -> bool:
    dims = value.type.tensor_type.shape.dim
    return _layer(value.name) is not None and len(dims) == 4 and not (dims[1].dim_value and dims[3].dim_value)


def _layer(name: str) -> int | None:
    match = _CACHE.fullmatch(name)
    return None if match is None else int(match.group(1))


def _sides_of_layers(proto: onnx.ModelProto) -> dict[int | None, tuple[int, int]]:
    """(KV heads, head width) by layer, from the attention node that reads the layer's cache."""
    dims = {tensor.name: list(tensor.dims) for tensor in proto.graph.initializer}
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in proto.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    found: dict[int | None, tuple[int, int]] = {}
    for node in proto.graph.node:
        if node.op_type != "GroupQueryAttention" or len(node.input) < 5 or _layer(node.input[3]) is None:
            continue
        heads, kv_heads = whole_number(node, "num_heads"), whole_number(node, "kv_num_heads")
        for reader in readers.get(node.output[0], []):
            width = _inputs_of(reader, dims)
            if heads > 0 and kv_heads > 0 and width > 0 and width % heads == 0:
                found[_layer(node.input[3])] = (kv_heads, width // heads)
    return found


def _inputs_of(node: onnx.NodeProto, dims: dict[str, list[int]]) -> int:
    """How many inputs a product with a constant matrix has; 0 for other nodes."""
    if node.op_type == "MatMulNBits":
        return whole_number(node, "K")
    sides = dims.get(node.input[1], []) if len(node.input) > 1 else []
    if node.op_type not in ("MatMul", "Gemm", "FusedMatMul") or len(sides) != 2:
        return 0
    return sides[1 if whole_number(node, "transB") else 0]


def whole_number(node: onnx.NodeProto, name: str) -> int:
    """A whole-number attribute; 0 where the node has none of that name and kind."""
    return next((a.i for a in node.attribute if a.name == name and a.type == onnx.AttributeProto.INT), 0)
