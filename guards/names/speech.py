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
from seatrial.guards.names.passages import Passages, Span, stems
from seatrial.guards.names.source import Source, folded_words, simplified
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


def wrongly_given(told: Source, heard: Source, passages: Passages) -> Iterator[tuple[Statement, Nearest]]:
    """Statements that another speaker made, with the passage where it was made."""
    if len(passages.speakers) < 2:
        return
    for statement in statements(told, heard):
        words = stems(told.text[slice(*statement.content)])
        if sum(1 for w in words if passages.weight(w) > 0) < LEAST_STEMS:
            continue
        best = dict(passages.best_by_speaker(words))
        own, _ = best.pop(statement.speaker, (0.0, (0, 0)))
        if not best:
            continue
        speaker, (share, span) = max(best.items(), key=lambda item: (item[1][0], item[0]))
        if share >= ENOUGH and share - own >= MARGIN:
            yield statement, Nearest(f"{speaker}: {heard.text[slice(*span)].strip()}"[:200], span)


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
        found += _in_sentence(told.text, sentence.span, heard)
    return found


def _in_sentence(text: str, sentence: Span, heard: Source) -> list[Statement]:
    openings = [
        (label, named, verb_end)
        for label, named in _named_speakers(text, sentence, heard.speakers)
        if (verb_end := _reporting_verb(text, named[1], sentence[1])) is not None
    ]
    ends = [named[0] for _, named, _ in openings[1:]] + [sentence[1]] * bool(openings)
    return [
        Statement(label, named, (said, _end_of_statement(text, said, end)), _script(text[slice(*named)]))
        for (label, named, said), end in zip(openings, ends, strict=True)
        if said >= 0
    ]


def _named_speakers(text: str, sentence: Span, labels: tuple[str, ...]) -> list[tuple[str, Span]]:
    """Labels of the source as they stand in one sentence, the longest first where they overlap."""
    piece = text[slice(*sentence)]
    found: list[tuple[str, Span]] = []
    words = [(m.start(), m.end(), fold(m.group())) for m in WORD.finditer(piece)]
    for label in labels:
        folded = folded_words(label)
        digits = re.search(r"\d+$", label)
        if folded:
            for at in range(len(words) - len(folded) + 1):
                if tuple(w for _, _, w in words[at : at + len(folded)]) == folded:
                    start, end = words[at][0], words[at + len(folded) - 1][1]
                    if digits and not (number := re.match(rf"\s?{digits.group()}\b", piece[end:])):
                        continue
                    found.append((label, (start, end + (number.end() if digits and number else 0))))
        elif len(label) > 1:
            key, plain = simplified(label), simplified(piece)
            found += [(label, (m.start(), m.end())) for m in re.finditer(re.escape(key), plain)]
    base = sentence[0]
    kept: list[tuple[str, Span]] = []
    for label, (start, end) in sorted(found, key=lambda f: (f[1][0], -f[1][1])):
        if not kept or base + start >= kept[-1][1][1]:
            kept.append((label, (base + start, base + end)))
    return kept


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


def speaker_of(mention: NameMention, labels: tuple[str, ...]) -> str | None:
    """The one label that the mention can stand for."""
    name = folded_words(mention.given or mention.text)
    fitting = [
        label
        for label in labels
        if (set(name) <= set(folded_words(label)) if name else mention.bare in label)
    ]
    return fitting[0] if len(fitting) == 1 else None
