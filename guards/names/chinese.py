"""Chinese names: what the tagger calls a person, and what a surname with a title or a nickname shows.

The tagger is statistical: it cuts foreign names at the middle dot, parts a rare surname from its given
name, and takes 那三年 for a name now and then. The rules here join, trim and refuse; a surname with a title
(张总, 王经理, 张工) or a nickname (老李, 小陈) counts only where the tagger sees a word boundary on both
sides, which keeps 相关部长 and 文书记录 out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from seatrial.guards.names.lexicon import ChineseLexicon, chinese
from seatrial.guards.names.model import Kind, NameMention
from seatrial.guards.names.tagger import Word, has_chinese, tag

_DOTS = "·・•‧．"
_HAN_ONLY = re.compile(r"[\u3400-\u9fff]+")
_NAME_RUN = re.compile(rf"[\u3400-\u9fff](?:[\u3400-\u9fffA-Za-z{_DOTS}-]*[\u3400-\u9fffA-Za-z])?")
_PART = re.compile(r"[\u3400-\u9fff]{1,8}")
# Word classes in which a surname is an everyday word: 向老师请教, 于总部.
_FUNCTION_TAGS = frozenset(("p", "d", "c", "r", "v", "m", "q", "u", "f", "xc", "TIME", "t", "vn", "ad"))
_LIST_ITEM = re.compile(r"[\u3400-\u9fff]{2,3}(?=[、，。；和与及等])")
_NAME_TAIL = re.compile(r"(?:说|称|表示|认为|指出|等|们|的)$")


def find_chinese(
    text: str, known: Iterable[str] = (), wanted: Callable[[str], object] = has_chinese
) -> list[NameMention]:
    """Mentions in order, without overlaps, from the sentences that are `wanted`.

    The tagger is loaded only if there is Chinese in such a sentence.
    """
    if not has_chinese(text):
        return []
    words = tag(text, wanted)
    lexicon = chinese()
    found = [m for m in _tagged(text, words, lexicon) if not _looks_alike(text, m, lexicon)]
    found = without_overlaps([*_titled(text, words, lexicon), *found])
    found = without_overlaps([*found, *_in_lists(text, words, found, lexicon)])
    names = {m.bare for m in found if m.kind == "person" and len(m.bare) > 2} | {
        k for k in known if len(k) > 1
    }
    return without_overlaps([*found, *_repeated(text, names, lexicon)])


def _tagged(text: str, words: list[Word], lexicon: ChineseLexicon) -> Iterator[NameMention]:
    at = 0
    kinds: dict[str, Kind] = {"PER": "person", "LOC": "place", "ORG": "organisation"}
    while at < len(words):
        word = words[at]
        kind = kinds.get(word.tag)
        at += 1
        if kind is None:
            continue
        start, end = word.span
        if kind == "person":
            at, end = _grown(text, words, at, end)
            start = _grown_back(text, start)
        mention = (
            _person(text, (start, end), lexicon) if kind == "person" else _thing(text, (start, end), kind)
        )
        if mention is not None:
            yield mention


def _grown(text: str, words: list[Word], at: int, end: int) -> tuple[int, int]:
    """Over the middle dots of a foreign name, and from a lone surname to the given name behind it."""
    start = words[at - 1].span[0]
    while True:
        open_ended = end - start == 1 or text[end - 1] in _DOTS
        if open_ended and at < len(words) and words[at].span[0] == end and words[at].tag == "PER":
            end, at = words[at].span[1], at + 1
            continue
        dot = text[end : end + 1]
        if (dot and dot in _DOTS) or text[end - 1] in _DOTS or (dot == "-" and _foreign(text[start:end])):
            begin = end + (0 if text[end - 1] in _DOTS else 1)
            following = next((w for w in words[at : at + 3] if w.span[0] <= begin < w.span[1]), None)
            part = _PART.match(text, begin, following.span[1] if following else begin)
            if part:
                end = part.end()
                while at < len(words) and words[at].span[0] < end:
                    at += 1
                continue
        return at, end


def _foreign(name: str) -> bool:
    return any(dot in name for dot in _DOTS)


def _grown_back(text: str, start: int) -> int:
    """Over a part before the middle dot that the tagger did not see as a name."""
    if start > 1 and text[start - 1] in _DOTS:
        part = re.search(r"[\u3400-\u9fff]{1,6}$", text[max(0, start - 7) : start - 1])
        if part and len(part.group()) <= 4:
            return start - 1 - len(part.group())
    return start


def _person(text: str, span: tuple[int, int], lexicon: ChineseLexicon) -> NameMention | None:
    start, end = span
    runs = list(_NAME_RUN.finditer(text, start, end))
    if not runs:
        return None
    start, end = runs[-1].span()
    name = text[start:end]
    tail = _NAME_TAIL.search(name)
    if tail and len(name) - len(tail.group()) >= 2 and not _foreign(name):
        end -= len(tail.group())
        name = text[start:end]
    if len(name) == 3 and name[1] in lexicon.title_continues:
        if name[2] in lexicon.title_continues[name[1]]:  # 请张总结一下
            return None
        end, name = end - 1, name[:2]  # 王总安|排测试
    title = lexicon.title_at_end(name)
    if title:
        return _with_title(text, (start, end), title, lexicon)
    if name[0] in lexicon.nicknames and len(name) == 2 and name[1] in lexicon.surnames:
        return NameMention(name, (start, end), "han", surname=name[1], title=name[0])
    surname = None if _foreign(name) else lexicon.surname_of(name)
    if len(name) < 2:
        return None
    mention = NameMention(
        name, (start, end), "han", surname=surname, given=name[len(surname or "") :] or None
    )
    behind = lexicon.title_at(text, end)
    if behind and not _continues(text, end, behind, lexicon):
        mention = replace(mention, title=behind, text=name + behind, span=(start, end + len(behind)))
    return mention


def _with_title(text: str, span: tuple[int, int], title: str, lexicon: ChineseLexicon) -> NameMention | None:
    bare = text[span[0] : span[1] - len(title)]
    surname = lexicon.surname_of(bare)
    if not bare:
        return None
    return NameMention(
        text[span[0] : span[1]],
        span,
        "han",
        surname=surname,
        given=bare[len(surname or "") :] or None,
        title=title,
    )


def _thing(text: str, span: tuple[int, int], kind: Kind) -> NameMention | None:
    name = text[span[0] : span[1]]
    if len(name) < 2 or not _HAN_ONLY.search(name):
        return None
    return NameMention(name, span, "han", kind)


def _titled(text: str, words: list[Word], lexicon: ChineseLexicon) -> Iterator[NameMention]:
    """Surname with title, and nicknames, between word boundaries."""
    ends = {w.span[1] for w in words}
    for at, word in enumerate(words):
        start = word.span[0]
        surname = lexicon.surname_of(text[start : start + 2])
        if surname and (len(surname) == 2 or _may_be_surname(word, lexicon)):
            title = lexicon.title_at(text, start + len(surname))
            end = start + len(surname) + len(title or "")
            whole = title and end in ends and not _continues(text, end - len(title), title, lexicon)
            if whole and text[start : start + 2] not in lexicon.look_alikes:
                yield NameMention(text[start:end], (start, end), "han", surname=surname, title=title)
        yield from _nickname(text, words, at, lexicon)


def _may_be_surname(word: Word, lexicon: ChineseLexicon) -> bool:
    everyday = word.text in lexicon.word_surnames and word.tag in _FUNCTION_TAGS
    return not everyday


def _nickname(text: str, words: list[Word], at: int, lexicon: ChineseLexicon) -> Iterator[NameMention]:
    """老李 as one word or two; 小 and 老 are everyday words too, so only common surnames count."""
    word = words[at]
    pair = text[word.span[0] : word.span[0] + 2]
    if len(pair) < 2 or pair[0] not in "老小阿" or pair[1] not in lexicon.common_surnames:
        return
    alone = len(word.text) == 1 and at + 1 < len(words) and words[at + 1].text == pair[1]
    if (alone and words[at + 1].tag not in _FUNCTION_TAGS) or (word.text == pair and word.tag == "PER"):
        start = word.span[0]
        yield NameMention(pair, (start, start + 2), "han", surname=pair[1], title=pair[0])


def _continues(text: str, start: int, title: str, lexicon: ChineseLexicon) -> bool:
    """The title's one character opens another word: 张总结, 王工作."""
    following = text[start + len(title) : start + len(title) + 1]
    return following in lexicon.title_continues.get(title, frozenset()) and following != ""


