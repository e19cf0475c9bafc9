"""A bundle's weights become blocks, tensor by tensor: read a view of the mapped file, quantize, write,
forget.

Never more than one matrix is in memory in float. Embedding and head that are one matrix (or two copies of
one, as constant folding leaves them) are stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from seatrial.errors import UserError
from seatrial.quantize.packing import Floats
from seatrial.quantize.recipe import Format, Recipe
from seatrial.quantize.rewrite import DOMAIN, lookup_nodes, matmul_nodes, parts, stored_names
from seatrial.quantize.rounding import quantize_rows
from seatrial.quantize.targets import Survey, Target
from seatrial.quantize.tensors import TensorReader, TensorWriter

Progress = Callable[[str, float | None], None]  # what is going on, and the share done in [0, 1] where known
SecondMoments = Mapping[str, NDArray[np.floating]]  # by the name of a matmul's input


@dataclass(frozen=True)
class WeightReport:
    """What was done to the weights of a graph, in matmuls and bytes."""

    matmuls: int
    of: int
    refused: dict[str, str]
    elements: int
    weight_elements: int
    stored_bytes: int
    read_bytes: int  # of what a token reads whole: not of tables that are only looked up by row
    read_float_bytes: int  # the same before quantization
    formats: dict[str, int]  # format's name -> matrices
    tied: bool

    @property
    def weight_bytes_share(self) -> float:
        """Share of the float weights' bytes that were quantized, 0 to 1."""
        return self.elements / self.weight_elements if self.weight_elements else 0.0


def tie_copies(found: Survey, reader: TensorReader) -> None:
    """Make a head that is a transposed copy of an embedding's table read the table itself.

    Constant folding turns `MatMul(x, Transpose(table))` into such a copy and loses the sharing.
    """
    for table in found.tables:
        if any(target.weight == table.weight for target in found.targets):
            continue
        for target in found.targets:
            same_shape = (target.rows, target.width) == (table.rows, table.width) and not target.transposed
            if not same_shape or not table.transposed:
                continue
            if _equal_rows(reader.read(table.weight), reader.read(target.weight).T):
                target.weight, target.transposed = table.weight, True
                found.weight_elements -= table.rows * table.width  # counted twice, as it was stored


def _equal_rows(first: NDArray, second: NDArray, step: int = 4096) -> bool:
    """Whether two matrices hold the same values, looked at in strips (a transposed view is slow to read
    whole).
    """
    starts = range(0, len(first), step)
    return all(np.array_equal(first[at : at + step], second[at : at + step]) for at in starts)


def quantize_weights(
    model: onnx.ModelProto,
    found: Survey,
    reader: TensorReader,
    recipe: Recipe,
    data_path: Path,
    *,
    moments: SecondMoments | None = None,
    progress: Progress | None = None,
) -> WeightReport:
    """Turn `model` (a graph without data, changed in place) into its quantized form, data in `data_path`.

    `found` must come from `survey(model)`. Tensors that are not quantized are copied.
    """
    jobs = _jobs(found)
    renamed: dict[int, list[onnx.NodeProto]] = {}
    replaced: set[str] = set()
    initializers: list[onnx.TensorProto] = []
    formats: dict[str, int] = {}
    stored_bytes = read_bytes = read_float_bytes = 0
    with TensorWriter(data_path) as writer:
        for done, (weight, users) in enumerate(jobs.items()):
            choice = recipe.format_of(users.group)
            packed = quantize_rows(
                _rows(reader, weight, users),
                bits=choice.bits,
                block=choice.block,
                symmetric=choice.symmetric,
                algorithm=choice.algorithm,
                second_moments=_moments_of(users, moments, choice),
            )
            names = stored_names(weight, packed)
            scale_type = _scale_type(reader, weight, users)
            for name, values in parts(names, packed, looked_up=bool(users.tables), scale_type=scale_type):
                initializers.append(writer.add(name, values))
            for target in users.targets:
                renamed[id(target.node)] = matmul_nodes(target, names, packed, looked_up=bool(users.tables))
            for table in users.tables:
                renamed[id(table.node)] = lookup_nodes(table.node, names, packed)
            replaced.add(weight)
            stored_bytes += packed.nbytes
            if users.targets:
                read_bytes += packed.nbytes
                read_float_bytes += users.elements * reader.dtype(weight).itemsize
            formats[choice.name()] = formats.get(choice.name(), 0) + 1
            if progress is not None:
                progress("quantizing weights", (done + 1) / len(jobs))
        _swap_nodes(model, renamed)
        for tensor in _still_used(model):
            initializers.append(writer.add(tensor.name, reader.read(tensor.name)))
    _set_initializers(model, initializers)
    return WeightReport(
        matmuls=len(found.targets),
        of=found.of,
        refused=found.refused,
        elements=sum(users.elements for users in jobs.values()),
        weight_elements=found.weight_elements,
        stored_bytes=stored_bytes,
        read_bytes=read_bytes,
        read_float_bytes=read_float_bytes,
        formats=formats,
        tied=any(users.targets and users.tables for users in jobs.values()),
    )


