"""Chinese word classes: text in, tagged words with exact spans out.

A sentence is tagged on its own, so the order of the sentences cannot change the result, and a long stretch
without a stop is cut, so a text without stops costs no more than another. The network is opened when the
first Chinese sentence must be read, never at import, and numpy and onnxruntime with it.
Deliberately not known here: what a name is. That is `chinese.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seatrial.guards.names.lac import Network

MAX_SENTENCE = 160  # characters; a longer stretch without a stop is cut at its last comma, else hard
_SENTENCE = re.compile(r"[^。！？!?；;\n\r…]*[。！？!?；;\n\r…]+[”’」』）)\"']*|[^。！？!?；;\n\r…]+")
_SOFT_BREAK = re.compile(r"[，,、：: ](?=[^，,、：: ]*$)")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]{2}")


@dataclass(frozen=True)
class Word:
    """A segment of the text: `tag` is PER, LOC, ORG, TIME or LAC's part of speech (n, v, r, m, q, ...)."""

    text: str
    tag: str
    span: tuple[int, int]


def has_chinese(text: str) -> bool:
    """Two ideographs in a row: the least that a Chinese name needs."""
    return _HAN.search(text) is not None


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """(start, sentence) pieces that cover the text; none is longer than `MAX_SENTENCE`."""
    for found in _SENTENCE.finditer(text):
        start, piece = found.start(), found.group()
        while len(piece) > MAX_SENTENCE:
            soft = _SOFT_BREAK.search(piece[:MAX_SENTENCE])
            cut = soft.end() if soft and soft.end() > MAX_SENTENCE // 4 else MAX_SENTENCE
            yield start, piece[:cut]
            start, piece = start + cut, piece[cut:]
        yield start, piece


def tag(text: str, wanted: Callable[[str], object] = has_chinese) -> list[Word]:
    """Tagged words of the Chinese sentences of `text`, and of those only the ones that are `wanted`."""
    pieces = [(start, piece) for start, piece in sentences(text) if has_chinese(piece) and wanted(piece)]
    if not pieces:
        return []
    tagged = _network().tag_many([piece for _, piece in pieces])
    return [
        Word(word, label, (start + at, start + at + len(word)))
        for (start, _), words in zip(pieces, tagged, strict=True)
        for word, label, at in words
    ]


@cache
def _network() -> Network:
    from seatrial.guards.names.lac import Network

    return Network()
