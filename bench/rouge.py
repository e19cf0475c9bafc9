"""ROUGE-1, -2 and -L F1 in a few lines, for both languages: no stemming, no stop words, no rewriting.

English by lower-case words of letters and digits; Chinese by characters, punctuation included and spaces not.
ROUGE-N counts common n-grams, ROUGE-L the longest common subsequence of the whole text (Lin 2004).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from rapidfuzz.distance import LCSseq

_UNIT = {"en": re.compile(r"[a-z0-9]+"), "zh": re.compile(r"\S")}


def units(text: str, language: str) -> list[str]:
    return _UNIT[language].findall(text.lower())


def rouge(candidate: str, reference: str, language: str) -> tuple[float, float, float]:
    """F1 of ROUGE-1, ROUGE-2, ROUGE-L, each in 0..100."""
    ours, theirs = units(candidate, language), units(reference, language)
    common = LCSseq.similarity(ours, theirs)
    return _ngrams(ours, theirs, 1), _ngrams(ours, theirs, 2), _f1(common, len(ours), len(theirs))


def _ngrams(ours: Sequence[str], theirs: Sequence[str], n: int) -> float:
    a = Counter(tuple(ours[i : i + n]) for i in range(len(ours) - n + 1))
    b = Counter(tuple(theirs[i : i + n]) for i in range(len(theirs) - n + 1))
    return _f1((a & b).total(), a.total(), b.total())


def _f1(common: int, ours: int, theirs: int) -> float:
    return 200.0 * common / (ours + theirs) if common else 0.0
