"""Who said it: a statement that the summary gives to one speaker, weighed against what each speaker said.

Where another speaker's best passage covers the words of the statement clearly better than the best passage of
the one who is named, that is a finding. Assent (agreed, 同意) is left alone: what X agrees to was said by
somebody else. Several speakers may have said it, and a speaker may have said it in other words: the margin is
therefore wide, and the finding is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from seatrial.guards.names.fold import WORD, fold
from seatrial.guards.names.lexicon import chinese, english
from seatrial.guards.names.model import NameMention, Script
from seatrial.guards.names.passages import Passages, Span, stems, turn_passages
from seatrial.guards.names.script import simplified
from seatrial.guards.names.source import Source, folded_words
from seatrial.guards.names.tagger import has_chinese
from seatrial.guards.sentences import split_sentences
from seatrial.guards.verdict import Nearest

MARGIN = 0.30  # by which the other speaker's best passage must cover the statement better
ENOUGH = 0.45  # and how much of it that passage must cover at all
LEAST_STEMS = 3  # words of the statement that the source has
_AUXILIARY = (
    r"(?:also|then|did|does|do|has|have|had|was|were|is|would|could|not|didn['’]t|doesn['’]t"
    r"|\w+ly|even|first)"
)
_VERB = re.compile(rf"(?:['’]s)?,?\s+(?:{_AUXILIARY}\s+){{0,3}}([a-z]+)\b")

_TURN = re.compile(r"\b(?:but|while|whereas|although|however)\b|；|而|但")


@dataclass(frozen=True)
class Statement:
    """`content` is the span of what the summary says that `speaker` (a label of the source) said."""

    speaker: str
    named: Span
    content: Span
    script: Script


def wrongly_given(told: Source, heard: Source) -> Iterator[tuple[Statement, str, Nearest]]:
    """Statements that another speaker made, with that speaker and the passage."""
    given = statements(told, heard) if len(heard.speakers) > 1 else []
    passages = Passages(turn_passages(heard) if given else ())
    for statement in given:
        words = stems(told.text[slice(*statement.content)])
        if sum(1 for w in words if passages.weight(w) > 0) < LEAST_STEMS:
            continue
        best = dict(passages.best_by_speaker(words))
        own, _ = best.pop(statement.speaker, (0.0, (0, 0)))
        if not best:
            continue
        speaker, (share, span) = max(best.items(), key=lambda item: (item[1][0], item[0]))
        if share >= ENOUGH and share - own >= MARGIN:
            yield statement, speaker, Nearest(heard.text[slice(*span)], span)


def _script(name: str) -> Script:
    return "han" if has_chinese(name) else "latin"


def _end_of_statement(text: str, start: int, end: int) -> int:
    """A turn of the sentence (but, while) leads to somebody or something else."""
    turn = _TURN.search(text, start, end) if start >= 0 else None
    return turn.start() if turn else end


def statements(told: Source, heard: Source) -> list[Statement]:
    """What the summary gives to whom, in order."""
    found: list[Statement] = []
    for sentence in split_sentences(told.text):
        found += _in_sentence(told, sentence.span, heard)
    return found


def _in_sentence(told: Source, sentence: Span, heard: Source) -> list[Statement]:
    text = told.text
    openings = [
        (label, named, verb_end)
        for label, named in _named_speakers(told, sentence, heard.speakers)
        if (verb_end := _reporting_verb(text, named[1], sentence[1])) is not None
    ]
    ends = [named[0] for _, named, _ in openings[1:]] + [sentence[1]] * bool(openings)
    return [
        Statement(label, named, (said, _end_of_statement(text, said, end)), _script(text[slice(*named)]))
        for (label, named, said), end in zip(openings, ends, strict=True)
        if said >= 0
    ]


def _named_speakers(told: Source, sentence: Span, labels: tuple[str, ...]) -> list[tuple[str, Span]]:
    """Speakers of the source in one sentence: by the whole label, or by a part of one label only."""
    piece = told.text[slice(*sentence)]
    words = [(m.start(), m.end(), fold(m.group())) for m in WORD.finditer(piece)]
    found = [
        (label, (sentence[0] + start, sentence[0] + end))
        for label in labels
        for start, end in (_latin_label(label, words, piece) or _han_label(label, piece))
    ]
    found += [
        (label, mention.span)
        for mention in told.mentions_in(sentence)
        if (label := speaker_of(mention, labels))
    ]
    kept: list[tuple[str, Span]] = []
    for label, span in sorted(found, key=lambda f: (f[1][0], -f[1][1])):
        if not kept or span[0] >= kept[-1][1][1]:
            kept.append((label, span))
    return kept


def _latin_label(label: str, words: list[tuple[int, int, str]], piece: str) -> list[Span]:
    folded = folded_words(label)
    number = re.search(r"\s?\d+$", label)
    found: list[Span] = []
    for at in range(len(words) - len(folded) + 1 if folded else 0):
        if tuple(word for _, _, word in words[at : at + len(folded)]) != folded:
            continue
        start, end = words[at][0], words[at + len(folded) - 1][1]
        if number is None or re.match(rf"\s?{number.group().strip()}\b", piece[end:]):
            found.append((start, end + (len(number.group()) if number else 0)))
    return found


def _han_label(label: str, piece: str) -> list[Span]:
    if len(label) < 2 or folded_words(label):
        return []
    return [m.span() for m in re.finditer(re.escape(simplified(label)), simplified(piece))]


def speaker_of(mention: NameMention, labels: tuple[str, ...]) -> str | None:
    """The one label that the mention can stand for: Karen for Karen Whitfield, 陈总 for 陈思远."""
    fitting = [label for label in labels if _may_stand_for(mention, label)]
    return fitting[0] if len(fitting) == 1 else None


def _may_stand_for(mention: NameMention, label: str) -> bool:
    if mention.script == "latin":
        return set(folded_words(mention.given or mention.text)) <= set(folded_words(label))
    if mention.given is None and mention.surname:
        return simplified(mention.surname) in (
            simplified(label)[:1],
            simplified(label)[:2],
            simplified(label)[-1:],
        )
    return simplified(mention.bare) in simplified(label)


def _reporting_verb(text: str, start: int, end: int) -> int | None:
    """Where the statement begins; -1 behind a verb of assent or of asking, None without a verb of speech."""
    behind = text[start:end]
    verb = _VERB.match(behind)
    if verb:
        word = verb.group(1)
        if word in english().asserting:
            return start + verb.end()
        return -1 if word in english().reporting | english().assent else None
    lexicon = chinese()
    head = re.match(r"[^，。；：！？,;:\n]{0,12}", simplified(behind))
    opening = head.group() if head else ""
    verbs = {*lexicon.reporting, *lexicon.asserting, *lexicon.assent}
    first = min(((at, -len(verb), verb) for verb in verbs if (at := opening.find(verb)) >= 0), default=None)
    if first is None or first[0] > 6:
        return None
    return start + first[0] + len(first[2]) if first[2] in lexicon.asserting else -1
