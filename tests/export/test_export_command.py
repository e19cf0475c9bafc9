"""`seatrial export` from the command line: a bundle, a miss, a verification, the second door, bad input."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import onnx
import pytest
import transformers
from onnx import numpy_helper
from tiny_exports import Made
from tiny_models import build

from seatrial.cli import run_command
from seatrial.errors import UserError
from seatrial.export.bundle import open_bundle
from seatrial.export.files import refuse_overlap
from seatrial.export.source import resolve
from seatrial.export.to_onnx import export_bundle


def printed(capsysbinary: pytest.CaptureFixture[bytes]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsysbinary.readouterr().out)
    return found


def test_a_bundle_with_everything_in_it(
    llama: Made, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run_command(["export", str(llama.source), str(tmp_path / "out"), "--json"]) == 0
    report = printed(capsysbinary)
    assert {check["verdict"] for check in report["checks"]} == {"ok"}
    assert report["exporter"] == "attention" and report["graph"]["nodes"] < 40
    bundle = open_bundle(tmp_path / "out")
    assert bundle.info["checks"] == report["checks"]
    assert bundle.info["sizes"]["model.onnx.data"] == (tmp_path / "out" / "model.onnx.data").stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def falsified(made: Made, folder: Path) -> Path:
    """A copy of a bundle, without its own records, whose gate bias of the first layer is gone."""
    shutil.copytree(made.bundle, folder)
    (folder / "seatrial.json").unlink()
    model = onnx.load(folder / "model.onnx")
    (folder / "model.onnx.data").unlink()
    for tensor in model.graph.initializer:
        if tensor.name == "model.layers.0.mlp.gate_proj.bias":
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * 0, tensor.name))
    onnx.save(model, folder / "model.onnx")
    return folder


def test_verify_names_a_fault_and_fails(
    llama: Made, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    bad = falsified(llama, tmp_path / "bad")
    assert run_command(["export", "--verify", str(llama.source), str(bad), "--json"]) == 1
    (fault,) = printed(capsysbinary)["faults"]
    assert (fault["kind"], fault["place"]) == ("bias dropped", "layer 0, mlp.gate_proj")
    assert fault["unexplained"] < 1 and fault["symptom"]


def test_verify_passes_a_right_bundle(llama: Made, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run_command(["export", "--verify", str(llama.source), str(llama.bundle), "--quiet"]) == 0
    assert b"34 of 34" in capsysbinary.readouterr().out


def test_a_parity_miss_writes_nothing(tmp_path: Path) -> None:
    """LongRoPE changes with the length; the second door freezes it, which the comparison beyond it shows."""
    factors = {
        "short_factor": [1.0 + 0.1 * i for i in range(8)],
        "long_factor": [2.0 + 0.3 * i for i in range(8)],
    }
    model = build("phi3", rope_scaling={"type": "longrope", **factors}, original_max_position_embeddings=32)
    model.save_pretrained(tmp_path / "source")
    result = export_bundle(resolve(tmp_path / "source"), tmp_path / "out")
    assert result.failed and result.bundle is None
    failed = next(check.name for check in result.checks if check.verdict == "fail")
    assert failed == "logits, beyond the rotary's switch"
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def second_door(name: str) -> transformers.PreTrainedModel:
    if name == "stablelm":
        return build("stablelm")
    sizes = {"vocab_size": 512, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
    if name == "bert":
        return transformers.BertModel(transformers.BertConfig(**sizes, intermediate_size=96)).eval()
    small = {
        "d_model": 64,
        "d_kv": 16,
        "d_ff": 96,
        "num_layers": 2,
        "num_heads": 4,
        "decoder_start_token_id": 0,
    }
    return transformers.T5ForConditionalGeneration(transformers.T5Config(vocab_size=512, **small)).eval()


@pytest.mark.parametrize("name", ["stablelm", "bert", "t5"])
def test_the_second_door(tmp_path: Path, name: str) -> None:
    second_door(name).save_pretrained(tmp_path / "source")
    result = export_bundle(resolve(tmp_path / "source"), tmp_path / "out")
    assert not result.failed and result.checks
    assert result.info["exporter"] == "optimum"
    assert any("optimum" in note for note in result.notes)
    if name == "stablelm":
        assert open_bundle(tmp_path / "out").kv.layers == 2
        assert "does not go through the attention interface" in result.notes[0]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["no/such/model/anywhere", "out"], "no model at"),
        (["BUNDLE", "out"], "already ONNX"),
        (["SOURCE", "SOURCE"], "is the input"),
        (["SOURCE", "out", "--exporter", "magic"], "--exporter"),
        (["--verify", "SOURCE", "out"], "is no bundle"),
    ],
)
def test_bad_input_is_one_line(
    llama: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: str
) -> None:
    named = {"SOURCE": str(llama.source), "BUNDLE": str(llama.bundle), "out": str(tmp_path / "out")}
    assert run_command(["export", "--quiet", *(named.get(word, word) for word in arguments)]) == 2
    error = capsys.readouterr().err
    assert expected in error and len(error.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_quantized_bundle_is_not_verified(llama: Made, tmp_path: Path) -> None:
    from seatrial.export.verify import verify_bundle

    model = onnx.load(llama.bundle / "model.onnx")
    model.graph.node.add(op_type="MatMulNBits", domain="com.microsoft", input=["a"], output=["b"])
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(UserError, match="is quantized"):
        verify_bundle(resolve(llama.source), tmp_path)
    refuse_overlap(tmp_path, [llama.source])
