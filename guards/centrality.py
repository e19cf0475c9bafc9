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

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]+")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_DAMPING = 0.85

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
    words = [_stem(word) for word in _WORD.findall(_HAN.sub(" ", text.lower().replace("’", "'")))]
    found = [word for word in words if word not in _STOP and (len(word) > 1 or word.isdigit())]
    for run in _HAN.findall(text):
        found.extend(
            run[i : i + 2]
            for i in range(len(run) - 1)
            if not (run[i] in _HAN_STOP and run[i + 1] in _HAN_STOP)
        )
    return found


def _stem(word: str) -> str:
    """Without a plural or possessive s: enough to meet, and no word of ours is invented."""
    if word.endswith("'s"):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def tfidf(sentences: Sequence[Sequence[str]]) -> Floats:
    """(sentences, terms) rows of unit length; a row of zeros where a sentence has no term."""
    known = sorted({term for sentence in sentences for term in sentence})
    place = {term: i for i, term in enumerate(known)}
    matrix = np.zeros((len(sentences), len(known)))
    for row, sentence in enumerate(sentences):
        for term, times in Counter(sentence).items():
            matrix[row, place[term]] = times
    spread = (matrix > 0).sum(axis=0)
    matrix *= np.log((1 + len(sentences)) / (1 + spread)) + 1
    length = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.divide(matrix, length, out=np.zeros_like(matrix), where=length > 0)


def lexrank(similarity: Floats) -> Floats:
    """Share of a random walk's time in each sentence (N,); `similarity` (N, N) is not negative."""
    count = len(similarity)
    if count == 0:
        return np.zeros(0)
    out = similarity.sum(axis=1, keepdims=True)
    steps = np.divide(similarity, out, out=np.full_like(similarity, 1 / count), where=out > 0)
    scores = np.full(count, 1 / count)
    for _ in range(100):
        moved = (1 - _DAMPING) / count + _DAMPING * (scores @ steps)
        if np.abs(moved - scores).sum() < 1e-9:
            return moved
        scores = moved
    return scores
