"""Which matmuls are found, shared and refused: nothing may stay float without being counted."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper
from tiny_decoder import LAYERS, TIES, VOCABULARY, tiny_bundle

from seatrial.errors import UserError
from seatrial.export.session_graph import load_graph
from seatrial.quantize.recipe import Format, Recipe, recipe_for
from seatrial.quantize.targets import survey
from seatrial.quantize.tensors import TensorReader
from seatrial.quantize.weights import quantize_weights, tie_copies

SIZE = 256
WEIGHT = np.random.default_rng(0).normal(0, 1, (SIZE, SIZE)).astype(np.float32)


def one_matmul(folder, form="plain"):
    """One MatMul 256 x 256: its weight constant, behind a Cast or Transpose, or an input of the graph."""
    value = helper.make_tensor_value_info
    inputs = [value("x", TensorProto.FLOAT, ["N", SIZE])]
    nodes, constants, name = [], [], "w"
    if form == "input":
        inputs.append(value("w", TensorProto.FLOAT, [SIZE, SIZE]))
    else:
        stored = {"cast": WEIGHT.astype(np.float16), "transpose": WEIGHT.T.copy()}.get(form, WEIGHT)
        constants.append(numpy_helper.from_array(stored, "w"))
    if form == "cast":
        nodes.append(helper.make_node("Cast", ["w"], ["w2"], to=TensorProto.FLOAT))
        name = "w2"
    if form == "transpose":
        nodes.append(helper.make_node("Transpose", ["w"], ["w2"], perm=[1, 0]))
        name = "w2"
    nodes.append(helper.make_node("MatMul", ["x", name], ["y"], name="mm"))
    graph = helper.make_graph(nodes, "one", inputs, [value("y", TensorProto.FLOAT, ["N", SIZE])], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save_model(model, folder / "model.onnx")
    return folder / "model.onnx"


def quantized(path, recipe, folder):
    """Quantize one graph; the report and the written file."""
    model = load_graph(path)
    found, reader = survey(model), TensorReader(model, path.parent)
    tie_copies(found, reader)
    report = quantize_weights(model, found, reader, recipe, folder / "model.onnx.data")
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return report, folder / "model.onnx"


def run(path, **inputs):
    return ort.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, inputs)


@pytest.mark.parametrize(
    ("form", "share"), [("plain", 1.0), ("cast", 1.0), ("transpose", 1.0), ("input", 0.0)]
)
def test_every_form_of_a_weight_is_quantized_or_counted(tmp_path, form, share):
    path = one_matmul(tmp_path / "in", form)
    out = tmp_path / "out"
    out.mkdir()
    report, written = quantized(path, recipe_for("int8"), out)
    assert report.of == 1
    assert report.matmuls == share
    assert report.weight_bytes_share == share
    kinds = [node.op_type for node in load_graph(written).graph.node]
    if share:
        assert kinds == ["MatMulNBits"], "nothing of the float weight's path may be left"
        size = sum(file.stat().st_size for file in out.iterdir())
        assert size < 0.35 * SIZE * SIZE * 4
        x = np.random.default_rng(1).normal(0, 1, (5, SIZE)).astype(np.float32)
        error = np.linalg.norm(run(written, x=x)[0] - x @ WEIGHT) / np.linalg.norm(x @ WEIGHT)
        assert error < 0.012, error  # 8 bits of weights and of activations
    else:
        assert report.refused == {"mm": "its weight is an input of the graph"}


def test_misspelt_operators_are_refused(tmp_path):
    model = load_graph(one_matmul(tmp_path))
    with pytest.raises(UserError, match=r"'Matmul'.*MatMul"):
        survey(model, ["Matmul"])


def test_operators_that_were_not_asked_for_are_counted(tmp_path):
    found = survey(load_graph(one_matmul(tmp_path)), ["Gemm"])
    assert (len(found.targets), found.of) == (0, 1)


def test_groups_name_layer_and_part(tmp_path):
    bundle = tiny_bundle(tmp_path / "bundle")
    groups = [target.group for target in survey(load_graph(bundle.model_path)).targets]
    for layer in range(LAYERS):
        assert groups.count(f"layers.{layer}.attention") == 2  # packed q, k, v and the output
        assert groups.count(f"layers.{layer}.mlp") == 3
    assert groups.count("head") == 1 and len(groups) == 5 * LAYERS + 1


def test_groups_do_not_depend_on_the_kind_of_attention(tmp_path):
    node, plain = (
        [t.group for t in survey(load_graph(tiny_bundle(tmp_path / str(g), grouped=g).model_path)).targets]
        for g in (True, False)
    )
    assert node == plain


@pytest.mark.parametrize("tie", TIES)
def test_embedding_and_head_are_stored_once_where_they_are_one_matrix(tmp_path, tie):
    bundle = tiny_bundle(tmp_path / "in", tie=tie)
    out = tmp_path / "out"
    out.mkdir()
    recipe = Recipe(body=Format(8, 32), head=Format(8, 32))
    report, written = quantized(bundle.model_path, recipe, out)
    model = load_graph(written)
    tables = [t for t in model.graph.initializer if VOCABULARY in t.dims and t.data_type == TensorProto.UINT8]
    assert len(tables) == (1 if tie != "untied" else 2)
    assert report.tied == (tie != "untied")
    assert report.weight_bytes_share == 1.0
    floats = [
        t.name for t in model.graph.initializer if t.data_type == TensorProto.FLOAT and VOCABULARY in t.dims
    ]
    assert all(name.endswith("_scales") for name in floats), floats
    kinds = [node.op_type for node in model.graph.node]
    assert kinds.count("GatherBlockQuantized") == 1 and "Gather" not in kinds
    assert kinds.count("MatMulNBits") == 5 * LAYERS + 1


def test_scaled_matmuls_and_biases_keep_their_meaning(tmp_path):
    """Gemm with bias and alpha, and FusedMatMul with alpha: dropping either is wrong by a lot."""
    value, rng = helper.make_tensor_value_info, np.random.default_rng(3)
    bias = rng.normal(0, 1, SIZE).astype(np.float32)
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1, alpha=0.5),
        helper.make_node("FusedMatMul", ["y", "w"], ["z"], domain="com.microsoft", alpha=2.0),
    ]
    constants = [numpy_helper.from_array(WEIGHT, "w"), numpy_helper.from_array(bias, "b")]
    constants.append(numpy_helper.from_array(WEIGHT * 0.1, "v"))
    nodes[1].input[1] = "v"
    shape = ["N", SIZE]
    graph = helper.make_graph(
        nodes,
        "two",
        [value("x", TensorProto.FLOAT, shape)],
        [value("z", TensorProto.FLOAT, shape)],
        constants,
    )
    sets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    onnx.save_model(helper.make_model(graph, opset_imports=sets, ir_version=10), tmp_path / "model.onnx")
    out = tmp_path / "out"
    out.mkdir()
    _, written = quantized(tmp_path / "model.onnx", recipe_for("int8"), out)
    x = rng.normal(0, 1, (4, SIZE)).astype(np.float32)
    wanted = 2.0 * (0.5 * x @ WEIGHT.T + bias) @ (WEIGHT * 0.1)
    error = np.abs(run(written, x=x)[0] - wanted)
    assert error.max() < 0.03 * np.abs(wanted).max(), (error.max(), np.abs(wanted).max())
