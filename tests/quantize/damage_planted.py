"""The embedded model with its embedding changed on purpose; everything else is the same file, linked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.external_data_helper import set_external_data

from seatrial.export.bundle import INFO, Bundle, open_bundle
from seatrial.export.session_graph import load_graph
from seatrial.quantize.targets import survey
from seatrial.quantize.tensors import TensorReader

_FILE = "embedding.data"


def with_embedding(
    bundle: Bundle, folder: Path, change: Callable[[NDArray[np.float32]], NDArray[np.float32]]
) -> Bundle:
    """`bundle` in `folder` with `change` applied to its embedding (V, H), which is the head as well."""
    folder.mkdir(parents=True)
    model = load_graph(bundle.model_path)
    name = survey(model).tables[0].weight
    table = change(np.array(TensorReader(model, bundle.folder).read(name), np.float32)).astype(np.float32)
    tensor = next(t for t in model.graph.initializer if t.name == name)
    del tensor.external_data[:]
    tensor.raw_data = b" "  # set_external_data wants to see some
    set_external_data(tensor, _FILE, offset=0, length=table.nbytes)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    table.tofile(folder / _FILE)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    for file in bundle.folder.iterdir():
        if file.is_file() and file.name not in ("model.onnx", INFO):
            _link(file, folder / file.name)
    return open_bundle(folder)


def _link(source: Path, target: Path) -> None:
    """A hard link where the file system allows it: half a gigabyte need not be copied."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
