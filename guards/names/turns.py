"""Who speaks when: the turns of the source, for speaker names and for the question who said it.

`seatrial.guards.transcript` reads labelled text and subtitles. Two habits come on top, because the guard
meets texts as they are: labels in lower case that come back (`project manager:`), and chats in one line
(`Fred: ... . Harry: ...`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from seatrial.errors import UserError
from seatrial.guards.names.lexicon import chinese
from seatrial.guards.transcript import Turn, parse_transcript

_LOWER_LABEL = re.compile(r"^[ \t]*([a-z][a-z .'’_\-]{0,38}?(?: [a-z0-9])?)[ \t]*:[ \t]", re.MULTILINE)
_INLINE_LABEL = re.compile(r"(?:(?<=[.!?…)(\"”*] )|(?<=^))([A-Z][\w'’.\-]*(?: [A-Z][\w'’.\-]*){0,2}): ")
_HAN_LABEL = re.compile(r"[\u3400-\u9fff]+")
_GENERIC = re.compile(
    r"(?:speaker|participant|unknown|user|host|moderator|interviewer|interviewee|男|女|发言人|说话人|嘉宾|主持人|与会者"
    r"|参会者|听众|客户|记者|甲方|乙方|甲|乙|丙)[\s_\-#]*[a-z0-9一二三四五六七八九十]*",
    re.IGNORECASE,
)


def read_turns(text: str) -> list[Turn]:
    """Turns with spans in `text` itself; empty where nobody is named."""
    try:
        transcript = parse_transcript(text)
    except UserError:  # nobody says a word: there is nothing to attribute
        return []
    turns = list(transcript.turns) if transcript.text == text else list(_placed(text, transcript.turns))
    if not any(turn.speaker for turn in turns):
        turns = list(_lower_case_turns(text))
    return list(_inline([_plain_label(turn) for turn in turns]))


def is_generic(label: str) -> bool:
    """`Speaker 1`, 主持人 and 财务 are roles, not names."""
    bare = label.strip()
    if _GENERIC.fullmatch(bare):
        return True
    return _HAN_LABEL.fullmatch(bare) is not None and chinese().surname_of(bare.lstrip("老小阿")) is None


def _plain_label(turn: Turn) -> Turn:
    """Without what stands in brackets, so that one speaker has one label: Ann Reed (Leeds)."""
    plain = re.sub(r"\s*[(（\[【].*", "", turn.speaker or "").strip()
    return replace(turn, speaker=plain or turn.speaker)


def _placed(text: str, turns: tuple[Turn, ...]) -> Iterator[Turn]:
    """Turns of a text that the reader rewrote, found again in the text as it was given."""
    at = 0
    for turn in turns:
        start = text.find(turn.text, at)
        if start >= 0:
            at = start + len(turn.text)
            yield Turn(turn.speaker, turn.text, (start, at), turn.start_s)
        else:
            yield Turn(turn.speaker, turn.text, (at, at), turn.start_s)


def _lower_case_turns(text: str) -> Iterator[Turn]:
    labels = list(_LOWER_LABEL.finditer(text))
    often = Counter(m.group(1) for m in labels)
    lines = text.count("\n") + 1
    labels = [m for m in labels if often[m.group(1)] > 1 or len(labels) * 2 > lines]
    for here, following in zip_longest(labels, labels[1:]):
        end = following.start() if following else len(text)
        yield Turn(here.group(1), text[here.end() : end], (here.end(), end))


def _inline(turns: list[Turn]) -> Iterator[Turn]:
    """Chats that were joined into one line are taken apart at the labels."""
    known = {turn.speaker for turn in turns if turn.speaker}
    for turn in turns:
        labels = list(_INLINE_LABEL.finditer(turn.text)) if turn.text.count(": ") else []
        often = Counter(m.group(1) for m in labels)
        labels = [m for m in labels if often[m.group(1)] > 1 or m.group(1) in known or len(labels) > 3]
        base = turn.span[0]
        first = labels[0].start() if labels else len(turn.text)
        yield Turn(turn.speaker, turn.text[:first], (base, base + first), turn.start_s)
        for here, following in zip_longest(labels, labels[1:]):
            end = following.start() if following else len(turn.text)
            yield Turn(here.group(1), turn.text[here.end() : end], (base + here.end(), base + end))