def _looks_alike(text: str, mention: NameMention, lexicon: ChineseLexicon) -> bool:
    if mention.kind != "person":
        return False
    before = text[mention.span[0] - 1 : mention.span[0]]
    week = mention.text[0] == "周" and before in lexicon.week_marks
    return week or mention.text[:2] in lexicon.look_alikes


def _in_lists(
    text: str, words: list[Word], found: list[NameMention], lexicon: ChineseLexicon
) -> Iterator[NameMention]:
    """What stands between 、 and a person and begins with a surname is a person too."""
    bounds = {w.span[0] for w in words} | {w.span[1] for w in words}
    taken = {m.span[0] for m in found}
    for mention in found:
        end = mention.span[1]
        while mention.kind == "person" and text[end : end + 1] in ("、", "和"):
            item = _LIST_ITEM.match(text, end + 1)
            if item is None or item.start() in taken or not {item.start(), item.end()} <= bounds:
                break
            name = _person(text, item.span(), lexicon)
            if name is None or name.surname is None or name.span != item.span():
                break
            yield name
            end = item.end()


def _repeated(text: str, names: set[str], lexicon: ChineseLexicon) -> Iterator[NameMention]:
    """Where a name that is sure stands once more and the tagger did not see it."""
    lengths: dict[str, list[int]] = {}
    for name in names:
        lengths.setdefault(name[0], []).append(len(name))
    if not lengths:
        return
    for match in re.finditer(f"[{re.escape(''.join(lengths))}]", text):
        for length in sorted(set(lengths[match.group()]), reverse=True):
            name = text[match.start() : match.start() + length]
            if name in names:
                surname = None if _foreign(name) else lexicon.surname_of(name)
                given = name[len(surname or "") :] or None
                yield NameMention(
                    name, (match.start(), match.start() + length), "han", surname=surname, given=given
                )
                break


def without_overlaps(mentions: Iterable[NameMention]) -> list[NameMention]:
    """In order; of two that overlap the first, then the longer, then the one given first."""
    kept: list[NameMention] = []
    for mention in sorted(mentions, key=lambda m: (m.span[0], -m.span[1])):
        if not kept or mention.span[0] >= kept[-1].span[1]:
            kept.append(mention)
    return kept
