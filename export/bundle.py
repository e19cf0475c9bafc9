"""A bundle is a folder that can be run: graph, data, config, tokenizer, and what was done to make it.

Opening checks that the files are whole and belong together before anything runs; writing is all or nothing.
Folders made by other exporters open the same way, with what `genai_config.json` or the graph itself tells.
It does not run the model and needs neither torch nor onnxruntime.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
from onnx import TensorProto

from seatrial.errors import UserError
from seatrial.export.files import sha256_of, writing_folder
from seatrial.export.graph_config import shape_of_graph, weight_format
from seatrial.export.graph_file import GraphFile, read_graph_file

INFO = "seatrial.json"
MODEL = "model.onnx"
DATA = "model.onnx.data"
_PAST_KEY = re.compile(r"past_key_values\.(\d+)\.key")
_JSON_LIMIT_BYTES = 64 << 20
_DTYPES = {
    TensorProto.FLOAT: "float32",
    TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.INT8: "int8",
    TensorProto.UINT8: "uint8",
}


@dataclass(frozen=True)
class KvLayout:
    """The KV cache of a graph: `[batch, kv_heads, tokens, head_dim]` per layer, key and value."""

    layers: int
    kv_heads: int
    head_dim: int
    dtype: str

    def bytes_per_token(self) -> int:
        """Bytes of keys and values for one position, all layers."""
        item = {"float32": 4, "float16": 2, "bfloat16": 2}.get(self.dtype, 1)
        return 2 * self.layers * self.kv_heads * self.head_dim * item


@dataclass(frozen=True)
class Bundle:
    """An opened and checked bundle. `info` is `seatrial.json`, empty for folders made by others."""

    folder: Path
    model_path: Path
    config: dict[str, Any]
    info: dict[str, Any]
    kv: KvLayout
    data_files: tuple[Path, ...] = ()
    weight_bytes: int = 0
    weights: str = "fp32"  # their format: as seatrial.json says, else what most of the graph's matrices have
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())


def open_bundle(folder: Path, *, check_hashes: bool = True) -> Bundle:
    """Open and check a bundle, or a folder or `.onnx` file made by another exporter.

    `check_hashes=False` does not read the data files (for a child under a memory ceiling).
    Raises UserError in one line for anything missing, cut, swapped or leading outside the folder.
    """
    model_path = find_graph(Path(folder))
    folder = model_path.parent
    info = read_json(folder / INFO) if (folder / INFO).is_file() else {}
    _check_files(folder, info, check_hashes)
    graph = read_graph_file(model_path)
    return Bundle(
        folder=folder,
        model_path=model_path,
        config=_read_config(folder, graph.proto),
        info=info,
        kv=kv_layout(graph),
        data_files=graph.data_files,
        weight_bytes=graph.weight_bytes,
        weights=str(info.get("weights") or weight_format(graph.proto)),
        inputs=tuple(value.name for value in graph.proto.graph.input),
        outputs=tuple(value.name for value in graph.proto.graph.output),
        warnings=graph.warnings,
    )


def writing_bundle(
    out: Path, *, sources: Iterable[Path] = (), needed_bytes: int = 0
) -> AbstractContextManager[Path]:
    """A temporary folder to fill; it becomes `out` on success and vanishes on failure (`writing_folder`)."""
    return writing_folder(Path(out), sources=sources, needed_bytes=needed_bytes)


def write_info(folder: Path, info: dict[str, Any]) -> None:
    """Write `seatrial.json` with size and SHA-256 of every other file in the folder, so that swaps show."""
    files = {
        file.name: {"bytes": file.stat().st_size, "sha256": sha256_of(file)}
        for file in sorted(folder.iterdir())
        if file.is_file() and file.name != INFO
    }
    text = json.dumps({**info, "files": files}, ensure_ascii=False, indent=2, allow_nan=False)
    (folder / INFO).write_text(text + "\n", encoding="utf-8")


def find_graph(path: Path) -> Path:
    """The `.onnx` file of a folder: `model.onnx`, or the only one there is."""
    if path.is_file():
        return path
    if (path / MODEL).is_file():
        return path / MODEL
    found = sorted(path.glob("*.onnx"))
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise UserError(f"{path} is no bundle: it needs {MODEL} or a single .onnx file; found {names}")
    return found[0]


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file of bounded size. Raises UserError when it is none."""
    if path.stat().st_size > _JSON_LIMIT_BYTES:
        raise UserError(
            f"{path} has {path.stat().st_size:,} bytes; a file of at most {_JSON_LIMIT_BYTES:,} was expected"
        )
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no JSON file: {error}") from error
    if not isinstance(value, dict):
        raise UserError(f"{path} holds no JSON object")
    return value


def kv_layout(graph: GraphFile) -> KvLayout:
    """What the `past_key_values.N.key` inputs say. Raises UserError when there are none or they disagree."""
    shapes = {}
    for value in graph.proto.graph.input:
        if match := _PAST_KEY.fullmatch(value.name):
            shapes[int(match.group(1))] = _layer_layout(value)
    if not shapes:
        raise UserError(
            f"{graph.path} has no past_key_values.N.key inputs; a decoder exported with KV cache is needed "
            "(optimum: --task text-generation-with-past)"
        )
    if len(set(shapes.values())) != 1 or None in next(iter(shapes.values())):
        raise UserError(f"{graph.path}: its layers have different or unknown KV shapes; all alike are needed")
    kv_heads, head_dim, dtype = next(iter(shapes.values()))
    return KvLayout(max(shapes) + 1, int(kv_heads or 0), int(head_dim or 0), dtype)


def _layer_layout(value: onnx.ValueInfoProto) -> tuple[int | None, int | None, str]:
    tensor = value.type.tensor_type
    dims = [dim.dim_value or None for dim in tensor.shape.dim]
    if len(dims) != 4:
        return None, None, ""
    return dims[1], dims[3], _DTYPES.get(tensor.elem_type, "other")


def _check_files(folder: Path, info: dict[str, Any], check_hashes: bool) -> None:
    """Compare files with what `seatrial.json` says of them."""
    for name, told in info.get("files", {}).items():
        file = folder / name
        if Path(name).name != name or not isinstance(told, dict):
            raise UserError(f"{folder / INFO} lists the impossible file {name!r}")
        if not file.is_file():
            raise UserError(f"{folder}: {name} is missing; copy the whole bundle")
        if file.suffix == ".json" or file.suffix == ".jinja":
            continue  # people may edit texts; graph and data must stay together
        if file.stat().st_size != told.get("bytes") and file.name == MODEL:
            raise UserError(
                f"{file} has {file.stat().st_size:,} bytes; the bundle was written with {told.get('bytes'):,}"
            )
        if (
            check_hashes
            and file.stat().st_size == told.get("bytes")
            and sha256_of(file) != told.get("sha256")
        ):
            raise UserError(
                f"{file} is not the file that this bundle was written with (SHA-256 differs); copy it again"
            )


def _read_config(folder: Path, proto: onnx.ModelProto) -> dict[str, Any]:
    if (folder / "config.json").is_file():
        return read_json(folder / "config.json")
    if (folder / "genai_config.json").is_file():
        from seatrial.export.genai import config_from_genai

        config = config_from_genai(read_json(folder / "genai_config.json"))
        return config | shape_of_graph(proto, config)
    return {}
