"""Pack and unpack, and the conventions of zero points and nibbles, against onnxruntime's own MatMulNBits."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import TensorProto, helper, numpy_helper

from seatrial.errors import UserError
from seatrial.quantize.packing import (
    PackedWeight,
    block_count,
    check_format,
    dequantize,
    pack_codes,
    pack_zero_points,
    unpack_codes,
    unpack_zero_points,
)
from seatrial.quantize.rounding import quantize_rows


def multiply(weight: PackedWeight, accuracy_level: int = 0) -> np.ndarray:
    """The float matrix (N, K) as onnxruntime reads the packed form: its product with the unit matrix."""
    parts = {"B": weight.packed, "scales": weight.scales}
    if weight.zero_points is not None:
        parts["zero_points"] = weight.zero_points
    node = helper.make_node(
        "MatMulNBits", ["A", *parts], ["Y"], domain="com.microsoft", K=weight.width, N=weight.rows,
        bits=weight.bits, block_size=weight.block, accuracy_level=accuracy_level,
    )  # fmt: skip
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "one",
        [value("A", TensorProto.FLOAT, ["M", weight.width])],
        [value("Y", TensorProto.FLOAT, ["M", weight.rows])],
        [numpy_helper.from_array(array, name) for name, array in parts.items()],
    )
    sets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=10)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"A": np.eye(weight.width, dtype=np.float32)})[0].T


@given(st.sampled_from([4, 8]), st.data())
def test_codes_survive_packing(bits, data):
    shape = data.draw(st.tuples(st.integers(1, 5), st.integers(1, 4), st.sampled_from([16, 32, 64])))
    codes = data.draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 2**bits - 1)))
    packed = pack_codes(codes, bits)
    assert packed.nbytes == codes.size * bits // 8
    np.testing.assert_array_equal(unpack_codes(packed, bits), codes)


@given(st.sampled_from([4, 8]), st.data())
def test_zero_points_survive_packing_with_even_and_odd_rows(bits, data):
    shape = data.draw(st.tuples(st.integers(1, 6), st.integers(1, 7)))
    zeros = data.draw(hnp.arrays(np.uint8, shape, elements=st.integers(0, 2**bits - 1)))
    packed = pack_zero_points(zeros, bits)
    assert packed.shape == (shape[0], -(-shape[1] * bits // 8))
    np.testing.assert_array_equal(unpack_zero_points(packed, bits, shape[1]), zeros)


@pytest.mark.parametrize("zero_point", [0, 7, 8, 15, None])
def test_one_row_of_known_codes_means_the_same_to_onnxruntime(zero_point):
    codes = np.tile(np.arange(16, dtype=np.uint8), 2)[None, None]  # (1, 1, 32)
    zeros = None if zero_point is None else pack_zero_points(np.full((1, 1), zero_point, np.uint8), 4)
    weight = PackedWeight(4, 32, 32, pack_codes(codes, 4), np.full((1, 1), 0.1, np.float32), zeros)
    wanted = (codes[0].astype(np.float32) - (8 if zero_point is None else zero_point)) * np.float32(0.1)
    np.testing.assert_allclose(dequantize(weight), wanted, atol=1e-7)
    np.testing.assert_allclose(multiply(weight), wanted, atol=1e-6)


def test_a_shift_by_one_step_or_swapped_nibbles_would_show():
    codes = np.tile(np.arange(16, dtype=np.uint8), 2)[None, None]
    packed = pack_codes(codes, 4)
    scales = np.full((1, 1), 0.1, np.float32)
    right = multiply(PackedWeight(4, 32, 32, packed, scales))
    swapped = multiply(PackedWeight(4, 32, 32, (packed >> 4) | (packed << 4).astype(np.uint8), scales))
    shifted = multiply(
        PackedWeight(4, 32, 32, packed, scales, pack_zero_points(np.full((1, 1), 7, np.uint8), 4))
    )
    assert np.abs(right - swapped).max() == pytest.approx(0.1, abs=1e-6)
    np.testing.assert_allclose(shifted - right, 0.1, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    bits=st.sampled_from([4, 8]),
    block=st.sampled_from([16, 32, 64, 128]),
    symmetric=st.booleans(),
    rows=st.integers(1, 9),
    width=st.integers(16, 200),
    seed=st.integers(0, 2**31),
)
def test_round_to_nearest_is_within_half_a_step_and_onnxruntime_agrees(
    bits, block, symmetric, rows, width, seed
):
    matrix = np.random.default_rng(seed).normal(0, 1, (rows, width)).astype(np.float32)
    weight = quantize_rows(matrix, bits=bits, block=block, symmetric=symmetric)
    mine = dequantize(weight)
    assert mine.shape == matrix.shape
    np.testing.assert_allclose(multiply(weight), mine, atol=2e-5)
    steps = np.repeat(np.abs(weight.scales), block, axis=1)[:, :width]
    # A symmetric block has one code less above than below zero: the value opposite its peak may miss by a
    # step.
    assert (np.abs(mine - matrix) <= steps * (1.0 if symmetric else 0.5 + 1e-3) + 1e-6).all()


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("symmetric", [True, False])
def test_blocks_of_zeros_and_ragged_ends_stay_zero(bits, symmetric):
    matrix = np.zeros((3, 70), np.float32)
    matrix[1, :32] = np.linspace(-1, 1, 32)
    weight = quantize_rows(matrix, bits=bits, block=32, symmetric=symmetric)
    assert weight.blocks == block_count(70, 32) == 3
    mine, theirs = dequantize(weight), multiply(weight)
    for found in (mine, theirs):
        assert np.isfinite(found).all()
        assert not found[0].any() and not found[2].any() and not found[1, 32:].any()


@pytest.mark.parametrize("algorithm", ["k_quant", "hqq"])
@pytest.mark.parametrize("width", [64, 70])
def test_searched_formats_mean_the_same_to_onnxruntime(algorithm, width):
    matrix = np.random.default_rng(1).normal(0, 1, (8, width)).astype(np.float32)
    matrix[3, :32] = 0.25  # a block of one value
    matrix[4] = 0.0
    weight = quantize_rows(matrix, bits=4, block=32, symmetric=False, algorithm=algorithm)
    mine = dequantize(weight)
    np.testing.assert_allclose(multiply(weight), mine, atol=2e-5)
    plain = dequantize(quantize_rows(matrix, bits=4, block=32, symmetric=False))
    assert np.isfinite(mine).all() and not mine[4].any()
    np.testing.assert_allclose(mine[3, :32], 0.25, atol=0.02)
    assert np.square(mine[:3] - matrix[:3]).mean() < 1.05 * np.square(plain[:3] - matrix[:3]).mean()


@pytest.mark.parametrize("symmetric", [True, False])
def test_gptq_answers_the_inputs_it_saw_better_than_rounding(symmetric):
    rng = np.random.default_rng(2)
    inputs = rng.normal(0, 1, (400, 64)) @ rng.normal(0, 1, (64, 64))
    matrix = rng.normal(0, 1, (24, 64)).astype(np.float32)
    moments = inputs.T @ inputs
    options = {"bits": 4, "block": 32, "symmetric": symmetric}
    tuned = quantize_rows(matrix, algorithm="gptq", second_moments=moments, **options)
    np.testing.assert_allclose(multiply(tuned), dequantize(tuned), atol=2e-5)
    errors = [
        np.square(inputs @ (dequantize(weight) - matrix).T).mean()
        for weight in (tuned, quantize_rows(matrix, **options))
    ]
    assert errors[0] < 0.8 * errors[1], errors


def test_formats_without_a_kernel_are_refused():
    for bits, block in ((3, 32), (4, 48), (16, 32)):
        with pytest.raises(UserError):
            check_format(bits, block)
    with pytest.raises(UserError, match="asymmetric"):
        quantize_rows(np.ones((2, 32), np.float32), bits=4, block=32, algorithm="k_quant")
    with pytest.raises(UserError, match="calibration"):
        quantize_rows(np.ones((2, 32), np.float32), bits=4, block=32, algorithm="gptq")
    with pytest.raises(UserError, match="unknown algorithm"):
        quantize_rows(np.ones((2, 32), np.float32), bits=4, block=32, symmetric=False, algorithm="awq")
