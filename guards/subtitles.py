"""Subtitles, SRT and VTT, as what each speaker says: cues joined, tags and times taken out."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from seatrial.guards.labels import CLOCK, label_of, seconds_of

CUE_TIME = re.compile(rf"^[ \t]*(?P<start>{CLOCK})[ \t]*-->[ \t]*{CLOCK}[^\n]*$", re.MULTILINE)
_VOICE = re.compile(r"<v(?:\.[^ \t>]*)?[ \t]+([^>]+)>")
_TAG = re.compile(r"</?(?:[a-z]+|\d{1,2}:\d{2})[^<>]*>", re.IGNORECASE)
Spoken = tuple[str | None, str, float]


def cue_turns(text: str) -> Iterator[Spoken]:
    """(speaker, text, seconds) of each cue; lines that roll over from the cue before are taken once."""
    times = list(CUE_TIME.finditer(text))
    rolled: list[str] = []
    speaker: str | None = None
    for here, following in zip(times, [*times[1:], None], strict=True):
        block = text[here.end() : following.start() if following else len(text)]
        lines = [line.strip() for line in block.lstrip("\n").split("\n\n")[0].split("\n") if line.strip()]
        if following and lines and re.fullmatch(r"\d+", lines[-1]) and "\n\n" not in block.strip("\n"):
            lines.pop()  # the number of the next cue, where no blank line parts them
        fresh = lines[1:] if rolled and lines and lines[0] == rolled[-1] else lines
        rolled = lines
        for named, said in _spoken_lines(fresh):
            speaker = named or speaker
            yield speaker, said, seconds_of(here["start"])


def _spoken_lines(lines: list[str]) -> Iterator[tuple[str | None, str]]:
    for line in lines:
        voice = _VOICE.search(line)
        plain = html.unescape(_TAG.sub("", _VOICE.sub("", line))).strip()
        label = None if voice else label_of(plain, 0, len(plain))
        if label is not None:
            plain = plain[label[2] :].strip()
        name = voice.group(1).strip() if voice else (label[0] if label else None)
        if plain:
            yield (html.unescape(name) if name else None), plain


def merged(cues: Iterator[Spoken]) -> Iterator[Spoken]:
    """Neighbouring cues of one speaker as one turn: a cue ends where the screen is full, not the thought."""
    held: Spoken | None = None
    for speaker, said, start_s in cues:
        if held is not None and held[0] == speaker and speaker is not None:
            held = (speaker, glued(held[1], said), held[2])
            continue
        if held is not None and held[0] is None and speaker is None and not _finished(held[1]):
            held = (None, glued(held[1], said), held[2])
            continue
        if held is not None:
            yield held
        held = (speaker, said, start_s)
    if held is not None:
        yield held


def _finished(text: str) -> bool:
    return bool(re.search(r"[.!?。！？…][\"'”’)）]*$", text))


def glued(first: str, second: str) -> str:
    wide = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")
    return first + ("" if wide.match(first[-1:]) and wide.match(second[:1]) else " ") + second
