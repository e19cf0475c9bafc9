"""The small files of a bundle: config, tokenizer with its chat template, generation settings, genai
settings.

A Hugging Face folder's own files are copied. A GGUF file's tokenizer is converted by transformers and then
mended with what the GGUF header says, where the conversion is known to lose it: end of sequence, no BOS,
the pre-tokenizer. It loads no weights.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from seatrial.errors import UserError
from seatrial.export.bundle import read_json
from seatrial.export.genai import genai_config
from seatrial.export.load import Loaded, first_line
from seatrial.export.quiet import quiet
from seatrial.export.source import Source

_TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
)
_TEMPLATE = "chat_template.jinja"
# Pre-tokenizers by `tokenizer.ggml.pre`: whether digits are split one by one before the byte-level split.
_DIGITS_ALONE = {"smollm": True, "gpt-2": False, "gpt2": False, "default": False}


def write_texts(source: Source, loaded: Loaded, folder: Path) -> list[str]:
    """Write every small file of a bundle into `folder`; returns lines about what was mended or is absent."""
    notes = []
    config = plain_config(loaded.config)
    generation: dict[str, Any] = {}
    if source.kind in ("embedded", "gguf"):
        header = gguf_header(source.path)
        notes += _gguf_tokenizer(source.path, header, folder)
        generation = {name: config[name] for name in ("eos_token_id", "pad_token_id") if name in config}
        generation["eos_token_id"] = config["eos_token_id"] = int(
            header.get("tokenizer.ggml.eos_token_id", config.get("eos_token_id", 0))
        )
        if header.get("tokenizer.ggml.add_bos_token") is False:
            config["bos_token_id"] = None
    else:
        notes += _copy_tokenizer(source.path, folder)
        if (source.path / "generation_config.json").is_file():
            generation = read_json(source.path / "generation_config.json")
    notes += _pad_right(folder)
    check_fit(folder, loaded.vocabulary)
    generation.setdefault("eos_token_id", config.get("eos_token_id"))
    _write(folder / "config.json", config)
    _write(
        folder / "generation_config.json",
        {**generation, "transformers_version": config["transformers_version"]},
    )
    eos = generation["eos_token_id"]
    eos_ids = [int(i) for i in (eos if isinstance(eos, list) else [eos]) if i is not None] or [0]
    _write(
        folder / "genai_config.json",
        genai_config(config, eos_ids, loaded.layers, loaded.kv_heads, loaded.head_dim),
    )
    return notes


def _pad_right(folder: Path) -> list[str]:
    """Let whoever pads with this tokenizer pad on the right: the attention node gets left padding wrong."""
    path = folder / "tokenizer_config.json"
    if not path.is_file() or (settings := read_json(path)).get("padding_side") != "left":
        return []
    _write(path, {**settings, "padding_side": "right"})
    return ["tokenizer: batches are padded on the right, the attention node gets left padding wrong"]


def check_fit(folder: Path, vocabulary: int) -> None:
    """Refuse a tokenizer that makes ids the embedding has no row for, or one that cannot be read."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        return
    from tokenizers import Tokenizer

    try:
        ids = Tokenizer.from_file(str(path)).get_vocab(with_added_tokens=True).values()
    except Exception as error:  # tokenizers raises a bare Exception for every unreadable file
        raise UserError(f"{path.name} is no tokenizer: {first_line(error)}") from error
    if max(ids, default=0) >= vocabulary:
        raise UserError(
            f"the tokenizer makes ids up to {max(ids):,} and the embedding has {vocabulary:,} rows; "
            "they belong to different models"
        )


def plain_config(config: Any) -> dict[str, Any]:
    """A transformers config as JSON, without the attention that our tracing put into it."""
    found: dict[str, Any] = json.loads(config.to_json_string(use_diff=False))
    for name in [name for name in found if name.startswith("_") or name == "attn_implementation"]:
        found.pop(name)
    found["transformers_version"] = found.get("transformers_version") or ""
    found["dtype"] = "float32"
    return found


def gguf_header(path: Path) -> dict[str, Any]:
    """The scalar key-values of a GGUF header."""
    import gguf

    try:
        reader = gguf.GGUFReader(path)
    except (ValueError, OSError, IndexError, KeyError) as error:
        raise UserError(f"{path} cannot be read as a GGUF file: {first_line(error)}") from error
    plain = {
        name: f for name, f in reader.fields.items() if f.types and f.types[0] != gguf.GGUFValueType.ARRAY
    }
    return {name: field.contents() for name, field in plain.items()}


