"""A text in short stretches, each with the signs it holds, so that a rule reads only where it can match.

Every rule names the signs it needs (a digit, a month's name, 月 ...). A stretch ends where a line or a sentence
does, so that no figure is cut; a text without such ends is cut at a space after a while. What is read is the
same as without stretches, only sooner.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

Reader = Callable[[re.Match[str]], dict[str, int] | None]
Row = tuple[frozenset[str], re.Pattern[str], Reader]

_SIGNS: dict[str, str] = {
    "digit": r"\d",
    "digits": r"\d[\d ().+,-]*\d",
    "code": r"[a-z]-?\d|\d[a-z]",
    "address": r"@|www\.|://",
    "cue": r"\b(?:phone|tele|tel|mobile|fax|ext|hotline|room|flight|suite|passcode|zip|serial|badge|locker|order|invoice|ticket"
    r"|account|card|case|gate|platform|channel|call|cell|pin|dial)|#|[话机线真号间室单航码编账牌位]",
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
    "noon": r"noon|midday|midnight",
    "past": r" (?:past|to|after|of) ",
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
    "时": "时",
    "时段": "[晨早午晚夜]",
    "节": "元旦|[节夜]|五一|国庆|双十?[一1]|圣诞",
}
_COMPILED = {name: re.compile(pattern) for name, pattern in _SIGNS.items()}


def row(needs: str, pattern: str, read: Reader) -> Row:
    """A rule: the signs it needs, its pattern, what it makes of a match."""
    return frozenset(needs.split()), re.compile(pattern), read


class Block:
    """The stretch [start, end) of a folded text; signs are looked for when first asked."""

    __slots__ = ("_known", "end", "start", "text")

    def __init__(self, text: str, start: int, end: int) -> None:
        self.text, self.start, self.end = text, start, end
        self._known: dict[str, bool] = {}

    def has(self, needs: frozenset[str]) -> bool:
        """Whether the stretch holds every sign."""
        return all(self._has(name) for name in needs)

    def _has(self, name: str) -> bool:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = _COMPILED[name].search(self.text, self.start, self.end) is not None
        return known

    def matches(self, needs: frozenset[str], pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Matches of a pattern inside the stretch, none when a sign is missing."""
        if self.has(needs):
            yield from pattern.finditer(self.text, self.start, self.end)


def blocks_of(text: str) -> list[Block]:
    """The stretches of a folded text, in order, covering all of it."""
    blocks = []
    start = 0
    for end in _ends(text):
        if end - start >= 60:
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
