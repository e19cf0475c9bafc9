"""Which of several names: what the summary says of one name, where the source says it of its rival.

Rivals are names that a text puts in one list (Bronze, Silver and Gold; Leeds or York), or before one and the
same word (the Gold plan, the Silver plan). Where the words around the name of the summary are found around a
rival and hardly around the name itself, that is a finding: the right word in the wrong place passes every
look-up.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from seatrial.guards.names.model import NameMention
from seatrial.guards.names.passages import Passages, Span, sentence_passages, stems
from seatrial.guards.names.source import HAN, Source, folded_words, simplified
from seatrial.guards.sentences import split_sentences
from seatrial.guards.verdict import Nearest

MARGIN = 0.30  # by which the rival's surroundings must cover the words better
ENOUGH = 0.45  # and how much of them they must cover at all
_LISTED = re.compile(r"\s*(?:[,、，/]|[,，]?\s*(?:and|or|和|与|或|及|以及))\s*(?:the |a )?", re.IGNORECASE)
_CLAUSE = re.compile(
    r"[,;:，；：、()（）]|\s[-–—]\s|\b(?:and|but|while|whereas|although|however)\b|但是?|而|然后|之后",
    re.IGNORECASE,
)
_HEAD = re.compile(r" ([a-z]{3,})")

Name = str  # what a name is compared by


def wrongly_placed(told: Source, heard: Source) -> Iterator[tuple[NameMention, Nearest]]:
    """Names of the summary whose surroundings belong to a rival, with the rival in the source."""
    rivals = _rivals(told, heard) if told.mentions else {}
    if not any(rivals.get(_name(mention)) for mention in told.mentions):
        return
    passages = Passages(sentence_passages(heard, [mention.span for mention in heard.mentions]))
    places = {name: _places(name, heard) for name in rivals}
    for sentence in split_sentences(told.text):
        inside = [m for m in told.mentions if sentence.span[0] <= m.span[0] < sentence.span[1]]
        for mention in inside:
            clause = _clause(told.text, sentence.span, mention.span)
            others = rivals.get(_name(mention), set())
            if not others or not places[_name(mention)] or _holds_rival(inside, mention, clause, others):
                continue
            names = {w for m in inside for w in stems(m.text)} | {w for other in others for w in stems(other)}
            words = stems(told.text[slice(*clause)]) - names - _head(told.text, mention)
            found = _better(mention, words, others, places, passages)
            if found is not None:
                yield mention, Nearest(heard.text[slice(*found)], found)


def _head(text: str, mention: NameMention) -> set[str]:
    """The word that the name stands before: the plan of the Gold plan tells the rivals not apart."""
    head = _HEAD.match(text, mention.span[1])
    return stems(head.group(1)) if head else set()


def _better(
    mention: NameMention,
    words: set[str],
    others: set[Name],
    places: dict[Name, list[Span]],
    passages: Passages,
) -> Span | None:
    """Where a rival stands among the words of the clause, if it clearly does."""
    coverage = passages.coverage(words, unknown=1.0)
    own = max((coverage.get(n, 0.0) for n, _ in _around(places, _name(mention), passages)), default=0.0)
    best = max(
        (
            (coverage.get(n, 0.0), span)
            for other in sorted(others)
            for n, span in _around(places, other, passages)
        ),
        default=(0.0, (0, 0)),
    )
    return best[1] if best[0] >= ENOUGH and best[0] - own >= MARGIN else None


def _around(places: dict[Name, list[Span]], name: Name, passages: Passages) -> Iterator[tuple[int, Span]]:
    for span in places.get(name, ()):
        number = passages.at(span[0])
        if number is not None:
            yield number, span


def _name(mention: NameMention) -> Name:
    return (
        simplified(mention.bare)
        if mention.script == "han"
        else " ".join(folded_words(mention.given or mention.text))
    )


def _places(name: Name, source: Source) -> list[Span]:
    """Where the source has the name, marked as a name or not."""
    if HAN.match(name):
        return [(m.start(), m.end()) for m in re.finditer(re.escape(name), source.han)]
    return [source.span(words) for words in source.find_words(name.replace(" ", ""))]


def _rivals(told: Source, heard: Source) -> dict[Name, set[Name]]:
    rivals: dict[Name, set[Name]] = defaultdict(set)
    speakers = {" ".join(folded_words(s)) or simplified(s) for s in heard.speakers}  # see `speech.py`
    for source in (told, heard):
        for group in (g - speakers for g in (*_lists(source), *_same_head(source))):
            for name in group:
                rivals[name] |= {other for other in group if not _same_word(name, other)}
    return rivals


def _same_word(one: Name, other: Name) -> bool:
    """Canada and Canadian are no rivals."""
    least = min(len(one), len(other))
    return one == other or (least > 3 and one[: least - 1] == other[: least - 1])


def _lists(source: Source) -> Iterator[set[Name]]:
    group: list[NameMention] = []
    for left, right in pairwise(source.mentions):
        if _LISTED.fullmatch(source.text, left.span[1], right.span[0]):
            group = group or [left]
            group.append(right)
        elif group:
            yield {_name(m) for m in group}
            group = []
    if group:
        yield {_name(m) for m in group}


def _same_head(source: Source) -> Iterator[set[Name]]:
    heads: dict[str, set[Name]] = defaultdict(set)
    for mention in source.mentions:
        head = _HEAD.match(source.text, mention.span[1])
        if head and mention.kind == "name" and stems(head.group(1)):
            heads[head.group(1).removesuffix("s")].add(_name(mention))
    yield from (names for names in heads.values() if len(names) > 1)


def _clause(text: str, sentence: Span, name: Span) -> Span:
    """The part of the sentence around the name, up to the next comma or conjunction on both sides."""
    start, end = sentence
    for cut in _CLAUSE.finditer(text, *sentence):
        if cut.end() <= name[0]:
            start = cut.end()
        elif cut.start() >= name[1]:
            end = cut.start()
            break
    return start, end


def _holds_rival(inside: list[NameMention], mention: NameMention, clause: Span, others: set[Name]) -> bool:
    """In a list every name has the same surroundings."""
    return any(
        m is not mention and _name(m) in others and clause[0] - 6 <= m.span[0] <= clause[1] + 6
        for m in inside
    )
