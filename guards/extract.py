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

from seatrial.errors import UserError
from seatrial.guards.centrality import Floats, lexrank, terms, tfidf
from seatrial.guards.sentences import Sentence, Span, split_sentences
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
    everything = _sentences(transcript)
    able = [s for s in everything if is_substantial(s.text)] or everything
    scores = _scores(able, prefer)
    chosen = _choose(able, scores, budget, count)
    if not chosen:
        chosen = [_beginning(able[int(np.argmax(scores))], budget, count)]
    chosen.sort(key=lambda s: s.span)
    return Extract("\n".join(s.text for s in chosen), tuple(chosen))


def _sentences(transcript: Transcript) -> list[ExtractedSentence]:
    return [
        ExtractedSentence(s.text, (turn.span[0] + s.span[0], turn.span[0] + s.span[1]), turn.speaker)
        for turn in transcript.turns
        for s in split_sentences(turn.text)
    ]


_MIN_WORDS, _MIN_HANZI = 8, 12
_HAN = re.compile(r"[\u3400-\u9fff]")
_LATIN_WORD = re.compile(r"[^\W\d_]+|\d[\d.,]*", re.ASCII)
_NOISE = re.compile(r"\{[^{}]*\}|\[[^\[\]]*\]|<[^<>]*>")


def is_substantial(sentence: str) -> bool:
    """Long enough to stand alone, and not only assent or filler."""
    plain = _NOISE.sub(" ", sentence)
    length = len(_LATIN_WORD.findall(plain)) / _MIN_WORDS + len(_HAN.findall(plain)) / _MIN_HANZI
    return length >= 1 and len(set(terms(plain))) >= 2


_FIGURE = re.compile(
    r"[0-9０-９]|[一二两三四五六七八九十百千][万亿]|百分之|\b(?:million|billion|percent|hundred|thousand)\b"
)
_DECISION = re.compile(
    r"决定|确定|通过|同意|批准|结论|负责|截止|之前完成|下一步|安排|"
    r"\b(?:decid|agree|approv|conclu|action|deadline|will (?:do|send|take|prepare)|next step|responsib)",
    re.IGNORECASE,
)
_LIFT = 1.0  # twice as good as average beats anything near average


def _scores(sentences: list[ExtractedSentence], prefer: Sequence[str]) -> Floats:
    """LexRank, one is average; the same value for all where there is nothing to compare."""
    vectors = tfidf([terms(s.text) for s in sentences])
    scores = lexrank(_similarity(vectors)) * len(sentences)
    patterns = {"figures": _FIGURE, "decisions": _DECISION}
    for wish in prefer:
        scores *= [1 + _LIFT * bool(patterns[wish].search(s.text)) for s in sentences]
    return scores


def _similarity(vectors: Floats) -> Floats:
    alike = vectors @ vectors.T
    np.fill_diagonal(alike, 0.0)
    return alike


_SAME = 0.6  # cosine above which two sentences say the same


def _choose(
    sentences: list[ExtractedSentence], scores: Floats, budget: int, count: Callable[[str], int]
) -> list[ExtractedSentence]:
    """Best first, what still fits, nothing twice."""
    vectors = tfidf([terms(s.text) for s in sentences])
    taken: list[int] = []
    left = budget
    for place in np.argsort(-scores, kind="stable"):
        if left <= 0:
            break
        if taken and float((vectors[taken] @ vectors[place]).max()) > _SAME:
            continue
        cost = count(sentences[place].text) + bool(taken)  # and the line break
        if cost <= left:
            taken.append(int(place))
            left -= cost
    while taken and count("\n".join(sentences[i].text for i in sorted(taken))) > budget:
        taken.pop()
    return [sentences[i] for i in taken]


def _beginning(sentence: ExtractedSentence, budget: int, count: Callable[[str], int]) -> ExtractedSentence:
    """As much of a sentence as fits, up to a place where neither a word nor a number is cut."""
    places = [m.start() for m in re.finditer(r"(?=\s)|(?<=[，,；;、])(?!\d)|$", sentence.text) if m.start()]
    places += [m.start() for m in re.finditer(r"(?<=[\u3400-\u9fff])(?=[\u3400-\u9fff])", sentence.text)]
    fitting = [place for place in places if count(sentence.text[:place]) <= budget]
    end = max(fitting, default=min(places))
    start = sentence.span[0]
    return ExtractedSentence(sentence.text[:end].rstrip(), (start, start + end), sentence.speaker)
