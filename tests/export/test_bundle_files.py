"""Files that belong together, are whole, and are written at once or not at all (cases C14, C42, C43)."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from tiny_exports import Made

from seatrial.errors import UserError
from seatrial.export.bundle import open_bundle, write_info
from seatrial.export.doors import save_graph
from seatrial.export.files import refuse_overlap, require_space, writing_folder
from seatrial.export.graph_file import covered, read_graph_file

SIDE = 512
WEIGHT_BYTES = SIDE * SIDE * 4


def square(dtype: type = np.float32) -> ir.Model:
    """x @ W with a 512 x 512 weight."""
    x = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), ["n", SIDE])
    y = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), ["n", SIDE])
    weight = numpy_helper.from_array(np.ones((SIDE, SIDE), dtype=dtype), "weight")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "weight"], ["y"])], "square", [x], [y], [weight]
    )
    return ir.from_proto(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10))


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    folder = tmp_path / "square"
    folder.mkdir()
    save_graph(square(), folder)
    return folder


def test_saving_again_never_grows_the_data(saved: Path) -> None:
    data = saved / "model.onnx.data"
    assert data.stat().st_size == WEIGHT_BYTES
    save_graph(square(), saved)
    assert data.stat().st_size == WEIGHT_BYTES
    save_graph(square(np.float16), saved)
    assert data.stat().st_size == WEIGHT_BYTES // 2
    assert read_graph_file(saved / "model.onnx").warnings == ()


def test_exporting_over_a_bundle_replaces_it(llama: Made, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    shutil.copytree(llama.bundle, out)
    (out / "old").write_text("left from before")
    with writing_folder(out) as folder:
        for file in llama.bundle.iterdir():
            shutil.copyfile(file, folder / file.name)
    assert {file.name for file in out.iterdir()} == {file.name for file in llama.bundle.iterdir()}
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_moved_alone(saved: Path, tmp_path: Path) -> None:
    shutil.copyfile(saved / "model.onnx", tmp_path / "model.onnx")
    with pytest.raises(UserError, match=r"data file model\.onnx\.data is missing"):
        read_graph_file(tmp_path / "model.onnx")


def test_data_cut_in_half(saved: Path) -> None:
    os.truncate(saved / "model.onnx.data", WEIGHT_BYTES // 2)
    with pytest.raises(
        UserError, match=rf"tensor weight needs {WEIGHT_BYTES:,} bytes.*{WEIGHT_BYTES // 2:,}"
    ):
        read_graph_file(saved / "model.onnx")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.6, 0.95])
def test_graph_cut(llama: Made, tmp_path: Path, share: float) -> None:
    whole = (llama.bundle / "model.onnx").read_bytes()
    cut = tmp_path / "model.onnx"
    cut.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(UserError, match=r"empty|cut|holds no"):
        read_graph_file(cut)


def test_too_many_bytes_are_a_warning(saved: Path) -> None:
    with (saved / "model.onnx.data").open("ab") as stream:
        stream.write(bytes(16))
    (warning,) = read_graph_file(saved / "model.onnx").warnings
    assert "16 bytes that no tensor uses" in warning


def test_swapped_data_of_the_same_size(llama: Made, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    shutil.copytree(llama.bundle, out)
    data = bytearray((out / "model.onnx.data").read_bytes())
    data[len(data) // 2] ^= 1
    (out / "model.onnx.data").write_bytes(data)
    with pytest.raises(UserError, match="SHA-256 differs"):
        open_bundle(out)


def test_another_bundles_graph(families: dict[str, Made], tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    shutil.copytree(families["llama"].bundle, out)
    shutil.copyfile(families["qwen2"].bundle / "model.onnx", out / "model.onnx")
    with pytest.raises(UserError, match=r"model\.onnx"):
        open_bundle(out)


def test_a_file_that_the_bundle_lists_is_gone(llama: Made, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    shutil.copytree(llama.bundle, out)
    (out / "config.json").unlink()
    with pytest.raises(UserError, match=r"config\.json is missing"):
        open_bundle(out)


def test_output_is_input_also_through_a_link(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    link = tmp_path / "link"
    link.symlink_to(source)
    for out in (source, link, source / "inside", tmp_path):
        with pytest.raises(UserError, match="is the input"):
            refuse_overlap(out, [source])
    refuse_overlap(tmp_path / "elsewhere", [source])


def test_needed_space_is_told_beforehand(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"bytes free and .* are needed"):
        require_space(tmp_path, 1 << 60)
    with pytest.raises(UserError, match="are needed"), writing_folder(tmp_path / "out", needed_bytes=1 << 60):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=r"/dev/full: No space left on device \(ENOSPC\)"),
        writing_folder(tmp_path / "out"),
        Path("/dev/full").open("wb", buffering=0) as stream,
    ):
        try:
            stream.write(bytes(16))
        except OSError as error:
            error.filename = "/dev/full"
            raise
    assert list(tmp_path.iterdir()) == []


def _small_files() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))


_EXPORT = """
import sys, warnings
from pathlib import Path
from seatrial.cli import run_command
sys.exit(run_command(["export", sys.argv[1], sys.argv[2], "--quiet"]))
"""


def test_a_file_limit_leaves_nothing_behind(llama: Made, tmp_path: Path) -> None:
    out = tmp_path / "out" / "bundle"
    command = [sys.executable, "-c", _EXPORT, str(llama.source), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=_small_files, check=False)
    assert done.returncode == 2, done.stderr
    assert "EFBIG" in done.stderr and len(done.stderr.splitlines()) == 1
    assert list(out.parent.iterdir()) == []


def test_interrupted_leaves_nothing_and_the_next_run_starts_clean(tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    with pytest.raises(KeyboardInterrupt), writing_folder(out) as folder:
        (folder / "model.onnx").write_bytes(b"half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    dead = tmp_path / ".bundle.partial-999999999"
    dead.mkdir()
    (dead / "model.onnx.data").write_bytes(b"left by a killed writer")
    with writing_folder(out) as folder:
        (folder / "model.onnx").write_bytes(b"whole")
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_a_folder_with_other_files_is_not_replaced(tmp_path: Path) -> None:
    out = tmp_path / "thesis"
    out.mkdir()
    (out / "chapter.txt").write_text("years of work")
    with pytest.raises(UserError, match="holds other files"), writing_folder(out):
        pass
    assert (out / "chapter.txt").read_text() == "years of work"


def test_info_lists_every_file(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"abc")
    write_info(tmp_path, {"kind": "export"})
    text = (tmp_path / "seatrial.json").read_text()
    assert '"bytes": 3' in text and "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" in text


@given(st.sets(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12))
def test_covered_bytes(spans: set[tuple[int, int]]) -> None:
    plain = {byte for start, length in spans for byte in range(start, start + length)}
    assert covered(spans) == len(plain)


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ((-1, 4), "impossible shape"),
        ((1 << 60,), "impossible shape"),
        ((1 << 32, 1 << 32), "impossible shape"),
    ],
)
def test_absurd_tensors(tmp_path: Path, dims: tuple[int, ...], expected: str) -> None:
    model = ir.to_proto(square())
    tensor = model.graph.initializer.add()
    tensor.name, tensor.data_type = "absurd", TensorProto.FLOAT
    tensor.dims.extend(dims)
    tensor.raw_data = bytes(16)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(UserError, match=expected):
        read_graph_file(path)


def test_a_bundle_opens_and_says_its_cache(llama: Made) -> None:
    bundle = open_bundle(llama.bundle)
    assert (bundle.kv.layers, bundle.kv.kv_heads, bundle.kv.head_dim, bundle.kv.dtype) == (
        2,
        2,
        16,
        "float32",
    )
    assert bundle.kv.bytes_per_token() == 2 * 2 * 2 * 16 * 4
    assert bundle.warnings == ()
    assert onnx.load(bundle.model_path, load_external_data=False).producer_name == "seatrial"
