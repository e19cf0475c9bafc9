# ruff: noqa: E501 (patterns and tables of names are easier to read in one piece)
"""A text in short stretches, each with the signs it holds, so that a rule reads only where it can match.

Every rule names the signs it needs (a digit, a month's name, 月 ...). A stretch ends where a line or a sentence
does, so that no figure is cut; a text without such ends is cut at a space after a while. What is read is the
same as without stretches, only sooner.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

Reader = Callable[[re.Match[str]], dict[str, int] | None]
# The signs needed as bits, whether the match begins with a number, the pattern, the reader.
Row = tuple[int, bool, re.Pattern[str], Reader]

_SIGNS: dict[str, str] = {
    "digit": r"\d",
    "digits": r"\d[\d ().+,-]*\d",
    "grouped": r"\d{8}|\d[-. )/]{1,2}\d+[-. )/]{1,2}\d|\d{3}[- ]\d{4}|\(\d|\+\d",
    "spaced": r"\d \d \d",
    "at": r"\b(?:at|around) \d",
    "code": r"[a-z]-?\d|\d[a-z]",
    "address": r"@|www\.|://",
    "cue": r"\b(?:phone|tele|tel|mobile|fax|ext|hotline|room|flight|suite|passcode|zip|serial|badge|locker|order|invoice|ticket"
    r"|account|card|case|gate|platform|channel|call|cell|pin|dial)|#|[话机线真号间室单航码编账牌位转]",
    "month": r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    "weekday": r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|\b(?:mon|tue|wed|thu|fri|sat|sun)",
    "period": r"\b(?:day|week|month|quarter|year|decade|weekend|fortnight|working|workweek)",
    "weekend": r"weekend",
    "half": r"quarter|half|\b[qh][1-4]|\d[qh]",
    "century": r"century",
    "week": r"\bweek",
    "relative": r"today|toni|tomorrow|tmr|yesterday",
    "halfday": r"\d ?[ap]|[ap] ?\.? ?m\b",
    "clock": r"clock",
    "early": r"early|mid|late|beginning of|start of|end of",
    "noon": r"noon|midday|midnight",
    "past": r"(?:half|quarter|twenty|ten|five|\d) (?:past|to|after|of) ",
    "dayparts": r"morning|afternoon|evening|night",
    "feast": r"\bchristmas|\bxmas|boxing|\bnew year|valentine|halloween|juneteenth|earth day|workers|patrick|april fools",
    "year": r"(?:19|20)\d\d",
    "colon": r"\d:\d",
    "nth": r"\d(?:st|nd|rd|th)\b|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|[nr]teenth|tieth",
    "fifteen": r"fifteen|twenty|thirty|forty|fifty",
    "幺": "幺",
    "月": "月",
    "年": "年",
    "日": "[日号]",
    "旬": "旬",
    "前": "[前后]",
    "未来": "过去|最近|未来|今后|接下来|后|前",
    "第": "第",
    "部分": "[初底末终中]",
    "半年": "半年",
    "季": "季",
    "周": "周|星期|礼拜",
    "相对": "[今明昨前后去本上下当这]",
    "年代": "年代",
    "点": "[点时]|:",
    "差": "差",
    "时": "时",
    "时段": "[晨早午晚夜]",
    "节": "元旦|[节夜]|五一|国庆|双十?[一1]|圣诞",
}
_BITS = {name: 1 << index for index, name in enumerate(_SIGNS)}
_SEARCHES = {_BITS[name]: re.compile(pattern).search for name, pattern in _SIGNS.items()}


# What shows that a sign may be there: a word that the sign's own pattern knows, or a character. It may say yes
# where the pattern says no, never the other way round.
_IN_WORDS = "month weekday period weekend century week relative clock early noon dayparts feast fifteen cue nth".split()
_FIRST_WORDS = {"beginning": ("early",), "start": ("early",), "end": ("early",), "new": ("feast",)} | {
    "earth": ("feast",), "april": ("feast",), "at": ("at",), "around": ("at",),
}  # fmt: skip
_CHARACTERS = {
    "digit": "0123456789", "digits": "0123456789", "grouped": "0123456789", "spaced": "0123456789", "year": "12",
    "code": "0123456789", "nth": "0123456789", "colon": ":", "cue": "#话机线真号间室单航码编账牌位转",
    "幺": "幺", "月": "月", "年": "年", "日": "日号", "旬": "旬", "前": "前后", "未来": "过最未今接后前", "第": "第",
    "部分": "初底末终中", "半年": "半", "季": "季", "周": "周星礼", "相对": "今明昨前后去本上下当这", "年代": "年",
    "点": "点时:", "差": "差", "时": "时", "时段": "晨早午晚夜", "节": "元节夜五国双圣",
}  # fmt: skip


def bits(needs: Iterable[str]) -> int:
    """Names of signs as one number."""
    return sum(_BITS[name] for name in needs)


def row(needs: str, pattern: str, read: Reader) -> Row:
    """A rule: the signs it needs, its pattern, what it makes of a match."""
    return bits(needs.split()), False, re.compile(pattern), read


def at_number(needs: str, pattern: str, read: Reader) -> Row:
    """A rule whose match begins with a number, so that it is tried only where one begins."""
    return bits(needs.split()), True, re.compile(pattern), read


@dataclass(frozen=True)
class Table:
    """Rules in the order in which they read; each of those at a number matches only where `likely` does."""

    rows: tuple[Row, ...]
    likely: re.Pattern[str]


def table(*rows: Row, likely: str) -> Table:
    """The rules as a table; `likely` is what every rule at a number begins with, quick to see."""
    return Table(rows, re.compile(likely))


_NUMBERS = re.compile(r"\d+|[零一二两三四五六七八九十]+")
_WORDS = re.compile(r"[a-z]+")
_LATIN_SIGNS = bits(["address", "half", "halfday", "past"])
_SEEN_SIGNS = bits({*_IN_WORDS, *_CHARACTERS, "at"})
_OF_CHARACTER = {
    character: bits(name for name, found in _CHARACTERS.items() if character in found)
    for character in set("".join(_CHARACTERS.values()))
}
_LONGEST_WORD = 24


class _WordSigns(dict[str, int]):
    """Word -> the signs it may show, looked up once and kept; a longer word may show any."""

    def __missing__(self, word: str) -> int:
        if len(word) > _LONGEST_WORD:
            return _SEEN_SIGNS
        shown = [name for name in _IN_WORDS if _SEARCHES[_BITS[name]](word)]
        if len(self) > 50_000:
            self.clear()
        self[word] = found = bits({*shown, *_FIRST_WORDS.get(word, ())})
        return found


_OF_WORD = _WordSigns()


def _absent(text: str, start: int, end: int) -> int:
    """Signs that a stretch cannot hold, by its words and characters alone."""
    words = set(_WORDS.findall(text, start, end))
    found = 0
    for word in words:
        found |= _OF_WORD[word]
    for character in _OF_CHARACTER.keys() & set(text[start:end]):
        found |= _OF_CHARACTER[character]
    return _SEEN_SIGNS & ~found | (0 if words else _LATIN_SIGNS)


class Block:
    """The stretch [start, end) of a folded text; signs are looked for when first asked."""

    __slots__ = ("_numbers", "absent", "end", "present", "start", "text")

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text, self.start, self.end = text, start, end
        self.present = 0
        self.absent = _absent(text, start, end)
        self._numbers: list[int] | None = None

    def has(self, needs: int) -> bool:
        """Whether the stretch holds every sign of `needs`."""
        unknown = needs & ~self.present
        while unknown and not needs & self.absent:
            bit = unknown & -unknown
            if _SEARCHES[bit](self.text, self.start, self.end) is None:
                self.absent |= bit
            else:
                self.present |= bit
            unknown ^= bit
        return not needs & self.absent

    def numbers(self, likely: re.Pattern[str]) -> list[int]:
        """Where a number begins that `likely` matches."""
        text, end, match = self.text, self.end, likely.match
        if self._numbers is None:
            self._numbers = [found.start() for found in _NUMBERS.finditer(text, self.start, end)]
        return [start for start in self._numbers if match(text, start, end)]

    def matches(self, needs: int, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Matches of a pattern inside the stretch; none when a sign is missing."""
        return pattern.finditer(self.text, self.start, self.end) if self.has(needs) else iter(())


def blocks_of(text: str) -> list[Block]:
    """The stretches of a folded text, in order, covering all of it."""
    blocks = []
    start = 0
    for end in _ends(text):
        if end - start >= 120:
            blocks.append(Block(text, start, end))
            start = end
    if start < len(text):
        blocks.append(Block(text, start, len(text)))
    return blocks


def _ends(text: str) -> Iterator[int]:
    last = 0
    for found in re.finditer(r"\n|[。！？；]|(?<=[a-z]{5})[.!?] | ", text):
        if found[0] == " " and found.start() - last < 600:
            continue
        last = found.end()
        yield last
