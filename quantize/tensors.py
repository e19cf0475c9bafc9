"""Reading a model's tensors from the mapped data file one by one, and writing new ones behind each other.

Nothing here ever holds a whole model: a tensor that is read is a view of the mapped file, a tensor that is
written is on disk when `add` returns.
"""

from __future__ import annotations

import math
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from seatrial.errors import UserError

# onnxruntime maps external tensors; page-aligned starts let it do so without copying.
PAGE_BYTES = 4096
# Shapes and small constants stay in the graph, where shape inference and constant folding see them.
INLINE_BYTES = 1024


class TensorReader:
    """Values of a graph's initializers; external ones as read-only views of their mapped file."""

    def __init__(self, model: onnx.ModelProto, folder: Path) -> None:
        self._folder = folder
        self._tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        self._maps: dict[str, NDArray[np.uint8]] = {}

    def dtype(self, name: str) -> np.dtype:
        """The type of one initializer."""
        return helper.tensor_dtype_to_np_dtype(self._tensors[name].data_type)

    def read(self, name: str) -> NDArray:
        """The values of one initializer in its own type and shape."""
        tensor = self._tensors[name]
        if tensor.data_location != TensorProto.EXTERNAL:
            return numpy_helper.to_array(tensor)
        place = {entry.key: entry.value for entry in tensor.external_data}
        start, dtype = int(place.get("offset", 0)), helper.tensor_dtype_to_np_dtype(tensor.data_type)
        length = int(place.get("length", math.prod(tensor.dims) * dtype.itemsize))
        data = self._mapped(place["location"])
        if start + length > len(data) or length != math.prod(tensor.dims) * dtype.itemsize:
            raise UserError(
                f"{self._folder / place['location']} is too short for {name}: copy the bundle again"
            )
        return data[start : start + length].view(dtype).reshape(tuple(tensor.dims))

    def _mapped(self, location: str) -> NDArray[np.uint8]:
        if location not in self._maps:
            self._maps[location] = np.memmap(self._folder / location, np.uint8, "r")
        return self._maps[location]


class TensorWriter:
    """Appends tensors to a data file and gives the graph's entry for each.

    Use as a context manager; the file is created when entered.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def __enter__(self) -> TensorWriter:
        self._file = self._path.open("wb")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def add(self, name: str, values: NDArray) -> TensorProto:
        """Write `values` and return the initializer that points at them (small ones hold them)."""
        values = np.ascontiguousarray(values)
        if values.nbytes <= INLINE_BYTES:
            return numpy_helper.from_array(values, name)
        if self._file is None:
            raise RuntimeError("TensorWriter must be entered before tensors are added")
        self._file.write(b"\0" * (-self._file.tell() % PAGE_BYTES))
        start = self._file.tell()
        values.tofile(self._file)
        data_type = helper.np_dtype_to_tensor_dtype(values.dtype)
        tensor = TensorProto(name=name, data_type=data_type, dims=values.shape)
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in (("location", self._path.name), ("offset", start), ("length", values.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        return tensor
