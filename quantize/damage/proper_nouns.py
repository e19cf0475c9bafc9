"""Which class a name of the guard has: person, or organisation or place.

The guard finds proper nouns and tells the kind where a title, a suffix or the tagger shows it. For the rest
("name") it has no need to know; classes do. The words around decide: "in Sheffield" is a place, two
capitalised words with no such cue are a person, a word that stands in a person's name elsewhere is that
person.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from seatrial.guards.names import NameMention, find_names
from seatrial.quantize.damage.classes import PERSON, PLACE

_IN_A_PLACE = re.compile(
    r"\b(?:in|at|near|outside|across|around|beyond|(?:town|city|village|county|port|island|river|lake) of)"
    r"(?:\s+the)?\s+$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ProperNoun:
    """A name with its span, class, and the text without its title."""

    span: tuple[int, int]
    label: str
    bare: str


def labelled_names(text: str) -> list[ProperNoun]:
    """People, organisations and places of `text`, in order, without calendar words and doubtful names."""
    mentions = find_names(text)
    people = _words(m for m in mentions if m.kind == "person" or _looks_like_a_person(text, m))
    return [
        ProperNoun(m.span, _class(text, m, people), m.bare or m.text)
        for m in mentions
        if m.kind != "calendar" and (m.certain or m.kind != "name")
    ]


def _class(text: str, mention: NameMention, people: set[str]) -> str:
    if mention.kind != "name":
        return PERSON if mention.kind == "person" else PLACE
    if _cue(text, mention):
        return PLACE
    return PERSON if _looks_like_a_person(text, mention) or mention.text.casefold() in people else PLACE


def _looks_like_a_person(text: str, mention: NameMention) -> bool:
    words = len(mention.text.split())
    return mention.kind == "name" and mention.certain and 2 <= words <= 3 and not _cue(text, mention)


def _cue(text: str, mention: NameMention) -> bool:
    return _IN_A_PLACE.search(text, max(0, mention.span[0] - 24), mention.span[0]) is not None


def _words(mentions: Iterable[NameMention]) -> set[str]:
    return {word.casefold() for mention in mentions for word in mention.text.split()}
