"""The rotary embedding moves into the attention node, as two tables over the positions.

The tables come from running the sub-graph behind the rotary operator on 0, 1, 2, ..., so any fixed scaling of
the frequencies (linear, Llama 3) is in them. Refused, leaving the graph alone, when they depend on the length
that is asked for, when positions are not the plain ones, or when the runtime could not take their width.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
import onnxruntime as ort

from seatrial.export.rewrite.matching import attribute, insert_after, made_by, swaps_heads
from seatrial.export.rewrite.reshapes import shape_constant

_ROTARY = "RotaryEmbedding"


@dataclass(frozen=True)
class _Rotated:
    """One rotated side of an attention node: the rotary node and where its values come from."""

    rotary: ir.Node
    source: ir.Value  # (B, H, T, D) before the rotation

    def key(self) -> tuple[ir.Value | None, ...]:
        """Positions, cosines and sines: what query and key must share."""
        return tuple(self.rotary.inputs[1:4])


def absorb_rotary(model: ir.Model, context: int) -> int:
    """Absorb the rotary of as many attention nodes as can be; returns how many."""
    tables: dict[tuple[ir.Value | None, ...], tuple[ir.Value, ir.Value] | None] = {}
    absorbed = 0
    for node in [node for node in model.graph if node.op_type == "GroupQueryAttention"]:
        query, key = _rotated(node.inputs[0]), _rotated(node.inputs[1])
        if (
            query is None
            or key is None
            or query.key() != key.key()
            or not _same_kind(query.rotary, key.rotary)
        ):
            continue
        if query.key() not in tables:
            tables[query.key()] = _make_tables(model, query.rotary, context, len(tables))
        if (table := tables[query.key()]) is None or not _fits(table[0], node, query.source):
            continue
        _absorb(node, query, key, table)
        absorbed += 1
    return absorbed


def _rotated(flat: ir.Value | None) -> _Rotated | None:
    """The rotary node behind (B, T, H*D) <- Reshape <- Transpose <- RotaryEmbedding."""
    reshape = made_by(flat, "Reshape")
    swap = made_by(reshape.inputs[0], "Transpose") if reshape is not None else None
    rotary = made_by(swap.inputs[0], _ROTARY) if swap is not None and swaps_heads(swap) else None
    if (
        rotary is None
        or rotary.domain != "com.microsoft"
        or rotary.inputs[0] is None
        or len(rotary.inputs) < 4
    ):
        return None
    return _Rotated(rotary, rotary.inputs[0])


def _same_kind(a: ir.Node, b: ir.Node) -> bool:
    names = ("interleaved", "rotary_embedding_dim", "scale", "is_packed_batching")
    plain = attribute(a, "scale", 1.0) == 1.0 and not attribute(a, "is_packed_batching", 0)
    return plain and all(attribute(a, name, 0) == attribute(b, name, 0) for name in names)


def _fits(cosines: ir.Value, node: ir.Node, source: ir.Value) -> bool:
    """The runtime wants tables of a width that is a multiple of 8 and at most half a head."""
    head_dim = source.shape[-1] if source.shape is not None else None
    width = int(cosines.shape[1]) if cosines.shape is not None else 0
    already = len(node.inputs) > 7 and node.inputs[7] is not None
    return not already and width % 8 == 0 and isinstance(head_dim, int) and width <= head_dim // 2


def _absorb(node: ir.Node, query: _Rotated, key: _Rotated, table: tuple[ir.Value, ir.Value]) -> None:
    flat_query, flat_key = _flat(node, query.source), _flat(node, key.source)
    node.replace_input_with(0, flat_query)
    node.replace_input_with(1, flat_key)
    node.resize_inputs(9)
    node.replace_input_with(7, table[0])
    node.replace_input_with(8, table[1])
    node.attributes["do_rotary"] = ir.AttrInt64("do_rotary", 1)
    node.attributes["rotary_interleaved"] = ir.AttrInt64(
        "rotary_interleaved", int(attribute(query.rotary, "interleaved", 0))
    )


def _flat(anchor: ir.Node, source: ir.Value) -> ir.Value:
    """(B, T, H*D) from (B, H, T, D), undoing the transpose that made it; a norm over D moves in front of
    it."""
    swap = made_by(source, "Transpose")
    if swaps_heads(swap) and swap is not None and swap.inputs[0] is not None:
        return _joined(anchor, swap.inputs[0])
    norm = made_by(source, "SimplifiedLayerNormalization", "LayerNormalization", "RMSNormalization")
    if norm is not None and attribute(norm, "axis", -1) in (-1, 3) and len(norm.outputs) == 1:
        before = made_by(norm.inputs[0], "Transpose")
        if swaps_heads(before) and before is not None and before.inputs[0] is not None:
            return _joined(anchor, _norm_before_transpose(anchor, norm, before.inputs[0]))
    return _joined(anchor, _swapped(anchor, source))


def _norm_before_transpose(anchor: ir.Node, norm: ir.Node, source: ir.Value) -> ir.Value:
    moved = ir.Node(norm.domain, norm.op_type, [source, *norm.inputs[1:]], list(norm.attributes.values()))
    return _place(anchor, moved, source.shape)


def _swapped(anchor: ir.Node, source: ir.Value) -> ir.Value:
    node = ir.Node("", "Transpose", [source], [ir.AttrInt64s("perm", [0, 2, 1, 3])])
    shape = None if source.shape is None else ir.Shape([source.shape[axis] for axis in (0, 2, 1, 3)])
    return _place(anchor, node, shape)


def _joined(anchor: ir.Node, source: ir.Value) -> ir.Value:
    """(B, T, H*D) from (B, T, H, D); the value before a reshape that only split it."""
    split = made_by(source, "Reshape")
    before = split.inputs[0] if split is not None else None
    if before is not None and before.shape is not None and len(before.shape) == 3:
        return before
    if source.shape is None or anchor.graph is None:
        raise ValueError(f"the shape of {source.name} is not known")
    width = int(source.shape[2]) * int(source.shape[3])
    constant = shape_constant(anchor.graph, [0, 0, width])
    node = ir.Node("", "Reshape", [source, constant])
    return _place(anchor, node, ir.Shape([source.shape[0], source.shape[1], width]))


def _place(anchor: ir.Node, node: ir.Node, shape: ir.Shape | None) -> ir.Value:
    insert_after([node], anchor)
    node.outputs[0].shape, node.outputs[0].dtype = shape, ir.DataType.FLOAT
    return node.outputs[0]


def _make_tables(
    model: ir.Model, rotary: ir.Node, context: int, number: int
) -> tuple[ir.Value, ir.Value] | None:
    """Cosine and sine tables (context, width), or None where they depend on more than the position."""
    found = [value for value in rotary.inputs[1:4] if value is not None]
    full = evaluate(model, found, past=0, tokens=context)
    short = evaluate(model, found, past=3, tokens=max(2, context // 3))
    if full is None or short is None or not _plain_positions(full[0], 0) or not _plain_positions(short[0], 3):
        return None
    if any(table.ndim != 2 or len(table) < context for table in full[1:]):
        return None
    if any(not np.array_equal(a[: len(b)], b) for a, b in zip(full[1:], short[1:], strict=True)):
        return None
    names = [f"rotary.{number}.{which}_cache" for which in ("cos", "sin")]
    cos, sin = (_table(model.graph, n, t[:context]) for n, t in zip(names, full[1:], strict=True))
    return cos, sin


def _plain_positions(found: np.ndarray, start: int) -> bool:
    flat = found.reshape(-1)
    return bool(np.array_equal(flat, np.arange(start, start + flat.size)))


def _table(graph: ir.Graph, name: str, table: np.ndarray) -> ir.Value:
    tensor = ir.tensor(np.ascontiguousarray(table, dtype=np.float32), name=name)
    value = ir.Value(name=name, shape=tensor.shape, type=ir.TensorType(ir.DataType.FLOAT), const_value=tensor)
    graph.register_initializer(value)
    return value


def evaluate(model: ir.Model, wanted: list[ir.Value], *, past: int, tokens: int) -> list[np.ndarray] | None:
    """The values for one row of `tokens` after `past` ones; None when they need more than ids and mask."""
    inputs = {value.name: value for value in model.graph.inputs}
    given = [inputs["input_ids"], inputs["attention_mask"]]
    try:
        graph = ir.convenience.extract(model.graph, given, wanted)
    except ValueError:
        return None
    small = ir.Model(graph, ir_version=model.ir_version)
    session = ort.InferenceSession(ir.to_proto(small).SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {
        "input_ids": np.zeros((1, tokens), dtype=np.int64),
        "attention_mask": np.ones((1, past + tokens), dtype=np.int64),
    }
    taken = {value.name for value in session.get_inputs()}
    return session.run(None, {name: array for name, array in feeds.items() if name in taken})
