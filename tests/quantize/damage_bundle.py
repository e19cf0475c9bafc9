"""A real bundle that is quick: a bigram model as a decoder graph, fitted to the package's own documents.

Logits are rows of a table of log counts, so every token's prediction can be damaged on purpose, one column at
a time. Embedding, head, KV cache and tokenizer are those of any decoder; only the attention is missing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from damage_tokens import byte_level_tokenizer
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from seatrial.export.bundle import Bundle, open_bundle, write_info
from seatrial.quantize.damage.documents import own_documents

VOCABULARY = 700
HEAD_DIM = 4


def bigram_bundle(
    folder: Path,
    damage: Callable[[NDArray[np.float32], object], NDArray[np.float32]] | None = None,
    *,
    vocabulary: int = VOCABULARY,
) -> Bundle:
    """Write the model into `folder`; `damage` may change its table (V, V), row: previous token."""
    texts = [d.text for language in ("en", "zh") for d in own_documents(language)]
    tokenizer = byte_level_tokenizer(texts, vocabulary)
    size = tokenizer.get_vocab_size()
    counts = np.full((size, size), 0.02, np.float64)
    for text in texts:
        ids = tokenizer.encode(text).ids
        np.add.at(counts, (ids[:-1], ids[1:]), 1)
    table = np.log(counts / counts.sum(1, keepdims=True)).astype(np.float32)
    if damage is not None:
        table = damage(table, tokenizer).astype(np.float32)
    folder.mkdir(parents=True)
    onnx.save_model(_graph(table), folder / "model.onnx")
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"vocab_size": size, "max_position_embeddings": 8192, "model_type": "bigram"}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    write_info(folder, {"weights": "fp32"})
    return open_bundle(folder)


def _graph(table: NDArray[np.float32]) -> onnx.ModelProto:
    """ids -> one-hot rows of the table; keys and values grow and are read by nobody."""
    size = len(table)
    cache = ["B", 1, "past", HEAD_DIM]
    grown = ["B", 1, "total", HEAD_DIM]
    nodes = [
        helper.make_node("Gather", ["embedding", "input_ids"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "head"], ["logits"]),
        helper.make_node("Slice", ["hidden", "zero", "width", "two"], ["narrow"]),
        helper.make_node("Unsqueeze", ["narrow", "one"], ["rows"]),
    ]
    for part in ("key", "value"):
        names = [f"past_key_values.0.{part}", "rows"]
        nodes.append(helper.make_node("Concat", names, [f"present.0.{part}"], axis=2))
    constants = {
        "embedding": np.eye(size, dtype=np.float32),
        "head": table,
        "zero": np.array([0]),
        "width": np.array([HEAD_DIM]),
        "two": np.array([2]),
        "one": np.array([1]),
    }
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "bigram",
        [
            value("input_ids", TensorProto.INT64, ["B", "T"]),
            *(value(f"past_key_values.0.{part}", TensorProto.FLOAT, cache) for part in ("key", "value")),
        ],
        [
            value("logits", TensorProto.FLOAT, ["B", "T", size]),
            *(value(f"present.0.{part}", TensorProto.FLOAT, grown) for part in ("key", "value")),
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
