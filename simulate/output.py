"""The output folder of a run: whole files or none, and no leftovers of an earlier run under the same names.

Knows names and how to write; what is in the files is the run's.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

import psutil

from seatrial.errors import UserError

SUMMARY, PARTIAL, RESULT, TRACE = "summary.txt", "summary.partial.txt", "result.json", "trace.jsonl"
SOURCE = "source.txt"  # the transcript as the guards saw it: reports show the summary beside it
NAMES = (SUMMARY, PARTIAL, RESULT, TRACE, SOURCE)


def prepare_output(folder: Path, inputs: Iterable[Path] = ()) -> None:
    """Makes the folder, proves that it can be written and removes what an earlier run left there.

    Raises `UserError` when it cannot be made or written, and when one of `inputs` (also through a link)
    is a file that would be replaced: before any work, not after it.
    """
    _refuse_inputs(folder, inputs)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}-{secrets.token_hex(4)}"
        probe.write_bytes(b"x")
        probe.unlink()
        for name in NAMES:
            (folder / name).unlink(missing_ok=True)
        _remove_stale(folder)
    except OSError as error:
        raise UserError(
            f"cannot write to the output folder {folder}: {error.strerror or error}; give another with --out"
        ) from None


def _refuse_inputs(folder: Path, inputs: Iterable[Path]) -> None:
    for name in NAMES:
        target = folder / name
        for given in inputs:
            if target.exists() and given.exists() and target.samefile(given):
                raise UserError(f"{given} is also an output ({target}): give another folder with --out")


def temporary_name(path: Path) -> Path:
    """A name beside `path` that says whose it is, so that a later run knows when nobody's."""
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.part")


def _remove_stale(folder: Path) -> None:
    """Temporary files of runs that were killed before they could tidy up."""
    for file in folder.glob(".*.part"):
        match = re.search(r"\.(\d+)\.[0-9a-f]{8}\.part$", file.name)
        if match is not None and not psutil.pid_exists(int(match[1])):
            file.unlink(missing_ok=True)


def write_atomically(path: Path, text: str) -> None:
    """UTF-8 text under a temporary name, then renamed; on failure OSError, and nothing is left."""
    temporary = temporary_name(path)
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
