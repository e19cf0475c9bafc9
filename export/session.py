"""The engine: opens a bundle and steps it. Parity, calibration, damage and the run all use this one.

KV buffers are bound once as past and present (one memory), prefill goes in chunks and computes the logits of
the last position only. Bundles made by others (a cache that grows by concatenation, `position_ids`) run on
the plain path with separate past and present.

It knows no sampling, no clock, no guards and no ceiling: simulate/ puts those around it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import onnxruntime as ort

from seatrial.errors import UserError
from seatrial.export.float_prefill import PAST_LENGTH, can_attend_in_float
from seatrial.export.prepacked import open_float_prefill, open_mapped
from seatrial.export.runtime import open_session, session_options, shrinking_run, untiled_attention
from seatrial.export.session_cache import GrowingCache, SharedCache, numpy_type
from seatrial.export.session_graph import LOGITS_FROM, DecoderGraph, read_decoder
from seatrial.export.session_inputs import GrowingMask, share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from seatrial.export.bundle import Bundle

Weights = Literal["heap", "mapped"]
Prefill = Literal["auto", "direct"]
# Below this a piece runs through the graph that steps: the second graph only pays for many tokens at once.
_FLOAT_PREFILL_FROM = 16
_KNOWN_INPUTS = {"input_ids", "attention_mask", "position_ids", LOGITS_FROM}


class Cache(Protocol):
    """What holds keys and values between two runs."""

    bytes_per_position: int

    @property
    def allocated_bytes(self) -> int: ...

    def bind_once(self, binding: Any) -> None: ...
    def bind_run(self, binding: Any) -> None: ...
    def bind_new_rows(self, binding: Any, tokens: int) -> dict[str, NDArray[Any]]: ...
    def store(self, rows: dict[str, NDArray[Any]], at: int) -> None: ...
    def took(self, binding: Any) -> None: ...
    def truncate(self, length: int) -> None: ...
    def rows(self, length: int) -> dict[str, NDArray[Any]]: ...


class Session:
    """A bundle that can be stepped, with room for `capacity` positions.

    Args:
        bundle: a folder opened with `open_bundle`.
        capacity: positions that the KV buffers are made for; asking for more raises `UserError`.
        threads: threads of the kernels; None takes the CPUs this process may use.
        weights: "heap" lets onnxruntime repack the weights in memory; "mapped" runs from a file saved in the
            packed form, so that the weights stay file pages the system may drop.
        prefill: "auto" reads prompts into an int8 cache through a second graph that attends in float (see
            float_prefill.py), opened at the first prompt; "direct" has no second graph.
    """

    def __init__(
        self,
        bundle: Bundle,
        *,
        capacity: int,
        threads: int | None = None,
        weights: Weights = "heap",
        prefill: Prefill = "auto",
    ) -> None:
        if capacity < 1:
            raise UserError(f"a session needs a capacity of at least 1 position, got {capacity}")
        self.capacity = capacity
        self.threads = threads or usable_cpus()
        self.length = 0
        graph = read_decoder(bundle.model_path)
        self._engine = _open_engine(graph, self.threads, weights, bundle)
        self._inputs = {value.name for value in self._engine.get_inputs()}
        _refuse_unknown_inputs(self._inputs, graph)
        self.weight_bytes_per_token = graph.weight_bytes_per_token
        self._sliced = graph.has_logits_from
        self._cache: Cache
        if graph.shared_cache:
            self._cache = SharedCache(self._engine, graph, capacity)
        else:
            self._cache = GrowingCache(self._engine, graph, capacity)
        self._float_prefill = prefill == "auto" and graph.shared_cache and can_attend_in_float(graph.model)
        self._bundle = bundle
        self._logits_type, self._vocabulary = _logits_layout(self._engine, bundle)
        self._prepare_buffers()

    def _prepare_buffers(self) -> None:
        self._mask = GrowingMask(self.capacity)
        self._positions = np.arange(self.capacity, dtype=np.int64)[None]
        self._token = np.zeros((1, 1), np.int64)
        self._from = np.full(1, -1, np.int64)
        self._run_options = shrinking_run()
        # One binding for steps, whose small inputs never move, and one for pieces of any length.
        self._step_binding = self._new_binding(self._engine)
        self._piece_binding = self._new_binding(self._engine)
        self._float_engine: ort.InferenceSession | None = None
        self._step_binding.bind_ortvalue_input("input_ids", share(self._token))
        self._step_logits = self._bind_logits(self._step_binding, 1)[0, 0]

    def _new_binding(self, engine: ort.InferenceSession) -> Any:
        binding = engine.io_binding()
        if self._sliced:
            binding.bind_ortvalue_input(LOGITS_FROM, share(self._from))
        self._cache.bind_once(binding)
        return binding

    def _bind_logits(self, binding: Any, rows: int) -> NDArray[Any]:
        logits: NDArray[Any] = np.empty((1, rows, self._vocabulary), self._logits_type)
        binding.bind_ortvalue_output("logits", share(logits))
        return logits

    @property
    def kv_allocated_bytes(self) -> int:
        """Bytes of the cache as it is held now (shared buffers: the whole capacity)."""
        return self._cache.allocated_bytes

    def kv_bytes_per_token(self, context: int) -> int:
        """Bytes of keys and values that a step at this context reads."""
        return self._cache.bytes_per_position * context

    def prefill(
        self,
        ids: Sequence[int],
        *,
        chunk: int = 512,
        on_chunk: Callable[[int, int], None] | None = None,
    ) -> NDArray[np.float32]:
        """Read `ids` after what is there already; float32 logits (V,) of the last position.

        `on_chunk(done, of)` is called after every chunk, in tokens.
        """
        _check_piece(ids, chunk)
        self._check_room(len(ids))
        tokens = np.asarray(ids, np.int64)
        logits: NDArray[Any] = np.empty(0)
        for start in range(0, len(tokens), chunk):
            piece = tokens[start : start + chunk]
            in_float = self._float_prefill and len(piece) >= _FLOAT_PREFILL_FROM
            logits = self._run_in_float(piece) if in_float else self._run_piece(piece, last_only=True)
            if on_chunk is not None:
                on_chunk(min(start + chunk, len(tokens)), len(tokens))
        return logits[-1].astype(np.float32)

    def step(self, token: int, *, copy: bool = True) -> NDArray[np.float32]:
        """Read one token; float32 logits (V,) for the next one.

        Without `copy` they lie in the engine's own buffer, which the next step overwrites: for a caller that
        is through with them by then.
        """
        self._check_room(1)
        self._token[0, 0] = token
        self._from[0] = -1
        self._run(self._step_binding, 1)
        return self._step_logits.astype(np.float32, copy=copy)

    def score(self, ids: Sequence[int], *, chunk: int = 512) -> NDArray[np.float32]:
        """Float32 logits (T, V) of every position of `ids`, read from an empty cache."""
        return np.concatenate(list(self.score_chunks(ids, chunk=chunk)))

    def score_chunks(self, ids: Sequence[int], *, chunk: int = 512) -> Iterator[NDArray[np.float32]]:
        """The rows of `score` chunk by chunk: at V = 150k all rows of a long text do not fit in memory."""
        _check_piece(ids, chunk)
        self.reset()
        self._check_room(len(ids))
        tokens = np.asarray(ids, np.int64)
        for start in range(0, len(tokens), chunk):
            rows = self._run_piece(tokens[start : start + chunk], last_only=False)
            yield rows.astype(np.float32, copy=False)  # a buffer of this piece's own

    def kv_rows(self) -> dict[str, NDArray[Any]]:
        """Keys and values read so far, (1, kv_heads, length, head_dim) by the cache input's name, as
        stored.
        """
        return self._cache.rows(self.length)

    def reset(self) -> None:
        """Forget everything read so far."""
        self.truncate(0)

    def truncate(self, length: int) -> None:
        """Forget what was read from position `length` on."""
        if not 0 <= length <= self.length:
            raise UserError(f"cannot cut a cache of {self.length} positions to {length}")
        self._cache.truncate(length)
        self.length = length

    def close(self) -> None:
        """Give the engine and the buffers back; the session cannot be used afterwards."""
        held = ("_step_binding", "_piece_binding", "_float_binding", "_cache", "_engine", "_float_engine")
        for name in held:
            self.__dict__.pop(name, None)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run_piece(self, tokens: NDArray[np.int64], *, last_only: bool) -> NDArray[Any]:
        """Logits (rows, V) of a piece: one row where the graph can leave the others out."""
        rows = 1 if last_only and self._sliced else len(tokens)
        self._from[0] = -rows
        logits = self._bind_logits(self._piece_binding, rows)
        self._piece_binding.bind_ortvalue_input("input_ids", share(tokens[None]))
        self._run(self._piece_binding, len(tokens))
        return logits[0]

    def _run_in_float(self, tokens: NDArray[np.int64]) -> NDArray[Any]:
        """Logits (1, V) of a piece's last position, through the graph that attends in float."""
        if self._float_engine is None:
            self._float_engine = open_float_prefill(self._bundle, self.threads)
            self._float_binding = self._new_binding(self._float_engine)
            self._past_length = np.zeros(1, np.int64)
            self._float_binding.bind_ortvalue_input(PAST_LENGTH, share(self._past_length))
        binding, start = self._float_binding, self.length
        self._past_length[0] = start
        self._from[0] = -1 if self._sliced else 0
        logits = self._bind_logits(binding, 1 if self._sliced else len(tokens))
        rows = self._cache.bind_new_rows(binding, len(tokens))
        binding.bind_ortvalue_input("input_ids", share(tokens[None]))
        self._run(binding, len(tokens), self._float_engine)
        self._cache.store(rows, start)
        return logits[0]

    def _run(self, binding: Any, tokens: int, engine: ort.InferenceSession | None = None) -> None:
        end = self.length + tokens
        if "attention_mask" in self._inputs:
            binding.bind_ortvalue_input("attention_mask", self._mask.of(end))
        if "position_ids" in self._inputs:
            binding.bind_ortvalue_input("position_ids", share(self._positions[:, self.length : end]))
        self._cache.bind_run(binding)
        (engine or self._engine).run_with_iobinding(binding, self._run_options if tokens > 1 else None)
        self._cache.took(binding)
        self.length = end

    def _check_room(self, tokens: int) -> None:
        if self.length + tokens > self.capacity:
            raise UserError(
                f"{self.length + tokens} tokens do not fit a session of {self.capacity}: "
                "shorten the prompt or open it with a larger capacity"
            )


