"""Rows of finished documents on disk: the run can go on after an interruption, and memory stays flat.

One small file per document, written under a temporary name. The folder's name says for which bundles, texts
and settings the rows are; rows of others are never read.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnxruntime

from seatrial.quantize.damage.forced import ITEM, TOKEN, Scored


class Store:
    """Scored documents by number, in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def has(self, number: int) -> bool:
        """Whether this document is done."""
        return self._file(number).is_file()

    def write(self, number: int, scored: Scored) -> None:
        """Keep a document's rows; they appear whole or not at all."""
        handle, name = tempfile.mkstemp(dir=self.folder, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            np.savez(file, tokens=scored.tokens, items=scored.items)
        Path(name).replace(self._file(number))

    def read(self, number: int) -> Scored:
        """The rows of a document."""
        with np.load(self._file(number), allow_pickle=False) as found:
            return Scored(found["tokens"].astype(TOKEN), found["items"].astype(ITEM))

    def documents(self, count: int) -> Iterator[Scored]:
        """The rows of documents 0 to count - 1, one in memory at a time."""
        for number in range(count):
            yield self.read(number)

    def remove(self) -> None:
        """Forget everything."""
        shutil.rmtree(self.folder)

    def _file(self, number: int) -> Path:
        return self.folder / f"document-{number:05d}.npz"


# What decides the rows of a document: labels come from the guards, figures from here.
_SOURCES = ("seatrial.guards", "seatrial.quantize.damage", "seatrial.quantize.probes")


@cache
def code_mark() -> str:
    """Changes when the code behind the rows does, or onnxruntime's version: older rows must not be taken."""
    digest = hashlib.sha256(onnxruntime.__version__.encode())
    for package in _SOURCES:
        root = Path(str(files(package)))
        for file in sorted(file for file in root.rglob("*") if file.suffix in (".py", ".toml", ".txt")):
            digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()


def key_of(*parts: str) -> str:
    """A folder name for what these texts describe: 16 hex digits."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode() + part.encode())
    return digest.hexdigest()[:16]
