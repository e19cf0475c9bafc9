"""Where a sentence ends, in English and Chinese, without ever cutting a number.

Each sentence is a piece of the text with its span. A full stop is no end between digits (3.11, 123.23元),
after a title or an initial (Dr. Lee, J. Smith), in a list number (1. First), inside a word (example.com) or
where the text goes on in lower case after an abbreviation (at 5 p.m. we left). Closing quotes stay with
their sentence, and a line break always ends one. Meaning is not known here: no tagger, no model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

Span = tuple[int, int]


@dataclass(frozen=True)
class Sentence:
    """A sentence and its span `[start, end)` in the text: `text[start:end]` is the sentence."""

    text: str
    span: Span


_WIDE_ENDS = "。！？｡︒"
_CLOSERS = "”’\"'」』）)】》〉］]"
_HAN = r"\u3400-\u9fff\uf900-\ufaff\u3000-\u303f\uff00-\uffef“‘"
# A run of marks that may end a sentence, with the closing quotes and brackets that belong to it.
_MARKS = re.compile(rf"(?:[{_WIDE_ENDS}!?．.…]+)[{re.escape(_CLOSERS)}]*")
_NEXT = re.compile(r"\s*(\S)")
# How far back an abbreviation is looked for, so that a text without line breaks costs no more than another.
_LONGEST_WORD = 40
_LINE = re.compile(r"[^\r\n\u2028\u2029\u0085\v\f]+")

# Always followed by the thing they announce.
_TITLES = (
    "dr mr mrs ms mx prof hon rep sen gov gen st rev sgt capt lt col maj cpl adm messrs mme mlle fr br "
    "no nos fig figs eq eqs sec secs ch vol vols pp ref refs art approx ca cf vs v e.g i.e viz dept est "
    "ext tel"
)
_BEFORE_A_NAME = frozenset(_TITLES.split())
# May end a sentence or stand inside it: decided by what follows.
_SHORT_FORMS = (
    "inc ltd co corp llc plc jr sr etc a.m p.m am pm u.s u.k e.u u.n d.c ph.d m.d b.a m.a ave blvd rd "
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun "
    "min max avg hr hrs sq ft lb lbs oz al"
)
_EITHER = frozenset(_SHORT_FORMS.split())
_WORD_BEFORE = re.compile(r"[A-Za-zÀ-ɏ](?:[\w'’&-]|\.(?=\w))*$")


_MAY_CUT = re.compile(r"(?<=[，,；;、：:])(?!\d)|(?=\s)|(?<=[\u3400-\u9fff])(?=[\u3400-\u9fff])")
_COUNTING_HAN = "0-9０-９零〇一二两三四五六七八九十百千万亿几半点分之第年月日号块元角个%％"
_ENDS_IN_FIGURE = re.compile(rf"(?:[{_COUNTING_HAN}$€£¥￥#]|\b(?P<word>[A-Za-z]+)[.-]?)$")
_BEGINS_IN_FIGURE = re.compile(rf"[{_COUNTING_HAN}]")
_COUNTING = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred "
    "thousand million billion trillion dozen half quarter point and a of about minus plus january "
    "february march april may june july august september october november december jan feb mar apr jun "
    "jul aug sep sept oct nov dec no version room extension ext dr mr mrs ms prof"
)
_COUNTING_WORDS = frozenset(_COUNTING.split())


def cut_places(text: str) -> list[int]:
    """Where a text that is too long may be cut: `text[:place]` loses no part of a figure, date or title.

    After a comma, at white space, between two Chinese characters; never behind a numeral or counting word,
    since "three hundred" of "three hundred thousand" and 一千八百 of 一千八百万 are other amounts. The end
    of the text is always one.
    """
    places = [m.start() for m in _MAY_CUT.finditer(text) if m.start() > 0 and _keeps_figures(text, m.start())]
    return [*places, len(text)]


def _keeps_figures(text: str, place: int) -> bool:
    if text[place - 1] in "，；;、：":
        return True
    before = text[max(0, place - _LONGEST_WORD) : place].rstrip(" ,:")
    last = _ENDS_IN_FIGURE.search(before)
    if text[place - 1] in ",:":
        return not before[-1:].isdigit() or text[place : place + 1].isspace()
    if last is not None and (last["word"] is None or last["word"].lower() in _COUNTING_WORDS):
        return False
    ahead = text[place : place + 1]
    return ahead.isspace() or not _BEGINS_IN_FIGURE.match(ahead)


def split_sentences(text: str) -> list[Sentence]:
    """The sentences of `text` in order, without the white space around them; every other character is in
    one.
    """
    return [Sentence(text[start:end], (start, end)) for start, end in _spans(text)]


def _spans(text: str) -> Iterator[Span]:
    for line in _LINE.finditer(text):
        start = line.start()
        for mark in _MARKS.finditer(text, line.start(), line.end()):
            if mark.start() >= start and _ends_here(text, start, mark.start(), mark.end(), line.end()):
                yield from _trimmed(text, start, mark.end())
                start = mark.end()
        yield from _trimmed(text, start, line.end())


def _trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield start, end


def _ends_here(text: str, start: int, mark: int, after: int, line_end: int) -> bool:
    """Whether the marks [mark, after) end the sentence that began at `start`."""
    marks = text[mark:after]
    if any(character in _WIDE_ENDS for character in marks):
        return True
    ahead = _NEXT.match(text, after, line_end)
    if ahead is None:
        return True
    following = ahead.group(1)
    closed = marks[-1] in _CLOSERS
    apart = after < line_end and text[after].isspace()
    if closed and following.islower():
        return False  # "Really?" he asked.
    if not apart and not re.match(rf"[{_HAN}]", text[after]):
        return False  # inside a word, a number or an address
    if marks.rstrip(_CLOSERS) not in (".", "．"):
        return not (marks.startswith(("...", "…")) and following.islower())
    return _full_stop_ends(text, start, mark, following, apart)


def _full_stop_ends(text: str, start: int, mark: int, following: str, apart: bool) -> bool:
    before = text[max(start, mark - _LONGEST_WORD) : mark]
    if mark - start < _LONGEST_WORD and re.fullmatch(r"\s*[(（]?\d{1,3}", before):
        return False  # the number of a list entry
    if not apart and before[-1:].isdigit() and following.isdigit():
        return False
    word = _WORD_BEFORE.search(before)
    if word is None:
        return True
    lower = word.group().lower()
    if lower in _BEFORE_A_NAME:
        return not _announces(lower, following)
    if len(lower) == 1:
        return not _is_initial(before[: word.start()], word.group())
    if lower in _EITHER or "." in lower:
        return following.isupper() or not following.isascii()
    return True


def _announces(lower: str, following: str) -> bool:
    """Whether an abbreviation goes with what follows; some are words as well (He said no. Then he left.)"""
    if lower in ("no", "art", "sec", "ch", "fig", "ref"):
        return following.isdigit()
    return True


def _is_initial(before: str, letter: str) -> bool:
    """A single capital is an initial at the start, after another initial, a title or a capitalised word."""
    if letter == "I" or not letter.isupper():
        return False
    previous = before.rstrip()
    if not previous or previous.endswith("."):
        return True
    last_word = re.split(r"\s+", previous)[-1]
    return last_word[:1].isupper() and last_word.lower() not in ("plan", "option", "vitamin", "type", "class")
