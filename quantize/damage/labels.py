"""Text -> labelled characters, figures and names: the number and the name guard's own readings, as classes.

Nothing is recognised here that the guards do not recognise. Of a figure, the guard tells the span and the
kind; which of its characters are digits, numerals in words or the unit is read off the characters. Loads the
Chinese tagger when a text has Chinese, never at import.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seatrial.guards.numbers import Quantity, extract_quantities
from seatrial.quantize.damage.classes import (
    AMOUNT,
    BIT,
    DATE_TIME,
    DIGIT,
    NUMBER_WORD,
    UNIT,
    Item,
    LabelledText,
)
from seatrial.quantize.damage.proper_nouns import ProperNoun, labelled_names

_DIGITS = re.compile(r"\d+(?:[.,:/'’．，：](?=\d)\d+)*")
_CHINESE_NUMERAL = re.compile(
    r"第?(?:[零〇○一二两三四五六七八九十廿卅百千万亿兆壹贰叁肆伍陆柒捌玖拾佰仟半几数]|(?<![百千])分之|(?<=[\d一二两三四五六七八九十〇零百])点(?=[\d一二两三四五六七八九十〇零])|成)+"
)
_ENGLISH_NUMERAL = re.compile(
    r"\b(?:zero|nil|oh|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|"
    r"eigh|nine)teen|twenty|thirty|fou?rty|fifty|sixty|seventy|eighty|ninety|hundreds?|thousands?|millions?|"
    r"billions?|trillions?|dozens?|half|halves|quarters?|thirds?|first|second|(?:four|fif|six|seven|eigh|nin|ten|"
    r"eleven|twelf|\w+teen)ths?|(?:twent|thirt|fort|fift|sixt|sevent|eight|ninet)ieth|hundredth|point|minus|"
    r"couple|mn?|bn|tn|k)\b",
    re.IGNORECASE,
)
# Words that join or hedge; they are neither numeral nor unit.
_CODE = re.compile(r"[^\s,;]*\d[^\s,;]*")  # a word of a code or a phone number
_PERCENT_WORD = re.compile(r"[百千]分之")
_JOINING = re.compile(
    r"\b(?:and|or|to|of|a|an|the|about|around|some|nearly|almost|over|under|more|less|than|at|most|least|up|"
    r"between|from|per|every|each|in|only|just)\b|[约近超过多少余至到和与或—–~～-]|左右|以上|以下",
    re.IGNORECASE,
)
_MEANING = {"amount": AMOUNT, "date": DATE_TIME, "time": DATE_TIME, "weekday": DATE_TIME}


def label_text(text: str) -> LabelledText:
    """Class bits of every character, and the figures and names with their sizes. Pure; raises on no text."""
    names = labelled_names(text)
    figures = [q for q in extract_quantities(text) if not _inside_a_name(q, names)]
    names = [n for n in names if not any(_overlap(n.span, q.span) for q in figures)]
    masks = np.zeros(len(text), np.uint8)
    for found in _DIGITS.finditer(text):
        masks[found.start() : found.end()] |= BIT[DIGIT]
    for quantity in figures:
        _label_figure(text, quantity, masks)
    for name in names:
        masks[name.span[0] : name.span[1]] = BIT[name.label]
    _clear_spaces(text, masks)
    return LabelledText(text, masks, _items(text, figures, names, masks))


def _inside_a_name(quantity: Quantity, names: Sequence[ProperNoun]) -> bool:
    return any(n.span[0] <= quantity.span[0] and quantity.span[1] <= n.span[1] for n in names)


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def _label_figure(text: str, quantity: Quantity, masks: NDArray[np.uint8]) -> None:
    """Form of each character, and the meaning of the whole where it has one."""
    start, end = quantity.span
    meaning = BIT[_MEANING[quantity.kind]] if quantity.kind in _MEANING else 0
    words = np.zeros(end - start, bool)
    for pattern in (_CHINESE_NUMERAL, _ENGLISH_NUMERAL):
        for found in pattern.finditer(text, start, end):
            words[found.start() - start : found.end() - start] = True
    for found in _PERCENT_WORD.finditer(text, start, end):
        words[found.start() - start : found.end() - start] = False
    if quantity.kind == "weekday":
        words[:] = False
    digits = masks[start:end] & BIT[DIGIT] != 0
    joining = np.zeros(end - start, bool)
    for found in _JOINING.finditer(text, start, end):
        joining[found.start() - start : found.end() - start] = True
    part = masks[start:end]
    part |= meaning
    part[words & ~digits] |= BIT[NUMBER_WORD]
    if not meaning and quantity.kind != "identifier":
        part[~words & ~digits & ~joining] |= BIT[UNIT]
    elif quantity.kind == "identifier":
        for found in _CODE.finditer(text, start, end):
            part[found.start() - start : found.end() - start] |= BIT[DIGIT]


def _clear_spaces(text: str, masks: NDArray[np.uint8]) -> None:
    for place, character in enumerate(text):
        if character.isspace():
            masks[place] = 0


def _items(
    text: str, figures: Sequence[Quantity], names: Sequence[ProperNoun], masks: NDArray[np.uint8]
) -> tuple[Item, ...]:
    seen: set[str] = set()
    items = []
    for q in figures:
        key = _figure_key(q)
        items.append(Item(q.span, _figure_class(q, masks), _size(q.text), key in seen))
        seen.add(key)
    for n in names:
        before = _folded(text[: n.span[0]])
        items.append(Item(n.span, n.label, _size(n.bare), _folded(n.bare) in before))
    return tuple(sorted(items, key=lambda item: item.span))


def _figure_class(quantity: Quantity, masks: NDArray[np.uint8]) -> str:
    """An amount or a date; else digits or words, whichever the figure is written in."""
    if quantity.kind in _MEANING:
        return _MEANING[quantity.kind]
    part = masks[quantity.span[0] : quantity.span[1]]
    return DIGIT if (part & BIT[DIGIT]).any() else NUMBER_WORD


def _figure_key(quantity: Quantity) -> str:
    """What two writings of one value have in common."""
    if quantity.fields:
        return str(quantity.fields)
    if quantity.value is None:
        return quantity.string or _folded(quantity.text)
    return f"{quantity.value.normalize()}..{quantity.high} {quantity.unit}"


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _size(text: str) -> int:
    """Digits of a figure that has any, else characters; at least one."""
    digits = sum(character.isdecimal() for character in text)
    return digits or max(1, sum(not character.isspace() for character in text))
