"""A head in pieces: the same logits as the whole one, from the same bytes."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from seatrial.export.head_pieces import split_head
from seatrial.export.runtime import open_session, session_options

K, BLOCK = 64, 32


def head_model(columns: int, bits: int, *, zeros: bool, bias: bool, reshaped: bool) -> onnx.ModelProto:
    """hidden (1, T, K) -> MatMulNBits -> logits (1, T, columns), random codes."""
    rng = np.random.default_rng(columns + bits)
    blob = BLOCK * bits // 8
    codes = rng.integers(0, 256, (columns, K // BLOCK, blob), np.uint8)
    tensors = {
        "codes": codes.reshape(columns, -1) if reshaped else codes,
        "scales": rng.uniform(0.01, 0.1, (columns, K // BLOCK)).astype(np.float32),
    }
    if zeros:
        tensors["zeros"] = rng.integers(0, 256, (columns, -(-K // BLOCK * bits // 8)), np.uint8)
    if bias:
        tensors["bias"] = rng.normal(size=columns).astype(np.float32)
    nodes = []
    if reshaped:
        tensors["shape"] = np.array(codes.shape, np.int64)
        nodes.append(helper.make_node("Reshape", ["codes", "shape"], ["blocks"]))
    inputs = ["hidden", "blocks" if reshaped else "codes", "scales", "zeros" if zeros else ""]
    inputs += ["", "bias"] if bias else []
    attributes = {"K": K, "N": columns, "bits": bits, "block_size": BLOCK, "accuracy_level": 4}
    nodes.append(
        helper.make_node("MatMulNBits", inputs, ["logits"], "head", domain="com.microsoft", **attributes)
    )
    graph = helper.make_graph(
        nodes,
        "head",
        [helper.make_tensor_value_info("hidden", TensorProto.FLOAT, [1, "t", K])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "t", columns])],
        [numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def logits_of(model: onnx.ModelProto, folder: Path) -> np.ndarray:
    hidden = np.random.default_rng(3).normal(size=(1, 3, K)).astype(np.float32)
    session = open_session(model.SerializeToString(), session_options(threads=1), folder)
    return np.asarray(session.run(["logits"], {"hidden": hidden})[0])


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 400),
    st.sampled_from([4, 8]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(64, 20000),
)
def test_the_pieces_give_the_logits_of_the_whole(
    columns: int, bits: int, zeros: bool, bias: bool, reshaped: bool, external: bool, piece_bytes: int
) -> None:
    model = head_model(columns, bits, zeros=zeros, bias=bias, reshaped=reshaped)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if external:
            onnx.save_model(
                model, folder / "m.onnx", save_as_external_data=True, size_threshold=64, location="m.data"
            )
            model = onnx.load(folder / "m.onnx", load_external_data=False)
        whole = logits_of(model, folder)
        was_split = split_head(model, piece_bytes)
        pieces = [node for node in model.graph.node if node.op_type == "MatMulNBits"]
        assert was_split == (len(pieces) > 1)
        assert was_split or columns <= 64 or columns * K * bits // 8 < 2 * piece_bytes
        np.testing.assert_array_equal(logits_of(model, folder), whole)


def test_no_piece_is_larger_than_asked() -> None:
    model = head_model(1000, 8, zeros=False, bias=False, reshaped=True)
    assert split_head(model, piece_bytes=10_000)
    sizes = [len(t.raw_data) for t in model.graph.initializer if t.name.startswith("codes/")]
    assert sum(sizes) == 1000 * K
    assert max(sizes) <= 10_000 + 64 * K


@pytest.mark.parametrize("kind", ["small", "float", "made in the graph"])
def test_other_heads_stay_as_they_are(kind: str) -> None:
    model = head_model(100, 8, zeros=False, bias=False, reshaped=False)
    if kind == "float":
        weight = numpy_helper.from_array(np.ones((K, 100), np.float32), "weight")
        del model.graph.node[:], model.graph.initializer[:]
        model.graph.initializer.append(weight)
        model.graph.node.append(helper.make_node("MatMul", ["hidden", "weight"], ["logits"]))
    if kind == "made in the graph":
        model.graph.node.insert(0, helper.make_node("Identity", ["scales"], ["scales/made"]))
        model.graph.node[1].input[2] = "scales/made"
    before = model.SerializeToString(deterministic=True)
    assert not split_head(model, piece_bytes=10**9 if kind == "small" else 100)
    assert model.SerializeToString(deterministic=True) == before
