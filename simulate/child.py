"""The process that holds the model: opens a bundle and generates, told by JSON lines on standard input.

It runs under the memory ceiling, so it imports as little as it can: no tokenizer, no clock, no transcript. It
answers with one JSON line per event (`hello`, `opened`, `prefill`, `token`, `done`, `failed`), on a copy of
standard output; whatever native code prints goes to standard error. When the parent goes, it goes.

Orders:
    {"do": "open", "bundle", "capacity", "threads", "weights", "thresholds", "eos"}
    {"do": "generate", "keep", "ids", "max_tokens", "chunk", "prefill_s", "decode_s", "source"}
    {"do": "ballast", "bytes"}
`keep` positions of what was read before stay; `ids` follow them. `prefill_s` (one per chunk) and `decode_s`
(one per token) are the device's seconds to keep pace with, or null. `source` are the ids that the text may
be made of, for the guard's rule on foreign words, or null.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.export.session import Session
    from seatrial.guards.breakdown import BreakdownState, Thresholds
    from seatrial.simulate.pace import Pacer

MEMORY, BAD_INPUT, ERROR = "memory", "bad-input", "error"

_MEMORY_WORDS = (
    "bad_alloc",
    "bad allocation",
    "failed to allocate",
    "cannot allocate memory",
    "memory allocation",
    "memoryerror",
    "failed to map segment",
)


class Child:
    """The state between orders: the session, and what guards and end tokens are."""

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._session: Session | None = None
        self._eos: frozenset[int] = frozenset()
        self._thresholds: Thresholds | None = None
        self._ballast: Any = None

    def say(self, event: str, **fields: Any) -> None:
        """One event. A closed pipe means that the parent is gone."""
        finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in fields.items()}
        self._out.write(json.dumps({"event": event, **finite}, allow_nan=False) + "\n")
        self._out.flush()

    def obey(self, order: dict[str, Any]) -> None:
        known: dict[str, Callable[..., None]] = {
            "open": self._open,
            "generate": self._generate,
            "ballast": self._hold,
        }
        known[order.pop("do")](**order)

    def _open(
        self,
        *,
        bundle: str,
        capacity: int,
        threads: int | None,
        weights: str,
        thresholds: dict[str, Any],
        eos: list[int],
    ) -> None:
        from seatrial.export.bundle import open_bundle
        from seatrial.export.session import Session
        from seatrial.guards.breakdown import Thresholds

        began = time.perf_counter()
        opened = open_bundle(Path(bundle), check_hashes=False)  # the parent checked
        session = Session(opened, capacity=capacity, threads=threads, weights=weights)  # type: ignore[arg-type]
        self._session, self._eos, self._thresholds = session, frozenset(eos), Thresholds(**thresholds)
        self.say(
            "opened",
            host_s=time.perf_counter() - began,
            threads=session.threads,
            providers=session._engine.get_providers(),  # what runs, not what was asked for
            weight_bytes_per_token=session.weight_bytes_per_token,
            kv_bytes_per_position=session.kv_bytes_per_token(1),
            kv_allocated_bytes=session.kv_allocated_bytes,
        )

    def _hold(self, *, bytes: int) -> None:
        """Really takes memory: every page is written, so that the rest of the machine feels it."""
        import numpy as np

        self._ballast = np.ones(bytes, np.uint8)
        self.say("ballast", bytes=int(self._ballast.nbytes))

    def _generate(
        self,
        *,
        keep: int,
        ids: list[int],
        max_tokens: int,
        chunk: int,
        prefill_s: list[float] | None,
        decode_s: list[float] | None,
        source: list[int] | None = None,
    ) -> None:
        from seatrial.guards.breakdown import BreakdownGuard
        from seatrial.simulate.pace import Pacer

        assert self._session is not None
        pacer = Pacer() if decode_s is not None and prefill_s is not None else None
        logits = self._read(self._session, keep, ids, chunk, pacer, prefill_s or [])
        guard = BreakdownGuard(len(logits), self._thresholds, end_ids=self._eos, source_ids=source)
        reason = "budget"
        last_s = began_s = time.perf_counter()
        work_s, limited = 0.0, False
        for index in range(max_tokens):
            token = int(logits.argmax())
            state = guard.observe(logits, token, best=token)
            if token in self._eos:
                reason = "end"
                break
            now_s = time.perf_counter()
            times = {"host_s": work_s + now_s - began_s, "real_s": now_s - last_s}
            last_s = now_s
            self._tell_token(index, token, times, limited, state)
            if state.trip is not None:
                reason = "breakdown"
                break
            if index + 1 == max_tokens:
                break
            logits = self._session.step(token, copy=False)  # chosen from and judged before the next one
            work_s = time.perf_counter() - now_s
            if pacer is not None and decode_s is not None:
                limited = pacer.pace(decode_s[index])
            began_s = time.perf_counter()
        trip = None if guard.trip is None else vars(guard.trip)
        self.say("done", reason=reason, trip=trip, memory=_own_memory(), clock_steps_back=_steps_back(pacer))

    def _read(
        self,
        session: Session,
        keep: int,
        ids: list[int],
        chunk: int,
        pacer: Pacer | None,
        device_s: list[float],
    ) -> Any:
        session.truncate(keep)
        began = time.perf_counter()
        if pacer is not None:
            pacer.start()
        pieces = iter(device_s)

        def on_chunk(done: int, of: int) -> None:
            if pacer is not None:
                pacer.pace(next(pieces, 0.0))
            self.say("prefill", done=done, of=of, host_s=time.perf_counter() - began)

        return session.prefill(ids, chunk=chunk, on_chunk=on_chunk)

    def _tell_token(
        self, index: int, token: int, times: dict[str, float], limited: bool, state: BreakdownState
    ) -> None:
        """`times`: `host_s` is what the machine worked, `real_s` what went by, sleep included."""
        signals = state.signals
        self.say(
            "token",
            index=index,
            id=token,
            **times,
            host_limited=limited,
            entropy=signals.entropy,
            max_prob=signals.max_prob,
            margin=signals.margin,
            varentropy=signals.varentropy,
            logprob=signals.logprob,
            run=state.run,
            smoothed=state.smoothed_nats,
            repeats=state.repeats,
            alert=state.alert,
            monotony=state.monotony,
            foreign=state.foreign,
        )


def _steps_back(pacer: Pacer | None) -> int:
    return 0 if pacer is None else pacer.backward_steps


def _own_memory() -> dict[str, int] | None:
    """Private and mapped bytes at the end of a generation, exact; None where /proc cannot be read."""
    from seatrial.simulate.memory_watch import read_exact

    use = read_exact(os.getpid())
    return None if use is None else {"private_bytes": use.private_bytes, "mapped_bytes": use.mapped_bytes}


def _data_limit() -> int | None:
    """This process's own RLIMIT_DATA, so that the parent can see whether the ceiling holds."""
    try:
        import resource
    except ImportError:
        return None
    soft = resource.getrlimit(resource.RLIMIT_DATA)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def _die_with_parent(parent: int) -> None:
    """Linux: SIGKILL when the parent ends, however it ends. Elsewhere the closed pipe does it."""
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


