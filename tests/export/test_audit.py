"""The parameter audit: used once, missing, extra, scaled, twice (cases C13 and C17)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from verifying import Verifier

from seatrial.export.audit import _inside
from seatrial.export.faults.mutations.graph import Graph

UP, DOWN = (f"model.layers.0.mlp.{name}.bias" for name in ("up_proj", "down_proj"))


@pytest.fixture
def graph(verify_family: Verifier) -> Graph:
    """A changeable copy of the tiny llama's graph."""
    return Graph(verify_family.proto("llama"))


def statuses(found: Any) -> dict[str, str]:
    return {row.name: row.status for row in found.audit if row.status != "used"}


def test_a_right_graph_uses_every_parameter_once(verify_family: Callable[..., Any]) -> None:
    found = verify_family("llama")
    assert statuses(found) == {}
    assert len(found.audit) == 2 * 16 + 2  # 7 matrices, 7 biases, 2 norms a layer


def test_a_dropped_bias_is_missing(verify_family: Callable[..., Any], graph: Graph) -> None:
    graph.set_array(UP, graph.array(UP) * 0)
    found = verify_family("llama", graph.model)
    assert statuses(found) == {UP: "missing"}
    assert [(fault.kind, fault.place) for fault in found.faults] == [("bias dropped", "layer 0, mlp.up_proj")]
    assert any(check.verdict == "fail" for check in found.checks)


def test_a_bias_cut_onto_another_projection(verify_family: Callable[..., Any], graph: Graph) -> None:
    up, down = graph.array(UP), graph.array(DOWN)
    graph.set_array(DOWN, down + up[: len(down)])
    graph.set_array(UP, up * 0)
    found = verify_family("llama", graph.model)
    assert statuses(found) == {UP: "missing", DOWN: "missing"} | {DOWN: "extra"}
    assert found.faults[0].kind == "bias moved"


def test_a_scaled_matrix(verify_family: Callable[..., Any], graph: Graph) -> None:
    name = "model.layers.1.mlp.down_proj.weight"
    graph.set_array(name, graph.array(name) * np.float32(0.5))
    assert statuses(verify_family("llama", graph.model)) == {name: "scaled"}


def test_a_tied_embedding_is_stored_once(verify_family: Verifier) -> None:
    proto = verify_family.proto("llama")
    shapes = [tuple(tensor.dims) for tensor in proto.graph.initializer]
    assert shapes.count((1024, 96)) == 1
    assert shapes.count((96, 1024)) == 0


def test_a_tied_embedding_stored_twice(verify_family: Callable[..., Any], graph: Graph) -> None:
    head = next(node for node in graph.nodes if node.op_type == "FusedMatMul")
    head.input[1] = graph.constant("copy", np.ascontiguousarray(graph.array(head.input[1]).T))
    head.op_type, head.domain = "MatMul", ""
    del head.attribute[:]
    found = verify_family("llama", graph.model)
    assert "twice" in statuses(found).values()
    assert [fault.kind for fault in found.faults] == ["tied embedding stored twice"]


@given(
    st.integers(8, 40), st.integers(0, 20), st.integers(0, 20), st.sampled_from([1.0, 0.5, 0.25, 2.0, 4.0])
)
def test_a_packed_part_is_found(length: int, before: int, after: int, factor: float) -> None:
    rng = np.random.default_rng(length * 441 + before * 21 + after)
    needle = rng.standard_normal(length)
    hay = np.concatenate([rng.standard_normal(before), factor * needle, rng.standard_normal(after)])
    found = _inside(needle, hay)
    assert found is not None and abs(found - factor) < 1e-9
    assert _inside(rng.standard_normal(length), hay) is None
