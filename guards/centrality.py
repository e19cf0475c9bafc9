"""How central each sentence is: LexRank over words and pairs of Chinese characters.

Sentences are nodes, the cosine of their tf-idf vectors the weight of an edge, and the score of a sentence the
share of time that a random walk spends in it (Erkan and Radev 2004, the continuous variant). Chinese is taken
by neighbouring characters, so no word list is needed; English by lower-case words without a plural s.
Pure numpy; what a good summary is, is decided in `extract`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]+")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_DAMPING = 0.85
_SETTLED = 1e-6  # change of all shares together; the order of sentences is settled long before
_MOST_STEPS = 50

# Words that say nothing of a topic: grammar, and what people say while they think.
_ENGLISH_STOP = (
    "a about above actually after again against all also am an and any anyway are aren't as at back "
    "basically be because been before being below between bit both but by bye can can't come could "
    "couldn't did didn't do does doesn't doing don don't down during each even every few for from further "
    "get gets getting give go goes going gonna good got guess had hadn't has hasn't have haven't having "
    "he he'd he'll he's hello her here here's hers hey hi him his hmm how how's however i i'd i'll i'm "
    "i've if in into is isn't it it'd it'll it's its itself just kind kinda know let let's like little ll "
    "lot many may maybe me mean might mm more most much must my myself no nor not now of off oh ok okay "
    "on once one only or other our ours out over own perhaps please pretty probably put quite rather re "
    "really right said same say see she should so some something sort still stuff such sure take than "
    "thank thanks that that'd that'll that's the their theirs them then there there's these they they'd "
    "they'll they're they've thing things think this those though through to too uh uhhuh um under until "
    "up us use used very wanna want wants was wasn't way we we'd we'll we're we've well were weren't what "
    "what's when where which while who who's whom why will with won't would wouldn't yeah yep yes you "
    "you'd you'll you're you've your yours"
)
_STOP = frozenset(_ENGLISH_STOP.split())
# Characters of grammar and filler: a pair of two of them says nothing.
_HAN_STOP = frozenset(
    "的了是在我你他她它们这那个就也都还和与对不有没一啊呃嗯哦呢吧吗么嘛呀哈诶唉然后其实什么怎说上下来去会能要可以"
)


def terms(text: str) -> list[str]:
    """What a sentence is about: words without stop words, and pairs of neighbouring hanzi."""
    runs = _HAN.findall(text)
    latin = (_HAN.sub(" ", text) if runs else text).lower().replace("’", "'")
    found = [term for term in map(_stem, _WORD.findall(latin)) if term]
    for run in runs:
        found.extend(
            run[i : i + 2]
            for i in range(len(run) - 1)
            if not (run[i] in _HAN_STOP and run[i + 1] in _HAN_STOP)
        )
    return found


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    """Without a plural or possessive s: enough to meet, and no word of ours is invented. Empty: a stop
    word.
    """
    if word.endswith("'s") and word not in _STOP:
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    return "" if word in _STOP or (len(word) == 1 and not word.isdigit()) else word


@dataclass(frozen=True)
class TermTable:
    """Which sentence holds which term: entry i says that sentence `row[i]` holds term `column[i]`,
    `tfidf[i]`.

    Entries are sorted by sentence. `holders` (terms,): in how many sentences each term stands.
    The tf-idf rows have unit length; a sentence without a term has no entry.
    """

    sentences: int
    row: Integers
    column: Integers
    tfidf: Floats
    holders: Integers

    def times(self, per_term: Floats) -> Floats:
        """X v: for each sentence the sum of `tfidf * per_term` over its terms."""
        return np.asarray(np.bincount(self.row, self.tfidf * per_term[self.column], self.sentences), float)

    def transposed_times(self, per_sentence: Floats) -> Floats:
        """X^T v: for each term the sum over the sentences that hold it."""
        weights = self.tfidf * per_sentence[self.row]
        return np.asarray(np.bincount(self.column, weights, len(self.holders)), float)


def term_table(sentences: Sequence[Sequence[str]]) -> TermTable:
    """Table of the terms of each sentence, tf-idf with the sentences as documents."""
    place: dict[str, int] = {}
    row: list[int] = []
    column: list[int] = []
    often: list[int] = []
    for number, sentence in enumerate(sentences):
        for term, times in Counter(sentence).items():
            row.append(number)
            column.append(place.setdefault(term, len(place)))
            often.append(times)
    rows, columns = np.array(row, np.intp), np.array(column, np.intp)
    holders = np.bincount(columns, minlength=len(place))
    weights = np.array(often, float) * (np.log((1 + len(sentences)) / (1 + holders)) + 1)[columns]
    length = np.sqrt(np.bincount(rows, weights**2, len(sentences)))
    return TermTable(len(sentences), rows, columns, weights / length[rows], holders)


def lexrank(table: TermTable) -> Floats:
    """Share of the walk's time in each sentence (N,), times N: 1 is average.

    The matrix of cosines is never made: X (X^T v) takes as long as there are words, not sentences squared.
    """
    count = table.sentences
    own = np.bincount(table.row, table.tfidf**2, count)  # a sentence does not vote for itself
    degree = table.times(table.transposed_times(np.ones(count))) - own
    linked = degree > 1e-12
    scores = np.full(count, 1 / max(count, 1))
    for _ in range(_MOST_STEPS):
        votes = np.divide(scores, degree, out=np.zeros(count), where=linked)
        walked = table.times(table.transposed_times(votes)) - own * votes + scores[~linked].sum() / count
        moved = (1 - _DAMPING) / count + _DAMPING * walked
        settled = float(np.abs(moved - scores).sum()) < _SETTLED
        scores = moved
        if settled:
            break
    return scores * count
