"""Speaker labels: whether a line begins with one, whose it is, and the time beside it.

`Anna:`, `王磊（总监）：`, `[00:01:02] Anna:`, `Anna (00:01:02):`, and lines of a name and a time alone. The
beginning of a sentence that has a colon in it, and the headings of minutes, are no labels.
"""

from __future__ import annotations

import re

_LONGEST_LABEL = 200  # characters, time stamps and indentation included
CLOCK = r"(?:\d{1,3}:)?\d{1,2}:\d{2}(?:[.,]\d{1,3})?"
_STAMP = rf"[\[(（【<]?\s*(?P<WHICH>{CLOCK})(?:\s*(?:-->|-|–|~|至)\s*{CLOCK})?\s*[\])）】>]?"
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


def label_of(text: str, start: int, end: int) -> tuple[str, float | None, int] | None:
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
    return name, None if stamp is None else seconds_of(stamp), start + match.end()


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


def seconds_of(stamp: str) -> float:
    total = 0.0
    for part in stamp.replace(",", ".").split(":"):
        total = total * 60 + float(part)
    return total
