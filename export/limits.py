"""Figures that a model's files may declare, compared with bytes that are really there, before anything is
built.

A config or a header is untrusted: negative sizes, a million layers, a tensor of 2^60 elements, each is
refused in one line without allocating. It does not judge whether a model is good.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from seatrial.errors import UserError
from seatrial.export.bundle import read_json

# Largest plausible values, far above any published model; what is above is damage or malice.
_LIMITS = {
    "num_hidden_layers": 2_000,
    "n_layer": 2_000,
    "num_attention_heads": 4_096,
    "num_key_value_heads": 4_096,
    "n_head": 4_096,
    "head_dim": 8_192,
    "hidden_size": 1 << 18,
    "n_embd": 1 << 18,
    "intermediate_size": 1 << 21,
    "n_inner": 1 << 21,
    "ffn_dim": 1 << 21,
    "vocab_size": 1 << 24,
    "max_position_embeddings": 1 << 27,
    "n_positions": 1 << 27,
    "num_experts": 4_096,
    "num_local_experts": 4_096,
    "sliding_window": 1 << 27,
}
_HEADER_LIMIT_BYTES = 100 << 20  # the format's own limit
_ITEM_BYTES = {
    "F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2,
    "I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1,
}  # fmt: skip


def check_config(folder: Path) -> None:
    """Refuse a config.json with impossible figures, or one that asks for code to be run."""
    config = read_json(folder / "config.json")
    check_figures(config, folder / "config.json")
    if "auto_map" in config and not _is_known(config):
        raise UserError(
            f"{folder} needs code of its own ({config['auto_map'].get('AutoModelForCausalLM', 'auto_map')}), "
            "which is never run; use a model that transformers itself knows"
        )


def check_figures(config: dict[str, Any], where: Path) -> None:
    """Raises UserError for a size that is no whole number above zero, or absurdly large."""
    nested = [value for value in config.values() if isinstance(value, dict)]
    for part in [config, *nested]:
        for name, limit in _LIMITS.items():
            value = part.get(name)
            if value is None or (name == "sliding_window" and value is False):
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= limit:
                raise UserError(
                    f"{where}: {name} is {value!r}; a whole number from 1 to {limit:,} was expected"
                )


def _is_known(config: dict[str, Any]) -> bool:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return config.get("model_type") in CONFIG_MAPPING_NAMES


def check_safetensors(folder: Path) -> None:
    """Every tensor's declared bytes against its shape and the file, naming tensor, expected and actual
    bytes.
    """
    files = sorted(folder.glob("*.safetensors"))
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        for name in {str(part) for part in read_json(index).get("weight_map", {}).values()}:
            if Path(name).name != name or not (folder / name).is_file():
                raise UserError(f"{index}: its part {name!r} is missing or lies outside the folder")
    for file in files:
        check_safetensors_file(file)


def check_safetensors_file(file: Path) -> int:
    """Number of tensors of one file, after comparing header and size. Raises UserError."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        start = stream.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size + 1
        if length > min(size - 8, _HEADER_LIMIT_BYTES):
            raise UserError(
                f"{file} ({size:,} bytes) is cut or is no safetensors file: its header needs {length:,} bytes"
            )
        try:
            header = json.loads(stream.read(length))
        except (ValueError, RecursionError) as error:
            raise UserError(f"{file}: its header is no JSON ({error})") from error
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    for name, entry in tensors.items():
        _check_tensor(file, name, entry, size - 8 - length)
    if not tensors:
        raise UserError(f"{file} holds no tensor")
    return len(tensors)


def _check_tensor(file: Path, name: str, entry: Any, available: int) -> None:
    try:
        shape, (start, end), item = entry["shape"], entry["data_offsets"], _ITEM_BYTES.get(entry["dtype"])
    except (TypeError, KeyError, ValueError) as error:
        raise UserError(f"{file}: tensor {name} has no readable entry in the header") from error
    expected = 1
    for dim in shape:
        if not isinstance(dim, int) or dim < 0:
            raise UserError(f"{file}: tensor {name} has the impossible shape {shape}")
        expected *= dim
    if item is not None and expected * item != end - start:
        raise UserError(
            f"{file}: tensor {name} needs {expected * item:,} bytes and the header gives it {end - start:,}"
        )
    if not 0 <= start <= end <= available:
        raise UserError(
            f"{file}: tensor {name} ends at byte {end:,} of {available:,} that are there; "
            "the file is cut, copy it again"
        )
