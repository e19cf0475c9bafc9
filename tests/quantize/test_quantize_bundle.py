"""A bundle through the whole step: what is written, proved, refused, and left behind."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tiny_decoder import VOCABULARY, tiny_bundle

from seatrial.cli import run_command
from seatrial.errors import UserError
from seatrial.export.bundle import open_bundle
from seatrial.export.session import Session
from seatrial.export.session_graph import load_graph
from seatrial.quantize.bundle import quantize_bundle
from seatrial.quantize.liveness import sound_scales
from seatrial.quantize.provenance import bits_of, distinct_values, provenance_of
from seatrial.quantize.recipe import recipe_for
from seatrial.quantize.targets import survey
from seatrial.quantize.tensors import TensorReader

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.mark.parametrize(("weights", "kv"), [("int8", "int8"), ("int4", "fp32"), ("int4", "int4")])
def test_a_quantized_bundle_opens_steps_and_says_what_was_done(tiny, tmp_path, weights, kv):
    told = []
    result = quantize_bundle(
        tiny,
        tmp_path / "out",
        weights=weights,
        kv=kv,
        progress=lambda what, share: told.append((what, share)),
    )
    assert not result.failed, [check for check in result.checks if check.verdict != "ok"]
    assert (result.matmuls, result.of, result.weight_bytes_share) == (11, 11, 1.0)
    assert result.tied and 0 < result.agreement["zh"].kl < 5
    assert told[-1][1] == 1.0 and {what for what, _ in told} >= {"quantizing weights", "measuring agreement"}
    info = json.loads((tmp_path / "out" / "seatrial.json").read_text(encoding="utf-8"))
    assert info["weights"] == weights and info["kv"] == kv and info["quantized"]["of"] == 11
    assert "lossless" not in json.dumps(info).lower()
    with Session(open_bundle(tmp_path / "out"), capacity=32, threads=1) as session:
        session.prefill(list(range(20)))
        assert np.isfinite(session.step(1)).all()
        assert session.weight_bytes_per_token < 0.4 * tiny.weight_bytes


@pytest.mark.parametrize("tie", ["copied", "untied"])
def test_embeddings_of_their_own_pass_every_check(tmp_path, tie):
    bundle = tiny_bundle(tmp_path / "in", tie=tie)
    result = quantize_bundle(bundle, tmp_path / "out", weights="int8", kv="int8")
    assert not result.failed, [check for check in result.checks if check.verdict != "ok"]
    assert result.tied == (tie == "copied")


def test_the_cache_alone_can_be_quantized(tiny, tmp_path):
    result = quantize_bundle(tiny, tmp_path / "out", weights="fp32", kv="int8")
    assert not result.failed, [check for check in result.checks if check.verdict != "ok"]
    assert (result.matmuls, result.of, result.weight_bytes_share, result.formats) == (0, 11, 0.0, {})
    assert 0 < result.agreement["en"].kl < 0.05
    made = open_bundle(tmp_path / "out")
    assert made.kv.dtype == "int8" and made.info["weights"] == "fp32"
    plain, kept = (TensorReader(load_graph(b.model_path), b.folder) for b in (tiny, made))
    for name in ("embedding", "layer0_qkv", "layer1_down", "final_gain"):
        np.testing.assert_array_equal(plain.read(name), kept.read(name))
    with pytest.raises(UserError, match="nothing to do"):
        quantize_bundle(tiny, tmp_path / "again", weights="fp32", kv="fp32")


@pytest.mark.parametrize(
    ("weights", "kv", "told"), [("int4", "fp32", "MatMulNBits"), ("fp32", "int8", "KV cache")]
)
def test_what_is_quantized_already_is_refused_in_one_line(tiny, tmp_path, weights, kv, told):
    quantize_bundle(tiny, tmp_path / "once", weights=weights, kv=kv)
    with pytest.raises(UserError, match=told):
        quantize_bundle(open_bundle(tmp_path / "once"), tmp_path / "twice", weights="int8")
    assert not (tmp_path / "twice").exists()


def test_a_table_that_is_the_head_turned_round_is_stored_once(tiny, tmp_path):
    """As genai's builder writes a tied model: the head's matrix, and a Transpose of it for the lookup."""
    folder = tmp_path / "in"
    folder.mkdir()
    for file in tiny.folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    model = onnx.load(folder / "model.onnx")
    table = next(t for t in model.graph.initializer if t.name == "embedding")
    turned = np.ascontiguousarray(numpy_helper.to_array(table).T)
    model.graph.initializer.remove(table)
    model.graph.initializer.append(numpy_helper.from_array(turned, "head"))
    final = next(node for node in model.graph.node if node.op_type == "FusedMatMul")
    head = helper.make_node("MatMul", [final.input[0], "head"], list(final.output), name="head")
    model.graph.node.remove(final)
    model.graph.node.append(head)
    model.graph.node.insert(0, helper.make_node("Transpose", ["head"], ["embedding"], perm=[1, 0]))
    (folder / "model.onnx.data").unlink()
    onnx.save_model(model, folder / "model.onnx", save_as_external_data=True, location="model.onnx.data")
    results = [
        quantize_bundle(bundle, tmp_path / f"out{place}", weights="int8", kv="fp32")
        for place, bundle in enumerate((open_bundle(folder), tiny))
    ]
    assert not results[0].failed, [check for check in results[0].checks if check.verdict != "ok"]
    assert results[0].tied and results[0].weight_bytes_share == 1.0
    assert abs(results[0].sizes["quantized"] - results[1].sizes["quantized"]) < 2000
    assert results[0].agreement["zh"].kl == pytest.approx(results[1].agreement["zh"].kl, rel=0.2)


def test_float_zero_points_stay_out_of_a_table_that_is_looked_up(tiny, tmp_path):
    recipe = recipe_for("int4", algorithm="hqq", symmetric=False)
    result = quantize_bundle(tiny, tmp_path / "out", weights="int4", kv="fp32", recipe=recipe)
    assert not result.failed and result.tied
    assert result.formats == {"int4/32 asym hqq": 10, "int8/32 asym rtn": 1}


def test_int8_is_near_and_int4_is_further(tiny, tmp_path):
    near, far = (
        quantize_bundle(tiny, tmp_path / w, weights=w, kv="fp32").agreement["en"].kl for w in ("int8", "int4")
    )
    assert 0 < near < far / 10


def test_nothing_is_written_when_a_floor_is_missed(tiny, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for file in tiny.folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    model = onnx.load(folder / "model.onnx")
    # Half of the weights arrive as inputs of the graph: they cannot be quantized.
    for tensor in [t for t in model.graph.initializer if t.name.endswith(("_gate", "_up", "_down", "_qkv"))]:
        value = helper.make_tensor_value_info(f"{tensor.name}", 1, list(tensor.dims))
        model.graph.initializer.remove(tensor)
        model.graph.initializer.append(
            numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name + "_c")
        )
        shape = numpy_helper.from_array(np.array(tensor.dims, np.int64), tensor.name + "_s")
        model.graph.initializer.append(shape)
        # Behind a Reshape, which nobody looks through.
        node = helper.make_node("Reshape", [tensor.name + "_c", tensor.name + "_s"], [value.name])
        model.graph.node.insert(0, node)
    onnx.save_model(model, folder / "model.onnx")
    result = quantize_bundle(open_bundle(folder), tmp_path / "out", weights="int8", kv="fp32")
    failed = [check.name for check in result.checks if check.verdict != "ok"]
    assert result.failed and "share of the weight bytes quantized" in failed
    assert result.of == 11 and result.matmuls == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]
    arguments = [
        "quantize",
        str(folder),
        str(tmp_path / "out"),
        "--weights",
        "int8",
        "--kv",
        "fp32",
        "--quiet",
    ]
    assert run_command(arguments) == 1


def test_the_command_prints_one_json_document(tiny, tmp_path, capfd):
    arguments = [
        "quantize",
        str(tiny.folder),
        str(tmp_path / "out"),
        "--weights",
        "int8",
        "--json",
        "--quiet",
    ]
    assert run_command(arguments) == 0
    document = json.loads(capfd.readouterr().out)
    assert document["quantized"] == {
        "matmuls": 11, "of": 11, "weight_bytes_share": 1.0, "refused": {}, "formats": {"int8/32 sym rtn": 11},
        "tied": True,
    }  # fmt: skip
    assert document["sizes"]["quantized"] < document["sizes"]["reference"]


@pytest.mark.parametrize(
    "options",
    [
        ["--weights", "int5"],
        ["--kv", "fp8"],
        ["--block", "48"],
        ["--algorithm", "awq"],
        ["--algorithm", "hqq"],
        ["--op", "Matmul"],
    ],
)
def test_unknown_formats_are_bad_input_and_leave_nothing(tiny, tmp_path, options):
    assert run_command(["quantize", str(tiny.folder), str(tmp_path / "out"), *options, "--quiet"]) == 2
    assert not list(tmp_path.iterdir())


def test_a_bundle_is_not_written_over_itself(tiny):
    with pytest.raises(UserError):
        quantize_bundle(tiny, tiny.folder)


def test_scales_that_nobody_chose_are_not_sound():
    for scales in (np.zeros((2, 3)), np.ones((2, 3)), np.full((2, 3), 0.5), np.array([[1.0, np.nan]])):
        assert not sound_scales(scales)
    assert sound_scales(np.array([[0.1, 0.2]]))


def test_weights_that_were_quantized_before_are_recognised(tmp_path):
    bundle = tiny_bundle(tmp_path / "plain")
    model = load_graph(bundle.model_path)
    assert provenance_of(survey(model), TensorReader(model, bundle.folder)).bits is None
    whole = onnx.load(bundle.model_path)
    for tensor in whole.graph.initializer:
        if len(tensor.dims) == 2 and tensor.name not in ("cos", "sin"):
            values = numpy_helper.to_array(tensor)
            blocks = (values if tensor.dims[0] == VOCABULARY else values.T).copy()
            pieces = blocks.reshape(-1, 32)
            scale = np.abs(pieces).max(1, keepdims=True) / 7
            blocks = (np.rint(pieces / scale) * scale).reshape(blocks.shape)
            back = blocks if tensor.dims[0] == VOCABULARY else blocks.T
            tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(back), tensor.name))
    onnx.save_model(whole, tmp_path / "model.onnx")
    coarse = load_graph(tmp_path / "model.onnx")
    found = provenance_of(survey(coarse), TensorReader(coarse, tmp_path))
    assert found.bits == 4 and "already quantized" in found.text()


def test_few_values_in_a_block_mean_few_bits():
    rng = np.random.default_rng(0)
    assert distinct_values(rng.normal(0, 1, (64, 64)).astype(np.float32)) == 32
    assert bits_of(32) is None
    for bits in (2, 3, 4):
        rows = rng.integers(0, 2**bits, (64, 64)).astype(np.float32)
        assert bits_of(distinct_values(rows)) == bits
