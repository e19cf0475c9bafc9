"""The neighbours of a figure: direction words and content words, read from the folded text around it.

Knows words only by their letters: no grammar, no synonyms. A missing cue says nothing.
"""

from __future__ import annotations

import re

_UP = (
    r"\b(?:increas\w*|rise[sn]?|rising|rose|gr[eo]w\w*|gain\w*|up|higher|improv\w*|climb\w*|jump\w*|surg\w*|rais\w*|advanc\w*|profits?|earned|upgrad\w*)\b"
    r"|上升|增长|增加|上涨|大涨|上调|提高|提升|盈利|增至|升至|涨|增|升(?!级)|走高|回升|净流入|多赚|扩大|上扬|攀升"
)
_DOWN = (
    r"\b(?:decreas\w*|fall\w*|fell|declin\w*|drop\w*|down|lower\w*|loss(?:es)?|lost|reduc\w*|shr[iau]nk\w*|cut|cuts|cutting|slid\w*|slip\w*|plung\w*)\b"
    r"|下降|下跌|大跌|下调|减少|亏损|下滑|降低|缩减|降至|跌至|跌|降|减|走低|回落|净流出|萎缩|缩小|亏|收窄|跳水"
)
_CUE = re.compile(f"(?P<up>{_UP})|(?P<down>{_DOWN})")
_CLAUSE = re.compile(r"[,，。;；.!?！？、\n(（]")
_REACH = 24


def direction(folded: str, start: int, end: int) -> int:
    """+1 or -1 when the clause around [start, end) says up or down, else 0; the nearest word before wins."""
    left = folded[max(0, start - _REACH * 2) : start]
    for stop in _CLAUSE.finditer(left):
        left_cut = stop.end()
        if stop[0] == "." and left[left_cut : left_cut + 1].isdigit():
            continue
        left = left[:0] + " " * left_cut + left[left_cut:]
    before = [found for found in _CUE.finditer(left) if found.start() >= len(left) - _REACH * 2]
    if before:
        return 1 if before[-1]["up"] else -1
    right = _CLAUSE.split(folded[end : end + _REACH], maxsplit=1)[0]
    after = _CUE.search(right)
    return 0 if after is None else 1 if after["up"] else -1


_WORD = re.compile(r"[a-z][a-z'-]+|[\u4e00-\u9fff]{2}")
_STOP = frozenset(
    "the a an of in on at to for and or by with from as is are was were be been has have had it its this that these those they their there which who "
    "will would could should can may about around than more less over under up down per each all also not but if so we you he she his her our your i me "
    "said says total million billion thousand percent hundred dollars".split()
)


def words_around(folded: str, start: int, end: int, reach: int = 40) -> frozenset[str]:
    """Content words (English words, Chinese character pairs) within `reach` characters, within the sentence."""
    left = re.split(r"[。！？!?\n;；]|\. ", folded[max(0, start - reach) : start])[-1]
    right = re.split(r"[。！？!?\n;；]|\. ", folded[end : end + reach], maxsplit=1)[0]
    return frozenset(_content(left)) | frozenset(_content(right))


def _content(text: str) -> list[str]:
    words = [w for w in re.findall(r"[a-z][a-z'-]+", text) if w not in _STOP]
    for run in re.findall(r"[\u4e00-\u9fff]+", text):
        words += [run[i : i + 2] for i in range(len(run) - 1)]
    return [_stem(w) for w in words]


def _stem(word: str) -> str:
    for ending in ("ies", "es", "s", "ing", "ed"):
        if word.isascii() and word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word
