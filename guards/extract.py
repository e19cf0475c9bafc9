"""The summary that cannot invent a figure: sentences of the source, in the source's order, within a budget.

The fallback when the model's own text may not be shown. Each sentence is cut from the source letter for
letter and carries its span and speaker. Backchannels ("yeah", "嗯，对") and sentences too short to stand
alone are passed over, and of sentences that say the same one is taken. It does not shorten, join or
rewrite anything, and it does not know whether the source itself is right.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import UserError
from seatrial.guards.centrality import Floats, TermTable, lexrank, term_table, terms
from seatrial.guards.sentences import Sentence, Span, cut_places, split_sentences
from seatrial.guards.transcript import Transcript, parse_transcript

__all__ = ["Extract", "ExtractedSentence", "Sentence", "extract", "split_sentences"]

PREFERENCES = ("figures", "decisions")


@dataclass(frozen=True)
class ExtractedSentence:
    """A sentence of the source: `source[span]` is `text`."""

    text: str
    span: Span
    speaker: str | None


@dataclass(frozen=True)
class Extract:
    """The chosen sentences, one a line in `text`, in the order of the source."""

    text: str
    sentences: tuple[ExtractedSentence, ...]


def extract(
    source: str | Transcript,
    *,
    budget: int,
    count: Callable[[str], int],
    prefer: Sequence[str] = (),
) -> Extract:
    """The most central sentences of `source` that fit into `budget` tokens, `count(text)` being the tokens
    of a text.

    `prefer`: "figures" and "decisions" lift sentences with numbers, or with what was decided and who does it.
    Where nothing reaches the minimum length the short sentences are taken, and where no sentence fits the
    beginning of one: the result is empty only when the source is. Spans are those of the transcript's text,
    see `transcript.parse_transcript`.
    """
    for wish in prefer:
        if wish not in PREFERENCES:
            raise UserError(f"prefer {wish!r} is not known; known: {', '.join(PREFERENCES)}")
    if budget < 1:
        raise UserError(f"a budget of {budget} tokens holds nothing: at least 1 is needed")
    transcript = parse_transcript(source) if isinstance(source, str) else source
    everything = _candidates(transcript)
    able = [c for c in everything if c.is_substantial()] or everything
    chosen = _choose(able, prefer, budget, count)
    if not chosen:
        shortest = min(able, key=lambda c: len(c.sentence.text)).sentence
        chosen = [_beginning(shortest, budget, count)]
    chosen.sort(key=lambda s: s.span)
    return Extract("\n".join(s.text for s in chosen), tuple(chosen))


@dataclass(frozen=True)
class _Candidate:
    sentence: ExtractedSentence
    terms: list[str]
    length: float  # in words, see `_length`

    def is_substantial(self) -> bool:
        """Long enough to stand alone, and not only assent or filler."""
        return self.length >= _MIN_WORDS and len(set(self.terms)) >= 2


def _candidates(transcript: Transcript) -> list[_Candidate]:
    found = []
    for turn in transcript.turns:
        for low, high in (span for sentence in split_sentences(turn.text) for span in _parts(sentence)):
            start = low + _filler_length(turn.text[low:high])
            text = turn.text[start:high]
            span = (turn.span[0] + start, turn.span[0] + high)
            plain = _NOISE.sub(" ", text) if any(mark in text for mark in "{[<") else text
            found.append(
                _Candidate(ExtractedSentence(text, span, turn.speaker), terms(plain), _length(plain))
            )
    return found


def _parts(sentence: Sentence) -> list[Span]:
    """Spans of about `_LONGEST` words at most: speech recognition without full stops gives endless sentences.

    Cut behind a comma where there is one, and never through a figure.
    """
    text, offset = sentence.text, sentence.span[0]
    if _length(text) <= _LONGEST:
        return [sentence.span]
    spans, start, words, before, comma = [], 0, 0.0, 0, 0
    for place in cut_places(text):
        more = _length(text[before:place])
        if words + more > _LONGEST and before > start:
            end = comma if comma > start else before
            spans.append((start, end))
            start, words = end, _length(text[end:before])
        words += more
        before = place
        if text[place - 1] in _COMMAS:
            comma = place
    spans.append((start, len(text)))
    whole = [(low + len(text[low:high]) - len(text[low:high].lstrip()), high) for low, high in spans]
    return [(offset + low, offset + low + len(text[low:high].rstrip())) for low, high in whole]


_MIN_WORDS, _MIN_HANZI = 12, 12
_LONGEST = 120.0  # words
_COMMAS = "，,；;、：:"
_HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN_WORD = re.compile(r"[A-Za-zÀ-ɏ][\w'’-]*|\d[\d.,]*")
_NOISE = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|<[^<>]*>")
# What people say while they think of how to begin.
_FILLER = re.compile(
    r"(?:(?:\{[^{}]*\}|\[[^\[\]]*\]|<[^<>]*>)\s*"
    r"|(?:u+h+|u+m+|e+r+m*|h+m+|mm+|yeah|yep|okay|ok|right|well|oh|ah|you know|i mean)\b[\s,.…-]*"
    r"|(?:[嗯呃啊哦噢唉诶欸哎]+|对+|好+|好的|是的|然后|那个|这个)[，,、。…\s]+)+",
    re.IGNORECASE,
)


def _filler_length(sentence: str) -> int:
    """Characters of filler at the beginning; 0 where nothing else is said."""
    filler = _FILLER.match(sentence)
    return filler.end() if filler and filler.end() < len(sentence) else 0


def _length(text: str) -> float:
    """In words, a word being a word and a half of hanzi: the same unit for both languages."""
    return len(_LATIN_WORD.findall(text)) + len(_HAN.findall(text)) * _MIN_WORDS / _MIN_HANZI


_FIGURE = re.compile(
    r"[0-9０-９]|[一二两三四五六七八九十百千][万亿]|百分之|\b(?:million|billion|percent|hundred|thousand)\b"
)
_DECISION = re.compile(
    r"决定|确定|通过|同意|批准|结论|负责|截止|之前完成|下一步|安排|"
    r"\b(?:decid|agree|approv|conclu|action|deadline|will (?:do|send|take|prepare)|next step|responsib)",
    re.IGNORECASE,
)
_LIFT = 4.0  # a preferred sentence is worth five of its kind
_SAME = 0.6  # cosine above which two sentences say the same
_RARE = 0.02  # weight of a term that stands in one sentence only: it decides between equals
_EVERYWHERE = 1.0  # what a term still counts that stands in every sentence, so that short sources work too
_LENGTH_POWER = 0.5  # between 0, which favours long sentences, and 1, which favours short ones


def _choose(
    candidates: list[_Candidate],
    prefer: Sequence[str],
    budget: int,
    count: Callable[[str], int],
) -> list[ExtractedSentence]:
    """Greedy: again and again the sentence that adds most of what the meeting is about, for its length.

    A term is worth the LexRank of the sentences that hold it, and is counted once: this is what spreads the
    choice over the points of a meeting and keeps repetitions out (weighted coverage, as in Gillick and Favre
    2009 and Lin and Bilmes 2011).
    """
    table = term_table([c.terms for c in candidates])
    sentences = [c.sentence for c in candidates]
    worth = _term_worth(table)
    factor = _factors(candidates, prefer)
    open_to_choice = np.ones(len(sentences), bool)
    taken: list[int] = []
    while True:
        gain = np.bincount(table.row, worth[table.column], len(sentences)) * factor
        best = _first_that_fits(sentences, gain, open_to_choice, taken, budget, count)
        if best is None:
            return [sentences[i] for i in taken]
        taken.append(best)
        worth[table.column[table.row == best]] = 0.0
        open_to_choice &= _cosines(table, best) < _SAME


def _first_that_fits(
    sentences: list[ExtractedSentence],
    gain: Floats,
    open_to_choice: NDArray[np.bool_],
    taken: list[int],
    budget: int,
    count: Callable[[str], int],
) -> int | None:
    """The sentence of the highest gain that still fits; one that does not is closed: what is left only
    shrinks.
    """
    for place in np.argsort(-gain, kind="stable"):
        if gain[place] <= 0.0:
            return None
        if not open_to_choice[place]:
            continue
        open_to_choice[place] = False
        if count(sentences[place].text) > budget:
            continue
        if count("\n".join(sentences[i].text for i in sorted([*taken, int(place)]))) <= budget:
            return int(place)
    return None


def _term_worth(table: TermTable) -> Floats:
    central = lexrank(table)
    voted = np.bincount(table.column, central[table.row], len(table.holders))
    worth = voted * (np.log((table.sentences + 1) / (table.holders + 0.5)) + _EVERYWHERE)
    return np.where(table.holders > 1, worth, _RARE * worth)


def _factors(candidates: list[_Candidate], prefer: Sequence[str]) -> Floats:
    """What each sentence's gain is multiplied with: its length, and what the caller prefers."""
    patterns = {"figures": _FIGURE, "decisions": _DECISION}
    lifts = [1 + sum(_LIFT for wish in prefer if patterns[wish].search(c.sentence.text)) for c in candidates]
    return np.array(lifts) / np.array([max(1.0, c.length) for c in candidates]) ** _LENGTH_POWER


def _cosines(table: TermTable, sentence: int) -> Floats:
    here = table.row == sentence
    vector = np.zeros(len(table.holders))
    vector[table.column[here]] = table.tfidf[here]
    return table.times(vector)


def _beginning(sentence: ExtractedSentence, budget: int, count: Callable[[str], int]) -> ExtractedSentence:
    """As much of a sentence as fits, up to a place where neither a word nor a number is cut."""
    places = cut_places(sentence.text)
    fitting = [place for place in places if count(sentence.text[:place]) <= budget]
    end = len(sentence.text[: max(fitting, default=min(places))].rstrip())
    start = sentence.span[0]
    return ExtractedSentence(sentence.text[:end], (start, start + end), sentence.speaker)
