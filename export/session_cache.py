"""Keys and values between two runs: one buffer bound once, or tensors that grow.

Layout (B=1, kv_heads, tokens, head_dim), one pair per layer; int4 caches hold two values in a byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime as ort

from seatrial.errors import UserError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seatrial.export.session_graph import DecoderGraph

_NOTHING = np.empty(0)
_NUMPY_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
}


def numpy_type(name: str) -> type:
    """numpy's type for one of onnxruntime's names; `UserError` for a type that numpy does not have."""
    if name not in _NUMPY_TYPES:
        raise UserError(
            f"this engine runs float32, float16 and int8 tensors, not {name}: export the model as fp32"
        )
    return _NUMPY_TYPES[name]


class SharedCache:
    """Buffers for the whole capacity, each bound once as past and as present.

    The attention node writes new rows behind the old ones; the length lives in the mask. Unshared it would
    copy the cache for every token (39 ms instead of 19 at 4096 positions).
    """

    def __init__(self, engine: ort.InferenceSession, graph: DecoderGraph, capacity: int) -> None:
        self.pairs = list(zip(graph.past, graph.present, strict=True))
        self.buffers: dict[str, NDArray[Any]] = {
            value.name: np.zeros(_shape(value, capacity), numpy_type(value.type))
            for value in _past(engine, graph)
        }
        self._values = {
            name: ort.OrtValue.ortvalue_from_numpy(buffer) for name, buffer in self.buffers.items()
        }
        self.allocated_bytes: int = sum(buffer.nbytes for buffer in self.buffers.values())
        self.bytes_per_position = self.allocated_bytes // capacity
        self._spare: dict[str, NDArray[Any]] = {}  # new rows of a piece, see `bind_new_rows`

    def bind_once(self, binding: Any) -> None:
        for past, present in self.pairs:
            binding.bind_ortvalue_input(past, self._values[past])
            binding.bind_ortvalue_output(present, self._values[past])

    def bind_run(self, binding: Any) -> None:
        """Nothing moves between runs."""

    def took(self, binding: Any) -> None:
        """The node has written in place."""

    def bind_new_rows(self, binding: Any, tokens: int) -> dict[str, NDArray[Any]]:
        """For a graph that gives back new rows only: where it puts them, by the cache input's name.

        Pieces of one length share their memory, and so does a shorter last one.
        """
        rows = {}
        for past, present in self.pairs:
            _, heads, _, width = self.buffers[past].shape
            wanted = heads * tokens * width
            if self._spare.get(past, _NOTHING).size < wanted:
                self._spare[past] = np.empty(wanted, self.buffers[past].dtype)
            rows[past] = self._spare[past][:wanted].reshape(1, heads, tokens, width)
            binding.bind_ortvalue_output(present, ort.OrtValue.ortvalue_from_numpy(rows[past]))
        return rows

    def store(self, rows: dict[str, NDArray[Any]], at: int) -> None:
        """Put new rows behind the `at` there are."""
        for name, values in rows.items():
            self.buffers[name][:, :, at : at + values.shape[2]] = values

    def truncate(self, length: int) -> None:
        """Rows behind the length are never read: nothing to do."""

    def rows(self, length: int) -> dict[str, NDArray[Any]]:
        return {name: buffer[:, :, :length] for name, buffer in self.buffers.items()}


class GrowingCache:
    """Separate past and present for graphs that concatenate: what came out is what goes in next."""

    def __init__(self, engine: ort.InferenceSession, graph: DecoderGraph, capacity: int) -> None:
        del capacity  # grows with what is read
        self._graph = graph
        self._values = {
            value.name: ort.OrtValue.ortvalue_from_numpy(np.zeros(_shape(value, 0), numpy_type(value.type)))
            for value in _past(engine, graph)
        }
        self.bytes_per_position = sum(
            int(np.prod(_shape(value, 1))) * np.dtype(numpy_type(value.type)).itemsize
            for value in _past(engine, graph)
        )

    @property
    def allocated_bytes(self) -> int:
        return self.bytes_per_position * next(iter(self._values.values())).shape()[2]

    def bind_once(self, binding: Any) -> None:
        """Everything moves, see `bind_run`."""

    def bind_run(self, binding: Any) -> None:
        for past, present in zip(self._graph.past, self._graph.present, strict=True):
            binding.bind_ortvalue_input(past, self._values[past])
            binding.bind_output(present, "cpu")

    def bind_new_rows(self, binding: Any, tokens: int) -> dict[str, NDArray[Any]]:
        raise NotImplementedError("only shared buffers take new rows")

    def store(self, rows: dict[str, NDArray[Any]], at: int) -> None:
        raise NotImplementedError("only shared buffers take new rows")

    def took(self, binding: Any) -> None:
        # Outputs come in the order they were first bound: the logits (bound by the session), then these.
        self._values = dict(zip(self._graph.past, binding.get_outputs()[1:], strict=True))

    def rows(self, length: int) -> dict[str, NDArray[Any]]:
        return {name: value.numpy()[:, :, :length] for name, value in self._values.items()}

    def truncate(self, length: int) -> None:
        self._values = {
            name: ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(value.numpy()[:, :, :length]))
            for name, value in self._values.items()
        }


def _past(engine: ort.InferenceSession, graph: DecoderGraph) -> list[Any]:
    wanted = set(graph.past)
    return [value for value in engine.get_inputs() if value.name in wanted]


def _shape(value: Any, tokens: int) -> tuple[int, int, int, int]:
    """(1, kv_heads, tokens, head_dim) of a cache input; heads and width must be in the graph."""
    shape = value.shape
    if len(shape) != 4 or not isinstance(shape[1], int) or not isinstance(shape[3], int):
        raise UserError(
            f"{value.name} has the shape {shape}: [batch, kv_heads, tokens, head_dim] with fixed heads needed"
        )
    return 1, shape[1], tokens, shape[3]
