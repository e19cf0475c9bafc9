"""Which of several names: what the summary says of one name, where the source says it of its rival.

Rivals are names that a text puts in one list (Bronze, Silver and Gold; Leeds or York), or before one and the
same word (the Gold plan, the Silver plan). Where the words around the name of the summary are found around a
rival and hardly around the name itself, that is a finding: the right word in the wrong place passes every
look-up. People are left to `speech.py`: they do much that is said of them in passing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from seatrial.guards.names.lexicon import english
from seatrial.guards.names.model import NameMention
from seatrial.guards.names.passages import Passages, Span, sentence_passages, stems
from seatrial.guards.names.script import HAN, simplified
from seatrial.guards.names.source import Source, folded_words
from seatrial.guards.sentences import split_sentences
from seatrial.guards.verdict import Nearest

MARGIN = 0.30  # by which the rival's surroundings must cover the words better
ENOUGH = 0.45  # and how much of them they must cover at all
_LISTED = re.compile(r"\s*(?:[,、，/]|[,，]?\s*(?:and|or|和|与|或|及|以及))\s*(?:the |a )?", re.IGNORECASE)
_CLAUSE = re.compile(
    r"[,;:，；：、()（）]|\s[-–—]\s|\b(?:and|but|while|whereas|although|however)\b|但是?|而|然后|之后",
    re.IGNORECASE,
)
_LARGEST_GROUP = 40  # a longer list is an index, not a choice
_LONGEST_JOINT = 12
_LONGEST_CLAUSE = 240  # characters on each side of the name
_HEAD = re.compile(r" ([a-z]{3,})")

Name = str  # what a name is compared by


def wrongly_placed(told: Source, heard: Source) -> Iterator[tuple[NameMention, Nearest]]:
    """Names of the summary whose surroundings belong to a rival, with the rival in the source."""
    rivals = _rivals(told, heard) if told.mentions else {}
    asked = {name: rivals[name] for m in told.mentions if (name := _name(m)) in rivals}
    if not asked:
        return
    ground = _Ground(heard, set(asked).union(*asked.values()))
    for sentence in split_sentences(told.text):
        inside = told.mentions_in(sentence.span)
        if len(inside) > _LARGEST_GROUP:
            continue
        own_words = {w for m in inside for w in stems(m.text)}
        for mention in inside:
            others: set[Name] = asked.get(_name(mention), set())
            clause = _clause(told.text, sentence.span, mention.span)
            if not others or _holds_rival(inside, mention, clause, others):
                continue
            words = stems(told.text[slice(*clause)]) - own_words - _head(told.text, mention)
            found = ground.better_place(_name(mention), frozenset(words), frozenset(others))
            if found is not None:
                yield mention, Nearest(heard.text[slice(*found)], found)


class _Ground:
    """Where the source has the names in question, sentence by sentence."""

    def __init__(self, heard: Source, names: set[Name]) -> None:
        self._passages = Passages(sentence_passages(heard, [mention.span for mention in heard.mentions]))
        self._inside: dict[int, dict[Name, Span]] = defaultdict(dict)  # passage -> names in it
        self._known: set[Name] = set()
        for name in sorted(names):
            for span in _places(name, heard):
                number = self._passages.at(span[0])
                if number is not None:
                    self._inside[number].setdefault(name, span)
                    self._known.add(name)
        self._answers: dict[tuple[Name, frozenset[str]], Span | None] = {}

    def better_place(self, name: Name, words: frozenset[str], others: frozenset[Name]) -> Span | None:
        """Where a rival stands among the words of the clause, if it clearly does."""
        if name not in self._known:
            return None
        if (name, words) not in self._answers:
            self._answers[name, words] = self._better_place(name, words, others)
        return self._answers[name, words]

    def _better_place(self, name: Name, words: frozenset[str], others: frozenset[Name]) -> Span | None:
        words -= {w for other in others for w in stems(other)}
        own, best, place = 0.0, 0.0, None
        for number, share in sorted(self._passages.coverage(words, unknown=1.0).items()):
            inside = self._inside.get(number, {})
            if name in inside:
                own = max(own, share)
            rival = min(others & inside.keys(), default=None)
            if rival is not None and share > best:
                best, place = share, inside[rival]
        return place if best >= ENOUGH and best - own >= MARGIN else None


def _head(text: str, mention: NameMention) -> set[str]:
    """The word that the name stands before: the plan of the Gold plan tells the rivals not apart."""
    head = _HEAD.match(text, mention.span[1])
    return stems(head.group(1)) if head else set()


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
            if len(group) > _LARGEST_GROUP:
                continue
            for name in group:
                rivals[name] |= {other for other in group if not _same_word(name, other)}
    return {name: others for name, others in rivals.items() if others}


def _same_word(one: Name, other: Name) -> bool:
    """Canada and Canadian are no rivals."""
    least = min(len(one), len(other))
    return one == other or (least > 3 and one[: least - 1] == other[: least - 1])


def _lists(source: Source) -> Iterator[set[Name]]:
    group: list[NameMention] = []
    for left, right in pairwise(m for m in source.mentions if m.kind != "person"):
        gap = left.span[1], right.span[0]
        if gap[1] - gap[0] <= _LONGEST_JOINT and _LISTED.fullmatch(source.text, *gap):
            group = group or [left]
            group.append(right)
        elif group:
            yield {_name(m) for m in group}
            group = []
    if group:
        yield {_name(m) for m in group}


def _same_head(source: Source) -> Iterator[set[Name]]:
    heads: dict[str, set[Name]] = defaultdict(set)
    verbs = english().reporting | english().third_person
    for mention in source.mentions:
        head = _HEAD.match(source.text, mention.span[1])
        if head and mention.kind == "name" and stems(head.group(1)) and head.group(1) not in verbs:
            heads[head.group(1).removesuffix("s")].add(_name(mention))
    yield from (names for names in heads.values() if len(names) > 1)


def _clause(text: str, sentence: Span, name: Span) -> Span:
    """The part of the sentence around the name, up to the next comma or conjunction on both sides."""
    start, end = max(sentence[0], name[0] - _LONGEST_CLAUSE), min(sentence[1], name[1] + _LONGEST_CLAUSE)
    for cut in _CLAUSE.finditer(text, start, end):
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
