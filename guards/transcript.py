"""A transcript as turns of speakers, from labelled text, SRT or VTT; and windows cut between turns.

Labelled text keeps its characters (only line ends become \\n and a byte-order mark goes); of subtitles the
times are taken out of the text, since `00:12:34` is no figure that anybody said. What was said, and whether
it is true, is not known here; neither is the encoding: it takes text, not bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from seatrial.errors import UserError
from seatrial.guards.labels import label_of
from seatrial.guards.sentences import Span, cut_places, split_sentences
from seatrial.guards.subtitles import CUE_TIME, Spoken, cue_turns, glued, merged


@dataclass(frozen=True)
class Turn:
    """What one speaker said in one go. `transcript.text[span]` is `text`, without the label before it."""

    speaker: str | None
    text: str
    span: Span
    start_s: float | None = None

    def labelled(self) -> str:
        """`speaker: text`, as it is put before a model."""
        return self.text if self.speaker is None else f"{self.speaker}: {self.text}"


@dataclass(frozen=True)
class Transcript:
    """The text that guards and models see, and its turns in order."""

    text: str
    turns: tuple[Turn, ...]
    # Of subtitles: where in the file, its line ends taken as \n, each character of `text` stands.
    places: tuple[int, ...] | None = None

    @property
    def speakers(self) -> tuple[str, ...]:
        """Each speaker once, in the order of appearance."""
        return tuple(dict.fromkeys(turn.speaker for turn in self.turns if turn.speaker is not None))


def parse_transcript(text: str) -> Transcript:
    """Turns of `text`: VTT, SRT or labelled text, told apart by their marks. `UserError` when it is empty."""
    clean = _clean(text)
    if is_subtitles(clean):
        transcript = _join(merged(cue_turns(clean)))
    else:
        transcript = _labelled_text(clean)
    if not any(re.search(r"\w", turn.text) for turn in transcript.turns):
        raise UserError("the transcript is empty: nobody says a word in it; give a text with what was said")
    return transcript


def is_subtitles(text: str) -> bool:
    """Whether `text` is SRT or VTT: it has a line that says from when to when."""
    return "-->" in text and CUE_TIME.search(_clean(text)) is not None


def _clean(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _labelled_text(text: str) -> Transcript:
    turns: list[Turn] = []
    label: tuple[str | None, float | None] = (None, None)
    spoken: list[Span] = []
    any_label = False

    def close() -> None:
        if spoken:
            start, end = spoken[0][0], spoken[-1][1]
            turns.append(Turn(label[0], text[start:end], (start, end), label[1]))
            spoken.clear()

    for start, end in _lines(text):
        found = label_of(text, start, end)
        if found is not None:
            close()
            label, any_label = (found[0], found[1]), True
            start = found[2]
        elif not any_label:
            close()  # without labels each line is a turn of nobody
        if text[start:end].strip():
            spoken.append((start, start + len(text[start:end].rstrip())))
    close()
    return Transcript(text, tuple(turns))


def _lines(text: str) -> Iterator[Span]:
    for line in re.finditer(r"[^\n]+", text):
        yield line.start(), line.end()


def _join(turns: Iterator[Spoken]) -> Transcript:
    """Turns written one a line, `speaker: text`."""
    placed: list[Turn] = []
    lines: list[str] = []
    places: list[int] = []
    at = 0
    for turn in turns:
        said, of_said = turn.said
        label = ""
        if turn.label is not None:
            label = f"{turn.label.text}: "
            places += [*turn.label.places, *[turn.label.places[-1] + 1] * 2]
        lines.append(label + said)
        placed.append(Turn(turn.speaker, said, (at + len(label), at + len(label) + len(said)), turn.start_s))
        places += [*of_said, of_said[-1] + 1]
        at += len(label) + len(said) + 1
    return Transcript("\n".join(lines), tuple(placed), tuple(places))


def windows(transcript: Transcript, max_tokens: int, count: Callable[[str], int]) -> list[str]:
    """The transcript in as few pieces as fit into `max_tokens` each, of about equal size, cut between turns.

    `count(text)` gives tokens. Each piece is lines of `speaker: text`. A turn that alone does not fit is
    cut at sentences, a sentence at white space or punctuation, never inside a run of digits; each part
    carries the label again. `UserError` when not even a label with a few words fits.
    """
    if max_tokens < 1:
        raise UserError(f"a window of {max_tokens} tokens holds nothing: at least 1 is needed")
    whole = "\n".join(turn.labelled() for turn in transcript.turns)
    if count(whole) <= max_tokens:
        return [whole]
    parts = [part for turn in transcript.turns for part in _parts(turn, max_tokens, count)]
    sizes = [count(part) + 1 for part in parts]  # and the line break
    cap = _smallest_cap(sizes, max_tokens)
    return [text for group in _grouped(parts, sizes, cap) for text in _joined(group, max_tokens, count)]


def _parts(turn: Turn, max_tokens: int, count: Callable[[str], int]) -> Iterator[str]:
    """A turn as lines that fit."""
    if count(turn.labelled()) + 1 <= max_tokens:
        yield turn.labelled()
        return
    label = "" if turn.speaker is None else f"{turn.speaker}: "
    fits: Callable[[str], bool] = lambda said: count(label + said) + 1 <= max_tokens
    held = ""
    for sentence in split_sentences(turn.text):
        for piece in _cut(sentence.text, fits):
            joined = glued(held, piece) if held else piece
            if fits(joined):
                held = joined
                continue
            if held:
                yield label + held
            held = piece
    if held:
        yield label + held


def _cut(text: str, fits: Callable[[str], bool]) -> Iterator[str]:
    """`text` in pieces that fit, each as long as can be."""
    rest = text.strip()
    while rest and not fits(rest):
        low, high = 0, len(rest)  # the longest prefix that fits lies in between
        while low < high - 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(rest[:middle]) else (low, middle)
        place = _cut_place(rest, low)
        if place == 0 or not fits(rest[:place]):
            raise UserError("the window is too small: not one word of a turn fits; give a larger context")
        yield rest[:place].strip()
        rest = rest[place:].strip()
    if rest:
        yield rest


def _cut_place(text: str, longest: int) -> int:
    """The last place up to `longest` where nothing is cut through; 0 when there is none."""
    return max((place for place in cut_places(text[: longest + 40]) if place <= longest), default=0)


def _smallest_cap(sizes: list[int], max_tokens: int) -> int:
    """The smallest window that needs no more windows than `max_tokens` does, so that the last is no stub."""
    fewest = _windows_needed(sizes, max_tokens)
    low, high = max(sizes, default=1), max_tokens
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _windows_needed(sizes, middle) <= fewest else (middle + 1, high)
    return low


def _windows_needed(sizes: list[int], cap: int) -> int:
    return len(_grouped([""] * len(sizes), sizes, cap))


def _grouped(parts: list[str], sizes: list[int], cap: int) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    filled = 0
    for part, size in zip(parts, sizes, strict=True):
        if groups[-1] and filled + size > cap:
            groups.append([])
            filled = 0
        groups[-1].append(part)
        filled += size
    return groups


def _joined(group: list[str], max_tokens: int, count: Callable[[str], int]) -> list[str]:
    """One text, or more where the joined lines take more tokens than the lines alone did."""
    text = "\n".join(group)
    if len(group) == 1 or count(text) <= max_tokens:
        return [text]
    half = len(group) // 2
    return _joined(group[:half], max_tokens, count) + _joined(group[half:], max_tokens, count)
