"""The source as the names guard sees it: its turns, its names, its words in order, all with spans.

Everything here is built once per source and only as far as it is asked for: Chinese is tagged when the
summary holds a Chinese name.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property

from seatrial.guards.names.chinese import find_chinese, without_overlaps
from seatrial.guards.names.english import find_english
from seatrial.guards.names.fold import WORD, fold
from seatrial.guards.names.model import NameMention
from seatrial.guards.names.people import People
from seatrial.guards.names.reach import sentences_that_matter
from seatrial.guards.names.script import HAN, simplified
from seatrial.guards.names.tagger import has_chinese
from seatrial.guards.names.turns import is_generic, read_turns
from seatrial.guards.names.words import Token, tokens
from seatrial.guards.transcript import Turn

Folded = tuple[str, ...]


def folded_words(text: str) -> Folded:
    return tuple(fold(m.group()) for m in WORD.finditer(text))


class Source:
    """A text with what its names are compared by."""

    def __init__(self, text: str, known: Iterable[str] = (), *, labelled: bool = True) -> None:
        """`labelled` is False for a summary: what stands before a colon there is a heading, not a speaker."""
        self.text = text
        self._labelled = labelled
        self.known = tuple(known)
        self._wanted: Callable[[str], object] = has_chinese

    def known_from(self, other: Source) -> None:
        """People named in another text are known here too; to be called before names are asked for."""
        self.known += other.named_speakers

    def only_for(self, mentions: Iterable[NameMention]) -> None:
        """Leave sentences untagged that cannot matter for these names; to be called before names are read."""
        names = [(simplified(m.bare), m) for m in mentions if m.script == "han" and m.kind == "person"]
        pattern = sentences_that_matter(names, self.han) if names else None
        self._wanted = lambda piece: pattern is not None and pattern.search(simplified(piece))

    def knows(self, mention: NameMention) -> bool:
        """Is it one of the people who are known besides, whole or in part?"""
        if mention.script == "han":
            return any(simplified(mention.bare) == simplified(name) for name in self.known)
        words = set(folded_words(mention.given or mention.text))
        return any(words and words <= set(folded_words(name)) for name in self.known)

    @cached_property
    def turns(self) -> list[Turn]:
        return read_turns(self.text) if self._labelled else []

    @cached_property
    def speakers(self) -> tuple[str, ...]:
        """Speaker labels, and the people who are known besides."""
        return tuple(dict.fromkeys(t.speaker for t in self.turns if t.speaker))

    @cached_property
    def named_speakers(self) -> tuple[str, ...]:
        return tuple(s for s in self.speakers if not is_generic(s)) + self.known

    @cached_property
    def main_script(self) -> str:
        """The script that carries the text: two characters of Chinese weigh about as much as a word."""
        return "han" if len(HAN.findall(self.text)) > 2 * len(WORD.findall(self.text)) else "latin"

    # ---- words with letters

    @cached_property
    def words(self) -> list[Token]:
        return tokens(self.text)

    @cached_property
    def _starts(self) -> list[int]:
        at, starts = 0, []
        for word in self.words:
            starts.append(at)
            at += len(word.folded)
        return [*starts, at]

    @cached_property
    def _joined(self) -> str:
        return "".join(word.folded for word in self.words)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Folded word -> its positions in `words`."""
        places: dict[str, list[int]] = defaultdict(list)
        for position, word in enumerate(self.words):
            places[word.folded].append(position)
        return dict(places)

    def find_words(self, folded: str, limit: int = 256) -> list[tuple[int, int]]:
        """[first, last) word ranges whose letters, run together, are `folded`."""
        found: list[tuple[int, int]] = []
        at = self._joined.find(folded) if folded else -1
        while at >= 0 and len(found) < limit:
            first, last = bisect_left(self._starts, at), bisect_left(self._starts, at + len(folded))
            if self._starts[first] == at and self._starts[last] == at + len(folded):
                found.append((first, last))
            at = self._joined.find(folded, at + 1)
        return found

    def span(self, words: tuple[int, int]) -> tuple[int, int]:
        return self.words[words[0]].start, self.words[words[1] - 1].end

    @cached_property
    def english(self) -> list[NameMention]:
        known = [folded_words(name) for name in self.named_speakers]
        return find_english(self.text, [k for k in known if k])

    # ---- Chinese

    @cached_property
    def han(self) -> str:
        """The text in simplified characters, place for place."""
        return simplified(self.text)

    @cached_property
    def chinese(self) -> list[NameMention]:
        known = [s for s in self.named_speakers if has_chinese(s)]
        return find_chinese(self.text, known, self._wanted)

    def mentions_in(self, span: tuple[int, int]) -> list[NameMention]:
        """Names that begin in a stretch of the text."""
        return self.mentions[slice(*(bisect_left(self._mention_starts, place) for place in span))]

    @cached_property
    def _mention_starts(self) -> list[int]:
        return [mention.span[0] for mention in self.mentions]

    @cached_property
    def people(self) -> People:
        """The Chinese people, each once."""
        return People(self.chinese)

    @cached_property
    def mentions(self) -> list[NameMention]:
        """Names of both scripts in order, none inside another."""
        return without_overlaps([*self.english, *self.chinese])
