"""What a model's own files say about its shape: layers and their kinds, heads, windows, experts, tying.

Sources are a config.json, a folder with one, a bundle, or a GGUF header. Nothing is executed, no weights are
loaded, and neither torch nor numpy is imported. A required field that is missing is an error that names it;
what can only be bounded is priced from above and said so in `notes`. What a byte or a FLOP costs is not known
here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from seatrial.errors import UserError

HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
FETCH_TIMEOUT_S = 10.0
MAX_CONFIG_BYTES = 8 << 20


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
    """Weights as they lie in a file: bytes in all, and the share of the lookup table and of the experts.

    `kv` is the cache format that a bundle's graph was made for.
    """

    format: str
    total_bytes: int
    kv: str | None = None
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


def architecture_of_hub(model: str) -> Architecture:
    """The architecture of a hub id: its config.json from the hub's cache, else fetched (a few kB).

    Raises:
        UserError: not a hub id, no such model, or no network and nothing in the cache.
    """
    from huggingface_hub import hf_hub_url, try_to_load_from_cache

    if HUB_ID.fullmatch(model) is None:
        raise UserError(f"{model}: neither a file or folder nor a hub id such as owner/name")
    kept = try_to_load_from_cache(model, "config.json")
    if isinstance(kept, str):
        return architecture_of_config(read_json(Path(kept)), name=model)
    return architecture_of_config(_fetch_json(hf_hub_url(model, "config.json"), model), name=model)


def _fetch_json(url: str, model: str) -> dict[str, Any]:
    """One small JSON object from the hub, in one attempt."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    from huggingface_hub.utils import build_hf_headers

    try:
        with urlopen(Request(url, headers=build_hf_headers()), timeout=FETCH_TIMEOUT_S) as response:
            value = json.loads(response.read(MAX_CONFIG_BYTES))
    except HTTPError as error:
        raise UserError(
            f"{model}: no local file or folder, and the hub answers {error.code} {error.reason}"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise UserError(
            f"{model}: no local file or folder, not in the hub's cache, and the hub cannot be read "
            f"({reason}); give a path, or connect to a network"
        ) from None
    if not isinstance(value, dict):
        raise UserError(f"{model}: the hub's config.json is not a JSON object")
    return value


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
    if (folder / "genai_config.json").is_file() and any(folder.glob("*.onnx")):
        return _of_graph(folder)
    files = sorted(folder.glob("*.gguf"))
    if len(files) == 1:
        return read_architecture(files[0])
    found = f"{len(files)} GGUF files" if files else "none"
    raise UserError(f"{folder}: config.json or one GGUF file is needed, found {found}")


def _of_graph(folder: Path) -> Architecture:
    """A folder of onnxruntime-genai's builder: what its genai_config.json leaves out is in the graph."""
    from seatrial.export.bundle import open_bundle  # parsing a graph brings numpy in

    bundle = open_bundle(folder, check_hashes=False)
    architecture = architecture_of_config(bundle.config, name=folder.resolve().name)
    return attrs.evolve(architecture, stored=_stored_in_bundle(folder))


def _stored_in_bundle(folder: Path) -> Stored | None:
    """Bytes of `model.onnx` and its data file, with the format that seatrial.json tells; None for other
    folders.
    """
    model = folder / "model.onnx"
    if not model.is_file():
        return None
    data = [path for path in folder.glob("model.onnx*") if path.is_file()]
    info = read_json(folder / "seatrial.json") if (folder / "seatrial.json").is_file() else {}
    kv = info.get("kv")
    return Stored(
        format=str(info.get("weights") or ("fp32" if info else _format_in_graph(folder))),
        total_bytes=sum(path.stat().st_size for path in data),
        kv=kv if isinstance(kv, str) else None,
    )


def _format_in_graph(folder: Path) -> str:
    """The weight format of a folder that another exporter made, which has no seatrial.json to say it."""
    from seatrial.export.bundle import open_bundle

    return open_bundle(folder, check_hashes=False).weights
