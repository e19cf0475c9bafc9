"""A transcript as turns of speakers, from labelled text, SRT or VTT; and windows cut between turns.

Labelled text keeps its characters (only line ends become \\n and a byte-order mark goes); of subtitles the
times are taken out of the text, since `00:12:34` is no figure that anybody said. What was said, and whether
it is true, is not known here; neither is the encoding: it takes text, not bytes.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from seatrial.errors import UserError
from seatrial.guards.sentences import Span, cut_places, split_sentences


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

    @property
    def speakers(self) -> tuple[str, ...]:
        """Each speaker once, in the order of appearance."""
        return tuple(dict.fromkeys(turn.speaker for turn in self.turns if turn.speaker is not None))


def parse_transcript(text: str) -> Transcript:
    """Turns of `text`: VTT, SRT or labelled text is told apart by its own marks. `UserError` when nothing
    is said.
    """
    clean = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if _CUE_TIME.search(clean):
        transcript = _join(_merged(_cue_turns(clean)))
    else:
        transcript = _labelled_text(clean)
    if not any(re.search(r"\w", turn.text) for turn in transcript.turns):
        raise UserError("the transcript is empty: nobody says a word in it; give a text with what was said")
    return transcript


# ---- labelled text
# -------------------------------------------------------------------------------------------------

_LONGEST_LABEL = 200  # characters, time stamps and indentation included
_CLOCK = r"(?:\d{1,3}:)?\d{1,2}:\d{2}(?:[.,]\d{1,3})?"
_STAMP = rf"[\[(（【<]?\s*(?P<WHICH>{_CLOCK})(?:\s*(?:-->|-|–|~|至)\s*{_CLOCK})?\s*[\])）】>]?"
_LABEL = re.compile(
    rf"^[ \t]*(?:[-–•*]\s+)?(?:{_STAMP.replace('WHICH', 'before')}\s*)?"
    r"(?P<name>[^\s:：\[\]【】<>\d][^:：\n\[\]【】<>]{0,59}?|[\[【](?P<boxed>[^\]】\n\d][^\]】\n]{0,40})[\]】])"
    rf"\s*(?:{_STAMP.replace('WHICH', 'after')}\s*)?(?:(?<!\d)[:：](?!//)|(?<=\d)[:：](?!\d))[ \t]*"
)
_LABEL_LINE = re.compile(
    r"^[ \t]*(?P<name>[^\s:：\[\]【】<>\d][^:：\n\[\]【】<>]{0,59}?)"
    rf"\s*{_STAMP.replace('WHICH', 'after')}[ \t]*$"
)
# Headings of minutes and asides, which nobody is called.
_HEADINGS = (
    "时间 日期 地点 主题 议题 议程 会议 会议时间 会议地点 会议主题 会议名称 会议日期 参会人 参会人员 "
    "与会人员 出席人员 "
    "出席 缺席 记录 记录人 整理 备注 注 附 附件 结论 决议 待办 摘要 总结 关键词 例如 比如 注意 "
    "第一 第二 第三 首先 其次 最后 "
    "date time location place venue subject topic agenda attendees participants present absent apologies "
    "minutes note notes action actions decision decisions summary transcript recording duration title "
    "meeting ps e.g i.e example question answer first second third finally re cc to from"
)
_NOT_SPEAKERS = frozenset(_HEADINGS.split())
_SAYING = re.compile(r"(?:[说道问答讲称]|表示|如下|就是|包括|以下|认为|而言|提到|指出|建议)$")
_SMALL_WORDS = frozenset(
    ("of", "the", "and", "de", "la", "le", "van", "von", "der", "den", "bin", "al", "for")
)


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
        found = _label_of(text, start, end)
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


def _label_of(text: str, start: int, end: int) -> tuple[str, float | None, int] | None:
    """(speaker, seconds, where the speech begins) when the line begins with a label."""
    line = text[start : min(end, start + _LONGEST_LABEL)]  # so that a line of spaces costs no square of them
    match = (_LABEL_LINE.match(line) if end - start == len(line) else None) or _LABEL.match(line)
    if match is None:
        return None
    groups = match.groupdict()
    name = (groups.get("boxed") or groups["name"]).strip()
    stamp = groups.get("before") or groups.get("after")
    if not _may_be_a_speaker(name, stamped=stamp is not None):
        return None
    return name, None if stamp is None else _seconds(stamp), start + match.end()


def _may_be_a_speaker(name: str, *, stamped: bool) -> bool:
    """A name, a role or `Speaker 1`; not the beginning of a sentence that has a colon in it."""
    bare = re.sub(r"[(（].*?[)）]", "", name).strip()
    if not bare or bare.lower() in _NOT_SPEAKERS or re.search(r"[。！？!?，,；;“”\"]", bare):
        return False
    if re.search(r"[\u3400-\u9fff]", bare):
        return len(bare) <= 12 and not _SAYING.search(bare)
    words = bare.split()
    if len(words) > (8 if stamped else 6):
        return False
    named = all(word[0].isupper() or word[0].isdigit() or word.lower() in _SMALL_WORDS for word in words)
    return named or (len(words) <= 2 and bool(re.fullmatch(r"[a-z]+[ _-]?\d+", bare.lower())))


def _seconds(stamp: str) -> float:
    total = 0.0
    for part in stamp.replace(",", ".").split(":"):
        total = total * 60 + float(part)
    return total


# ---- subtitles
# -----------------------------------------------------------------------------------------------------

_CUE_TIME = re.compile(rf"^[ \t]*(?P<start>{_CLOCK})[ \t]*-->[ \t]*{_CLOCK}[^\n]*$", re.MULTILINE)
_VOICE = re.compile(r"<v(?:\.[^ \t>]*)?[ \t]+([^>]+)>")
_TAG = re.compile(r"</?(?:[a-z]+|\d{1,2}:\d{2})[^<>]*>", re.IGNORECASE)
_SPOKEN = tuple[str | None, str, float]


def _cue_turns(text: str) -> Iterator[_SPOKEN]:
    """(speaker, text, seconds) of each cue; lines that roll over from the cue before are taken once."""
    times = list(_CUE_TIME.finditer(text))
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
            yield speaker, said, _seconds(here["start"])


def _spoken_lines(lines: list[str]) -> Iterator[tuple[str | None, str]]:
    for line in lines:
        voice = _VOICE.search(line)
        plain = html.unescape(_TAG.sub("", _VOICE.sub("", line))).strip()
        label = None if voice else _label_of(plain, 0, len(plain))
        if label is not None:
            plain = plain[label[2] :].strip()
        name = voice.group(1).strip() if voice else (label[0] if label else None)
        if plain:
            yield (html.unescape(name) if name else None), plain


def _merged(cues: Iterator[_SPOKEN]) -> Iterator[_SPOKEN]:
    """Neighbouring cues of one speaker as one turn: a cue ends where the screen is full, not the thought."""
    held: _SPOKEN | None = None
    for speaker, said, start_s in cues:
        if held is not None and held[0] == speaker and speaker is not None:
            held = (speaker, _glued(held[1], said), held[2])
            continue
        if held is not None and held[0] is None and speaker is None and not _finished(held[1]):
            held = (None, _glued(held[1], said), held[2])
            continue
        if held is not None:
            yield held
        held = (speaker, said, start_s)
    if held is not None:
        yield held


def _finished(text: str) -> bool:
    return bool(re.search(r"[.!?。！？…][\"'”’)）]*$", text))


def _glued(first: str, second: str) -> str:
    wide = re.compile(r"[\u3000-\u9fff\uff00-\uffef]")
    return first + ("" if wide.match(first[-1:]) and wide.match(second[:1]) else " ") + second


def _join(turns: Iterator[_SPOKEN]) -> Transcript:
    """Turns written one a line, `speaker: text`."""
    placed: list[Turn] = []
    lines: list[str] = []
    at = 0
    for speaker, said, start_s in turns:
        label = "" if speaker is None else f"{speaker}: "
        lines.append(label + said)
        placed.append(Turn(speaker, said, (at + len(label), at + len(label) + len(said)), start_s))
        at += len(label) + len(said) + 1
    return Transcript("\n".join(lines), tuple(placed))


# ---- windows
# -------------------------------------------------------------------------------------------------------


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
            joined = _glued(held, piece) if held else piece
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
