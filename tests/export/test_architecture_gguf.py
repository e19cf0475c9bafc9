"""The header of a GGUF file: shapes and bytes without its weights, against the gguf package that wrote it."""

from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFWriter
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from seatrial.errors import UserError
from seatrial.export.architecture import read_architecture
from seatrial.export.gguf_header import TENSOR_TYPES, read_header
from seatrial.simulate.cost import model_cost


def write(
    path: Path, *, tied: bool = True, window: int | None = None, experts: int = 0, skip: str = ""
) -> Path:
    """A model of two layers, hidden 64, 4 heads, 2 KV heads, feed-forward 96, vocabulary 100."""
    writer = GGUFWriter(path, "llama")
    counts = {
        "block_count": writer.add_block_count,
        "embedding_length": writer.add_embedding_length,
        "head_count": writer.add_head_count,
        "head_count_kv": writer.add_head_count_kv,
        "feed_forward_length": writer.add_feed_forward_length,
        "context_length": writer.add_context_length,
    }
    numbers = {"block_count": 2, "embedding_length": 64, "head_count": 4, "head_count_kv": 2}
    numbers |= {"feed_forward_length": 96, "context_length": 512}
    for name, add in counts.items():
        if name != skip:
            add(numbers[name])
    writer.add_token_list([f"token {index} 词" for index in range(100)])
    if window is not None:
        writer.add_sliding_window(window)
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(2)
    tensors = {"token_embd.weight": (100, 64), "output_norm.weight": (64,)}
    tensors |= {} if tied else {"output.weight": (100, 64)}
    for layer in range(2):
        block = f"blk.{layer}."
        tensors |= {f"{block}attn_q.weight": (64, 64), f"{block}attn_k.weight": (32, 64)}
        tensors |= {f"{block}attn_v.weight": (32, 64), f"{block}attn_output.weight": (64, 64)}
        tensors |= {f"{block}attn_norm.weight": (64,), f"{block}ffn_norm.weight": (64,)}
        for name, shape in (("gate", (96, 64)), ("up", (96, 64)), ("down", (64, 96))):
            wide = (experts, *shape) if experts else shape
            tensors[f"{block}ffn_{name}{'_exps' if experts else ''}.weight"] = wide
    for name, shape in tensors.items():
        writer.add_tensor(name, np.zeros(shape, np.float16 if len(shape) > 1 else np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


PER_LAYER = 64 * 64 * 2 + 32 * 64 * 2 + 3 * 64 * 96


def test_shapes_and_bytes_come_from_the_header(tmp_path: Path) -> None:
    read = read_architecture(write(tmp_path / "model.gguf"))
    assert (len(read.layers), read.hidden, read.vocabulary, read.tied) == (2, 64, 100, True)
    assert read.max_positions == 512
    layer = read.layers[0]
    assert (layer.query_heads, layer.kv_heads, layer.head_dim) == (4, 2, 16)
    assert read.body_params == 2 * PER_LAYER
    assert read.params == 2 * PER_LAYER + 100 * 64 + 5 * 64
    assert read.stored is not None
    assert read.stored.total_bytes == 2 * (2 * PER_LAYER + 100 * 64) + 4 * 5 * 64
    assert model_cost(read, kv="fp16").kv_bytes_per_token() == 2 * 2 * 2 * 16 * 2


def test_an_untied_head_is_seen_and_the_lookup_left_out_of_a_step(tmp_path: Path) -> None:
    read = read_architecture(write(tmp_path / "model.gguf", tied=False))
    assert not read.tied
    assert read.stored is not None
    cost = model_cost(read, weights="stored")
    assert cost.weight_bytes == read.stored.total_bytes
    assert cost.weight_bytes_per_token == read.stored.total_bytes - 100 * 64 * 2


def test_experts_are_all_stored_and_two_are_read(tmp_path: Path) -> None:
    read = read_architecture(write(tmp_path / "model.gguf", experts=8))
    expert = 3 * 64 * 96
    assert read.body_params - read.active_body_params == 2 * 6 * expert
    cost = model_cost(read, weights="stored")
    assert cost.weight_bytes_per_prefill_pass - cost.weight_bytes_per_token == 2 * 6 * expert * 2


def test_windows_of_all_layers(tmp_path: Path) -> None:
    read = read_architecture(write(tmp_path / "model.gguf", window=128))
    assert [layer.window for layer in read.layers] == [128, 128]


def test_a_folder_with_one_file_will_do(tmp_path: Path) -> None:
    write(tmp_path / "model.gguf")
    assert read_architecture(tmp_path).vocabulary == 100


@pytest.mark.parametrize("field", ["block_count", "embedding_length", "head_count"])
def test_a_missing_field_is_named(tmp_path: Path, field: str) -> None:
    with pytest.raises(UserError, match=field):
        read_architecture(write(tmp_path / "model.gguf", skip=field))


@pytest.mark.parametrize("keep", [0, 3, 10, 100, 2000, -100])
def test_a_cut_file_is_refused(tmp_path: Path, keep: int) -> None:
    whole = write(tmp_path / "model.gguf").read_bytes()
    (tmp_path / "cut.gguf").write_bytes(whole[:keep])
    with pytest.raises(UserError, match=r"GGUF|cut off"):
        read_architecture(tmp_path / "cut.gguf")


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"PK\x03\x04" + bytes(200))
    with pytest.raises(UserError, match="not a GGUF file"):
        read_architecture(tmp_path / "model.gguf")


def test_long_arrays_are_kept_as_their_length(tmp_path: Path) -> None:
    header = read_header(write(tmp_path / "model.gguf"))
    assert header.lengths["tokenizer.ggml.tokens"] == 100
    assert header.values["tokenizer.ggml.tokens"] is None


def test_block_sizes_are_those_of_the_gguf_package() -> None:
    for number, (name, block, size) in TENSOR_TYPES.items():
        kind = GGMLQuantizationType(number)
        assert kind.name == name
        assert GGML_QUANT_SIZES[kind] == (block, size), name
