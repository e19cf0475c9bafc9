"""Which graph is kept when a rewrite goes wrong, and parity in a process of its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from foreign_folders import write_tokenizer
from tiny_exports import Made

from seatrial.errors import UserError
from seatrial.export.apart import call_apart
from seatrial.export.bundle import open_bundle
from seatrial.export.doors import STEPS, Step, first_door_apart
from seatrial.export.graph_check import check_graph
from seatrial.export.graph_file import read_graph_file
from seatrial.export.load import load_torch
from seatrial.export.parity import make_cases
from seatrial.export.reference import references
from seatrial.export.rewrite import Applied, rewrite_graph
from seatrial.export.runner import GraphRunner
from seatrial.export.source import resolve
from seatrial.export.texts import write_texts
from seatrial.export.to_onnx import export_bundle


def scaled_wrongly(graph: ir.Model, context: int) -> Applied:
    """A rewrite that loses the scale of the scores."""
    applied = rewrite_graph(graph, context)
    for node in graph.graph:
        if node.op_type == "GroupQueryAttention":
            node.attributes["scale"] = ir.AttrFloat32("scale", 0.5)
    return applied


def refused_by_runtime(graph: ir.Model, context: int) -> Applied:
    """A rewrite that leaves a node no runtime knows."""
    applied = rewrite_graph(graph, context)
    next(node for node in graph.graph if node.op_type == "GroupQueryAttention").op_type = "NoSuchAttention"
    return applied


def test_a_graph_that_the_rewrite_spoils_is_kept_plain_and_it_is_said(llama: Made, tmp_path: Path) -> None:
    steps = (Step("rewritten", scaled_wrongly), STEPS[-1])
    result = export_bundle(resolve(llama.source), tmp_path / "out", steps=steps)
    assert not result.failed and {check.verdict for check in result.checks} == {"ok"}
    (line,) = [note for note in result.notes if "parity fails" in note]
    assert "the graph rewritten (" in line
    assert line.endswith("the graph is kept as traced, so decoding is slower than it could be")
    bundle = open_bundle(tmp_path / "out")
    assert bundle.info["graph"]["rotary_absorbed"] == 0 and line in bundle.info["notes"]


def test_nothing_is_kept_when_every_step_misses(llama: Made, tmp_path: Path) -> None:
    result = export_bundle(
        resolve(llama.source), tmp_path / "out", steps=(Step("rewritten", refused_by_runtime),)
    )
    assert result.failed and result.bundle is None and not list(tmp_path.iterdir())
    assert [check.name for check in result.checks if check.verdict == "fail"] == ["graph"]
    assert not [note for note in result.notes if "kept" in note]


def test_a_process_of_its_own_gives_the_same(llama: Made, tmp_path: Path) -> None:
    """The steps of a large model's export, one child each, on the tiny one."""
    source = resolve(llama.source)
    loaded = load_torch(source, tmp_path)
    cases = make_cases(loaded.vocabulary, loaded.window, loaded.context)[:4]
    wanted = references(loaded.model, loaded.layers, cases)
    loaded.model, stages = None, []
    (out := tmp_path / "out").mkdir()
    made = call_apart(
        first_door_apart, source, loaded, out, STEPS[0].name, say=lambda message, _: stages.append(message)
    )
    assert made.graph["rotary_absorbed"] == 2 and "tracing the model" in stages
    here = check_graph(llama.bundle / "model.onnx", cases, wanted)
    apart = call_apart(check_graph, out / "model.onnx", cases, wanted)
    assert [(c.name, c.verdict, c.limit) for c in apart] == [(c.name, c.verdict, c.limit) for c in here]


def test_errors_of_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"\x08\x0a" * 40)
    with pytest.raises(UserError, match="holds no graph"):
        call_apart(check_graph, tmp_path / "model.onnx", [], [])
    with pytest.raises(FileNotFoundError, match=r"none\.onnx"):
        call_apart(check_graph, tmp_path / "none.onnx", [], [])
    with pytest.raises(RuntimeError, match=r"(?s)check_graph ended with 1 .*AttributeError"):
        call_apart(check_graph, None, [], [])


def test_left_padding_is_refused_and_right_padding_is_exact(llama: Made) -> None:
    runner = GraphRunner(read_graph_file(llama.bundle / "model.onnx"))
    ids = np.array([[5, 77, 310, 12], [900, 41, 0, 0]])
    right = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
    alone = runner.run(ids[1:, :2]).logits[0]
    assert np.abs(runner.run(ids, attention_mask=right).logits[1, :2] - alone).max() < 1e-4
    with pytest.raises(UserError, match="row 1 of the batch is not padded on its right"):
        runner.run(ids[:, ::-1], attention_mask=right[:, ::-1])


def test_a_tokenizer_that_pads_left_is_turned(llama: Made, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(llama.source, source)
    write_tokenizer(source)
    settings = json.loads((source / "tokenizer_config.json").read_text(encoding="utf-8"))
    (source / "tokenizer_config.json").write_text(
        json.dumps({**settings, "padding_side": "left"}), encoding="utf-8"
    )
    loaded = load_torch(resolve(source), tmp_path)
    (tmp_path / "out").mkdir()
    assert "right" in write_texts(resolve(source), loaded, tmp_path / "out")[0]
    written = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert written["padding_side"] == "right"
