"""Subtitles, SRT and VTT, as what each speaker says: cues joined, tags and times taken out.

Each character keeps its place in the file, so that what is found in the speech can be shown in the file.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from seatrial.guards.labels import CLOCK, label_of, seconds_of

CUE_TIME = re.compile(rf"^[ \t]*(?P<start>{CLOCK})[ \t]*-->[ \t]*{CLOCK}[^\n]*$", re.MULTILINE)
_VOICE = re.compile(r"<v(?:\.[^ \t>]*)?[ \t]+([^>]+)>")
_TAG = re.compile(r"</?(?:[a-z]+|\d{1,2}:\d{2})[^<>]*>", re.IGNORECASE)
_MARKUP = re.compile(rf"{_VOICE.pattern}|{_TAG.pattern}|&(?:#\d+|#x[\da-f]+|[a-z]+\d*);?", re.IGNORECASE)


class Placed(NamedTuple):
    """A stretch of speech and the place in the file of each of its characters."""

    text: str
    places: tuple[int, ...]

    def cut(self, start: int, end: int) -> Placed:
        return Placed(self.text[start:end], self.places[start:end])

    def stripped(self) -> Placed:
        start = len(self.text) - len(self.text.lstrip())
        return self.cut(start, max(start, len(self.text.rstrip())))


class Spoken(NamedTuple):
    """What one speaker says in one go, and when it begins."""

    label: Placed | None
    said: Placed
    start_s: float

    @property
    def speaker(self) -> str | None:
        return None if self.label is None else self.label.text


def cue_turns(text: str) -> Iterator[Spoken]:
    """(speaker, text, seconds) of each cue; lines that roll over from the cue before are taken once."""
    times = list(CUE_TIME.finditer(text))
    rolled: list[str] = []
    label: Placed | None = None
    for here, following in zip(times, [*times[1:], None], strict=True):
        lines = _lines(
            text, here.end(), following.start() if following else len(text), last=following is None
        )
        fresh = lines[1:] if rolled and lines and lines[0].text == rolled[-1] else lines
        rolled = [line.text for line in lines]
        for named, said in _spoken_lines(fresh):
            label = named or label
            yield Spoken(label, said, seconds_of(here["start"]))


def _lines(text: str, start: int, end: int, *, last: bool) -> list[Placed]:
    """The lines of a cue whose time ends at `start`; `end` is where the next cue's time begins."""
    begin = start + len(text[start:end]) - len(text[start:end].lstrip("\n"))
    stop = text.find("\n\n", begin, end)
    found = re.finditer(r"[^\n]+", text[begin : end if stop < 0 else stop])
    lines = [_at(line[0], begin + line.start()).stripped() for line in found if line[0].strip()]
    numbered = bool(lines) and re.fullmatch(r"\d+", lines[-1].text) is not None
    if not last and numbered and "\n\n" not in text[start:end].strip("\n"):
        lines.pop()  # the number of the next cue, where no blank line parts them
    return lines


def _at(text: str, start: int) -> Placed:
    return Placed(text, tuple(range(start, start + len(text))))


def _spoken_lines(lines: list[Placed]) -> Iterator[tuple[Placed | None, Placed]]:
    for line in lines:
        voice = _VOICE.search(line.text)
        plain = _plain(line).stripped()
        label = None if voice else label_of(plain.text, 0, len(plain.text))
        name: Placed | None = None
        if voice is not None:
            name = _plain(line.cut(*voice.span(1))).stripped()
        elif label is not None:
            start = plain.text.index(label[0])
            name = plain.cut(start, start + len(label[0]))
            plain = plain.cut(label[2], len(plain.text)).stripped()
        if plain.text:
            yield (name if name and name.text else None), plain


def _plain(line: Placed) -> Placed:
    """A line without tags, its entities read; what stands for an entity has the entity's place."""
    text, places, end = "", list[int](), 0
    for mark in _MARKUP.finditer(line.text):
        text, places = text + line.text[end : mark.start()], places + list(line.places[end : mark.start()])
        end = mark.end()
        if mark[0].startswith("&"):
            read = html.unescape(mark[0])
            text += read
            places += [line.places[min(mark.start() + n, end - 1)] for n in range(len(read))]
    return Placed(text + line.text[end:], (*places, *line.places[end:]))


def merged(cues: Iterator[Spoken]) -> Iterator[Spoken]:
    """Neighbouring cues of one speaker as one turn: a cue ends where the screen is full, not the thought."""
    held: Spoken | None = None
    for cue in cues:
        if (
            held is not None
            and held.speaker == cue.speaker
            and (cue.speaker is not None or not _finished(held.said.text))
        ):
            held = held._replace(said=_glued(held.said, cue.said))
            continue
        if held is not None:
            yield held
        held = cue
    if held is not None:
        yield held


def _finished(text: str) -> bool:
    return bool(re.search(r"[.!?。！？…][\"'”’)）]*$", text))


def _glued(first: Placed, second: Placed) -> Placed:
    text = glued(first.text, second.text)
    gap = len(text) - len(first.text) - len(second.text)
    return Placed(text, (*first.places, *[first.places[-1] + 1] * gap, *second.places))


def glued(first: str, second: str) -> str:
    wide = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")
    return first + ("" if wide.match(first[-1:]) and wide.match(second[:1]) else " ") + second