@dataclass
class _Users:
    """Everything that reads one stored matrix."""

    targets: list[Target]
    tables: list
    group: str
    elements: int
    transposed: bool


def _jobs(found: Survey) -> dict[str, _Users]:
    """One entry per matrix, with its matmuls and lookups; an embedding counts as the head's group."""
    jobs: dict[str, _Users] = {}
    for target in found.targets:
        users = jobs.setdefault(
            target.weight, _Users([], [], target.group, target.elements, target.transposed)
        )
        if users.transposed != target.transposed:
            raise UserError(
                f"{target.weight} is read both ways round by two matmuls: store it twice and try again"
            )
        users.targets.append(target)
    for table in found.tables:
        users = jobs.setdefault(
            table.weight, _Users([], [], "head", table.rows * table.width, table.transposed)
        )
        users.tables.append(table)
    return jobs


def _rows(reader: TensorReader, weight: str, users: _Users) -> Floats:
    """The matrix as float32 rows (N, K); a view where the file has it so."""
    values = reader.read(weight)
    return np.asarray(values if users.transposed else values.T, np.float32)


def _scale_type(reader: TensorReader, weight: str, users: _Users) -> np.dtype:
    """Scales have the type of the activations."""
    if users.targets:
        return helper.tensor_dtype_to_np_dtype(users.targets[0].float_type)
    return reader.dtype(weight)


def _moments_of(users: _Users, moments: SecondMoments | None, choice: Format) -> NDArray[np.floating] | None:
    if choice.algorithm != "gptq" or not users.targets or moments is None:
        return None
    return moments.get(users.targets[0].node.input[0])


def _swap_nodes(model: onnx.ModelProto, renamed: dict[int, list[onnx.NodeProto]]) -> None:
    """Put the new nodes where the old ones stood and drop what no longer leads anywhere."""
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        nodes += renamed.get(id(node), [node])
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in alive(nodes, model)]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    if all(entry.domain != DOMAIN for entry in model.opset_import):
        model.opset_import.append(helper.make_opsetid(DOMAIN, 1))


def alive(nodes: Sequence[onnx.NodeProto], model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """Nodes that lead to an output of `model` (a Transpose of a weight that was replaced leads nowhere)."""
    needed = {output.name for output in model.graph.output}
    kept = []
    for node in reversed(nodes):
        if needed & set(node.output):
            kept.append(node)
            needed |= set(node.input) | inner_inputs(node)
    return kept[::-1]


def inner_inputs(node: onnx.NodeProto) -> set[str]:
    """Names that the graphs inside a node (of If, Loop, Scan) read."""
    graphs = [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    return {name for graph in graphs for inner in graph.node for name in inner.input}


def _still_used(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    used = {name for node in model.graph.node for name in (*node.input, *inner_inputs(node))}
    return [tensor for tensor in model.graph.initializer if tensor.name in used]


def _set_initializers(model: onnx.ModelProto, tensors: list[onnx.TensorProto]) -> None:
    del model.graph.initializer[:]
    model.graph.initializer.extend(tensors)
    del model.graph.value_info[:]
