"""The neighbours of a figure: direction words, the noun that is counted, and content words of its sentence.

Knows words only by their letters: no grammar, no synonyms. A missing cue says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from operator import add

_UP = (
    r"\b(?:increas\w*|rise[sn]?|rising|rose|gr[eo]w\w*|gain\w*|up|higher|improv\w*|climb\w*|jump\w*|surg\w*|rais\w*"
    r"|advanc\w*|profits?|earned|upgrad\w*)\b"
    r"|上升|增长|增加|上涨|大涨|上调|提高|提升|盈利|增至|升至|涨|增|升(?!级)|走高|回升|净流入|多赚|扩大|上扬|攀升"
)
_DOWN = (
    r"\b(?:decreas\w*|fall\w*|fell|declin\w*|drop\w*|down|lower\w*|loss(?:es)?|lost|reduc\w*|shr[iau]nk\w*|cuts?"
    r"|cutting|slid\w*|slip\w*|plung\w*)\b"
    r"|下降|下跌|大跌|下调|减少|亏损|下滑|降低|缩减|降至|跌至|跌|降|减|走低|回落|净流出|萎缩|缩小|亏|收窄|跳水"
)
_CUE = re.compile(f"(?P<up>{_UP})|(?P<down>{_DOWN})")
_CLAUSE = re.compile(r"[，。;；!?！？、\n(（]|[,.](?!\d)")
_GOING_ON = re.compile(r" ?(?:至|到|to|at) ?")
_REACH_BEFORE, _REACH_AFTER = 48, 24


def direction(folded: str, start: int, end: int) -> int:
    """+1 or -1 when the clause around [start, end) says up or down, else 0; the nearest word before wins."""
    reach = folded[max(0, start - _REACH_BEFORE) : start]
    left = last_clause(reach)
    if _GOING_ON.fullmatch(left):  # 下降0.2个百分点，至5.1%: the verb stands in the clause before
        left = last_clause(reach[: max(0, len(reach) - len(left) - 1)])
    before = list(_CUE.finditer(left))
    found = (
        before[-1] if before else _CUE.search(_CLAUSE.split(folded[end : end + _REACH_AFTER], maxsplit=1)[0])
    )
    if found is None:
        return 0
    return 1 if found["up"] else -1


def last_clause(left: str) -> str:
    """What stands behind the last comma or full stop of a text that ends at a figure."""
    start = 0
    for stop in _CLAUSE.finditer(left):
        start = stop.end()
    return left[start:]


_NOUN_STOP = frozenset(
    "of in on at to for and or by with from as is are was were be been has have had that this which who will would "  # noqa: E501
    "can could than per each also but if so after before during while when because into over under between about "  # noqa: E501
    "said says".split()
)
_PLURAL = re.compile(r"(?:[a-z]{2,}[^s\W]s|people|men|women|children|staff|feet)$")
_NEXT_WORDS = re.compile(r"(?:[ -][a-z'-]+){1,5}")
_NEXT_CHINESE = re.compile(r"[的 ]?([\u4e00-\u9fff]{2,6})")


_JOINS = frozenset("至到和与或及")  # what joins two figures counts nothing


def counted_nouns(folded: str, end: int) -> frozenset[str]:
    """What the figure that ends at `end` counts: the plural words after it, or the Chinese noun after it."""
    words = _NEXT_WORDS.match(folded, end)
    if words is not None:
        return frozenset(_plurals(words[0]))
    chinese = _NEXT_CHINESE.match(folded, end)
    return frozenset() if chinese is None or chinese[1][0] in _JOINS else frozenset({chinese[1][:2]})


def _plurals(words: str) -> Iterator[str]:
    for word in re.split(r"[ -]+", words.strip(" -")):
        if word in _NOUN_STOP:
            return
        if _PLURAL.match(word):
            yield stem(word)


_STOP = _NOUN_STOP | frozenset(
    "the a an it its these those they their there should may around more less up down all not we you he she his her "  # noqa: E501
    "our your i me total million billion thousand percent hundred dollars yeah okay um uh well just like know think "  # noqa: E501
    "about".split()
)
_SENTENCE = re.compile(r"[。！？!?\n;；]|\.(?!\d)")


def words_around(folded: str, start: int, end: int, reach: int = 40) -> frozenset[str]:
    """Content words (English stems, Chinese character pairs) within `reach` characters, within the
    sentence."""
    left = _SENTENCE.split(folded[max(0, start - reach) : start])[-1]
    right = _SENTENCE.split(folded[end : end + reach], maxsplit=1)[0]
    return frozenset(_content(left) + _content(right))


_WORDS = re.compile(r"[a-z][a-z'-]+")
_CHINESE = re.compile(r"[\u4e00-\u9fff]{2,}")


def _content(text: str) -> list[str]:
    found = [stem(word) for word in _WORDS.findall(text) if word not in _STOP]
    for run in _CHINESE.findall(text):
        found += map(add, run, run[1:])
    return found


def stem(word: str) -> str:
    """A word without its commonest English endings."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("s", ""), ("ing", ""), ("ed", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            return word.removesuffix(ending) + instead
    return word
