"""The heading of a bundle says what its weights are, whoever rounded them and by whatever operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from seatrial.export.bundle import Bundle, KvLayout
from seatrial.quantize.damage.heading import describe

WIDTH = 64
FLOATS = np.random.default_rng(3).normal(size=(WIDTH, WIDTH)).astype(np.float32)
CODES = np.random.default_rng(4).integers(0, 255, (WIDTH, WIDTH)).astype(np.uint8)
SCALE, ZERO = np.array(0.1, np.float32), np.array(128, np.uint8)
MICROSOFT = "com.microsoft"


def bundle_of(folder: Path, nodes, constants, info=None) -> Bundle:
    """A graph from `x` to `logits`; only its operators and constants are looked at."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "small",
        [value("x", TensorProto.FLOAT, ["T", WIDTH])],
        [value("logits", TensorProto.FLOAT, ["T", WIDTH])],
        [c if isinstance(c, TensorProto) else numpy_helper.from_array(c, n) for n, c in constants.items()],
    )
    path = folder / "model.onnx"
    onnx.save_model(helper.make_model(graph), path)
    return Bundle(folder, path, {}, info or {}, KvLayout(1, 1, 4, "float32"))


def int4(name: str) -> TensorProto:
    return helper.make_tensor(name, TensorProto.UINT4, (WIDTH, WIDTH), (CODES % 16).ravel())


ROUNDED = {
    "MatMulInteger": ([("MatMulInteger", ["codes", "w", "", "z"], {})], {"w": CODES, "z": ZERO}, "int8"),
    "DynamicQuantizeMatMul": (
        [("DynamicQuantizeMatMul", ["x", "w", "s", "z"], {"domain": MICROSOFT})],
        {"w": CODES, "s": SCALE, "z": ZERO},
        "int8",
    ),
    "QLinearMatMul": (
        [("QLinearMatMul", ["x", "s", "z", "w", "s", "z", "s", "z"], {})],
        {"w": CODES, "s": SCALE, "z": ZERO},
        "int8",
    ),
    "MatMulBnb4": (
        [("MatMulBnb4", ["x", "w", "s"], {"domain": MICROSOFT, "K": 64, "N": 64, "quant_type": 1})],
        {"w": CODES.ravel()[: WIDTH * WIDTH // 2], "s": SCALE},
        "nf4",
    ),
    "DequantizeLinear behind a Transpose": (
        [("DequantizeLinear", ["w", "s", "z"], {}), ("Transpose", ["0"], {}), ("MatMul", ["x", "1"], {})],
        {"w": CODES, "s": SCALE, "z": ZERO},
        "int8",
    ),
    "four bits": (
        [("DequantizeLinear", ["w", "s"], {}), ("MatMul", ["x", "0"], {})],
        {"w": int4("w"), "s": SCALE},
        "int4",
    ),
    "floats that are rounded when they are loaded": (
        [
            ("QuantizeLinear", ["w", "s", "z"], {}),
            ("DequantizeLinear", ["0", "s", "z"], {}),
            ("MatMul", ["x", "1"], {}),
        ],
        {"w": FLOATS, "s": SCALE, "z": ZERO},
        "int8",
    ),
    "a looked-up table": (
        [("Gather", ["w", "x"], {}), ("DequantizeLinear", ["0", "s", "z"], {})],
        {"w": CODES, "s": SCALE, "z": ZERO},
        "int8",
    ),
}


def nodes_of(steps):
    return [
        helper.make_node(kind, inputs, [str(place)], **attributes)
        for place, (kind, inputs, attributes) in enumerate(steps)
    ]


@pytest.mark.parametrize("maker", ROUNDED)
def test_rounded_weights_of_other_makers_are_named(tmp_path: Path, maker: str) -> None:
    steps, constants, weights = ROUNDED[maker]
    heading = describe(bundle_of(tmp_path, nodes_of(steps), constants))
    assert heading.weights == weights
    assert heading.provenance.startswith(f"quantized bundle ({weights.removeprefix('int')}")
    assert "full precision" not in heading.provenance


@pytest.mark.parametrize(
    ("values", "weights", "provenance"),
    [
        (FLOATS, "fp32", "full precision (no sign"),
        (FLOATS.astype(np.float16), "fp16", "fp16 (no sign"),
        (np.round(FLOATS * 2).clip(-7, 7).astype(np.float16), "fp16", "already quantized to about"),
    ],
)
def test_float_weights_are_named_by_their_precision(tmp_path: Path, values, weights, provenance) -> None:
    heading = describe(bundle_of(tmp_path, nodes_of([("MatMul", ["x", "w"], {})]), {"w": values}))
    assert heading.weights == weights
    assert heading.provenance.startswith(provenance)


def test_rounded_activations_are_no_rounded_weights(tmp_path: Path) -> None:
    steps = [
        ("Gather", ["w", "x"], {}),
        ("QuantizeLinear", ["0", "s", "z"], {}),
        ("DequantizeLinear", ["1", "s", "z"], {}),
        ("MatMul", ["2", "w"], {}),
    ]
    heading = describe(bundle_of(tmp_path, nodes_of(steps), {"w": FLOATS, "s": SCALE, "z": ZERO}))
    assert heading.weights == "fp32" and heading.provenance.startswith("full precision")


def test_weights_that_cannot_be_looked_at_are_not_called_full_precision(tmp_path: Path) -> None:
    steps = [("Cast", ["w"], {"to": 1}), ("Mul", ["0", "s"], {}), ("MatMul", ["x", "1"], {})]
    heading = describe(bundle_of(tmp_path, nodes_of(steps), {"w": CODES, "s": SCALE}))
    assert heading.provenance.startswith("not known")
