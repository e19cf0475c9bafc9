"""The graph with `MatMulNBits` and `GatherBlockQuantized` in the place of matmuls and lookups.

A head that shares its matrix with the embedding keeps sharing it: the codes are stored once as (V, bytes),
the lookup reads rows of them, and a Reshape hands them to the head as (V, blocks, bytes of a block).
Operators and their attributes: onnxruntime's documentation of com.microsoft.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from seatrial.quantize.packing import PackedWeight
from seatrial.quantize.targets import Target

DOMAIN = "com.microsoft"
# 4 = int8 activations: the kernels that use VNNI. 0 would be float32 (8 bits then run at 8 tokens/s, not
# 170).
ACCURACY_LEVEL = 4


@dataclass(frozen=True)
class Stored:
    """Names under which a packed weight's parts are stored; `zero_points` is "" where they are implied."""

    codes: str
    scales: str
    zero_points: str


def stored_names(weight: str, packed: PackedWeight) -> Stored:
    """Names of the parts of a quantized `weight`."""
    zero_points = "" if packed.zero_points is None else f"{weight}_zero_points"
    return Stored(f"{weight}_Q{packed.bits}", f"{weight}_scales", zero_points)


def parts(
    names: Stored, packed: PackedWeight, *, looked_up: bool, scale_type: np.dtype
) -> list[tuple[str, NDArray]]:
    """The tensors to store: codes as (N, blocks, bytes), or (N, bytes) where rows of them are looked up."""
    codes = packed.packed.reshape(packed.rows, -1) if looked_up else packed.packed
    stored: list[tuple[str, NDArray]] = [
        (names.codes, codes),
        (names.scales, packed.scales.astype(scale_type)),
    ]
    if packed.zero_points is not None:
        zero_points = packed.zero_points
        is_float = zero_points.dtype == np.float32
        stored.append((names.zero_points, zero_points.astype(scale_type) if is_float else zero_points))
    return stored


def matmul_nodes(
    target: Target, names: Stored, packed: PackedWeight, *, looked_up: bool
) -> list[onnx.NodeProto]:
    """What replaces the matmul of `target`, in order; `looked_up` says that the codes are stored as (N,
    bytes).
    """
    nodes: list[onnx.NodeProto] = []
    node = target.node
    hidden, codes = node.input[0], names.codes
    if looked_up:
        codes = f"{names.codes}/blocks"
        nodes += _reshape(names.codes, codes, list(packed.packed.shape))
    alpha = _alpha(node)
    if alpha != 1.0:
        hidden = f"{node.output[0]}/scaled"
        nodes += _times(node.input[0], hidden, alpha)
    bias = node.input[2] if node.op_type == "Gemm" and len(node.input) > 2 else ""
    inputs = [hidden, codes, names.scales, names.zero_points, "", bias]
    while not inputs[-1]:
        inputs.pop()
    nodes.append(
        helper.make_node(
            "MatMulNBits",
            inputs,
            list(node.output),
            name=node.name,
            domain=DOMAIN,
            K=packed.width,
            N=packed.rows,
            bits=packed.bits,
            block_size=packed.block,
            accuracy_level=ACCURACY_LEVEL,
        )
    )
    return nodes


def lookup_nodes(gather: onnx.NodeProto, names: Stored, packed: PackedWeight) -> list[onnx.NodeProto]:
    """What replaces a Gather of rows; a row that was padded to whole blocks is cut back to its width."""
    padded = packed.blocks * packed.block != packed.width
    output = f"{gather.output[0]}/padded" if padded else gather.output[0]
    inputs = [names.codes, gather.input[1], names.scales] + ([names.zero_points] if names.zero_points else [])
    node = helper.make_node(
        "GatherBlockQuantized",
        inputs,
        [output],
        name=gather.name,
        domain=DOMAIN,
        bits=packed.bits,
        block_size=packed.block,
        gather_axis=0,
        quantize_axis=1,
    )
    return [node, *(_cut(output, gather.output[0], packed.width) if padded else [])]


def _alpha(node: onnx.NodeProto) -> float:
    return next((a.f for a in node.attribute if a.name == "alpha"), 1.0)


def _constant(name: str, values: NDArray) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(values))


def _reshape(source: str, result: str, shape: list[int]) -> list[onnx.NodeProto]:
    name = f"{result}_shape"
    return [_constant(name, np.array(shape, np.int64)), helper.make_node("Reshape", [source, name], [result])]


def _times(source: str, result: str, factor: float) -> list[onnx.NodeProto]:
    name = f"{result}_factor"
    return [_constant(name, np.array(factor, np.float32)), helper.make_node("Mul", [source, name], [result])]


def _cut(source: str, result: str, width: int) -> list[onnx.NodeProto]:
    """The first `width` values of the last axis."""
    names = [f"{result}/{part}" for part in ("start", "end", "axis")]
    values = [np.array([value], np.int64) for value in (0, width, -1)]
    made = [_constant(name, value) for name, value in zip(names, values, strict=True)]
    return [*made, helper.make_node("Slice", [source, *names], [result])]
