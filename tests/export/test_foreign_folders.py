"""Folders of optimum and in the form of onnxruntime-genai's builder: run, planned, quantized, verified."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from foreign_folders import as_genai_builder_leaves, write_tokenizer
from tiny_exports import Made

from seatrial.cli import run_command
from seatrial.errors import UserError
from seatrial.export.architecture import read_architecture
from seatrial.export.bundle import open_bundle
from seatrial.export.cache_shapes import settle_cache_shapes
from seatrial.export.graph_config import matrices, weight_format
from seatrial.export.quiet import quiet
from seatrial.export.session import Session
from seatrial.export.source import resolve
from seatrial.export.tokenizer import Tokenizer
from seatrial.export.verify import verify_bundle

PROMPT = [5, 77, 310, 12, 900, 41]


@pytest.fixture(scope="module")
def genai(families: dict[str, Made], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return as_genai_builder_leaves(families["llama"].bundle, tmp_path_factory.mktemp("genai") / "fp32")


@pytest.fixture(scope="module")
def genai_int4(families: dict[str, Made], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("genai") / "int4"
    return as_genai_builder_leaves(families["llama"].bundle, folder, int4=True)


@pytest.fixture(scope="module")
def optimum(families: dict[str, Made], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from optimum.exporters.onnx import main_export

    out = tmp_path_factory.mktemp("optimum")
    task = "text-generation-with-past"
    with quiet():
        main_export(str(families["llama"].source), out, task=task, do_validation=False, local_files_only=True)
    write_tokenizer(out)
    return out


@pytest.mark.parametrize("kind", ["genai", "genai_int4", "optimum"])
def test_it_runs(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "meeting.txt").write_text("Ann: We meet at 9 on Friday.\n", encoding="utf-8")
    (tmp_path / "prompt.txt").write_text("Sum up: {transcript}", encoding="utf-8")
    asked = ["--device", "thin-laptop-8gb", "--max-tokens", "6", "--prompt", str(tmp_path / "prompt.txt")]
    told = ["--model", str(request.getfixturevalue(kind)), "--out", str(tmp_path / "out"), "--json"]
    code = run_command(["run", str(tmp_path / "meeting.txt"), *asked, *told])
    report = json.loads(capsysbinary.readouterr().out)
    # A random model writes nothing that passes; what counts is that it was read and stepped.
    assert code in (0, 1) and report["status"] in ("ok", "fallback", "failed")
    assert report["prefill"]["tokens"] > 20 and report["decode"]["tokens"] >= 1
    assert report["weights"] == ("int4" if kind == "genai_int4" else "fp32")


def test_the_same_logits_whatever_the_form(llama: Made, genai: Path, optimum: Path) -> None:
    rows = []
    for folder in (llama.bundle, genai, optimum):
        with Session(open_bundle(folder), capacity=16) as session:
            rows.append(session.prefill(PROMPT))
    for other in rows[1:]:
        assert np.abs(rows[0] - other).max() < 1e-4, np.abs(rows[0] - other).max()


def test_what_genai_config_leaves_out_is_read_off_the_graph(
    llama: Made, genai: Path, genai_int4: Path
) -> None:
    own = read_architecture(llama.bundle)
    for folder, weights in ((genai, "fp32"), (genai_int4, "int4")):
        found = read_architecture(folder)
        assert (found.ffn_width, found.tied, found.hidden) == (own.ffn_width, True, own.hidden)
        assert [layer.kv_elements for layer in found.layers] == [layer.kv_elements for layer in own.layers]
        assert found.stored is not None and found.stored.format == weights
        assert Tokenizer.load(folder).eos_ids == {2}


def test_windows_are_read_off_the_attention_nodes(families: dict[str, Made], tmp_path: Path) -> None:
    folder = as_genai_builder_leaves(families["mistral"].bundle, tmp_path / "windowed")
    assert [layer.window for layer in read_architecture(folder).layers] == [7, 7]


def test_plan_and_operators(genai_int4: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    job = ["--prompt-tokens", "64", "--max-tokens", "8", "--device", "thin-laptop-8gb", "--json"]
    assert run_command(["plan", "--model", str(genai_int4), *job]) == 0
    plan = json.loads(capsysbinary.readouterr().out)
    weights = plan["memory"]["weights_bytes"]
    assert weights == sum(file.stat().st_size for file in genai_int4.glob("model.onnx*"))
    dims = [f"--dim={name}" for name in ("batch=1", "sequence=4", "total=4", "kv_cache=16")]
    assert run_command(["ops", str(genai_int4), *dims, "--json"]) == 0
    rows = json.loads(capsysbinary.readouterr().out)["operators"]
    assert sum(row["operator"] == "GroupQueryAttention" for row in rows) == 2


def test_a_right_float_folder_raises_no_alarm(llama: Made, genai: Path, optimum: Path) -> None:
    for folder in (genai, optimum):
        found = verify_bundle(resolve(llama.source), folder)
        assert [fault for fault in found.faults if fault.kind != "tied embedding stored twice"] == []


def test_a_quantized_folder_is_told_what_can_be_compared(llama: Made, genai_int4: Path) -> None:
    with pytest.raises(UserError, match="seatrial damage") as caught:
        verify_bundle(resolve(llama.source), genai_int4)
    assert "\n" not in str(caught.value)


def test_a_quantized_folder_is_not_quantized_again(
    genai_int4: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["quantize", str(genai_int4), str(tmp_path / "again"), "--quiet"]) == 2
    assert "already" in capsys.readouterr().err and not (tmp_path / "again").exists()


def test_an_open_cache_that_no_node_settles_is_refused(genai: Path, tmp_path: Path) -> None:
    folder = tmp_path / "open"
    shutil.copytree(genai, folder)
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    for node in model.graph.node:
        if node.op_type == "GroupQueryAttention":
            node.op_type = "SomeAttention"
    onnx.save(model, folder / "model.onnx")
    with pytest.raises(UserError, match="unknown KV shapes"):
        open_bundle(folder)


def test_matrices_are_seen_through_views_and_packing(genai: Path, genai_int4: Path) -> None:
    plain, packed = (onnx.load(f / "model.onnx", load_external_data=False) for f in (genai, genai_int4))
    assert {(m.width, m.rows) for m in matrices(plain)} == {(m.width, m.rows) for m in matrices(packed)}
    assert (weight_format(plain), weight_format(packed)) == ("fp32", "int4")


def test_settled_shapes_stay(llama: Made) -> None:
    model: Any = onnx.load(llama.bundle / "model.onnx", load_external_data=False)
    before = model.SerializeToString()
    settle_cache_shapes(model)
    assert model.SerializeToString() == before
