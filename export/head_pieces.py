"""The quantized head as several matrices side by side, so that no single packing is large.

onnxruntime packs every weight when it opens a file, even where a packed copy lies beside it: it compares the
two and then keeps the mapped one. What it packs is on the heap for that moment, so the largest matrix, which
is the head, sets the peak of opening. The pieces are rows of the same tensors, told by their offsets in the
data file: nothing is read or copied here. Each column of the logits is computed as before.
"""

from __future__ import annotations

import onnx
from onnx import helper

from seatrial.export.session_graph import find_head, tensor_bytes

PIECE_BYTES = 8 << 20
_TILE = 64
_BLOCKS, _SCALES, _ZEROS, _BIAS = 1, 2, 3, 5


def split_head(model: onnx.ModelProto, piece_bytes: int = PIECE_BYTES) -> bool:
    """Replace the head (a MatMulNBits) in `model` by pieces of about `piece_bytes` of codes.

    False, and the model untouched, where the head is small, of another kind or not made of stored tensors.
    """
    head = find_head(model)
    if head is None or head.op_type != "MatMulNBits":
        return False
    by_column = _stored_by_column(model, head)
    columns = _attribute(head, "N")
    if by_column is None or columns < 1:
        return False
    size = _columns_of_a_piece(columns, tensor_bytes(by_column[_BLOCKS]), piece_bytes)
    if size >= columns:
        return False
    starts = range(0, columns, size)
    pieces = [_piece(model, head, by_column, start, min(size, columns - start)) for start in starts]
    joined = helper.make_node(
        "Concat", [piece.output[0] for piece in pieces], [head.output[0]], f"{head.name}/joined", axis=-1
    )
    place = next(index for index, node in enumerate(model.graph.node) if node is head or node == head)
    del model.graph.node[place]
    for offset, node in enumerate([*pieces, joined]):
        model.graph.node.insert(place + offset, node)
    return True


def _columns_of_a_piece(columns: int, code_bytes: int, piece_bytes: int) -> int:
    """Equal pieces of at most `piece_bytes`, in whole tiles: a piece's end must not fall inside one, where
    the kernels add in another order.
    """
    count = max(1, -(-code_bytes // piece_bytes))
    return -(-columns // count // _TILE) * _TILE


def _stored_by_column(model: onnx.ModelProto, head: onnx.NodeProto) -> dict[int, onnx.TensorProto] | None:
    """The head's tensors that have a part for each column, by input place; None unless all are stored."""
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    reshaped = {n.output[0]: n.input[0] for n in model.graph.node if n.op_type == "Reshape"}
    found = {}
    for place in (_BLOCKS, _SCALES, _ZEROS, _BIAS):
        name = head.input[place] if place < len(head.input) else ""
        if name:
            tensor = stored.get(name) or stored.get(reshaped.get(name, ""))
            if tensor is None:
                return None
            found[place] = tensor
    columns = _attribute(head, "N")
    divides = columns > 0 and all(tensor_bytes(tensor) % columns == 0 for tensor in found.values())
    return found if divides and all(map(_sliceable, found.values())) else None


def _sliceable(tensor: onnx.TensorProto) -> bool:
    return tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.HasField("raw_data")


def _piece(
    model: onnx.ModelProto,
    head: onnx.NodeProto,
    by_column: dict[int, onnx.TensorProto],
    start: int,
    count: int,
) -> onnx.NodeProto:
    """The head's columns `start` to `start + count`; their tensors are added to the model."""
    columns = _attribute(head, "N")
    node = onnx.NodeProto()
    node.CopyFrom(head)
    node.name, node.output[0] = f"{head.name}/{start}", f"{head.output[0]}/{start}"
    for place, tensor in by_column.items():
        part = _rows(tensor, columns, start, count)
        part.dims[:] = _dims(head, place, list(tensor.dims), count)
        model.graph.initializer.append(part)
        node.input[place] = part.name
    for attribute in node.attribute:
        if attribute.name == "N":
            attribute.i = count
    return node


def _rows(tensor: onnx.TensorProto, columns: int, start: int, count: int) -> onnx.TensorProto:
    """The bytes of `count` columns from `start` on, of a tensor that has as many bytes for each column."""
    each = tensor_bytes(tensor) // columns
    part = onnx.TensorProto(name=f"{tensor.name}/{start}", data_type=tensor.data_type)
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        part.raw_data = tensor.raw_data[start * each : (start + count) * each]
        return part
    entries = {entry.key: entry.value for entry in tensor.external_data}
    part.data_location = onnx.TensorProto.EXTERNAL
    offset = int(entries.get("offset", "0")) + start * each
    for key, value in (("location", entries["location"]), ("offset", offset), ("length", count * each)):
        part.external_data.add(key=key, value=str(value))
    return part


def _dims(head: onnx.NodeProto, place: int, dims: list[int], count: int) -> list[int]:
    """The shape of a piece: blocks as the operator wants them, others as they were, flat or by column."""
    if place == _BLOCKS:
        block = _attribute(head, "block_size")
        return [count, -(-_attribute(head, "K") // block), block * _attribute(head, "bits") // 8]
    columns = _attribute(head, "N")
    return [dims[0] // columns * count, *dims[1:]]


def _attribute(node: onnx.NodeProto, name: str) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == name), 0)
