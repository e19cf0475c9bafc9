"""Reads the header of a GGUF file: key-values and tensor shapes, a few MB at the start, never the weights.

Written here because the reader of the `gguf` package imports numpy and builds an array object per vocabulary
entry (seconds for a large vocabulary). The block sizes of the tensor types are compared with that package in
the tests. Layout: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import attrs

from seatrial.errors import UserError
from seatrial.export.architecture import Architecture, Layer, Stored

# GGML tensor type: name, scalars in a block, bytes of a block.
TENSOR_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 40),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
}
_SCALARS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
_STRING, _ARRAY = 8, 9
_MAX_LENGTH = 1 << 32


@attrs.frozen
class Tensor:
    """One tensor of the file: shape with the fastest dimension first, and its bytes."""

    name: str
    shape: tuple[int, ...]
    type_name: str
    bytes: int
    offset: int

    @property
    def scalars(self) -> int:
        """Number of weights in it."""
        return prod(self.shape)


@attrs.frozen
class Header:
    """Key-values (long arrays as their length only), tensors, and where their data begin in the file."""

    values: dict[str, Any]
    lengths: dict[str, int]
    tensors: tuple[Tensor, ...]
    data_start: int


def read_header(path: Path) -> Header:
    """The header of the GGUF file at `path`.

    Raises:
        UserError: not GGUF, big-endian or version 1, cut off, an unknown tensor type, or a file shorter
            than its tensors.
    """
    with path.open("rb") as file:
        try:
            return _checked(_parse(file, path), path)
        except (struct.error, UnicodeDecodeError, OverflowError) as error:
            raise UserError(f"{path}: the GGUF header is cut off or damaged ({error})") from None


def architecture_of_gguf(path: Path) -> Architecture:
    """The architecture in a GGUF file, parameters counted from its tensors."""
    header = read_header(path)
    kind = str(header.values.get("general.architecture", ""))
    if not kind:
        raise UserError(f"{path}: the field general.architecture is missing")
    fields = _GgufFields(path, kind, header)
    layers = _layers(fields)
    sizes = {tensor.name: tensor for tensor in header.tensors}
    embedding = sizes.get("token_embd.weight")
    if embedding is None:
        raise UserError(f"{path}: the tensor token_embd.weight is missing")
    tied = "output.weight" not in sizes
    expert_bytes = sum(tensor.bytes for tensor in header.tensors if "_exps." in tensor.name)
    outside = [t for t in header.tensors if not t.name.startswith("blk.")]
    tables = ("token_embd.weight", "output.weight")
    return Architecture(
        name=str(header.values.get("general.name", path.stem)),
        model_type=kind,
        hidden=fields.count("embedding_length"),
        vocabulary=embedding.shape[1],
        layers=layers,
        tied=tied,
        max_positions=fields.optional("context_length"),
        embedding_width=embedding.shape[0],
        other_params=sum(t.scalars for t in outside if t.name not in tables),
        ffn_width=max(
            fields.per_layer("feed_forward_length", len(layers), default=4 * fields.count("embedding_length"))
        ),
        experts=fields.optional("expert_count") or 0,
        active_experts=fields.optional("expert_used_count") or 0,
        stored=Stored(
            format=_commonest_type(header.tensors),
            total_bytes=sum(tensor.bytes for tensor in header.tensors),
            embedding_bytes=embedding.bytes,
            expert_bytes=expert_bytes,
        ),
        notes=tuple(fields.notes),
    )


@attrs.define
class _GgufFields:
    path: Path
    kind: str
    header: Header
    notes: list[str] = attrs.field(factory=list)

    def optional(self, key: str) -> Any:
        return self.header.values.get(f"{self.kind}.{key}")

    def count(self, key: str) -> int:
        value = self.optional(key)
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise UserError(
                f"{self.path}: the field {self.kind}.{key} is missing or not a whole number above zero"
            )
        return value

    def per_layer(self, key: str, layers: int, default: int | None = None) -> list[int]:
        value = self.optional(key)
        if isinstance(value, list):
            if len(value) < layers:
                raise UserError(
                    f"{self.path}: {self.kind}.{key} has {len(value)} entries for {layers} layers"
                )
            return [int(entry) for entry in value[:layers]]
        if value is None and default is not None:
            return [default] * layers
        return [self.count(key)] * layers


def _layers(fields: _GgufFields) -> tuple[Layer, ...]:
    count = fields.count("block_count")
    heads = fields.per_layer("attention.head_count", count)
    kv_heads = fields.per_layer("attention.head_count_kv", count, default=heads[0])
    key = fields.optional("attention.key_length") or fields.count("embedding_length") // heads[0]
    value = fields.optional("attention.value_length") or key
    windows = _windows(fields, count)
    shared = fields.optional("attention.shared_kv_layers") or 0
    rank = fields.optional("attention.kv_lora_rank")
    latent = rank + fields.count("rope.dimension_count") if rank else None
    active_share = _active_share(fields)
    by_layer = _tensors_by_layer(fields.header.tensors, count)
    return tuple(
        _layer(
            by_layer[i],
            heads[i],
            kv_heads[i],
            key,
            value,
            windows[i],
            i >= count - shared,
            latent,
            active_share,
        )
        for i in range(count)
    )


def _layer(
    tensors: list[Tensor],
    heads: int,
    kv_heads: int,
    key: int,
    value: int,
    window: int | None,
    shared: bool,
    latent: int | None,
    active_share: float,
) -> Layer:
    matrices = [tensor for tensor in tensors if len(tensor.shape) > 1]
    attention = sum(t.scalars for t in matrices if ".attn_" in t.name)
    experts = sum(t.scalars for t in matrices if "_exps." in t.name)
    dense = sum(t.scalars for t in matrices) - attention - experts
    return Layer(
        kind="latent" if latent else "window" if window else "full",
        query_heads=heads,
        kv_heads=kv_heads,
        head_dim=key,
        value_dim=value,
        attention_params=attention,
        ffn_params=dense + experts,
        ffn_active_params=dense + round(experts * active_share),
        vector_params=sum(t.scalars for t in tensors if len(t.shape) == 1),
        window=window,
        kv_shared=shared,
        latent_elements=latent,
    )


def _windows(fields: _GgufFields, count: int) -> list[int | None]:
    """The window of each layer: by the stated pattern, else by what llama.cpp does for the family."""
    window = fields.optional("attention.sliding_window")
    if not window:
        return [None] * count
    pattern = fields.optional("attention.sliding_window_pattern")
    if isinstance(pattern, list):
        return [window if flag else None for flag in pattern[:count]]
    every = pattern or {"gemma2": 2, "gemma3": 6, "cohere2": 4, "gpt-oss": 2, "llama4": 4}.get(fields.kind)
    if every:
        return [window if (index + 1) % every else None for index in range(count)]
    if fields.kind in ("llama", "mistral3", "phi3"):
        return [window] * count
    fields.notes.append(
        f"sliding window {window} without a pattern: all layers priced in full, an upper bound"
    )
    return [None] * count


def _active_share(fields: _GgufFields) -> float:
    experts = fields.optional("expert_count")
    return fields.count("expert_used_count") / experts if experts else 1.0


def _tensors_by_layer(tensors: tuple[Tensor, ...], count: int) -> list[list[Tensor]]:
    by_layer: list[list[Tensor]] = [[] for _ in range(count)]
    for tensor in tensors:
        parts = tensor.name.split(".")
        if parts[0] == "blk" and parts[1].isdigit() and int(parts[1]) < count:
            by_layer[int(parts[1])].append(tensor)
    return by_layer


def _commonest_type(tensors: tuple[Tensor, ...]) -> str:
    totals: dict[str, int] = {}
    for tensor in tensors:
        totals[tensor.type_name] = totals.get(tensor.type_name, 0) + tensor.bytes
    return max(totals, key=lambda name: totals[name]) if totals else "none"


def _parse(file: BinaryIO, path: Path) -> Header:
    if file.read(4) != b"GGUF":
        raise UserError(f"{path}: not a GGUF file (its first bytes are not GGUF)")
    version = _unpack(file, "<I")
    if version not in (2, 3):
        raise UserError(f"{path}: GGUF version {version} is not read; 2 or 3, little-endian, is needed")
    tensor_count, value_count = _unpack(file, "<Q"), _unpack(file, "<Q")
    values: dict[str, Any] = {}
    lengths: dict[str, int] = {}
    for _ in range(value_count):
        key = _string(file)
        values[key] = _value(file, _unpack(file, "<I"), lengths, key)
    tensors = tuple(_tensors(file, tensor_count, path))
    alignment = int(values.get("general.alignment") or 32)
    return Header(values, lengths, tensors, -(-file.tell() // alignment) * alignment)


def _checked(header: Header, path: Path) -> Header:
    if not header.tensors:
        raise UserError(f"{path}: a GGUF file without tensors")
    last = max(header.tensors, key=lambda tensor: tensor.offset)
    needed, size = header.data_start + last.offset + last.bytes, path.stat().st_size
    if size < needed:
        raise UserError(f"{path}: cut off: {last.name} ends at byte {needed}, the file has {size}")
    return header


def _tensors(file: BinaryIO, count: int, path: Path) -> Iterator[Tensor]:
    for _ in range(count):
        name = _string(file)
        shape = tuple(_unpack(file, "<Q") for _ in range(_unpack(file, "<I")))
        kind = _unpack(file, "<I")
        offset = _unpack(file, "<Q")
        if kind not in TENSOR_TYPES:
            raise UserError(f"{path}: tensor {name} has type {kind}, which is not known here")
        type_name, block, block_bytes = TENSOR_TYPES[kind]
        yield Tensor(name, shape, type_name, -(-prod(shape) // block) * block_bytes, offset)


def _value(file: BinaryIO, kind: int, lengths: dict[str, int], key: str) -> Any:
    if kind in _SCALARS:
        return _unpack(file, _SCALARS[kind])
    if kind == _STRING:
        return _string(file)
    if kind == _ARRAY:
        return _array(file, lengths, key)
    raise UserError(f"{file.name}: the key {key} has type {kind}, which is not GGUF")


def _array(file: BinaryIO, lengths: dict[str, int], key: str) -> Any:
    """A short array of scalars as a list; of others (the vocabulary) only the length is kept."""
    kind, length = _unpack(file, "<I"), _unpack(file, "<Q")
    lengths[key] = length
    if kind in _SCALARS:
        data = _exactly(file, length * struct.calcsize(_SCALARS[kind]))
        code = _SCALARS[kind][1]
        return list(struct.unpack(f"<{length}{code}", data)) if length <= 4096 else None
    if kind == _STRING:
        for _ in range(length):
            _exactly(file, _unpack(file, "<Q"))
        return None
    raise UserError(f"{file.name}: the key {key} is an array of type {kind}, which is not read")


def _string(file: BinaryIO) -> str:
    return _exactly(file, _unpack(file, "<Q")).decode("utf-8")


def _unpack(file: BinaryIO, code: str) -> Any:
    return struct.unpack(code, file.read(struct.calcsize(code)))[0]


def _exactly(file: BinaryIO, length: int) -> bytes:
    if length > _MAX_LENGTH:
        raise struct.error(f"a length of {length} bytes")
    data = file.read(length)
    if len(data) != length:
        raise struct.error(f"{length} bytes wanted, {len(data)} left")
    return data
