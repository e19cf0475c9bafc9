"""How Chinese characters sound, without tones: for homophones in speech recognition.

pypinyin is loaded when the first name is not found as it is written.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from seatrial.guards.names.lexicon import chinese


@lru_cache(maxsize=4096)
def reading(name: str, surname: str | None) -> tuple[str, ...]:
    """Syllables of `name`; a surname by its reading as a surname (单 shan, 曾 zeng, 仇 qiu)."""
    from pypinyin import Style, lazy_pinyin

    syllables: list[str] = lazy_pinyin(name, style=Style.NORMAL)
    head = surname or ""
    if name.startswith(head) and head in (special := chinese().surname_readings):
        syllables[: len(head)] = special[head]
    return tuple(syllables)


@lru_cache(maxsize=65536)
def sounds(character: str) -> frozenset[str]:
    """Every reading of one character, that as a surname included; empty for what is no Han character."""
    from pypinyin.pinyin_dict import pinyin_dict

    plain = unicodedata.normalize("NFD", pinyin_dict.get(ord(character), ""))
    found = {re.sub(r"[^a-z]", "", syllable) for syllable in plain.split(",")} - {""}
    return frozenset(found | set(chinese().surname_readings.get(character, ())[:1]))


def alike(name: str, text: str) -> str | None:
    """A pattern for what sounds like `name` in `text`; None where a syllable of it does not occur there."""
    among = _characters(text)
    classes = [_like(character, among) for character in name if sounds(character)]
    if not classes or not all(classes):
        return None
    return "".join(f"[{''.join(sorted(same))}]" for same in classes)


@lru_cache(maxsize=8)
def _characters(text: str) -> frozenset[str]:
    return frozenset(text)


def _like(character: str, among: frozenset[str]) -> frozenset[str]:
    own = sounds(character)
    return frozenset(other for other in among if not own.isdisjoint(sounds(other)))
