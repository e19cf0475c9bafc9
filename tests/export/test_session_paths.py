"""The engine against itself on different ways through the same text, and against a graph of plain
operators.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.errors import UserError
from seatrial.export.bundle import open_bundle
from seatrial.export.session import Session
from seatrial.export.session_graph import find_head, load_graph, read_decoder

sys.path.insert(0, str(Path(__file__).parents[1] / "quantize"))

from tiny_decoder import TIES, VOCABULARY, tiny_bundle

IDS = np.random.default_rng(7).integers(0, VOCABULARY, 90).tolist()


@pytest.fixture(scope="module")
def grouped(tmp_path_factory):
    bundle = tiny_bundle(tmp_path_factory.mktemp("grouped") / "bundle")
    with Session(bundle, capacity=128, threads=1) as session:
        yield session


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    bundle = tiny_bundle(tmp_path_factory.mktemp("plain") / "bundle", grouped=False)
    with Session(bundle, capacity=128, threads=1) as session:
        yield session


@pytest.fixture(scope="module")
def expected(plain):
    """Logits (T, V) of all positions, from plain operators in one piece."""
    return plain.score(IDS)


def close(actual, wanted, limit=2e-4):
    difference = np.abs(actual - wanted)
    assert difference.max() < limit, f"maximum {difference.max():.2e}, mean {difference.mean():.2e}"


def test_attention_node_equals_plain_operators(grouped, expected):
    close(grouped.score(IDS), expected)


@pytest.mark.parametrize("kind", ["grouped", "plain"])
@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(1, 89), max_size=4), chunk=st.integers(1, 100))
def test_any_way_through_a_text_gives_the_same_logits(request, expected, kind, cuts, chunk):
    session = request.getfixturevalue(kind)
    session.reset()
    for start, end in zip([0, *sorted(set(cuts))], [*sorted(set(cuts)), len(IDS)], strict=True):
        piece = IDS[start:end]
        logits = session.step(piece[0]) if len(piece) == 1 else session.prefill(piece, chunk=chunk)
        close(logits, expected[end - 1])


@pytest.mark.parametrize("kind", ["grouped", "plain"])
def test_truncate_forgets_what_came_after(request, expected, kind):
    session = request.getfixturevalue(kind)
    session.reset()
    session.prefill(IDS[:40])
    session.prefill([5, 6, 7, 8])
    session.truncate(40)
    close(session.step(IDS[40]), expected[40])
    assert session.length == 41


def test_cache_is_one_buffer_for_past_and_present(grouped):
    grouped.reset()
    grouped.prefill(IDS[:10])
    before = {name: rows.__array_interface__["data"][0] for name, rows in grouped.kv_rows().items()}
    grouped.step(3)
    after = {name: rows.__array_interface__["data"][0] for name, rows in grouped.kv_rows().items()}
    assert before == after
    assert all(rows.shape == (1, 2, 11, 32) and rows[:, :, -1].any() for rows in grouped.kv_rows().values())


def test_bytes_are_those_of_the_shapes(grouped, plain):
    per_token = 2 * 2 * 2 * 32 * 4  # layers, key and value, heads, width, float32
    assert grouped.kv_bytes_per_token(100) == plain.kv_bytes_per_token(100) == 100 * per_token
    assert grouped.kv_allocated_bytes == 128 * per_token
    plain.reset()
    plain.prefill(IDS[:30])
    assert plain.kv_allocated_bytes == 30 * per_token


@pytest.mark.parametrize("tie", TIES)
def test_weights_read_per_token_leave_out_rows_that_are_only_looked_up(tmp_path, tie):
    bundle = tiny_bundle(tmp_path / "bundle", tie=tie)
    graph = read_decoder(bundle.model_path)
    table = VOCABULARY * 128 * 4
    layer = 4 * (128 * 256 + 128 * 128 + 3 * 128 * 192) + 2 * 512
    assert abs(graph.weight_bytes_per_token - (2 * layer + 512 + table)) < 200  # small constants


def test_progress_is_told_after_every_chunk(grouped):
    grouped.reset()
    told = []
    grouped.prefill(IDS, chunk=40, on_chunk=lambda done, of: told.append((done, of)))
    assert told == [(40, 90), (80, 90), (90, 90)]


def test_logits_of_the_last_position_only_are_computed_in_prefill(tmp_path):
    bundle = tiny_bundle(tmp_path / "bundle")
    graph = read_decoder(bundle.model_path)
    assert graph.has_logits_from
    slicer = next(node for node in graph.model.graph.node if node.op_type == "Slice")
    head = next(node for node in graph.model.graph.node if "logits" in node.output)
    assert head.input[0] == slicer.output[0]


def test_head_is_not_guessed_when_the_logits_are_shuffled(tmp_path):
    bundle = tiny_bundle(tmp_path / "bundle")
    model = load_graph(bundle.model_path)
    model.graph.node[-1].output[0] = "raw"
    model.graph.node.append(onnx.helper.make_node("Transpose", ["raw"], ["logits"], perm=[0, 1, 2]))
    assert find_head(model) is None


def test_refusals_are_one_line(tmp_path, grouped):
    grouped.reset()
    for call in (
        lambda: grouped.prefill([]),
        lambda: grouped.prefill(IDS * 2),
        lambda: grouped.prefill(IDS, chunk=0),
        lambda: grouped.truncate(5),
    ):
        with pytest.raises(UserError):
            call()
    with pytest.raises(UserError, match="capacity"):
        Session(open_bundle(tiny_bundle(tmp_path / "bundle").folder), capacity=0)


def test_inputs_that_nobody_can_fill_are_named(tmp_path):
    bundle = tiny_bundle(tmp_path / "bundle")
    model = onnx.load(bundle.model_path)
    model.graph.input.append(
        onnx.helper.make_tensor_value_info("use_cache_branch", onnx.TensorProto.BOOL, [1])
    )
    model.graph.node.append(onnx.helper.make_node("Not", ["use_cache_branch"], ["unused"]))
    model.graph.output.append(onnx.helper.make_tensor_value_info("unused", onnx.TensorProto.BOOL, [1]))
    onnx.save_model(model, bundle.model_path)
    with pytest.raises(UserError, match="use_cache_branch"):
        Session(open_bundle(bundle.folder), capacity=8)
