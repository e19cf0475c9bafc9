"""What the user's `--model` means: the embedded model, a folder, a GGUF file, a bundle, or a hub id.

One function finds out by looking at the files and fetches what is missing; it does not load a model and needs
neither torch nor transformers. Pickled weights are never read and remote code is never run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from seatrial.errors import UserError
from seatrial.export.embedded import GGUF_SHA256, NAME, Progress, fetch_embedded
from seatrial.export.files import sha256_of

EMBEDDED = "embedded"  # as export and plan call it
Kind = Literal["embedded", "hf", "gguf", "bundle", "onnx"]
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")
_WANTED = [
    "*.json",
    "*.safetensors",
    "*.jinja",
    "*.txt",
    "tokenizer.model",
    "*.onnx",
    "*.onnx.data",
    "*.onnx_data",
]
_PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")


@dataclass(frozen=True)
class Source:
    """Where a model is and what form it has. `path` is a folder, or the file for `gguf` and one `.onnx`."""

    kind: Kind
    path: Path
    name: str
    sha256: str | None = None  # of the single file, where the source is one


def resolve(
    model: str | Path | None,
    *,
    progress: Progress | None = None,
    cache: Path | None = None,
    allow_pickle: bool = False,
) -> Source:
    """The source behind `model`; None or "embedded" is the embedded model.

    Raises UserError telling what was needed.
    """
    if model is None or model == EMBEDDED:
        return Source("embedded", fetch_embedded(cache=cache, progress=progress), NAME, GGUF_SHA256)
    text = str(model)
    path = Path(text).expanduser()
    if path.is_dir():
        return _folder(path, allow_pickle)
    if path.exists():
        return _file(path)
    if isinstance(model, Path) or not _HUB_ID.fullmatch(text) or text.endswith((".gguf", ".onnx", ".json")):
        raise UserError(
            f"no model at {text}: name a folder, a GGUF file, a bundle or a hub id such as owner/name"
        )
    return _from_hub(text, progress)


def _folder(path: Path, allow_pickle: bool = False) -> Source:
    name = path.resolve().name
    if (path / "seatrial.json").is_file() and (path / "model.onnx").is_file():
        return Source("bundle", path, name)
    if any(path.glob("*.onnx")):
        return Source("onnx", path, name)
    ggufs = sorted(path.glob("*.gguf"))
    if len(ggufs) == 1:
        return _file(ggufs[0])
    if not (path / "config.json").is_file():
        raise UserError(
            f"{path} is not a model folder: it has no config.json, no .onnx file and no single .gguf file"
        )
    pickled = [file for pattern in _PICKLED for file in path.glob(pattern)]
    if not any(path.glob("*.safetensors")) and not (allow_pickle and pickled):
        raise UserError(f"{path} has a config.json but no weights; {_weights_hint(path)}")
    return Source("hf", path, name)


def _weights_hint(path: Path) -> str:
    pickled = [file.name for pattern in _PICKLED for file in sorted(path.glob(pattern))]
    if pickled:
        return (
            f"{pickled[0]} is a pickle, which can run code when it is read: convert it to model.safetensors, "
            "or pass --allow-pickle to read its weights only"
        )
    return "put model.safetensors (or model.safetensors.index.json with its parts) beside it"


def _file(path: Path) -> Source:
    if path.suffix == ".onnx":
        return Source("onnx", path, path.stem)
    with path.open("rb") as stream:
        magic = stream.read(4)
    if magic == b"GGUF":
        return Source("gguf", path, path.stem, sha256_of(path))
    if path.suffix == ".gguf":
        raise UserError(f"{path} is not a GGUF file: it starts with {magic!r} instead of b'GGUF'")
    raise UserError(f"{path} is not a model file; name its folder, a .gguf or an .onnx file")


def _from_hub(name: str, progress: Progress | None) -> Source:
    """A snapshot of a hub repository: safetensors and text files only, from the hub's cache when offline."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    if progress:
        progress(f"looking for {name} on the hub", None)
    try:
        folder = Path(snapshot_download(name, allow_patterns=_WANTED, etag_timeout=10))
    except LocalEntryNotFoundError as error:
        raise UserError(
            f"{name} is no local path, is not in the hub's cache, and the hub cannot be reached; "
            "connect to a network or name a local folder or GGUF file"
        ) from error
    except (HfHubHTTPError, HFValidationError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"{name} is no local path and the hub refused it: {reason}") from error
    found = _folder(folder)
    return Source(found.kind, found.path, name)
