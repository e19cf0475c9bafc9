"""Shape rules of onnxruntime's contrib operators, lent to onnx's inference while it runs.

onnx knows the standard operators only; without rules for the fused ones every shape behind the first
attention node would be unknown. The schemas are registered for the duration of a `with` block and taken back,
because a registered schema also changes what `onnx.checker` accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
from onnx import TensorProto, TypeProto, defs

MS = "com.microsoft"
ALL_TYPES = [
    f"tensor({name})"
    for name in (
        "float",
        "float16",
        "bfloat16",
        "double",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "bool",
        "int4",
        "uint4",
    )
]
Shape = tuple[int, ...]


@attrs.frozen
class Rule:
    """One operator: its domain, its attributes and how the shapes of its outputs follow."""

    name: str
    domain: str
    infer: Callable[[Context], None]


@attrs.frozen
class Context:
    """What a rule sees of a node: shapes and types of inputs, attributes; it sets outputs."""

    raw: Any

    def shape(self, index: int) -> Shape | None:
        """Shape of an input, None where it is absent or not known in full."""
        if index >= self.raw.get_num_inputs():
            return None
        value = self.raw.get_input_type(index)
        if value is None or not value.tensor_type.HasField("shape"):
            return None
        dims = value.tensor_type.shape.dim
        return tuple(d.dim_value for d in dims) if all(d.HasField("dim_value") for d in dims) else None

    def type(self, index: int) -> int:
        """Element type of an input."""
        value = self.raw.get_input_type(index)
        return int(value.tensor_type.elem_type) if value is not None else TensorProto.FLOAT

    def integer(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        value = self.raw.get_attribute(name)
        return int(value.i) if value is not None and value.name else default

    def set(self, index: int, shape: Shape | None, element_type: int) -> None:
        """Sets the type of an output, and its shape where it is known."""
        if index >= self.raw.get_num_outputs():
            return
        value = TypeProto()
        value.tensor_type.elem_type = element_type
        if shape is not None:
            for size in shape:
                value.tensor_type.shape.dim.add().dim_value = size
        self.raw.set_output_type(index, value)


def _like_first(context: Context) -> None:
    context.set(0, context.shape(0), context.type(0))


def _norm(context: Context) -> None:
    """Output like the input; mean and inverse deviation, where asked for, with a last dimension of one."""
    shape = context.shape(0)
    context.set(0, shape, context.type(0))
    reduced = (*shape[:-1], 1) if shape else None
    for index in (1, 2):
        context.set(index, reduced, TensorProto.FLOAT)


def _skip_norm(context: Context) -> None:
    _norm(context)
    context.set(3, context.shape(0), context.type(0))


def _matmul_nbits(context: Context) -> None:
    shape = context.shape(0)
    context.set(0, (*shape[:-1], context.integer("N")) if shape else None, context.type(0))


def _fused_matmul(context: Context) -> None:
    left, right = context.shape(0), context.shape(1)
    if left is None or right is None or len(left) < 2 or len(right) < 2:
        context.set(0, None, context.type(0))
        return
    rows = left[-1] if context.integer("transA") else left[-2]
    columns = right[-2] if context.integer("transB") else right[-1]
    batch = left[:-2] if len(left) >= len(right) else right[:-2]
    context.set(0, (*batch, rows, columns), context.type(0))


def _gather_quantized(context: Context) -> None:
    data, indices = context.shape(0), context.shape(1)
    bits, packed = context.integer("bits", 4), context.type(0) in (TensorProto.UINT8, TensorProto.INT8)
    if data is None or indices is None:
        context.set(0, None, context.type(2))
        return
    width = data[-1] * (8 // bits) if packed and bits < 8 else data[-1]
    context.set(0, (*indices, *data[1:-1], width), context.type(2))


def _grouped_attention(context: Context) -> None:
    """Output [B, S, heads x D]; present caches [B, kv_heads, past + S, D], packed query included."""
    query, key = context.shape(0), context.shape(1)
    heads, kv_heads = context.integer("num_heads"), context.integer("kv_num_heads")
    if query is None or not heads:
        return
    width = query[2] // (heads + 2 * kv_heads) if key is None else query[2] // heads
    context.set(0, (query[0], query[1], heads * width), context.type(0))
    for index in (1, 2):
        past = context.shape(2 + index)
        length = query[1] + (past[2] if past else 0)
        kept = context.type(2 + index) if past else context.type(0)
        context.set(index, (query[0], kv_heads, length, past[3] if past else width), kept)


def _multi_head_attention(context: Context) -> None:
    query, value = context.shape(0), context.shape(2)
    if query is None:
        return
    width = value[-1] if value and len(value) == 3 else query[-1]
    context.set(0, (query[0], query[1], width), context.type(0))


def _packed_attention(context: Context) -> None:
    """`Attention`: one weight for Q, K and V; its last dimension is three times the hidden size."""
    data, weight = context.shape(0), context.shape(1)
    if data and weight:
        context.set(0, (data[0], data[1], weight[1] // 3), context.type(0))


def _integer_matmul(context: Context) -> None:
    left, right = context.shape(0), context.shape(1)
    shape = (*left[:-1], right[-1]) if left and right else None
    context.set(0, shape, TensorProto.FLOAT)


def _dequantize(context: Context) -> None:
    context.set(0, context.shape(0), context.type(1))


RULES = (
    *(
        Rule(name, MS, _like_first)
        for name in ("QuickGelu", "FastGelu", "BiasGelu", "Gelu", "RotaryEmbedding")
    ),
    *(Rule(name, MS, _skip_norm) for name in ("SkipSimplifiedLayerNormalization", "SkipLayerNormalization")),
    Rule("SimplifiedLayerNormalization", "", _norm),
    Rule("SimplifiedLayerNormalization", MS, _norm),
    Rule("MatMulNBits", MS, _matmul_nbits),
    Rule("FusedMatMul", MS, _fused_matmul),
    Rule("TransposeMatMul", MS, _fused_matmul),
    Rule("GatherBlockQuantized", MS, _gather_quantized),
    Rule("GroupQueryAttention", MS, _grouped_attention),
    Rule("MultiHeadAttention", MS, _multi_head_attention),
    Rule("Attention", MS, _packed_attention),
    Rule("DynamicQuantizeMatMul", MS, _integer_matmul),
    Rule("MatMulIntegerToFloat", MS, _integer_matmul),
    Rule("DequantizeLinear", MS, _dequantize),
)


@contextmanager
def contrib_schemas() -> Iterator[None]:
    """Registers the rules for the block; operators that onnx knows already are left alone."""
    added = []
    try:
        for rule in RULES:
            if not defs.has(rule.name, rule.domain):
                defs.register_schema(_schema(rule))
                added.append(rule)
        yield
    finally:
        for rule in added:
            defs.deregister_schema(rule.name, 1, rule.domain)


def _schema(rule: Rule) -> defs.OpSchema:
    parameter, option = defs.OpSchema.FormalParameter, defs.OpSchema.FormalParameterOption
    schema = defs.OpSchema(
        rule.name,
        rule.domain,
        1,
        inputs=[parameter("inputs", "T", param_option=option.Variadic, is_homogeneous=False, min_arity=1)],
        outputs=[parameter("outputs", "T2", param_option=option.Variadic, is_homogeneous=False, min_arity=1)],
        type_constraints=[("T", ALL_TYPES, ""), ("T2", ALL_TYPES, "")],
    )
    schema.set_type_and_shape_inference_function(lambda raw, infer=rule.infer: infer(Context(raw)))
    return schema
