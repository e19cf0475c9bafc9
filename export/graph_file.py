"""Is this `.onnx` file whole, and do its external data files belong to it? Looked at before anything runs.

The graph is parsed without touching its data; every tensor's declared bytes are compared with its shape and
with the file's size, and every data file must lie inside the folder. Model files are untrusted input: no size
that a file declares is allocated before it was compared with bytes that are really there. It does not judge
weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path, PurePosixPath, PureWindowsPath

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from onnx import TensorProto

from seatrial.errors import UserError
from seatrial.export.cache_shapes import settle_cache_shapes

PROTO_LIMIT_BYTES = 2**31 - 1  # protobuf's own limit for one message
_MAX_TENSOR_BYTES = 2**46  # more than any memory; a figure above it is damage or malice
_BITS = {
    TensorProto.FLOAT: 32, TensorProto.UINT8: 8, TensorProto.INT8: 8, TensorProto.UINT16: 16,
    TensorProto.INT16: 16, TensorProto.INT32: 32, TensorProto.INT64: 64, TensorProto.BOOL: 8,
    TensorProto.FLOAT16: 16, TensorProto.DOUBLE: 64, TensorProto.UINT32: 32, TensorProto.UINT64: 64,
    TensorProto.BFLOAT16: 16, TensorProto.FLOAT8E4M3FN: 8, TensorProto.FLOAT8E5M2: 8, TensorProto.UINT4: 4,
    TensorProto.INT4: 4,
}  # fmt: skip


@dataclass(frozen=True)
class GraphFile:
    """A checked graph: its proto without external data, the data files it refers to, and oddities."""

    path: Path
    proto: onnx.ModelProto
    data_files: tuple[Path, ...]
    weight_bytes: int
    warnings: tuple[str, ...]


def read_graph_file(path: Path) -> GraphFile:
    """Parse and check one `.onnx` file. Raises UserError naming tensor, expected and actual bytes."""
    proto = _parse(path)
    root = _data_root(path.parent)
    ends: dict[Path, int] = {}
    spans: dict[Path, set[tuple[int, int]]] = {}
    weight_bytes = tensors = 0
    for tensor in _tensors(proto.graph):
        tensors += 1
        expected = tensor_bytes(tensor, path)
        weight_bytes += expected
        if tensor.data_location == TensorProto.EXTERNAL:
            file, offset = _check_external(tensor, expected, path, root)
            ends[file] = max(ends.get(file, 0), offset + expected)
            spans.setdefault(file, set()).add((offset, expected))
        else:
            _check_inline(tensor, expected, path)
    if not tensors:
        raise UserError(f"{path} holds no tensor, so there is nothing to run; it is empty or was cut")
    return GraphFile(path, proto, tuple(sorted(ends)), weight_bytes, tuple(_orphans(spans)))


def _parse(path: Path) -> onnx.ModelProto:
    size = path.stat().st_size
    if size == 0:
        raise UserError(f"{path} is empty (0 bytes); export it again")
    if size > PROTO_LIMIT_BYTES:
        raise UserError(
            f"{path} has {size:,} bytes, above the format's limit of {PROTO_LIMIT_BYTES:,}; it is no graph"
        )
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise UserError(
            f"{path} ({size:,} bytes) is cut or is no ONNX file; export or copy it again"
        ) from error
    if not proto.graph.node or not proto.graph.output:
        raise UserError(f"{path} ({size:,} bytes) holds no graph; it is cut or is no ONNX model")
    settle_cache_shapes(proto)
    return proto


def _tensors(graph: onnx.GraphProto) -> Iterator[TensorProto]:
    """Initializers and constants of a graph and of the graphs inside its nodes."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.TENSOR:
                yield attribute.t
            elif attribute.type == onnx.AttributeProto.GRAPH:
                yield from _tensors(attribute.g)


