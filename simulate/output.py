"""The output folder of a run: whole files or none, and no leftovers of an earlier run under the same names.

Knows names and how to write; what is in the files is the run's.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from seatrial.errors import UserError

SUMMARY, PARTIAL, RESULT, TRACE = "summary.txt", "summary.partial.txt", "result.json", "trace.jsonl"


def prepare_output(folder: Path) -> None:
    """Makes the folder, proves that it can be written and removes what an earlier run left there.

    Raises `UserError` when it cannot be made or written: before any work, not after it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}-{secrets.token_hex(4)}"
        probe.write_bytes(b"x")
        probe.unlink()
        for name in (SUMMARY, PARTIAL, RESULT, TRACE):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot write to the output folder {folder}: {error.strerror or error}; give another with --out"
        ) from None


def write_atomically(path: Path, text: str) -> None:
    """UTF-8 text under a temporary name, then renamed; on failure OSError, and nothing is left."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")
    try:
        with temporary.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
