"""What was said where, as bags of words: the ground on which a statement and a name are held together.

Words are cut to stems by a short list of endings, small words fall away; Chinese is taken as pairs of
neighbouring characters, which needs no segmentation. Rare words weigh more. No language model, so what is
said in quite other words is not seen, and a wrong polarity neither.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import zip_longest

from seatrial.guards.names.fold import WORD, fold
from seatrial.guards.names.lexicon import chinese, english
from seatrial.guards.names.script import simplified
from seatrial.guards.names.source import Source
from seatrial.guards.sentences import split_sentences

Span = tuple[int, int]
MAX_PASSAGE = 700  # characters; a long turn is cut at its sentences, so that it does not cover everything

_ENDINGS = (
    *("ations", "ation", "ments", "ment", "ingly", "edly", "ness", "ings", "ing", "ies", "ied", "ers"),
    *("er", "ed", "es", "ly", "s", "e"),
)
_HAN_RUN = re.compile(r"[\u3400-\u9fff]+")


@dataclass(frozen=True)
class Passage:
    """A turn or a part of one; `speaker` is None where nobody is named."""

    speaker: str | None
    span: Span
    stems: frozenset[str]


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """`word` (folded), a short form written out, without its ending; at least three letters are left."""
    word = english().short_forms.get(word, word)
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def stems(text: str) -> set[str]:
    """What a statement is compared by."""
    small = english().stop_words
    found = {stem(w) for m in WORD.finditer(text) if len(w := fold(m.group())) > 1 and w not in small}
    empty = chinese().empty_characters
    for run in _HAN_RUN.finditer(simplified(text)):
        characters = run.group()
        pairs = (characters[i : i + 2] for i in range(len(characters) - 1))
        found.update(pair for pair in pairs if pair[0] not in empty and pair[1] not in empty)
    return found


class Passages:
    """Passages of a source in order, with an index from stem to passages."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self.passages = list(passages)
        self._postings: dict[str, list[int]] = defaultdict(list)
        for number, passage in enumerate(self.passages):
            for word in passage.stems:
                self._postings[word].append(number)

    def at(self, character: int) -> int | None:
        """The passage that holds a place of the source."""
        number = bisect_right(self._starts, character) - 1
        return number if number >= 0 and character < self.passages[number].span[1] else None

    @cached_property
    def _starts(self) -> list[int]:
        return [passage.span[0] for passage in self.passages]

    @cached_property
    def speakers(self) -> frozenset[str]:
        return frozenset(p.speaker for p in self.passages if p.speaker)

    def weight(self, word: str) -> float:
        """Inverse document frequency; 0 for a word that the source does not have."""
        held = len(self._postings.get(word, ()))
        return math.log((len(self.passages) + 1) / (held + 0.5)) if held else 0.0

    def coverage(self, words: Iterable[str], *, unknown: float = 0.0) -> dict[int, float]:
        """Passage -> share in 0..1 of the weight of `words` that it covers.

        A word that the source does not have counts `unknown` times as much as one that stands there once.
        """
        once = math.log((len(self.passages) + 1) / 1.5)
        weights = {word: self.weight(word) or unknown * once for word in set(words)}
        total = sum(weights.values())
        covered: dict[int, float] = defaultdict(float)
        for word in sorted(weights):
            for number in self._postings.get(word, ()):
                covered[number] += weights[word] / total if total else 0.0
        return covered

    def known_weight(self, words: Iterable[str]) -> float:
        return sum(self.weight(word) for word in set(words))

    def best_by_speaker(self, words: Iterable[str]) -> Mapping[str, tuple[float, Span]]:
        """Speaker -> (coverage, span) of the passage that covers the words best."""
        best: dict[str, tuple[float, Span]] = {}
        for number, share in sorted(self.coverage(words).items()):
            passage = self.passages[number]
            if passage.speaker and share > best.get(passage.speaker, (0.0, passage.span))[0]:
                best[passage.speaker] = (share, passage.span)
        return best


def sentence_passages(source: Source, named: Sequence[Span]) -> Iterator[Passage]:
    """Sentences; one that names nothing belongs to the sentence before it too: the Coral plan. We took it.

    `named` are the spans of names in order.
    """
    starts = [start for start, _ in named]
    for speaker, (start, end) in _turns(source):
        found = [(start + s.span[0], start + s.span[1]) for s in split_sentences(source.text[start:end])]
        for (first, last), following in zip_longest(found, found[1:]):
            nameless = following and bisect_right(starts, following[1]) == bisect_left(starts, following[0])
            said = source.text[first : following[1] if nameless else last]
            yield Passage(speaker, (first, last), frozenset(stems(said)))


def _turns(source: Source) -> list[tuple[str | None, Span]]:
    return [(t.speaker, t.span) for t in source.turns] or [(None, (0, len(source.text)))]


def turn_passages(source: Source) -> Iterator[Passage]:
    """Turns, the long ones cut at sentences."""
    for speaker, (start, end) in _turns(source):
        for first, last in _pieces(source.text, start, end):
            said = source.text[first:last]
            trimmed = first + len(said) - len(said.lstrip()), first + len(said.rstrip())
            if trimmed[0] < trimmed[1]:
                yield Passage(speaker, trimmed, frozenset(stems(said)))


def _pieces(text: str, start: int, end: int) -> Iterator[Span]:
    if end - start <= MAX_PASSAGE:
        yield start, end
        return
    begin = start
    last = start
    for sentence in split_sentences(text[start:end]):
        stop = start + sentence.span[1]
        if stop - begin > MAX_PASSAGE and last > begin:
            yield begin, last
            begin = last
        last = stop
    yield begin, end