def tensor_bytes(tensor: TensorProto, path: Path) -> int:
    """Bytes that the shape and the type ask for. Raises UserError on negative or absurd sizes."""
    if tensor.data_type == TensorProto.STRING:
        return sum(len(item) for item in tensor.string_data)
    if tensor.data_type not in _BITS:
        raise UserError(f"{path}: tensor {tensor.name} has the unknown element type {tensor.data_type}")
    dims = list(tensor.dims)
    expected = -(-prod(dims) * _BITS[tensor.data_type] // 8)
    if any(dim < 0 for dim in dims) or expected > _MAX_TENSOR_BYTES:
        raise UserError(f"{path}: tensor {tensor.name} has the impossible shape {dims}")
    return expected


def _check_inline(tensor: TensorProto, expected: int, path: Path) -> None:
    if tensor.HasField("raw_data") and len(tensor.raw_data) != expected:
        raise UserError(
            f"{path}: tensor {tensor.name} needs {expected:,} bytes and has "
            f"{len(tensor.raw_data):,}; the file is damaged"
        )


def _check_external(tensor: TensorProto, expected: int, path: Path, root: Path) -> tuple[Path, int]:
    """The data file and offset of an external tensor, after every check on them."""
    entry = {item.key: item.value for item in tensor.external_data}
    file = safe_location(entry.get("location", ""), path, root)
    try:
        offset, length = int(entry.get("offset", "0")), int(entry.get("length", str(expected)))
    except ValueError as error:
        raise UserError(
            f"{path}: tensor {tensor.name} has an unreadable place in {file.name}: {entry}"
        ) from error
    if length != expected or offset < 0:
        raise UserError(
            f"{path}: tensor {tensor.name} needs {expected:,} bytes and the graph gives it "
            f"{length:,} at {offset:,}"
        )
    if not file.is_file():
        raise UserError(f"{path}: its data file {file.name} is missing; copy it beside the .onnx file")
    actual = file.stat().st_size
    if offset + length > actual:
        raise UserError(
            f"{file}: tensor {tensor.name} needs {expected:,} bytes at {offset:,} and the file ends at "
            f"{actual:,} ({max(0, actual - offset):,} bytes left); it is cut or belongs to another graph"
        )
    return file, offset


def safe_location(location: str, path: Path, root: Path) -> Path:
    """The data file behind an external location. Raises UserError when it leads out of the folder."""
    parts = PurePosixPath(location.replace("\\", "/")).parts
    absolute = PurePosixPath(location).is_absolute() or PureWindowsPath(location).drive != ""
    if not location or absolute or ".." in parts:
        raise UserError(f"{path}: it asks for data at {location!r}, outside its own folder; refused")
    file = path.parent / location
    if not file.resolve().is_relative_to(root):
        raise UserError(f"{path}: its data {location!r} is a link that leads outside its own folder; refused")
    return file


def _data_root(folder: Path) -> Path:
    """The folder that data may lie in: the graph's own, or the repository in the hub's cache (it links)."""
    folder = folder.resolve()
    if folder.parent.name == "snapshots" and (folder.parent.parent / "blobs").is_dir():
        return folder.parent.parent
    return folder


def _orphans(spans: dict[Path, set[tuple[int, int]]]) -> Iterator[str]:
    """A warning per data file with bytes that no tensor uses beyond alignment (64 KiB a tensor at most)."""
    for file, used in spans.items():
        free = file.stat().st_size - covered(used)
        last = max(start + length for start, length in used)
        tail = file.stat().st_size - last
        if tail > 0 or free > 65536 * len(used):
            yield f"{file.name} holds {max(tail, free):,} bytes that no tensor uses"


def covered(spans: set[tuple[int, int]]) -> int:
    """Bytes covered by the union of `(start, length)` spans."""
    total = end = 0
    for start, length in sorted(spans):
        total += max(0, start + length - max(start, end))
        end = max(end, start + length)
    return total


def count_nodes(path: Path) -> int:
    """Nodes of a graph's main body."""
    return len(_parse(path).graph.node)
