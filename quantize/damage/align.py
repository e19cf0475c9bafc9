"""Labelled characters -> labelled tokens.

A token's label is that of its first labelled character: the space in front of a word has none. A character
may take several tokens (one hanzi is up to three byte-level pieces): each of them has its label. Spans come
from the tokenizer, which knows which bytes a token stands for; that they follow the text is checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import UserError
from seatrial.quantize.damage.classes import COPIES, POSITIONS, LabelledText, length_bucket

Span = tuple[int, int]
_SINGLE, _FIRST, _INNER, _LAST = range(1, len(POSITIONS))


@dataclass(frozen=True, slots=True)
class TokenLabels:
    """One row per token (T,): class bits, and places in `POSITIONS`, `LENGTHS` and `COPIES`.

    `item` is the number of the figure or name the token belongs to, -1 for none.
    """

    masks: NDArray[np.uint8]
    position: NDArray[np.uint8]
    length: NDArray[np.uint8]
    copy: NDArray[np.uint8]
    item: NDArray[np.int32]


def align(labelled: LabelledText, spans: Sequence[Span]) -> TokenLabels:
    """Labels of the tokens whose character spans are given, (T, 2), in order.

    Raises `UserError` when the spans leave the text or run backwards: labels would be those of other tokens.
    """
    _check(labelled.text, spans)
    first, item_of = _first_characters(labelled, spans), _item_of_characters(labelled)
    inside = first >= 0
    item = np.where(inside, item_of[first], -1).astype(np.int32)
    masks = np.where(inside, labelled.masks[first] if len(labelled.masks) else 0, 0).astype(np.uint8)
    return TokenLabels(masks, _positions(item), *_item_facts(labelled, item), item)


def _check(text: str, spans: Sequence[Span]) -> None:
    before = 0
    for start, end in spans:
        if not (0 <= start <= end <= len(text)) or start < before - 1:
            raise UserError(
                f"the tokenizer's offsets ({start}, {end}) do not follow its text of {len(text)} characters; "
                "export the bundle again with a fast tokenizer"
            )
        before = max(before, start)


def _first_characters(labelled: LabelledText, spans: Sequence[Span]) -> NDArray[np.int64]:
    """The first labelled character of each token; the first character where none is labelled, -1 if empty."""
    found = np.full(len(spans), -1, np.int64)
    for token, (start, end) in enumerate(spans):
        if end > start:
            labelled_at = np.flatnonzero(labelled.masks[start:end])
            found[token] = start + (labelled_at[0] if len(labelled_at) else 0)
    return found


def _item_of_characters(labelled: LabelledText) -> NDArray[np.int32]:
    owner = np.full(len(labelled.text) + 1, -1, np.int32)
    for number, item in enumerate(labelled.items):
        owner[item.span[0] : item.span[1]] = number
    return owner


def _positions(item: NDArray[np.int32]) -> NDArray[np.uint8]:
    """Where each token stands among the tokens of its item."""
    if not len(item):
        return np.zeros(0, np.uint8)
    starts = np.append(True, item[1:] != item[:-1])
    ends = np.append(item[1:] != item[:-1], True)
    where = np.where(starts, np.where(ends, _SINGLE, _FIRST), np.where(ends, _LAST, _INNER))
    return np.where(item >= 0, where, 0).astype(np.uint8)


def _item_facts(
    labelled: LabelledText, item: NDArray[np.int32]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Length bucket and copyable-or-novel of each token's item, 0 outside."""
    lengths = [length_bucket(i.size) for i in labelled.items] + [0]
    copies = [COPIES.index("copyable" if i.copyable else "novel") for i in labelled.items] + [0]
    return np.asarray(lengths, np.uint8)[item], np.asarray(copies, np.uint8)[item]
