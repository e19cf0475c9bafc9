"""The classes of the damage report, and what is known of each character and token of a text.

A class is a bit, because a token may be in two: the digits of "$37.5" are digits and part of an amount. Where
the figure is not an amount or a date, its form alone counts (digit, number word, unit). `other` is the
absence of all of them, and what the others are compared with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import UserError

DIGIT: Final = "digit"
NUMBER_WORD: Final = "number_word"
DATE_TIME: Final = "date_time"
AMOUNT: Final = "amount"
UNIT: Final = "unit"
PERSON: Final = "person"
PLACE: Final = "organisation_place"
OTHER: Final = "other"

NAMED: Final = (DIGIT, NUMBER_WORD, DATE_TIME, AMOUNT, UNIT, PERSON, PLACE)
CLASSES: Final = (*NAMED, OTHER)
BIT: Final = {name: 1 << place for place, name in enumerate(NAMED)}

# Where in its figure or name a token stands, and how long that one is, in digits or else characters.
POSITIONS: Final = ("outside", "single", "first", "inner", "last")
LENGTHS: Final = ("outside", "1-2", "3-4", "5-8", "9+")
_LENGTH_ENDS: Final = (2, 4, 8)
COPIES: Final = ("outside", "novel", "copyable")


@dataclass(frozen=True, slots=True)
class Item:
    """A figure or a name: its span in characters, main class, and size in digits or else characters.

    `copyable` tells that the same value, or the same name, stands earlier in the text.
    """

    span: tuple[int, int]
    label: str
    size: int
    copyable: bool


@dataclass(frozen=True, slots=True)
class LabelledText:
    """Class bits of every character, (characters,), and the items in order, without overlaps."""

    text: str
    masks: NDArray[np.uint8]
    items: tuple[Item, ...]


def class_matrix(masks: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Who is in which class: (n,) bits -> (n, classes), `other` last."""
    named = (masks[:, None] >> np.arange(len(NAMED), dtype=np.uint8) & 1).astype(bool)
    return np.concatenate([named, ~named.any(axis=1, keepdims=True)], axis=1)


def length_bucket(size: int) -> int:
    """The place in `LENGTHS` of an item of this size."""
    return 1 + sum(size > end for end in _LENGTH_ENDS)


def known_class(name: str) -> str:
    """`name` if there is such a class; raises `UserError` with the list of classes."""
    if name not in CLASSES:
        raise UserError(f"there is no class {name!r}: use one of {', '.join(CLASSES)}")
    return name
