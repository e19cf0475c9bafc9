"""A real, tiny bundle that writes what a test wants: graph, tokenizer and chat template in a few megabytes.

The model is a Markov chain over its vocabulary (hidden state: one-hot of the token) with one attention
node, by which it sees whether the prompt holds the marker that comes with corrected facts; if so it
follows a second script. Everything that a run does with a bundle is done with this one, in milliseconds.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

END, START, NOISE, NAN, LOOP = "<|im_end|>", "<|im_start|>", "<noise>", "<nan>", "<loop>"
MARKER = "hold the right figures"
ZH_MARKER = "以下原句中的数字和人名是正确的"
HEAD_DIM = 16
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write_scripted_bundle(
    folder: Path,
    says: str,
    *,
    with_facts: str | None = None,
    context: int = 8192,
    padding_bytes: int = 0,
    unsure: tuple[str, ...] = (),
) -> Path:
    """A bundle in `folder` that writes `says`, and `with_facts` when the prompt carries corrected facts.

    A script may end in `<loop>` (begins again for ever), `<noise>` (uniform logits from there on) or `<nan>`;
    otherwise the end token follows. `padding_bytes` more of weights are multiplied in and make it heavy.
    Words in `unsure` are written with logits hardly above the others'.
    """
    folder.mkdir(parents=True, exist_ok=True)
    scripts = [_pieces(says)]
    scripts.append(_pieces(with_facts, set(scripts[0])) if with_facts is not None else scripts[0])
    pieces = list(dict.fromkeys([*scripts[0], *scripts[1]]))
    tokenizer = _tokenizer([piece for piece in pieces if piece not in (LOOP, NOISE, NAN)])
    tokenizer.save(str(folder / "tokenizer.json"))
    size = -(-tokenizer.get_vocab_size() // 32) * 32
    tables = [_chain(script, tokenizer, size, unsure) for script in scripts]
    marks = [tokenizer.token_to_id(MARKER), tokenizer.token_to_id(ZH_MARKER)]
    _save_graph(folder, tables, marks, size, padding_bytes)
    _save_configs(folder, tokenizer, size, context)
    return folder


def _pieces(script: str, used: set[str] | None = None) -> list[str]:
    """Words joined until each piece occurs once: a chain has one way on from each."""
    seen = set(used or ())
    ending = next((mark for mark in (LOOP, NOISE, NAN) if script.endswith(mark)), None)
    if ending:
        script = script.removesuffix(ending)
    found, held = [], ""
    for word in script.replace(" ", "\0 ").split("\0"):
        held += word
        if held not in seen and len(held.encode()) > 1:
            seen.add(held)
            found.append(held)
            held = ""
    if held:
        found.append(held)
    return [*found, *([ending] if ending else [])]


def _tokenizer(pieces: list[str]) -> Tokenizer:
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({char: place for place, char in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(START, special=True), AddedToken(END, special=True)])
    tokenizer.add_tokens(
        [AddedToken(text, normalized=False) for text in (MARKER, ZH_MARKER, "assistant\n", *pieces)]
    )
    return tokenizer


def _chain(script: list[str], tokenizer: Tokenizer, size: int, unsure: tuple[str, ...] = ()) -> np.ndarray:
    """(V, V) logits of the next token for each token: 20 where the script goes on (2 if unsure), else 0."""
    table = np.zeros((size, size), np.float32)
    ids = [tokenizer.token_to_id("assistant\n")]
    ids += [tokenizer.token_to_id(piece) for piece in script if piece not in (LOOP, NOISE, NAN)]
    doubted = {tokenizer.token_to_id(piece) for piece in script if any(word in piece for word in unsure)}
    for here, following in pairwise(ids):
        table[here, following] = 2.0 if following in doubted else 20.0
    last = script[-1] if script else ""
    if last == NAN:
        table[ids[-1]] = np.nan
    elif last == LOOP:
        table[ids[-1], ids[1]] = 20.0
    elif last != NOISE:
        table[ids[-1], tokenizer.token_to_id(END)] = 20.0
    return table


def _save_graph(
    folder: Path, tables: list[np.ndarray], marks: list[int], size: int, padding_bytes: int
) -> None:
    weights = _weights(tables, marks, size)
    nodes = [
        helper.make_node("OneHot", ["input_ids", "depth", "off_on"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "wqkv"], ["qkv"]),
        helper.make_node("ReduceSum", ["attention_mask", "axis"], ["total"], keepdims=0),
        helper.make_node("Sub", ["total", "one"], ["before"]),
        helper.make_node("Cast", ["before"], ["seqlens"], to=TensorProto.INT32),
        helper.make_node("Shape", ["attention_mask"], ["mask_shape"]),
        helper.make_node("Gather", ["mask_shape", "place"], ["longest"]),
        helper.make_node("Cast", ["longest"], ["total32"], to=TensorProto.INT32),
        helper.make_node(
            "GroupQueryAttention",
            ["qkv", "", "", "past_key_values.0.key", "past_key_values.0.value", "seqlens", "total32"],
            ["seen", "present.0.key", "present.0.value"],
            domain="com.microsoft",
            num_heads=1,
            kv_num_heads=1,
        ),
        helper.make_node("MatMul", ["seen", "first"], ["flag"]),
        helper.make_node("Mul", ["hidden", "flag"], ["flagged"]),
        helper.make_node("Concat", ["hidden", "flagged"], ["both"], axis=2),
    ]
    head = "both"
    if padding_bytes:
        # Zero weights that every token goes through: they weigh and change nothing.
        rows = padding_bytes // (4 * 2 * size)
        weights |= {
            "down": np.zeros((2 * size, rows), np.float32),
            "up": np.zeros((rows, 2 * size), np.float32),
        }
        weights["down"] = weights["down"][:, : rows // 2]
        weights["up"] = weights["up"][: rows // 2]
        nodes += [
            helper.make_node("MatMul", ["both", "down"], ["narrow"]),
            helper.make_node("MatMul", ["narrow", "up"], ["nothing"]),
            helper.make_node("Add", ["both", "nothing"], ["padded"]),
        ]
        head = "padded"
    nodes.append(helper.make_node("MatMul", [head, "chains"], ["logits"]))
    past = [1, 1, "past", HEAD_DIM]
    graph = helper.make_graph(
        nodes,
        "scripted",
        [
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "total"]),
            helper.make_tensor_value_info("past_key_values.0.key", TensorProto.FLOAT, past),
            helper.make_tensor_value_info("past_key_values.0.value", TensorProto.FLOAT, past),
        ],
        [
            helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "sequence", size]),
            helper.make_tensor_value_info("present.0.key", TensorProto.FLOAT, past),
            helper.make_tensor_value_info("present.0.value", TensorProto.FLOAT, past),
        ],
        [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
        ir_version=9,
    )
    onnx.save_model(
        model,
        folder / "model.onnx",
        save_as_external_data=True,
        location="model.onnx.data",
        size_threshold=1024,
    )


def _weights(tables: list[np.ndarray], marks: list[int], size: int) -> dict[str, np.ndarray]:
    wqkv = np.zeros((size, 3 * HEAD_DIM), np.float32)
    wqkv[:, 0] = 20.0  # every token asks for the marker
    wqkv[marks, HEAD_DIM] = 20.0  # which answers: e^100 against 1
    wqkv[marks, 2 * HEAD_DIM] = 1.0
    # What follows a plain byte is arbitrary: weights that int8 holds exactly would show no difference.
    noise = np.zeros((2 * size, size), np.float32)
    noise[:256] = np.random.default_rng(1).normal(0, 1, (256, size))
    first = np.zeros((HEAD_DIM, 1), np.float32)
    first[0, 0] = 1.0
    return {
        "depth": np.array([size], np.int64),
        "off_on": np.array([0, 1], np.float32),
        "wqkv": wqkv,
        "first": first,
        "chains": np.concatenate([tables[0], tables[1] - tables[0]]) + noise,
        "axis": np.array([1], np.int64),
        "one": np.array([1], np.int64),
        "place": np.array(1, np.int64),
    }


def _save_configs(folder: Path, tokenizer: Tokenizer, size: int, context: int) -> None:
    end = tokenizer.token_to_id(END)
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": HEAD_DIM,
        "intermediate_size": 2 * HEAD_DIM,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "head_dim": HEAD_DIM,
        "vocab_size": size,
        "max_position_embeddings": context,
        "tie_word_embeddings": False,
        "eos_token_id": end,
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": end}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE, "eos_token": END}))
