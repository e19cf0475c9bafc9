"""The parent's side of the child process: start it under the ceiling, give orders, read events, bury it.

A dead child is a value (`ChildDied`: how, and whether for want of memory), never a traceback. A child that
says nothing for `patience_s` hangs and is killed. Leaving the context leaves no process behind, whatever
happened. This module knows the protocol and nothing of summaries.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from seatrial.errors import UserError
from seatrial.simulate.ceiling import Ceiling, describe_death
from seatrial.simulate.child import BAD_INPUT, MEMORY, says_memory
from seatrial.simulate.memory_watch import MemoryUse, MemoryWatch, read_exact

PATIENCE_S = 300.0
# Nothing is said while the interpreter starts and the weights are read: more patience than between tokens.
OPENING_FACTOR = 10

Event = dict[str, Any]


class ChildDied(Exception):
    """The child ended, or an order failed, before it was done.

    `kind`: memory | hang | killed | crashed | error; `detail` is one plain phrase.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind, self.detail = kind, detail


@dataclass(frozen=True)
class Opened:
    """What the child said when the bundle was open."""

    host_s: float
    threads: int
    providers: list[str]
    weight_bytes_per_token: int
    kv_bytes_per_position: int
    kv_allocated_bytes: int


class Worker:
    """One child process under one ceiling. Use as a context manager.

    Raises `ChildDied` from every order. `UserError` when the child refuses its input.
    """

    def __init__(self, ceiling: Ceiling, *, patience_s: float = PATIENCE_S) -> None:
        self.ceiling, self.patience_s = ceiling, patience_s
        self._kills_before = ceiling.kills()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self._process = self._start()
        self._events: queue.Queue[Event | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, name="seatrial-events", daemon=True)
        self._reader.start()
        accounted = None if ceiling.enforced else ceiling.limit_bytes
        self.watch = MemoryWatch(self._process.pid, limit_bytes=accounted, on_over=self._process.kill)
        try:
            self._check_ceiling()
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._process.pid

    def _start(self) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "seatrial.simulate.child", str(os.getpid())]
        return subprocess.Popen(
            self.ceiling.command(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            encoding="utf-8",
            bufsize=1,
            # Ctrl-C in the terminal goes to the parent alone, which then ends the child in order.
            start_new_session=True,
            env={**os.environ, "PYTHONUTF8": "1"},
        )

    def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(ValueError, OSError):
            for line in self._process.stdout:
                try:
                    self._events.put(json.loads(line))
                except json.JSONDecodeError:
                    break  # the last line of a child that was killed while it wrote
        self._events.put(None)

    def _check_ceiling(self) -> None:
        """Never a run without a ceiling that looks like one with."""
        hello = self._expect("hello")
        if not self.ceiling.holds(self.pid, hello["data_limit_bytes"]):
            raise ChildDied("error", f"the child is not under its {self.ceiling.mechanism} ceiling")

    def open(self, **order: Any) -> Opened:
        """Opens a bundle; see `child` for the fields."""
        self._send({"do": "open", **order})
        event = self._expect("opened")
        return Opened(**{key: value for key, value in event.items() if key != "event"})

    def hold_ballast(self, amount_bytes: int) -> None:
        """Makes the child take `amount_bytes` for good."""
        self._send({"do": "ballast", "bytes": amount_bytes})
        self._expect("ballast")

    def generate(self, **order: Any) -> Iterator[Event]:
        """Events of one generation, up to and including `done`."""
        self._send({"do": "generate", **order})
        while True:
            event = self._next()
            yield event
            if event["event"] == "done":
                if event["memory"] is not None:
                    self.watch.note(MemoryUse(**event["memory"], samples=1, source="smaps_rollup"))
                return

    def _send(self, order: dict[str, Any]) -> None:
        try:
            assert self._process.stdin is not None
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, OSError):
            raise self._death() from None

    def _expect(self, name: str) -> Event:
        event = self._next(self.patience_s * OPENING_FACTOR)
        if event["event"] != name:
            raise ChildDied("error", f"the child said {event['event']} where {name} was expected")
        return event

    def _next(self, patience_s: float | None = None) -> Event:
        patience_s = patience_s or self.patience_s
        try:
            event = self._events.get(timeout=patience_s)
        except queue.Empty:
            self._process.kill()
            raise ChildDied("hang", f"no sign of life for {patience_s:g} s, stopped") from None
        if event is None:
            raise self._death()
        if event["event"] == "failed":
            self._raise_failure(event)
        return event

    def _raise_failure(self, event: Event) -> None:
        if event["kind"] == BAD_INPUT:
            raise UserError(event["message"])
        kind = MEMORY if event["kind"] == MEMORY else "error"
        raise ChildDied(kind, event["message"] if kind == "error" else f"out of memory ({event['message']})")

    def _death(self) -> ChildDied:
        """How the child ended, once its pipe is closed."""
        try:
            code = self._process.wait(timeout=self.patience_s)
        except subprocess.TimeoutExpired:
            # It closed its pipe but does not end.
            self._process.kill()
            code = self._process.wait()
        told = self.last_words()
        memory = (
            self.watch.over or self.ceiling.kills() > self._kills_before or (code != 0 and says_memory(told))
        )
        detail = describe_death(code, killed_for_memory=memory)
        if memory:
            return ChildDied("memory", detail)
        if code < 0:
            return ChildDied("killed", detail)
        return ChildDied("crashed", f"{detail}: {told.splitlines()[-1]}" if told else detail)

    def last_words(self, limit: int = 4000) -> str:
        """The end of what the child wrote on standard error."""
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(0, self._stderr.tell() - limit))
        return self._stderr.read().decode("utf-8", "replace").strip()

    def close(self) -> MemoryUse:
        """Ends the child if it lives and gives its memory peaks."""
        if self._process.poll() is None:
            self.watch.note(read_exact(self.pid))
            self._process.kill()
        peak = self.watch.stop()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout, self._stderr):
            # A pipe whose other end is gone may still hold an order that was never read.
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]
        return peak

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
