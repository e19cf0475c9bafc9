"""The trace of a run: JSON lines, a row per prefill chunk and per token, written as they happen.

It lies under a temporary name until it is closed, so a trace that is there is whole. A full disk ends the
trace, not the run: `problem` says so.
"""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from seatrial.simulate.output import temporary_name

FORMAT = 1


class TraceWriter:
    """Writes rows to `path`, which appears when the writer is closed. Context manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problem: str | None = None
        self._partial = temporary_name(path)
        self._stream: IO[str] | None = self._partial.open("w", encoding="utf-8")
        self.row("trace", format=FORMAT)

    def row(self, event: str, **fields: Any) -> None:
        """One row; figures that are not finite are null."""
        if self._stream is None:
            return
        finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in fields.items()}
        self._try(json.dumps({"event": event, **finite}, ensure_ascii=False, allow_nan=False) + "\n")

    def _try(self, line: str) -> None:
        try:
            if self._stream is not None:
                self._stream.write(line)
        except OSError as error:
            self._give_up(error)

    def close(self) -> None:
        """Makes the trace appear under its name."""
        if self._stream is None:
            return
        try:
            self._stream.close()
            self._partial.replace(self.path)
        except OSError as error:
            self._give_up(error)
        self._stream = None

    def _give_up(self, error: OSError) -> None:
        self.problem = f"the trace ends early: {self.path}: {error.strerror or error}"
        with contextlib.suppress(OSError):
            if self._stream is not None:
                self._stream.close()
        self._stream = None
        with contextlib.suppress(OSError):
            self._partial.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
