"""Tiny random models of many families, every bias and norm weight random, so that a dropped one shows.

Vocabulary 1024 and hidden 96: large enough that weights are not folded into copies by the optimizer.
"""

from __future__ import annotations

from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

VOCABULARY, HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, FFN = 1024, 96, 2, 6, 2, 16, 160

_COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "intermediate_size": FFN,
    "max_position_embeddings": 256,
    "head_dim": HEAD_DIM,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
_ALTERNATE = {"layer_types": ["sliding_attention", "full_attention"]}

# What each family needs beyond the common figures.
FAMILIES: dict[str, dict[str, Any]] = {
    "llama": {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "head_dim": HEAD_DIM},
    "qwen2": {"tie_word_embeddings": True},
    "qwen3": {"attention_bias": True},
    "mistral": {"sliding_window": 7},
    "gemma2": {"sliding_window": 7, "query_pre_attn_scalar": 24, **_ALTERNATE},
    "gemma3_text": {"sliding_window": 7, "query_pre_attn_scalar": 24, **_ALTERNATE},
    "phi3": {"sliding_window": None},
    "phi": {
        "num_attention_heads": 3,
        "num_key_value_heads": 3,
        "partial_rotary_factor": 0.5,
        "head_dim": None,
    },
    "gpt2": {"n_embd": HIDDEN, "n_layer": LAYERS, "n_head": HEADS, "n_positions": 256, "n_inner": FFN},
    "opt": {"ffn_dim": FFN, "word_embed_proj_dim": HIDDEN, "do_layer_norm_before": True},
    "gpt_neox": {"rotary_pct": 0.5},
    "granite": {
        "attention_bias": True,
        "mlp_bias": True,
        "attention_multiplier": 0.2,
        "residual_multiplier": 0.6,
        "logits_scaling": 3.0,
        "embedding_multiplier": 4.0,
    },
    "olmo2": {"attention_bias": True},
    "smollm3": {
        "attention_bias": True,
        "mlp_bias": True,
        "no_rope_layers": [1, 0],
        "use_sliding_window": False,
    },
    "starcoder2": {"sliding_window": None, "use_bias": True},
    "glm4": {"attention_bias": True, "partial_rotary_factor": 0.5},
}
_OWN_NAMES = ("gpt2", "opt", "gpt_neox", "phi")


def config_of(family: str, **changes: Any) -> Any:
    """The tiny configuration of a family."""
    figures = {**_COMMON, **FAMILIES.get(family, {}), **changes}
    if family == "gpt2":
        for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"):
            figures.pop(name)
        figures.pop("max_position_embeddings")
    if family in _OWN_NAMES:
        for name in ("head_dim", "num_key_value_heads"):
            figures.pop(name, None) if family != "phi" or name == "head_dim" else None
    return AutoConfig.for_model(
        family, **{k: v for k, v in figures.items() if v is not None or k == "sliding_window"}
    )


def build(family: str, seed: int = 0, **changes: Any) -> transformers.PreTrainedModel:
    """A random model: weights of a size that keeps activations near one, biases and norms random."""
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config_of(family, **changes), attn_implementation="eager").eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2:
                parameter.normal_(0.0, 1.5 * parameter.shape[-1] ** -0.5 if "embed" not in name else 0.7)
            elif name.endswith("bias"):
                parameter.normal_(0.0, 0.3)
            else:
                parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def save(family: str, folder: Any, seed: int = 0, **changes: Any) -> Any:
    """The tiny model as a Hugging Face folder with safetensors."""
    model = build(family, seed, **changes)
    model.save_pretrained(folder, safe_serialization=True)
    return folder