def _gguf_tokenizer(path: Path, header: dict[str, Any], folder: Path) -> list[str]:
    from transformers import AutoTokenizer

    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name, local_files_only=True)
            tokenizer.save_pretrained(folder)
    except (ValueError, OSError, KeyError, TypeError, AttributeError, NotImplementedError) as error:
        raise UserError(f"{path}: its tokenizer cannot be converted: {first_line(error)}") from error
    if not (folder / "tokenizer.json").is_file():
        raise UserError(f"{path}: its tokenizer has no fast form, so no tokenizer.json can be written")
    tokens = read_json(folder / "tokenizer.json")
    settings = read_json(folder / "tokenizer_config.json")
    names = {int(entry["id"]): str(entry["content"]) for entry in tokens.get("added_tokens", [])}
    notes = mend_tokenizer(tokens, settings, header, names)
    if (folder / _TEMPLATE).is_file():
        settings["chat_template"] = (folder / _TEMPLATE).read_text(encoding="utf-8")
        (folder / _TEMPLATE).unlink()
    _write(folder / "tokenizer.json", tokens)
    _write(folder / "tokenizer_config.json", settings)
    _write(folder / "special_tokens_map.json", {k: v for k, v in settings.items() if k in _SPECIALS and v})
    return notes


_SPECIALS = ("bos_token", "eos_token", "unk_token", "pad_token")


def mend_tokenizer(
    tokens: dict[str, Any], settings: dict[str, Any], header: dict[str, Any], names: dict[int, str]
) -> list[str]:
    """Set in a converted tokenizer what its GGUF header says and the conversion loses; returns what
    changed.
    """
    notes = []
    for which in ("eos", "bos", "unknown", "padding"):
        ours = {"unknown": "unk", "padding": "pad"}.get(which, which)
        identity = header.get(f"tokenizer.ggml.{which}_token_id")
        settings.pop(f"{ours}_token_id", None)
        if (
            isinstance(identity, int)
            and identity in names
            and settings.get(f"{ours}_token") != names[identity]
        ):
            notes.append(f"tokenizer: {ours} token set to {names[identity]} as the GGUF header says")
            settings[f"{ours}_token"] = names[identity]
    if header.get("tokenizer.ggml.add_bos_token") is False and settings.get("add_bos_token") is not False:
        settings["add_bos_token"] = False
        tokens["post_processor"] = None
        notes.append("tokenizer: no BOS is put in front, as the GGUF header says")
    if header.get("tokenizer.ggml.model") == "gpt2":
        settings["tokenizer_class"] = "PreTrainedTokenizerFast"
        for name in ("legacy", "add_prefix_space", "use_default_system_prompt", "model_type"):
            settings.pop(name, None)
        notes += _mend_splits(tokens, str(header.get("tokenizer.ggml.pre", "default")))
    return notes


def _mend_splits(tokens: dict[str, Any], pre: str) -> list[str]:
    """Put the digit split back where the header's pre-tokenizer has it, and drop the fallbacks of another
    format.
    """
    bytes_only = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokens["decoder"] = bytes_only
    tokens["normalizer"] = None
    tokens["model"]["byte_fallback"] = False
    if pre not in _DIGITS_ALONE:
        return [f"tokenizer: the pre-tokenizer {pre} is left as transformers converts it"]
    if _DIGITS_ALONE[pre]:
        digits = {"type": "Digits", "individual_digits": True}
        tokens["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [digits, bytes_only]}
        return [f"tokenizer: digits are split one by one, as the pre-tokenizer {pre} does"]
    tokens["pre_tokenizer"] = bytes_only
    return []


def _copy_tokenizer(source: Path, folder: Path) -> list[str]:
    """Copy a folder's tokenizer, converting an old one to tokenizer.json."""
    for name in _TOKENIZER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, folder / name)
    if not (folder / "tokenizer.json").is_file():
        if not any((source / name).is_file() for name in _TOKENIZER_FILES):
            return ["no tokenizer in the source: the bundle can be checked but not given text"]
        _convert_tokenizer(source, folder)
    if (source / _TEMPLATE).is_file():
        settings = (
            read_json(folder / "tokenizer_config.json")
            if (folder / "tokenizer_config.json").is_file()
            else {}
        )
        settings["chat_template"] = (source / _TEMPLATE).read_text(encoding="utf-8")
        _write(folder / "tokenizer_config.json", settings)
    return []


def _convert_tokenizer(source: Path, folder: Path) -> None:
    from transformers import AutoTokenizer

    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False, local_files_only=True)
            tokenizer.save_pretrained(folder)
    except (ValueError, OSError, KeyError, TypeError, ImportError, AttributeError) as error:
        raise UserError(
            f"{source}: its tokenizer cannot be converted to tokenizer.json: {first_line(error)}"
        ) from error


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
