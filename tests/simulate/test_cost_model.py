"""Bytes and FLOPs of a model before any machine: the published cases that other calculators got wrong."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.export.architecture import Architecture, architecture_of_config
from seatrial.simulate.cost import ModelCost, model_cost
from seatrial.simulate.formats import WEIGHTS

GROUPED = {
    "model_type": "llama",
    "num_hidden_layers": 28,
    "hidden_size": 3072,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
    "max_position_embeddings": 131072,
}
WINDOWED = {
    "model_type": "gemma3_text",
    "num_hidden_layers": 34,
    "hidden_size": 2560,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "intermediate_size": 10240,
    "vocab_size": 262144,
    "sliding_window": 1024,
    "sliding_window_pattern": 6,
}
SPARSE = {
    "model_type": "mixtral",
    "num_hidden_layers": 4,
    "hidden_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "intermediate_size": 1024,
    "vocab_size": 1000,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "tie_word_embeddings": False,
}


def read(config: dict) -> Architecture:
    return architecture_of_config(config, name="test")


def cost(config: dict, weights: str = "int4", kv: str = "fp16") -> ModelCost:
    return model_cost(read(config), weights=weights, kv=kv)


def test_grouped_heads_price_the_cache_by_kv_heads() -> None:
    half = cost(GROUPED)
    assert half.kv_bytes_per_token() == 114_688
    assert half.kv_stored(4600).total == 527_564_800
    scaled = cost(GROUPED, kv="int8-per-token").kv_stored(4600)
    assert scaled.payload == 263_782_400
    assert scaled.scales == 4_121_600
    assert cost(GROUPED, kv="int8").kv_stored(4600).total == 263_782_400


def test_full_heads_reproduce_the_scenario() -> None:
    full = cost({**GROUPED, "num_key_value_heads": 24})
    assert full.kv_stored(4200).total == 1_445_068_800


def test_windowed_layers_by_what_the_runtime_keeps() -> None:
    windowed = cost(WINDOWED)
    assert sum(group.layers for group in windowed.groups if group.window) == 29
    assert windowed.kv_stored(512).total == 71_303_168
    assert windowed.kv_stored(32_768).total == 792_723_456
    assert windowed.kv_stored(32_768, windowed=False).total == 4_563_402_752


def test_windowed_layers_read_only_their_window() -> None:
    windowed = cost(WINDOWED)
    per_token = 2 * 4 * 256 * 2
    assert windowed.kv_read_bytes(32_768) == per_token * (29 * 1024 + 5 * 32_768)


def test_experts_all_in_memory_and_the_active_ones_per_token() -> None:
    sparse, architecture = cost(SPARSE, weights="fp16"), read(SPARSE)
    expert = 3 * 512 * 1024
    assert architecture.body_params - architecture.active_body_params == 4 * 6 * expert
    assert sparse.weight_bytes == 2 * architecture.params
    table = 2 * 1000 * 512
    assert sparse.weight_bytes_per_token == sparse.weight_bytes - table - 2 * 4 * 6 * expert + 2 * 512
    assert sparse.weight_bytes_per_prefill_pass == sparse.weight_bytes - table + 2 * 512


def test_the_output_matrix_costs_the_same_tied_or_not_and_is_stored_once_when_tied() -> None:
    config = {**GROUPED, "vocab_size": 151_936, "hidden_size": 2048}
    tied = cost({**config, "tie_word_embeddings": True}, weights="fp16")
    loose = cost({**config, "tie_word_embeddings": False}, weights="fp16")
    assert tied.head_flops_per_token == loose.head_flops_per_token == 622_329_856
    assert loose.weight_bytes - tied.weight_bytes == 622_329_856
    assert loose.weight_bytes_per_token == tied.weight_bytes_per_token


def test_shared_kv_layers_store_nothing_and_still_read() -> None:
    shared = cost({**GROUPED, "num_kv_shared_layers": 7})
    assert shared.kv_stored(100).total == 21 / 28 * cost(GROUPED).kv_stored(100).total
    assert shared.kv_read_bytes(100) == cost(GROUPED).kv_read_bytes(100)


def test_a_latent_cache_where_the_runtime_has_one() -> None:
    config = {
        "model_type": "deepseek_v2",
        "num_hidden_layers": 27,
        "hidden_size": 2048,
        "num_attention_heads": 16,
        "intermediate_size": 10944,
        "vocab_size": 102400,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "n_routed_experts": 64,
        "num_experts_per_tok": 6,
        "n_shared_experts": 2,
        "moe_intermediate_size": 1408,
        "first_k_dense_replace": 1,
    }
    expanded = model_cost(read(config))
    assert expanded.kv_bytes_per_token() == 27 * 16 * (192 + 128) * 2
    assert model_cost(read(config), latent_cache=True).kv_bytes_per_token() == 27 * (512 + 64) * 2
    assert read(config).params == pytest.approx(15.7e9, rel=0.01)
    assert read(config).active_params == pytest.approx(2.66e9, rel=0.1)


def slow_attention_flops(config: dict, new: int, past: int) -> int:
    """Every layer, every new token, one by one."""
    total = 0
    for layer in read(config).layers:
        for position in range(past, past + new):
            seen = position + 1 if layer.window is None else min(position + 1, layer.window)
            total += 2 * layer.query_heads * (layer.head_dim + layer.value_dim) * seen
    return total


@settings(deadline=None)
@given(new=st.integers(1, 60), past=st.integers(0, 60), window=st.integers(1, 80))
def test_attention_flops_equal_a_sum_over_tokens(new: int, past: int, window: int) -> None:
    config = {**WINDOWED, "num_hidden_layers": 6, "sliding_window": window}
    assert cost(config).attention_flops(new, past) == slow_attention_flops(config, new, past)


@settings(deadline=None)
@given(parts=st.lists(st.integers(1, 40), min_size=1, max_size=5))
def test_attention_in_pieces_costs_the_whole(parts: list[int]) -> None:
    whole, past, pieces = cost(WINDOWED).attention_flops(sum(parts)), 0, 0.0
    for part in parts:
        pieces += cost(WINDOWED).attention_flops(part, past)
        past += part
    assert pieces == whole


@pytest.mark.parametrize("name", sorted(WEIGHTS))
def test_a_format_takes_its_payload_and_its_shared_part(name: str) -> None:
    body = WEIGHTS[name].body
    assert body.bytes_of(body.block) == (body.bits * body.block + body.block_bits) / 8


def test_gguf_formats_match_the_gguf_package() -> None:
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    for name in ("Q8_0", "Q4_0", "Q4_1", "Q4_K", "Q5_K", "Q6_K"):
        block, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
        assert WEIGHTS[name.lower()].body.bytes_of(block) == size


def test_three_billion_at_four_bits() -> None:
    """The payload alone is 1.5e9 bytes; with fp16 scales per block of 32 it is 4.5 bits, 1.6875e9."""
    four = WEIGHTS["q4_0"].body
    assert 3e9 * four.bits / 8 == 1.5e9
    assert four.bytes_of(3e9) == 1.6875e9
