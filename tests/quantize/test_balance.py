"""Evening out the inputs of matmuls: the float model stays the same, the rounded one comes nearer to it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import helper, numpy_helper
from tiny_decoder import HIDDEN, LAYERS, VOCABULARY, tiny_bundle

from seatrial.export.bundle import open_bundle
from seatrial.export.session import Session
from seatrial.export.session_graph import load_graph
from seatrial.quantize.balance import (
    BalancedReader,
    balance,
    balance_from,
    channel_factors,
    find_folds,
    root_mean_squares,
)
from seatrial.quantize.bundle import quantize_bundle
from seatrial.quantize.moments import balanced_moments
from seatrial.quantize.recipe import recipe_for
from seatrial.quantize.targets import Survey, survey
from seatrial.quantize.weights import quantize_weights

pytestmark = pytest.mark.usefixtures("own_cache")

IDS = np.random.default_rng(5).integers(0, VOCABULARY, 60).tolist()
SIZES = hnp.arrays(np.float64, 24, elements=st.floats(0.01, 100))


@pytest.fixture(scope="module")
def uneven(tmp_path_factory):
    """The tiny decoder whose norms make some channels 30 times as large as others."""
    folder = tmp_path_factory.mktemp("uneven") / "fp32"
    tiny_bundle(folder)
    model = onnx.load(folder / "model.onnx")
    rng = np.random.default_rng(1)
    for tensor in model.graph.initializer:
        if tensor.name.endswith(("_first_gain", "_second_gain")):
            gain = np.exp(rng.normal(0, 1.2, HIDDEN)).astype(np.float32)
            tensor.CopyFrom(numpy_helper.from_array(gain, tensor.name))
    (folder / "model.onnx.data").unlink()
    onnx.save_model(model, folder / "model.onnx", save_as_external_data=True, location="model.onnx.data")
    return open_bundle(folder)


def balanced_float(bundle, weights, folder):
    """`bundle` with evened inputs and nothing rounded."""
    model = load_graph(bundle.model_path)
    folds = find_folds(model, survey(model), recipe_for(weights))
    reader = BalancedReader(model, bundle.folder, balance(bundle, folds))
    folder.mkdir()
    for file in bundle.folder.glob("*.json"):
        (folder / file.name).write_bytes(file.read_bytes())
    quantize_weights(model, Survey(), reader, recipe_for(weights), folder / "model.onnx.data")
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return open_bundle(folder), folds


@pytest.mark.parametrize(("weights", "folds_of_a_layer"), [("int8", 2), ("int4", 3)])
def test_a_balanced_float_model_says_the_same(uneven, tmp_path, weights, folds_of_a_layer):
    made, folds = balanced_float(uneven, weights, tmp_path / "made")
    assert len(folds) == LAYERS * folds_of_a_layer
    with Session(uneven, capacity=64, threads=1) as plain, Session(made, capacity=64, threads=1) as evened:
        wanted, found = plain.score(IDS), evened.score(IDS)
    assert np.abs(wanted - found).max() < 1e-4 * np.abs(wanted).max()
    source = folds[0].source
    before, after = (root_mean_squares(bundle, [source])[source] for bundle in (uneven, made))
    np.testing.assert_allclose(after, before / channel_factors(before, 0.5), rtol=1e-4)
    assert after.max() / after.min() < 1.01 * np.sqrt(before.max() / before.min())


@pytest.mark.parametrize("weights", ["int8", "int4"])
def test_balanced_weights_lose_less_where_channels_are_uneven(uneven, tmp_path, weights):
    recipe = recipe_for(weights)
    results = [
        quantize_bundle(
            uneven, tmp_path / str(on), weights=weights, kv="fp32", recipe=replace(recipe, balanced=on)
        )
        for on in (True, False)
    ]
    evened, plain = (result.agreement["en"].kl for result in results)
    assert not any(result.failed for result in results)
    assert evened < 0.9 * plain
    assert results[0].balanced_inputs > results[1].balanced_inputs == 0


def test_moments_follow_the_inputs():
    rng = np.random.default_rng(2)
    inputs, factors = rng.normal(0, 1, (50, 6)), np.exp(rng.normal(0, 1, 6))
    moments = {name: (inputs.T @ inputs).astype(np.float32) for name in ("balanced", "as it was")}
    found = balanced_moments(moments, {"balanced": factors})
    scaled = inputs / factors
    np.testing.assert_allclose(found["balanced"], scaled.T @ scaled, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(found["as it was"], moments["as it was"])


def read_elsewhere(model, name):
    model.graph.node.append(helper.make_node("Identity", [name], [f"{name}_again"]))


@pytest.mark.parametrize("shared", ["layer0_first_normed", "layer0_first_gain", "layer0_qkv"])
def test_what_others_read_too_is_left_alone(tiny, shared):
    model = load_graph(tiny.model_path)
    before = {fold.source for fold in find_folds(model, survey(model), recipe_for("int8"))}
    if shared == "layer0_qkv":
        second = next(node for node in model.graph.node if "layer1_qkv" in node.input)
        second.input[1] = shared  # one matrix for two layers
        lost = {"layer0_first_normed", "layer1_first_normed"}
    else:
        read_elsewhere(model, shared)
        lost = {"layer0_first_normed"}
    after = {fold.source for fold in find_folds(model, survey(model), recipe_for("int8"))}
    assert before - after == lost


@given(sizes=SIZES, exponent=st.floats(0, 1))
def test_factors_keep_the_typical_channel_and_the_order(sizes, exponent):
    factors = channel_factors(sizes, exponent)
    assert np.log(factors).mean() == pytest.approx(0, abs=1e-9)
    order = np.argsort(sizes)
    assert (np.diff(factors[order]) >= -1e-12).all()
    spread = (sizes / factors).max() / (sizes / factors).min()
    assert spread == pytest.approx((sizes.max() / sizes.min()) ** (1 - exponent), rel=1e-6)


@given(values=hnp.arrays(np.float64, 8, elements=st.sampled_from([0.0, 1e-30])))
def test_channels_that_never_move_are_not_scaled_away(values):
    factors = channel_factors(values, 0.5)
    assert np.isfinite(factors).all() and factors.max() / factors.min() <= 100.001


def test_multipliers_take_out_what_they_put_in(tiny):
    model = load_graph(tiny.model_path)
    found = survey(model)
    folds = find_folds(model, found, recipe_for("int4"))
    rng = np.random.default_rng(0)
    sizes = {fold.source: np.exp(rng.normal(0, 1, fold.targets[0].width)) for fold in folds}
    evened = balance_from(folds, sizes)
    up = next(t for t in found.targets if t.weight == "layer0_up")
    columns, rows = evened.multipliers["layer0_up"]
    assert columns.shape == (up.width, 1) and rows.shape == (1, up.rows)
    gain = evened.multipliers["layer0_second_gain"][0]
    np.testing.assert_allclose(columns[:, 0] * gain, 1, rtol=1e-6)
    down = evened.multipliers["layer0_down"][0]
    np.testing.assert_allclose(down[:, 0] * rows[0], 1, rtol=1e-6)
