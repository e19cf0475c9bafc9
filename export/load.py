"""A source as a torch model in fp32, its weights mapped from disk wherever they can be.

Safetensors are mapped; a GGUF file is dequantized once into safetensors beside the output and mapped too,
so the peak stays near one copy of the weights. No remote code runs, and pickles are read only when asked
for and then weights only. It does not know any architecture.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM

from seatrial.errors import UserError
from seatrial.export.limits import check_config, check_safetensors
from seatrial.export.quiet import quiet
from seatrial.export.release import trim_heap
from seatrial.export.safetensors_file import write_safetensors
from seatrial.export.source import Source


@dataclass
class Loaded:
    """A torch model ready to be traced, and its figures."""

    folder: Path  # with config and safetensors
    model: Any
    config: Any
    layers: int
    kv_heads: int
    head_dim: int
    context: int
    vocabulary: int
    window: int | None  # of its attention, where it has one
    rope_switch: int | None  # the length beyond which its rotary embedding changes, where it does
    allow_pickle: bool = False


def load_torch(source: Source, work: Path, *, allow_pickle: bool = False) -> Loaded:
    """Load `source` for tracing; `work` is a folder for large temporary files. Raises UserError in one
    line.
    """
    folder = _dequantized(source, work) if source.kind in ("embedded", "gguf") else source.path
    if source.kind in ("bundle", "onnx"):
        raise UserError(
            f"{source.path} is already ONNX; export takes a Hugging Face folder, a hub id or a GGUF file"
        )
    check_config(folder)
    check_safetensors(folder)
    model = _from_folder(folder, allow_pickle)
    return Loaded(folder, model, model.config, *_figures(model.config), allow_pickle)


def reload_torch(loaded: Loaded) -> None:
    """Read the weights again after they were let go."""
    loaded.model = _from_folder(loaded.folder, loaded.allow_pickle)


def _from_folder(folder: Path, allow_pickle: bool) -> Any:
    arguments: dict[str, Any] = {
        "dtype": torch.float32,
        "trust_remote_code": False,
        "local_files_only": True,
        "attn_implementation": "eager",
        "output_loading_info": True,
    }
    if not allow_pickle:
        arguments["use_safetensors"] = True
    try:
        with quiet():
            model, info = AutoModelForCausalLM.from_pretrained(folder, **arguments)
    except (ValueError, OSError, KeyError, RuntimeError, ImportError, TypeError, AttributeError) as error:
        raise UserError(f"{folder} cannot be loaded as a decoder model: {first_line(error)}") from error
    missing = sorted(set(info["missing_keys"]) - _tied(model))
    if missing:
        raise UserError(
            f"{folder}: {len(missing)} weights are missing, the first is {missing[0]}; get the whole folder"
        )
    return model.eval()


def _tied(model: Any) -> set[str]:
    return set(getattr(model, "_tied_weights_keys", None) or ())


def _dequantized(source: Source, work: Path) -> Path:
    """A safetensors folder of a GGUF file, with the config that its header gives."""
    folder = work / "dequantized"
    try:
        with quiet():
            model = AutoModelForCausalLM.from_pretrained(
                source.path.parent, gguf_file=source.path.name, dtype=torch.float32, local_files_only=True
            )
            model.config.architectures = [type(model).__name__]
            model.config.save_pretrained(folder)
            write_safetensors(folder / "model.safetensors", model.state_dict())
    except (
        ValueError,
        OSError,
        KeyError,
        RuntimeError,
        TypeError,
        NotImplementedError,
        AttributeError,
    ) as error:
        raise UserError(f"{source.path} cannot be read as a GGUF model: {first_line(error)}") from error
    del model
    trim_heap()
    return folder


def _figures(config: Any) -> tuple[int, int, int, int, int, int | None, int | None]:
    """layers, KV heads, head_dim, context, vocabulary, window and rope switch of a transformers config."""
    text = config.get_text_config()
    heads = int(text.num_attention_heads)
    kv_heads = getattr(text, "num_key_value_heads", None) or heads
    head_dim = getattr(text, "head_dim", None) or int(text.hidden_size) // heads
    context = getattr(text, "max_position_embeddings", None) or 2048
    window = getattr(text, "sliding_window", None) if getattr(text, "use_sliding_window", True) else None
    figures = int(text.num_hidden_layers), int(kv_heads), int(head_dim), int(context), int(text.vocab_size)
    return *figures, window, _switch(text)


def _switch(text: Any) -> int | None:
    """Where a length-dependent rotary embedding (dynamic NTK, LongRoPE) changes its frequencies."""
    scaling = getattr(text, "rope_scaling", None) or {}
    kind = scaling.get("rope_type") or scaling.get("type")
    if kind not in ("dynamic", "longrope"):
        return None
    original = scaling.get("original_max_position_embeddings")
    original = original or getattr(text, "original_max_position_embeddings", None)
    return int(original or text.max_position_embeddings)


def weight_bytes(loaded: Loaded) -> int:
    """Bytes of the weights in fp32, tied ones once."""
    return sum(parameter.numel() for parameter in loaded.model.parameters()) * 4


def first_line(error: BaseException) -> str:
    """The first line of an error that says something, for people."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{lines[0][:300] if lines else type(error).__name__} (transformers {transformers.__version__})"