def says_memory(told: str) -> bool:
    """Whether words of Python, numpy, OpenBLAS, the loader or onnxruntime say that memory was refused."""
    low = told.lower()
    return any(word in low for word in _MEMORY_WORDS)


def _is_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or says_memory(str(error))


def serve(orders: IO[str], out: IO[str]) -> int:
    """Obeys orders until standard input ends. Failures are events; only a bug ends it with a traceback."""
    from seatrial.errors import UserError

    child = Child(out)
    child.say("hello", pid=os.getpid(), data_limit_bytes=_data_limit())
    for line in orders:
        try:
            child.obey(json.loads(line))
        except UserError as error:
            # onnxruntime's own "bad allocation" comes wrapped: it is no fault of the input.
            child.say("failed", kind=MEMORY if _is_memory(error) else BAD_INPUT, message=str(error))
        except BrokenPipeError:
            return 1
        except Exception as error:  # the parent must learn of it whatever it is; it decides what to do
            kind = MEMORY if _is_memory(error) else ERROR
            child.say("failed", kind=kind, message=f"{type(error).__name__}: {error}")
    return 0


def main() -> int:
    """Entry point of `python -m seatrial.simulate.child PARENT_PID`."""
    _die_with_parent(int(sys.argv[1]))
    # Native code that prints must not break the protocol: events get their own copy of standard output.
    events = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    orders = os.fdopen(os.dup(sys.stdin.fileno()), "r", encoding="utf-8")
    try:
        return serve(orders, events)
    except (BrokenPipeError, KeyboardInterrupt):
        return 1


if __name__ == "__main__":
    code = main()
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    # Skips the interpreter's teardown: everything was flushed, and a closed pipe must not raise again.
    os._exit(code)
