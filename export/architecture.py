"""What a model's own files say about its shape: layers and their kinds, heads, windows, experts, tying.

Sources are a config.json, a folder with one, a bundle, or a GGUF header. Nothing is executed, no weights are
loaded, and neither torch nor numpy is imported. A required field that is missing is an error that names it;
what can only be bounded is priced from above and said so in `notes`. What a byte or a FLOP costs is not known
here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from seatrial.errors import UserError


@attrs.frozen
class Layer:
    """One decoder layer. Parameters are counts of scalars, `window` is in tokens.

    `kind`: full | window | latent. `kv_elements` are the scalars of K and V that one token adds to the cache;
    `latent_elements` what a runtime with a compressed cache stores instead. `kv_shared`: reads the cache of
    an earlier layer and stores none. `ffn_active_params` are the ones one token goes through.
    """

    kind: str
    query_heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    attention_params: int
    ffn_params: int
    ffn_active_params: int
    vector_params: int
    window: int | None = None
    kv_shared: bool = False
    latent_elements: int | None = None

    @property
    def kv_elements(self) -> int:
        """Scalars of K and V per token, for all KV heads of this layer."""
        return self.kv_heads * (self.head_dim + self.value_dim)


@attrs.frozen
class Stored:
    """Weights as they lie in a file: bytes in all, and the share of the lookup table and of the experts."""

    format: str
    total_bytes: int
    embedding_bytes: int | None = None
    expert_bytes: int | None = None


@attrs.frozen
class Architecture:
    """Shape of a decoder-only language model.

    `other_params`: final norm, learned positions, head bias. `embedding_params` is one table; an untied head
    is as large again. `notes` say what is an upper bound or was read between the lines.
    """

    name: str
    model_type: str
    hidden: int
    vocabulary: int
    layers: tuple[Layer, ...]
    tied: bool
    max_positions: int | None
    embedding_width: int
    other_params: int = 0
    extra_embedding_params: int = 0
    ffn_width: int = 0
    experts: int = 0
    active_experts: int = 0
    stored: Stored | None = None
    notes: tuple[str, ...] = ()

    @property
    def embedding_params(self) -> int:
        """The lookup table of the tokens."""
        return self.vocabulary * self.embedding_width

    @property
    def head_params(self) -> int:
        """The output matrix, which is multiplied for every token whether it is tied or not."""
        return self.vocabulary * self.embedding_width

    @property
    def body_params(self) -> int:
        """Matrices of all layers, every expert included."""
        return sum(layer.attention_params + layer.ffn_params for layer in self.layers)

    @property
    def active_body_params(self) -> int:
        """Matrices of all layers that one token is multiplied with."""
        return sum(layer.attention_params + layer.ffn_active_params for layer in self.layers)

    @property
    def vector_params(self) -> int:
        """Norms, biases, learned positions: never quantized."""
        return sum(layer.vector_params for layer in self.layers) + self.other_params

    @property
    def params(self) -> int:
        """All scalars; a tied table counts once."""
        tables = self.embedding_params * (1 if self.tied else 2) + self.extra_embedding_params
        return tables + self.body_params + self.vector_params

    @property
    def active_params(self) -> int:
        """Scalars one token goes through, the head included, the lookup not."""
        return self.active_body_params + self.head_params + self.vector_params


def read_architecture(path: Path) -> Architecture:
    """The architecture in a config.json, a folder (Hugging Face or bundle) or a GGUF file.

    Raises:
        UserError: nothing readable there, or a required field is missing (it is named).
    """
    path = Path(path)
    if path.is_dir():
        return _read_folder(path)
    if not path.exists():
        raise UserError(
            f"{path}: no such file or folder; a config.json, a model folder or a GGUF file is needed"
        )
    if path.suffix == ".gguf":
        from seatrial.export.gguf_header import architecture_of_gguf

        return architecture_of_gguf(path)
    if path.suffix == ".onnx":
        raise UserError(
            f"{path}: an ONNX graph has no config; give its folder with config.json, or use `seatrial ops`"
        )
    name = path.resolve().parent.name if path.name == "config.json" else path.stem
    return architecture_of_config(read_json(path), name=name)


def hub_config(model: str) -> Path:
    """The config.json of a hub id: from the local hub cache, else downloaded (a few kB, never the weights).

    Raises:
        UserError: no such id, or no network.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(model, "config.json"))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise UserError(
            f"{model}: neither a local file or folder nor a hub id that can be read now "
            f"({type(error).__name__}); give a path, or check the name and the network"
        ) from None


def architecture_of_config(config: Mapping[str, Any], *, name: str) -> Architecture:
    """The architecture in the content of a config.json."""
    from seatrial.export.config_json import architecture_of_config as read

    return read(config, name=name)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object in a file, or one clear line."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"{path}: not a readable JSON file: {error}") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: a JSON object was needed, a {type(value).__name__} was found")
    return value


def _read_folder(folder: Path) -> Architecture:
    config = folder / "config.json"
    if config.is_file():
        architecture = architecture_of_config(read_json(config), name=folder.resolve().name)
        return attrs.evolve(architecture, stored=_stored_in_bundle(folder))
    files = sorted(folder.glob("*.gguf"))
    if len(files) == 1:
        return read_architecture(files[0])
    found = f"{len(files)} GGUF files" if files else "none"
    raise UserError(f"{folder}: config.json or one GGUF file is needed, found {found}")


def _stored_in_bundle(folder: Path) -> Stored | None:
    """Bytes of `model.onnx` and its data file, with the format that seatrial.json tells; None for other
    folders.
    """
    model = folder / "model.onnx"
    if not model.is_file():
        return None
    data = [path for path in folder.glob("model.onnx*") if path.is_file()]
    info = read_json(folder / "seatrial.json") if (folder / "seatrial.json").is_file() else {}
    return Stored(
        format=str(info.get("weights") or "fp32"), total_bytes=sum(path.stat().st_size for path in data)
    )
