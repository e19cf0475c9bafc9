"""A graph as a table: each operator's shapes, FLOPs, bytes by kind, intensity, and what binds it on a device.

Bytes are what an operator must read and write if nothing stays in a cache: weights, KV and activations apart,
loads apart from stores. A lookup reads the rows it picks; a cache in place is read whole and written for the
new tokens. LoRA pairs are found by their shape and told with what merging would save.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import attrs
import onnx

from seatrial.devices.device import Device
from seatrial.simulate.graph_shapes import Graph, Tensor, graph_file, read_graph
from seatrial.simulate.operators import VIEWS, Call, Parts, flops, im2col, names

KINDS = {
    "MatMul": "matmul",
    "Gemm": "matmul",
    "FusedMatMul": "matmul",
    "TransposeMatMul": "matmul",
    "MatMulNBits": "matmul",
    "MatMulInteger": "matmul",
    "MatMulIntegerToFloat": "matmul",
    "DynamicQuantizeMatMul": "matmul",
    "QLinearMatMul": "matmul",
    "Einsum": "matmul",
    "Conv": "convolution",
    "FusedConv": "convolution",
    "ConvTranspose": "convolution",
    "GroupQueryAttention": "attention",
    "MultiHeadAttention": "attention",
    "Attention": "attention",
    "Gather": "lookup",
    "GatherBlockQuantized": "lookup",
}
ACTIVATIONS = names(
    "BiasGelu Elu Erf FastGelu Gelu HardSwish Mish QuickGelu Relu Sigmoid Softplus Swish Tanh"
)


# Inputs with a row of sines or cosines per position, of which only the new tokens' rows are read.
ROTARY_TABLES = {"GroupQueryAttention": (7, 8), "RotaryEmbedding": (2, 3)}


@attrs.frozen
class OperatorRow:
    """One operator. FLOPs by part; bytes in memory, read and written; `None` FLOPs where the shapes are
    unknown.
    """

    name: str
    op: str
    kind: str
    inputs: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]
    parts: Parts | None
    parameters: int
    stored_bytes: float
    weight_bytes: float
    kv_load_bytes: float
    kv_store_bytes: float
    load_bytes: float
    store_bytes: float
    note: str = ""

    @property
    def flops(self) -> float | None:
        """All parts together."""
        return None if self.parts is None else sum(self.parts.values())

    @property
    def moved_bytes(self) -> float:
        """Everything read and written."""
        reads = self.weight_bytes + self.kv_load_bytes + self.load_bytes
        return reads + self.kv_store_bytes + self.store_bytes

    @property
    def intensity(self) -> float | None:
        """FLOPs per byte moved, None where either is unknown or nothing moves."""
        return None if self.flops is None or not self.moved_bytes else self.flops / self.moved_bytes

    def seconds(self, device: Device, processor: str) -> tuple[float | None, float]:
        """Seconds of its FLOPs at the processor's rate (None if that is not known) and of its bytes at
        bandwidth.
        """
        compute = device.compute.get(processor)
        ops = compute and (compute.effective_ops or compute.nominal_ops)
        return (self.flops or 0.0) / ops if ops else None, self.moved_bytes / device.bandwidth_Bps

    def bound(self, device: Device, processor: str) -> str:
        """What takes longer on the device: compute or bandwidth; `-` where nothing is done."""
        compute_s, bytes_s = self.seconds(device, processor)
        if not bytes_s and not compute_s:
            return "-"
        return "unknown" if compute_s is None else "compute" if compute_s > bytes_s else "bandwidth"


@attrs.frozen
class OperatorTable:
    """All rows of a graph in order, and what could not be known."""

    rows: tuple[OperatorRow, ...]
    notes: tuple[str, ...]

    def subtotals(self) -> dict[str, dict[str, float]]:
        """Sums by kind: operators, FLOPs, parameters, bytes."""
        sums: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        for row in self.rows:
            for kind in (row.kind, "total"):
                sums[kind]["operators"] += 1
                sums[kind]["flops"] += row.flops or 0.0
                for name in (
                    "parameters",
                    "stored_bytes",
                    "weight_bytes",
                    "kv_load_bytes",
                    "kv_store_bytes",
                    "load_bytes",
                    "store_bytes",
                    "moved_bytes",
                ):
                    sums[kind][name] += getattr(row, name)
        return {
            kind: dict(values) for kind, values in sorted(sums.items(), key=lambda pair: pair[0] == "total")
        }


def operator_table(path: Path, dims: Mapping[str, int]) -> OperatorTable:
    """The table of an ONNX file or a folder with one, its named dimensions given.

    Raises:
        UserError: no readable ONNX file, or dimensions that were not given.
    """
    graph = read_graph(graph_file(path), dims)
    pairs = lora_pairs(graph)
    counted: set[str] = set()
    rows = [_row(node, graph, pairs, counted) for node in graph.nodes]
    unknown = [row.name for row in rows if row.parts is None]
    notes = [*graph.notes]
    if unknown:
        shown = ", ".join(unknown[:3])
        why = "shape or operator unknown; totals are lower bounds"
        notes.append(f"{len(unknown)} operators are not priced ({why}): {shown}")
    return OperatorTable(tuple(rows), (*notes, *_lora_notes(graph, pairs)))


def lora_pairs(graph: Graph) -> dict[str, tuple[onnx.NodeProto, onnx.NodeProto]]:
    """Names of products that form low-rank pairs: x A B beside x W, with a rank below half of either side."""
    made_by = {name: node for node in graph.nodes for name in node.output}
    found = {}
    for second in graph.nodes:
        first = made_by.get(_unscaled(second.input[0], made_by)) if _is_product(second, graph) else None
        if first is None or not _is_product(first, graph):
            continue
        down, up = graph.tensors[first.input[1]].shape, graph.tensors[second.input[1]].shape
        rank = down[-1]
        if up[0] == rank and rank * 2 <= min(down[0], up[-1]) and _has_base(first, up, graph):
            found[first.output[0]] = found[second.output[0]] = (first, second)
    return found


def _row(node: onnx.NodeProto, graph: Graph, pairs: Mapping[str, Any], counted: set[str]) -> OperatorRow:
    inputs = [graph.tensors.get(name) for name in node.input]
    outputs = [graph.tensors.get(name) for name in node.output if name]
    complete = (
        all(t is not None for t, name in zip(inputs, node.input, strict=True) if name) and None not in outputs
    )
    known = [tensor for tensor in outputs if tensor is not None]
    call = _call(node, inputs, known) if complete and known else None
    weights = [tensor for tensor in inputs if tensor is not None and tensor.kind == "weight"]
    fresh = [tensor for tensor in weights if tensor.origin not in counted]
    counted.update(tensor.origin for tensor in fresh)
    return OperatorRow(
        name=node.name or node.output[0],
        op=node.op_type,
        kind=_kind(node, pairs),
        inputs=tuple(tensor.shape for tensor in inputs if tensor is not None),
        output=known[0].shape if known else (),
        parts=flops(call) if call is not None else None,
        parameters=_parameters(node, fresh),
        stored_bytes=sum(tensor.bytes for tensor in fresh),
        note=_note(node, call),
        **_moved(node, inputs, known),
    )


def _call(node: onnx.NodeProto, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]) -> Call:
    shapes = tuple(tensor.shape if tensor is not None else None for tensor in inputs)
    attributes = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    texts = {
        name: value.decode() if isinstance(value, bytes) else value for name, value in attributes.items()
    }
    return Call(node.op_type, shapes, tuple(tensor.shape for tensor in outputs), texts)


def _moved(
    node: onnx.NodeProto, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
) -> dict[str, float]:
    """Bytes read and written by kind. Views move nothing; a lookup reads rows."""
    names = ("weight_bytes", "kv_load_bytes", "kv_store_bytes", "load_bytes", "store_bytes")
    moved = dict.fromkeys(names, 0.0)
    if node.op_type in VIEWS:
        return moved
    reads = {"weight": "weight_bytes", "kv": "kv_load_bytes", "activation": "load_bytes"}
    for index, tensor in enumerate(inputs):
        if tensor is not None:
            picked = _picked_share(node, index, inputs, outputs)
            moved[reads[tensor.kind]] += tensor.bytes * picked
    for tensor in outputs:
        if tensor.kind == "kv":
            moved["kv_store_bytes"] += tensor.bytes - _past_bytes(tensor, inputs)
        else:
            moved["store_bytes"] += tensor.bytes
    return moved


def _picked_share(
    node: onnx.NodeProto, index: int, inputs: Sequence[Tensor | None], outputs: Sequence[Tensor]
) -> float:
    """Share of an input that is read: the picked rows of a lookup or a slice, else all of it."""
    tensor = inputs[index]
    if tensor is None or not outputs or not tensor.scalars:
        return 1.0
    if node.op_type == "GatherBlockQuantized" and index != 1:
        data, indices = inputs[0], inputs[1]
        return min(1.0, indices.scalars / data.shape[0]) if data and indices else 1.0
    if index in ROTARY_TABLES.get(node.op_type, ()) and inputs[0] is not None and len(inputs[0].shape) > 1:
        return min(1.0, inputs[0].shape[-2] / tensor.shape[0])
    if node.op_type in ("Gather", "GatherND", "GatherElements", "Slice") and index == 0:
        return min(1.0, outputs[0].scalars / tensor.scalars)
    return 1.0


def _past_bytes(present: Tensor, inputs: Sequence[Tensor | None]) -> float:
    """Bytes of the past cache that a present one extends: the input of its shape but for the length."""
    for tensor in inputs:
        if tensor is not None and tensor.kind == "kv" and len(tensor.shape) == len(present.shape):
            same = [a == b for a, b in zip(tensor.shape, present.shape, strict=True)]
            if same.count(False) <= 1 and tensor.bytes <= present.bytes:
                return tensor.bytes
    return 0.0


def _kind(node: onnx.NodeProto, pairs: Mapping[str, Any]) -> str:
    if node.output and node.output[0] in pairs:
        return "lora"
    if "Norm" in node.op_type:
        return "norm"
    if node.op_type in ("Softmax", "LogSoftmax"):
        return "softmax"
    if node.op_type in ACTIVATIONS:
        return "activation function"
    if node.op_type in VIEWS:
        return "view"
    return KINDS.get(node.op_type, "elementwise and data")


def _parameters(node: onnx.NodeProto, weights: Sequence[Tensor]) -> int:
    """Scalars of the weights; a block-quantized matrix counts as its N x K, scales and zero points not at
    all.
    """
    sizes = {attribute.name: attribute.i for attribute in node.attribute}
    if node.op_type == "MatMulNBits":
        return sizes["N"] * sizes["K"] if any(t.name == node.input[1] for t in weights) else 0
    if node.op_type == "GatherBlockQuantized":
        packed = 8 // sizes.get("bits", 4)
        return sum(t.scalars * (packed if t.bits == 8 else 1) for t in weights if t.name == node.input[0])
    return sum(tensor.scalars for tensor in weights)


def _note(node: onnx.NodeProto, call: Call | None) -> str:
    if call is not None and node.op_type in ("Conv", "FusedConv"):
        rows, columns = im2col(call)
        return f"im2col {rows} x {columns}"
    if node.op_type == "Dropout":
        return "identity at inference"
    return ""


def _is_product(node: onnx.NodeProto, graph: Graph) -> bool:
    """A product with a constant matrix on the right."""
    if node.op_type not in ("MatMul", "Gemm") or len(node.input) < 2:
        return False
    weight = graph.tensors.get(node.input[1])
    return weight is not None and weight.kind == "weight" and len(weight.shape) == 2


def _unscaled(name: str, made_by: Mapping[str, onnx.NodeProto]) -> str:
    """The tensor behind scalings and identities: a LoRA path is often scaled."""
    node = made_by.get(name)
    while node is not None and node.op_type in ("Mul", "Identity", "Dropout") and node.input:
        name = node.input[0]
        node = made_by.get(name)
    return name


def _has_base(first: onnx.NodeProto, up: tuple[int, ...], graph: Graph) -> bool:
    """Whether a full-rank product of the same input and output width stands beside the pair."""
    width = graph.tensors[first.input[1]].shape[0]
    return any(
        node is not first
        and _is_product(node, graph)
        and node.input[0] == first.input[0]
        and graph.tensors[node.input[1]].shape == (width, up[-1])
        for node in graph.nodes
    )


def _lora_notes(graph: Graph, pairs: Mapping[str, tuple[onnx.NodeProto, onnx.NodeProto]]) -> list[str]:
    unique = {id(second): (first, second) for first, second in pairs.values()}
    if not unique:
        return []
    saved_flops = saved_bytes = 0.0
    for first, second in unique.values():
        tokens = prod(graph.tensors[first.input[0]].shape[:-1])
        for node in (first, second):
            weight = graph.tensors[node.input[1]]
            saved_flops += 2.0 * tokens * weight.scalars
            saved_bytes += weight.bytes
    return [
        f"{len(unique)} LoRA pairs are not merged: merging saves {saved_flops:.4g} FLOPs and "
        f"{saved_bytes:.0f} bytes of weights"
    ]
