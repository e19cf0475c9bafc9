"""Runs a bundle's graph on chosen tokens and shows values from inside it, for parity and for finding
faults.

Unlike the session that decodes for users, it keeps every position's logits, takes batches with right
padding, and can tap any value of the graph. Weights stay mapped where they are. It judges nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort

from seatrial.errors import UserError
from seatrial.export.graph_file import GraphFile

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
}


class GraphFailed(UserError):
    """The graph loads but does not run on this input."""


@dataclass(frozen=True)
class Ran:
    """What a run gave: logits (B, T, V), the cache after it, and the tapped values, pieces joined along T."""

    logits: np.ndarray
    present: dict[str, np.ndarray]
    taps: dict[str, np.ndarray]


class GraphRunner:
    """One graph file, loaded with extra outputs."""

    def __init__(self, graph: GraphFile, taps: Sequence[str] = (), *, threads: int = 0) -> None:
        self.taps = tuple(taps)
        proto = onnx.ModelProto()
        proto.CopyFrom(graph.proto)
        known = {output.name for output in proto.graph.output}
        for name in self.taps:
            if name not in known:
                proto.graph.output.append(onnx.ValueInfoProto(name=name))
        self.proto = proto
        self.session = open_session(proto.SerializeToString(), graph.path.parent, threads)
        self._inputs = {value.name: value for value in self.session.get_inputs()}
        self._outputs = [value.name for value in self.session.get_outputs()]
        self._past = [name for name in self._inputs if name.startswith("past_key_values.")]

    def run(
        self,
        ids: np.ndarray,
        *,
        pieces: Sequence[int] = (),
        lengths: Sequence[int] | None = None,
        attention_mask: np.ndarray | None = None,
    ) -> Ran:
        """Run ids (B, T), in `pieces` (whole by default); `lengths` are the real tokens of right-padded
        rows, or an `attention_mask` (B, T) says them. Raises UserError on left padding.
        """
        batch, total = ids.shape
        if attention_mask is not None:
            lengths = lengths_of(attention_mask)
        mask = np.ones((batch, total), dtype=np.int64)
        for row, length in enumerate(lengths or ()):
            mask[row, length:] = 0
        cache = {name: self._empty(name, batch) for name in self._past}
        parts: list[dict[str, np.ndarray]] = []
        done = 0
        for piece in pieces or (total,):
            found = self._step(ids[:, done : done + piece], mask[:, : done + piece], cache)
            cache = {name: found[name.replace("past_key_values", "present")] for name in self._past}
            parts.append(found)
            done += piece
        if done != total:
            raise ValueError(f"pieces {list(pieces)} do not add up to {total} tokens")
        return self._joined(parts, pieces or (total,))

    def _step(self, ids: np.ndarray, mask: np.ndarray, cache: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        past = mask.shape[1] - ids.shape[1]
        positions = np.tile(np.arange(past, mask.shape[1], dtype=np.int64), (len(ids), 1))
        feeds = {
            "input_ids": ids.astype(np.int64),
            "attention_mask": mask,
            "position_ids": positions,
            **cache,
        }
        unknown = set(self._inputs) - set(feeds)
        if unknown:
            raise UserError(
                f"the graph wants the input {sorted(unknown)[0]}, which no decoder of this kind has"
            )
        wanted = {name: self._cast(name, value) for name, value in feeds.items() if name in self._inputs}
        try:
            return dict(zip(self._outputs, self.session.run(None, wanted), strict=True))
        except Exception as error:  # onnxruntime raises a class of its own per status code
            raise GraphFailed(
                f"onnxruntime cannot run the graph: {str(error).splitlines()[0][:300]}"
            ) from error

    def _cast(self, name: str, value: np.ndarray) -> np.ndarray:
        return value.astype(np.int32) if self._inputs[name].type == "tensor(int32)" else value

    def _empty(self, name: str, batch: int) -> np.ndarray:
        meta = self._inputs[name]
        return np.zeros((batch, int(meta.shape[1]), 0, int(meta.shape[3])), dtype=_TYPES[meta.type])

    def _joined(self, parts: list[dict[str, np.ndarray]], pieces: Sequence[int]) -> Ran:
        present = {name: value for name, value in parts[-1].items() if name.startswith("present.")}
        taps = {name: _join([part[name] for part in parts], pieces) for name in self.taps}
        return Ran(np.concatenate([part["logits"] for part in parts], axis=1), present, taps)


def lengths_of(attention_mask: np.ndarray) -> list[int]:
    """Real tokens per row of a right-padded batch (B, T). Raises UserError when padding stands anywhere else:
    the attention node counts a row's tokens from the left, so left padding would be attended to.
    """
    lengths = [int(length) for length in attention_mask.sum(1)]
    for row, length in enumerate(lengths):
        if not attention_mask[row, :length].all():
            raise UserError(
                f"row {row} of the batch is not padded on its right: the attention node takes the first "
                "tokens of a row for the real ones; pad on the right, or run the rows one by one"
            )
    return lengths


def open_session(proto: bytes, folder: Path, threads: int = 0) -> ort.InferenceSession:
    """A session over a graph in memory whose data lies in `folder`. Raises UserError when it does not load.

    Weights stay in the mapped file: parity must not cost a second copy of them.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4  # what matters is raised
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(folder))
    try:
        return ort.InferenceSession(proto, sess_options=options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises a class of its own per status code
        raise UserError(f"onnxruntime cannot load the graph: {str(error).splitlines()[0][:300]}") from error


def _join(values: list[np.ndarray], pieces: Sequence[int]) -> np.ndarray:
    """Pieces of a tapped value, joined along the axis that is as long as each piece has tokens.

    Reshaped values may have lost their batch axis; what has no such axis is taken from the last piece.
    """
    if len(values) == 1:
        return values[0]
    for axis in range(values[0].ndim - 1):
        if all(value.shape[axis] == piece for value, piece in zip(values, pieces, strict=True)):
            return np.concatenate(values, axis=axis)
    return values[-1]
