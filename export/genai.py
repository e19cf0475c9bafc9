"""`genai_config.json`, which onnxruntime-genai reads beside a graph: written for our bundles, read from
others'.

Field names follow onnxruntime-genai 0.9 and later (`model.decoder`, `search`). Only text decoders are known.
"""

from __future__ import annotations

from typing import Any

from seatrial.errors import UserError

_FROM_GENAI = {
    "hidden_size": "hidden_size",
    "head_size": "head_dim",
    "num_attention_heads": "num_attention_heads",
    "num_hidden_layers": "num_hidden_layers",
    "num_key_value_heads": "num_key_value_heads",
}


def config_from_genai(genai: dict[str, Any]) -> dict[str, Any]:
    """The part of a config.json that a `genai_config.json` knows. Raises UserError when it has no decoder."""
    model = genai.get("model")
    decoder = model.get("decoder") if isinstance(model, dict) else None
    if not isinstance(model, dict) or not isinstance(decoder, dict):
        raise UserError("genai_config.json has no model.decoder section; a text decoder's folder is needed")
    found = {ours: decoder[theirs] for theirs, ours in _FROM_GENAI.items() if theirs in decoder}
    for theirs, ours in (
        ("type", "model_type"),
        ("vocab_size", "vocab_size"),
        ("context_length", "max_position_embeddings"),
        ("eos_token_id", "eos_token_id"),
        ("bos_token_id", "bos_token_id"),
        ("pad_token_id", "pad_token_id"),
    ):
        if theirs in model:
            found[ours] = model[theirs]
    return found


def genai_config(
    config: dict[str, Any], eos_ids: list[int], layers: int, kv_heads: int, head_dim: int
) -> dict[str, Any]:
    """The `genai_config.json` of a bundle: one decoder on the CPU, greedy by default, KV buffers shared."""
    context = int(config.get("max_position_embeddings") or config.get("n_positions") or 2048)
    pad = config.get("pad_token_id")
    return {
        "model": {
            "bos_token_id": config.get("bos_token_id") or 0,
            "context_length": context,
            "decoder": {
                "session_options": {"log_id": "onnxruntime-genai", "provider_options": []},
                "filename": "model.onnx",
                "head_size": head_dim,
                "hidden_size": int(config.get("hidden_size") or config.get("n_embd") or 0),
                "inputs": {
                    "input_ids": "input_ids",
                    "attention_mask": "attention_mask",
                    "past_key_names": "past_key_values.%d.key",
                    "past_value_names": "past_key_values.%d.value",
                },
                "outputs": {
                    "logits": "logits",
                    "present_key_names": "present.%d.key",
                    "present_value_names": "present.%d.value",
                },
                "num_attention_heads": int(
                    config.get("num_attention_heads") or config.get("n_head") or kv_heads
                ),
                "num_hidden_layers": layers,
                "num_key_value_heads": kv_heads,
            },
            "eos_token_id": eos_ids,
            "pad_token_id": pad if isinstance(pad, int) else eos_ids[0],
            "type": config.get("model_type", "llama"),
            "vocab_size": int(config["vocab_size"]),
        },
        "search": {
            "do_sample": False,
            "max_length": context,
            "num_beams": 1,
            "past_present_share_buffer": True,
        },
    }
