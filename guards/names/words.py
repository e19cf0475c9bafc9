"""Words of scripts with capitals: where a sentence opens, what is an everyday word, where a name ends."""

from __future__ import annotations

import re
from dataclasses import dataclass

from seatrial.guards.names.fold import APOSTROPHES, WORD, fold
from seatrial.guards.names.lexicon import EnglishLexicon, english

_SENTENCE_END = re.compile(r"(?:^|[.!?:;…。！？：\n•|])[\s\"'“”‘’()\[\]*_#>\-–—]*$")
_LONGEST_GAP = 40  # characters between two words, beyond which the second opens a sentence


@dataclass(frozen=True)
class Token:
    """A word with its place, and `folded`, what it is compared by."""

    text: str
    start: int
    end: int
    folded: str
    opens: bool  # first word of a sentence

    @property
    def capital(self) -> bool:
        """Begins like a name: with a capital, or with one behind d', l', o'."""
        start = 2 if self.text[1:2] in APOSTROPHES and len(self.text) > 2 else 0
        return self.text[0].isupper() or self.text[start].isupper()


def tokens(text: str) -> list[Token]:
    """Words of `text` in scripts with letters, with what they are compared by."""
    found: list[Token] = []
    previous_end, opens = 0, True
    for match in WORD.finditer(text):
        gap = text[previous_end : match.start()]
        if gap != " ":
            opens = not found or _opens(gap, found[-1])
        elif found:
            opens = False
        found.append(Token(match.group(), match.start(), match.end(), fold(match.group()), opens))
        previous_end = match.end()
    return found


def _opens(gap: str, before: Token) -> bool:
    if len(gap) > _LONGEST_GAP:
        return True
    if gap.startswith(".") and "\n" not in gap and abbreviates(before):
        return False
    return _SENTENCE_END.search(gap) is not None


def abbreviates(word: Token) -> bool:
    """Does a full stop behind the word belong to it (Dr., St., J.)?"""
    return word.folded in english().titles | english().abbreviations or _is_initial(word.text)


def _is_initial(text: str) -> bool:
    return len(text) == 1 and text.isupper() and text != "I"


def everyday(token: Token, lexicon: EnglishLexicon) -> bool:
    """A word that is no name though it may have a capital; contractions (It's, I'm) by their first part."""
    if "&" in token.text:
        return False
    head = re.split(rf"[{APOSTROPHES}]", token.text)[0].lower()
    return not {head, token.folded}.isdisjoint(lexicon.plain_words)


def end_of_name(token: Token) -> int:
    """Where the name ends, a possessive ending left out."""
    for ending in (f"{a}{s}" for a in APOSTROPHES for s in "sS"):
        if token.text.endswith(ending):
            return token.end - 2
    return token.end