def usable_cpus() -> int:
    """CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_piece(ids: Sequence[int], chunk: int) -> None:
    if len(ids) == 0:
        raise UserError("there is nothing to read: the prompt has no tokens")
    if chunk < 1:
        raise UserError(f"a prefill chunk must have at least 1 token, got {chunk}")


def _logits_layout(engine: ort.InferenceSession, bundle: Bundle) -> tuple[type, int]:
    """Type and vocabulary size of the logits, the latter from the config where the graph leaves it open."""
    logits = next(value for value in engine.get_outputs() if value.name == "logits")
    size = logits.shape[-1] if isinstance(logits.shape[-1], int) else bundle.config.get("vocab_size")
    if not isinstance(size, int):
        raise UserError(
            f"{bundle.folder}: neither the graph nor config.json (vocab_size) tells the vocabulary size"
        )
    return numpy_type(logits.type), size


def _refuse_unknown_inputs(inputs: set[str], graph: DecoderGraph) -> None:
    unknown = inputs - _KNOWN_INPUTS - set(graph.past)
    if unknown:
        raise UserError(
            f"{graph.folder} wants the input {min(unknown)}, which this engine cannot fill: "
            "export the model as a text decoder with past_key_values"
        )


def _open_engine(graph: DecoderGraph, threads: int, weights: Weights, bundle: Bundle) -> ort.InferenceSession:
    options = session_options(threads)
    with untiled_attention() if can_attend_in_float(graph.model) else nullcontext():
        if weights == "mapped":
            return open_mapped(graph, options, bundle)
        return open_session(graph.model.SerializeToString(), options, graph.folder)
