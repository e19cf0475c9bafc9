"""config.json to architecture: parameter counts against real models, and the fields that others misread."""

import json
from pathlib import Path

import pytest

from seatrial.errors import UserError
from seatrial.export.architecture import architecture_of_config, read_architecture
from seatrial.simulate.cost import model_cost

SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "vocab_size": 256,
    "max_position_embeddings": 128,
}
FULL_HEADS = {key: value for key, value in SMALL.items() if key != "num_key_value_heads"}
GPT = {"n_embd": 64, "n_layer": 4, "n_head": 4, "vocab_size": 256}
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48}
LATENT = {
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_shared_experts": 1,
    "moe_intermediate_size": 48,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 16,
    "q_lora_rank": 24,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 16,
    "v_head_dim": 16,
}
FAMILIES = {
    "llama": SMALL,
    "mistral": SMALL,
    "qwen2": SMALL,
    "qwen3": {**SMALL, "head_dim": 32},
    "gemma": {**SMALL, "head_dim": 32},
    "gemma2": {**SMALL, "head_dim": 32},
    "gemma3_text": {**SMALL, "head_dim": 32},
    "phi": SMALL,
    "phi3": {**SMALL, "pad_token_id": 0},
    "gpt2": GPT,
    "gpt_bigcode": GPT,
    "gptj": {**GPT, "rotary_dim": 8},
    "opt": {**FULL_HEADS, "ffn_dim": 96, "word_embed_proj_dim": 64},
    "gpt_neox": FULL_HEADS,
    "bloom": {"hidden_size": 64, "n_layer": 4, "n_head": 4, "vocab_size": 256},
    "mpt": {"d_model": 64, "n_layers": 4, "n_heads": 4, "vocab_size": 256},
    "falcon": {key: value for key, value in FULL_HEADS.items() if key != "intermediate_size"},
    "starcoder2": SMALL,
    "stablelm": SMALL,
    "granite": SMALL,
    "olmo": SMALL,
    "olmo2": SMALL,
    "olmo3": SMALL,
    "smollm3": {**SMALL, "pad_token_id": 0},
    "cohere": SMALL,
    "cohere2": SMALL,
    "exaone4": SMALL,
    "glm": {**SMALL, "head_dim": 16, "pad_token_id": 0},
    "glm4": {**SMALL, "head_dim": 16, "pad_token_id": 0},
    "mixtral": {**SMALL, "num_local_experts": 4, "num_experts_per_tok": 2},
    "phimoe": {**SMALL, "num_local_experts": 4, "num_experts_per_tok": 2},
    "granitemoe": {**SMALL, "num_local_experts": 4, "num_experts_per_tok": 2},
    "gpt_oss": {**SMALL, "num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 16},
    "olmoe": {**SMALL, "num_experts": 4, "num_experts_per_tok": 2},
    "qwen2_moe": {**SMALL, **MOE, "shared_expert_intermediate_size": 80},
    "qwen3_moe": {**SMALL, **MOE, "head_dim": 16},
    "deepseek_v2": {**SMALL, **LATENT},
    "deepseek_v3": {**SMALL, **LATENT, "n_group": 1, "topk_group": 1},
}
FORTY = {
    "model_type": "llama",
    "num_hidden_layers": 40,
    "hidden_size": 5120,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 13824,
    "vocab_size": 131072,
}


@pytest.mark.parametrize("model_type", sorted(FAMILIES))
def test_parameters_are_those_of_the_model_built_from_the_config(model_type: str) -> None:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(model_type, **FAMILIES[model_type])
    with torch.device("meta"):
        built = AutoModelForCausalLM.from_config(config)
    expected = sum(parameter.numel() for parameter in built.parameters())
    assert architecture_of_config(config.to_dict(), name=model_type).params == expected


def kv_bytes(config: dict) -> float:
    return model_cost(architecture_of_config(config, name="test"), kv="fp16").kv_bytes_per_token()


def test_a_stated_head_dim_wins_over_the_formula() -> None:
    assert kv_bytes(FORTY) == 163_840
    assert kv_bytes({**FORTY, "num_hidden_layers": 36, "hidden_size": 2560}) == 147_456


def test_a_nested_text_config_is_the_model() -> None:
    multimodal = {
        "model_type": "some_vision",
        "num_hidden_layers": 24,
        "hidden_size": 1024,
        "text_config": FORTY,
    }
    assert kv_bytes(multimodal) == 163_840


def test_old_field_names() -> None:
    old = {
        "model_type": "gpt2",
        "n_layer": 12,
        "n_head": 12,
        "n_embd": 768,
        "n_positions": 1024,
        "vocab_size": 50257,
    }
    assert kv_bytes(old) == 36_864
    assert architecture_of_config(old, name="gpt2").params == 124_439_808


@pytest.mark.parametrize(
    "field",
    ["num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size"],
)
def test_a_missing_field_is_named_and_never_a_default(field: str) -> None:
    config = {key: value for key, value in FORTY.items() if key != field}
    with pytest.raises(UserError, match=field):
        architecture_of_config(config, name="test")


@pytest.mark.parametrize("value", [0, -3, 2.5, "40", True])
def test_a_field_that_is_no_count_is_refused(value: object) -> None:
    with pytest.raises(UserError, match="num_hidden_layers"):
        architecture_of_config({**FORTY, "num_hidden_layers": value}, name="test")


def test_an_unknown_layer_kind_is_a_marked_upper_bound() -> None:
    kinds = ["linear_attention", "full_attention"] * 20
    read = architecture_of_config({**FORTY, "layer_types": kinds}, name="test")
    assert [layer.window for layer in read.layers] == [None] * 40
    assert any("linear_attention" in note and "upper bound" in note for note in read.notes)


def test_an_unknown_family_is_marked() -> None:
    read = architecture_of_config({**FORTY, "model_type": "brandnew"}, name="test")
    assert any("brandnew" in note for note in read.notes)


def test_windows_follow_transformers() -> None:
    """The window of each layer is what the installed transformers derives from the same fields."""
    from transformers import AutoConfig

    for model_type in ("gemma2", "gemma3_text", "cohere2", "qwen2"):
        extra = {"use_sliding_window": True, "max_window_layers": 2} if model_type == "qwen2" else {}
        config = AutoConfig.for_model(
            model_type, **{**SMALL, "num_hidden_layers": 12, "sliding_window": 32, **extra}
        )
        stated = config.to_dict()
        expected = [None if kind == "full_attention" else 32 for kind in stated.pop("layer_types")]
        read = architecture_of_config(stated, name=model_type)
        assert [layer.window for layer in read.layers] == expected, model_type


def test_encoder_decoders_and_strange_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="decoder"):
        architecture_of_config({**FORTY, "is_encoder_decoder": True}, name="t5")
    with pytest.raises(UserError, match="no such file"):
        read_architecture(tmp_path / "nothing")
    with pytest.raises(UserError, match=r"config\.json or one GGUF"):
        read_architecture(tmp_path)
    (tmp_path / "config.json").write_text("[1, 2]", encoding="utf-8")
    with pytest.raises(UserError, match="JSON object"):
        read_architecture(tmp_path)


def test_a_bundle_tells_the_bytes_of_its_own_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(FORTY), encoding="utf-8")
    (tmp_path / "model.onnx").write_bytes(b"x" * 100)
    (tmp_path / "model.onnx.data").write_bytes(b"y" * 900)
    (tmp_path / "seatrial.json").write_text(json.dumps({"weights": "int8", "kv": "int8"}), encoding="utf-8")
    stored = read_architecture(tmp_path).stored
    assert stored is not None
    assert (stored.total_bytes, stored.format, stored.kv) == (1000, "int8", "int8")


def test_a_folder_of_another_exporter_with_a_broken_graph_is_not_taken_for_fp32(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(FORTY), encoding="utf-8")
    (tmp_path / "model.onnx").write_bytes(b"x" * 100)
    with pytest.raises(UserError, match=r"no graph|no ONNX"):
        read_architecture(tmp_path)
