"""A real decoder with random weights, small enough to run in milliseconds: rotary attention with grouped
heads, gated feed-forward, residual norms, an embedding that may be shared with the head.

Two attention forms: `GroupQueryAttention` (shared buffers) and plain operators with a growing cache and
`position_ids`, as other exporters write it. Weights of both are equal for equal seeds.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
from damage_tokens import byte_level_tokenizer
from onnx import TensorProto, helper, numpy_helper

from seatrial.export.bundle import Bundle, open_bundle
from seatrial.quantize.texts import LANGUAGES, calibration_text

LAYERS, HEADS, KV_HEADS, WIDTH, FEED, VOCABULARY, POSITIONS = 2, 4, 2, 32, 192, 640, 4096
HIDDEN = HEADS * WIDTH
TIES = ("shared", "copied", "untied")


def tiny_bundle(folder: Path, *, tie: str = "shared", grouped: bool = True, seed: int = 0) -> Bundle:
    """Write the decoder into `folder` and open it."""
    folder.mkdir(parents=True)
    model = _model(np.random.default_rng(seed), tie, grouped)
    onnx.save_model(
        model,
        folder / "model.onnx",
        save_as_external_data=True,
        location="model.onnx.data",
        size_threshold=1024,
    )
    texts = [calibration_text(language) for language in LANGUAGES]
    byte_level_tokenizer(texts, VOCABULARY).save(str(folder / "tokenizer.json"))
    config = {"vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS, "model_type": "tiny"}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return open_bundle(folder)


def _model(rng: np.random.Generator, tie: str, grouped: bool) -> onnx.ModelProto:
    graph = _Writer(rng)
    table = rng.normal(0, 0.2, (VOCABULARY, HIDDEN)).astype(np.float32)
    graph.constant("embedding", table)
    graph.node("Gather", ["embedding", "input_ids"], "hidden0")
    if grouped:
        graph.lengths()
    stream = "hidden0"
    for layer in range(LAYERS):
        stream = graph.layer(layer, stream, grouped)
    final = graph.norm(stream, "final")
    _head(graph, final, table, tie)
    return graph.model(grouped)


def _head(graph: _Writer, final: str, table: np.ndarray, tie: str) -> None:
    if tie == "shared":
        graph.node("FusedMatMul", [final, "embedding"], "logits", domain="com.microsoft", transB=1)
        return
    head = table.T.copy() if tie == "copied" else graph.rng.normal(0, 0.2, (HIDDEN, VOCABULARY))
    graph.constant("head", head.astype(np.float32))
    graph.node("MatMul", [final, "head"], "logits")


class _Writer:
    """Collects nodes and constants of one graph."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        angles = np.outer(np.arange(POSITIONS), 10000.0 ** -(np.arange(WIDTH // 2) * 2 / WIDTH))
        self.constant("cos", np.cos(angles).astype(np.float32))
        self.constant("sin", np.sin(angles).astype(np.float32))

    def constant(self, name: str, values: np.ndarray) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def node(self, kind: str, inputs: list[str], output: str | list[str], **attributes: object) -> str:
        outputs = [output] if isinstance(output, str) else output
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=f"node_{outputs[0]}", **attributes))
        return outputs[0]

    def weight(self, name: str, width: int, rows: int) -> str:
        return self.constant(name, self.rng.normal(0, width**-0.5, (width, rows)).astype(np.float32))

    def norm(self, source: str, name: str) -> str:
        self.constant(f"{name}_gain", np.ones(HIDDEN, np.float32))
        inputs = [source, f"{name}_gain"]
        return self.node("SimplifiedLayerNormalization", inputs, f"{name}_normed", axis=-1, epsilon=1e-5)

    def lengths(self) -> None:
        """`seqlens_k` and the total length, both from the mask."""
        self.constant("axis1", np.array([1]))
        self.constant("one", np.array(1))
        self.node("ReduceSum", ["attention_mask", "axis1"], "count", keepdims=0)
        self.node("Sub", ["count", "one"], "last")
        self.node("Cast", ["last"], "seqlens", to=TensorProto.INT32)
        self.node("Shape", ["attention_mask"], "total_shape", start=1, end=2)
        self.node("Squeeze", ["total_shape"], "total_long")
        self.node("Cast", ["total_long"], "total", to=TensorProto.INT32)

    def layer(self, number: int, stream: str, grouped: bool) -> str:
        name = f"layer{number}"
        normed = self.norm(stream, f"{name}_first")
        packed = self.weight(f"{name}_qkv", HIDDEN, (HEADS + 2 * KV_HEADS) * WIDTH)
        qkv = self.node("MatMul", [normed, packed], f"{name}_packed")
        mixed = self.grouped(number, qkv) if grouped else self.plain(number, qkv)
        out = self.node("MatMul", [mixed, self.weight(f"{name}_o", HIDDEN, HIDDEN)], f"{name}_attended")
        middle = self.node("Add", [stream, out], f"{name}_middle")
        return self.feed_forward(name, middle)

    def feed_forward(self, name: str, middle: str) -> str:
        second = self.norm(middle, f"{name}_second")
        gate = self.node("MatMul", [second, self.weight(f"{name}_gate", HIDDEN, FEED)], f"{name}_gated")
        up = self.node("MatMul", [second, self.weight(f"{name}_up", HIDDEN, FEED)], f"{name}_upped")
        bent = self.node("Mul", [gate, self.node("Sigmoid", [gate], f"{name}_sigmoid")], f"{name}_bent")
        both = self.node("Mul", [bent, up], f"{name}_both")
        down = self.node("MatMul", [both, self.weight(f"{name}_down", FEED, HIDDEN)], f"{name}_downed")
        return self.node("Add", [middle, down], f"{name}_end")

    def grouped(self, number: int, qkv: str) -> str:
        past = [f"past_key_values.{number}.{part}" for part in ("key", "value")]
        present = [f"present.{number}.{part}" for part in ("key", "value")]
        inputs = [qkv, "", "", *past, "seqlens", "total", "cos", "sin"]
        sizes = {"num_heads": HEADS, "kv_num_heads": KV_HEADS, "do_rotary": 1, "scale": WIDTH**-0.5}
        return self.node(
            "GroupQueryAttention", inputs, [f"layer{number}_mixed", *present], domain="com.microsoft", **sizes
        )

    def plain(self, number: int, qkv: str) -> str:
        """The same attention from plain operators, cache by concatenation, positions as an input."""
        name = f"layer{number}"
        sizes = self.constant(f"{name}_sizes", np.array([HIDDEN, KV_HEADS * WIDTH, KV_HEADS * WIDTH]))
        self.node("Split", [qkv, sizes], [f"{name}_q", f"{name}_k", f"{name}_v"], axis=-1)
        heads = {part: self.heads(f"{name}_{part}", count) for part, count in _PARTS.items()}
        turned = {part: self.rotate(heads[part], _PARTS[part]) for part in ("q", "k")}
        key = self.grow(number, "key", turned["k"])
        value = self.grow(number, "value", heads["v"])
        return self.attend(name, turned["q"], self.repeat(key), self.repeat(value))

    def heads(self, source: str, count: int) -> str:
        shape = self.constant(f"{source}_shape", np.array([0, 0, count, WIDTH]))
        split = self.node("Reshape", [source, shape], f"{source}_split")
        return self.node("Transpose", [split], f"{source}_heads", perm=[0, 2, 1, 3])

    def rotate(self, source: str, count: int) -> str:
        inputs = [source, "position_ids", "cos", "sin"]
        return self.node(
            "RotaryEmbedding", inputs, f"{source}_turned", domain="com.microsoft", num_heads=count
        )

    def grow(self, number: int, part: str, rows: str) -> str:
        inputs = [f"past_key_values.{number}.{part}", rows]
        return self.node("Concat", inputs, f"present.{number}.{part}", axis=2)

    def repeat(self, source: str) -> str:
        """Every KV head once for each query head that reads it."""
        order = self.constant(f"{source}_order", np.arange(HEADS) // (HEADS // KV_HEADS))
        return self.node("Gather", [source, order], f"{source}_repeated", axis=1)

    def attend(self, name: str, query: str, key: str, value: str) -> str:
        flipped = self.node("Transpose", [key], f"{name}_flipped", perm=[0, 1, 3, 2])
        scale = self.constant(f"{name}_scale", np.array(WIDTH**-0.5, np.float32))
        scores = self.node(
            "Mul", [self.node("MatMul", [query, flipped], f"{name}_raw"), scale], f"{name}_scores"
        )
        shares = self.node("Softmax", [self.causal(name, scores)], f"{name}_shares", axis=-1)
        mixed = self.node("MatMul", [shares, value], f"{name}_mixed_heads")
        back = self.node("Transpose", [mixed], f"{name}_back", perm=[0, 2, 1, 3])
        shape = self.constant(f"{name}_joined", np.array([0, 0, HIDDEN]))
        return self.node("Reshape", [back, shape], f"{name}_mixed")

    def causal(self, name: str, scores: str) -> str:
        """Minus infinity where the key's place is behind the query's position."""
        places = self.constant(f"{name}_places", np.arange(POSITIONS)[None, None, None])
        axes = {key: self.constant(f"{name}_{key}", np.array([value])) for key, value in _CUT.items()}
        end = self.node("Shape", [scores], f"{name}_keys", start=3, end=4)
        cut = self.node("Slice", [places, axes["zero"], end, axes["three"]], f"{name}_seen")
        rows = self.constant(f"{name}_rows", np.array([1, 3]))
        own = self.node("Unsqueeze", ["position_ids", rows], f"{name}_own")
        late = self.node("Greater", [cut, own], f"{name}_late")
        never = self.constant(f"{name}_never", np.array(-1e9, np.float32))
        return self.node("Where", [late, never, scores], f"{name}_masked")

    def model(self, grouped: bool) -> onnx.ModelProto:
        value, ids = helper.make_tensor_value_info, TensorProto.INT64
        extra = (
            value("attention_mask", ids, ["B", "total"])
            if grouped
            else value("position_ids", ids, ["B", "T"])
        )
        names = [f"{n}.{part}" for n in range(LAYERS) for part in ("key", "value")]
        rows = [["B", KV_HEADS, length, WIDTH] for length in ("past", "total")]
        inputs = [value(f"past_key_values.{name}", TensorProto.FLOAT, rows[0]) for name in names]
        outputs = [value(f"present.{name}", TensorProto.FLOAT, rows[1]) for name in names]
        logits = value("logits", TensorProto.FLOAT, ["B", "T", VOCABULARY])
        first = value("input_ids", ids, ["B", "T"])
        graph = helper.make_graph(
            self.nodes, "tiny", [first, extra, *inputs], [logits, *outputs], self.constants
        )
        sets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=sets, ir_version=10)


_PARTS = {"q": HEADS, "k": KV_HEADS, "v": KV_HEADS}
_CUT = {"zero": 0, "three": 3}
