"""Names in scripts that have capitals: titles, capital runs, and known people where nothing is capitalised.

A capital in the middle of a sentence is a name. At the start of a sentence it says nothing, so there a name
needs a second sign: the same word capitalised elsewhere, a title, a capital run, or a verb in the third
person behind a word that is no everyday one; the last leaves the mention uncertain.
Not known here: whether the name is right, and who the people are.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator
from dataclasses import replace

from seatrial.guards.names.fold import APOSTROPHES, WORD, fold
from seatrial.guards.names.lexicon import EnglishLexicon, english
from seatrial.guards.names.model import Kind, NameMention
from seatrial.guards.names.words import Token, abbreviates, end_of_name, everyday, tokens

_JOINT = re.compile(r"(?: |\. ?| & |-)")
_SHORT_TITLES = frozenset(("mr", "mrs", "ms", "dr", "prof"))
_PLAIN_ENDING = re.compile(
    r"(?:tions?|ments?|ness|ities|ity|sions?|ings?|ly|ers|ors|ism|ists?|ances?|ences?)$"
)
_THIRD_PERSON = re.compile(r"[a-z]{2,}(?:ed|[^s]s)$")
_HEADING = re.compile(r"^[ \t]*(?:#+.*|\*\*[^*\n]{1,60}\*\*:?|[^\n:：]{1,60}[:：])[ \t]*$", re.MULTILINE)


def find_english(text: str, known: Collection[tuple[str, ...]] = ()) -> list[NameMention]:
    """Mentions in order; `known` are folded names, looked for where the text does not capitalise them."""
    words = tokens(text)
    if not words:
        return []
    lexicon = english()
    elsewhere = {w.folded for w in words if w.capital and not w.opens}
    headings = [m.span() for m in _HEADING.finditer(text)]
    mentions = [
        mention
        for run in _runs(text, words)
        if (mention := _mention(text, words, run, elsewhere, lexicon)) is not None
    ]
    mentions = [_as_known(mention, set(known)) for mention in _doubt_headings(mentions, headings)]
    mentions += _lower_case(text, words, known, mentions, lexicon)
    return sorted(mentions, key=lambda m: m.span)


def _as_known(mention: NameMention, known: set[tuple[str, ...]]) -> NameMention:
    """A name that a known person has, whole or in part, is a person's."""
    words = tuple(fold(m.group()) for m in WORD.finditer(mention.given or mention.text))
    if mention.kind != "name" or not (
        words in known or (len(words) == 1 and any(words[0] in k for k in known))
    ):
        return mention
    surname = (mention.given or mention.text).split()[-1] if len(words) > 1 else None
    return replace(mention, kind="person", surname=surname, certain=True)


def _runs(text: str, words: list[Token]) -> Iterator[tuple[int, int]]:
    """[first, last) token ranges of capitals that stand together, small words between capitals included."""
    particles = english().particles
    at = 0
    while at < len(words):
        if not words[at].capital or text[words[at].start - 1 : words[at].start] in tuple("$€£¥#@0123456789"):
            at += 1
            continue
        end = at + 1
        while end < len(words):
            step = end
            while step < len(words) and step - end < 2 and words[step].text in particles:
                step += 1
            if step >= len(words) or not words[step].capital:
                break
            if not all(_joined(text, words[i], words[i + 1]) for i in range(end - 1, step)):
                break
            end = step + 1
        yield at, end
        at = end


def _joined(text: str, left: Token, right: Token) -> bool:
    gap = text[left.end : right.start]
    if not _JOINT.fullmatch(gap):
        return False
    owner = left.text.lower().endswith(tuple(f"{a}s" for a in APOSTROPHES))
    if right.opens or (
        owner and right.folded not in english().organisation_endings | english().place_endings
    ):
        return False
    return "." not in gap or abbreviates(left)


def _mention(
    text: str, words: list[Token], run: tuple[int, int], elsewhere: set[str], lexicon: EnglishLexicon
) -> NameMention | None:
    first, last = run
    title = None
    while first < last and (everyday(words[first], lexicon) or words[first].text in lexicon.particles):
        first += 1
    title_start = first
    while first < last and words[first].folded in lexicon.titles and last - first > 1:
        first += 1
    while last > first and everyday(words[last - 1], lexicon):
        last -= 1
    if first >= last:
        return None
    if first > title_start:
        title = text[words[title_start].start : words[first - 1].end]
    name = words[first:last]
    if run[1] - run[0] > 2 and all(token.text.isupper() for token in words[slice(*run)]):
        return None  # a line in capitals throughout
    certain = _certain(text, words, first, last, title, elsewhere, lexicon)
    if certain is None:
        return None
    start, end = words[title_start].start, end_of_name(name[-1])
    kind = _kind(name, title, words[last] if last < len(words) else None, lexicon)
    person = kind == "person" and len(name) > 1
    return NameMention(
        text[start:end],
        (start, end),
        "latin",
        kind,
        surname=text[name[-1].start : end] if person else None,
        given=text[name[0].start : end],
        title=title,
        certain=certain,
    )


def _certain(
    text: str,
    words: list[Token],
    first: int,
    last: int,
    title: str | None,
    elsewhere: set[str],
    lexicon: EnglishLexicon,
) -> bool | None:
    """True or False for a sure or an unsure name, None for none."""
    head = words[first]
    if last - first == 1 and len(head.text) > 1 and head.text.isupper():
        return False  # an abbreviation, which a summary may have made itself
    if not head.opens or title is not None or last - first > 1 or head.folded in elsewhere:
        return True
    if re.search(r"[a-z][A-Z]", head.text):
        return True
    following = words[last] if last < len(words) else None
    if following is not None and _listed_with_name(text, words, last):
        return True
    if following is None or _PLAIN_ENDING.search(head.folded) or head.folded in lexicon.calendar:
        return None
    if (
        following.text == "to"
        or following.folded in lexicon.reporting
        or following.folded in lexicon.third_person
    ):
        return False
    return False if _THIRD_PERSON.match(following.text) else None


def _listed_with_name(text: str, words: list[Token], last: int) -> bool:
    """Ann and Emily; Ann, Bob and Carl."""
    at = last + 1 if words[last].text in ("and", "or") else last
    if at >= len(words) or not words[at].capital or everyday(words[at], english()):
        return False
    return at > last or text[words[last - 1].end : words[at].start] in (", ", " & ")


def _kind(name: list[Token], title: str | None, following: Token | None, lexicon: EnglishLexicon) -> Kind:
    folded = [token.folded for token in name]
    if all(word in lexicon.calendar for word in folded):
        return "calendar"
    if title is not None:
        return "person"
    if folded[-1] in lexicon.organisation_endings or re.search(r"[a-z][A-Z]", name[-1].text):
        return "organisation"
    if folded[-1] in lexicon.place_endings:
        return "place"
    if following is not None and following.folded in lexicon.reporting and not name[-1].text.isupper():
        return "person"
    return "name"


def _doubt_headings(mentions: list[NameMention], headings: list[tuple[int, int]]) -> list[NameMention]:
    """In a heading every word may have a capital."""
    starts = [start for start, _ in headings]

    def inside(mention: NameMention) -> bool:
        at = bisect_right(starts, mention.span[0]) - 1
        return at >= 0 and mention.span[1] <= headings[at][1]

    return [replace(m, certain=False) if inside(m) else m for m in mentions]


def _lower_case(
    text: str,
    words: list[Token],
    known: Collection[tuple[str, ...]],
    found: list[NameMention],
    lexicon: EnglishLexicon,
) -> list[NameMention]:
    """Known people, and what follows a short title, where no capital tells."""
    by_first: dict[str, list[tuple[str, ...]]] = {}
    for name in sorted(set(known), key=len, reverse=True):
        if name and (len(name) > 1 or name[0] not in lexicon.everyday):
            by_first.setdefault(name[0], []).append(name)
    taken = [m.span for m in found]
    more: list[NameMention] = []
    at = reach = 0
    while at < len(words):
        hit = _known_at(words, at, by_first) or _behind_short_title(text, words, at)
        if hit is None:
            at += 1
            continue
        start, end = words[at].start, end_of_name(words[at + len(hit) - 1])
        while reach < len(taken) and taken[reach][1] <= start:
            reach += 1
        if reach == len(taken) or taken[reach][0] >= end:
            titled = words[at].folded in _SHORT_TITLES and len(hit) > 1
            given = text[words[at + 1].start if titled else start : end]
            title = words[at].text if titled else None
            more.append(NameMention(text[start:end], (start, end), "latin", "person", None, given, title))
        at += len(hit)
    return more


def _behind_short_title(text: str, words: list[Token], at: int) -> tuple[str, ...] | None:
    """mr smith: the one sign of a name in lower-case text."""
    if words[at].folded not in _SHORT_TITLES or at + 1 == len(words) or words[at].capital:
        return None
    following = words[at + 1]
    plain = following.capital or everyday(following, english())
    gap = text[words[at].end : following.start]
    return None if plain or gap not in (" ", ". ") else (words[at].folded, following.folded)


def _known_at(
    words: list[Token], at: int, by_first: dict[str, list[tuple[str, ...]]]
) -> tuple[str, ...] | None:
    for name in by_first.get(words[at].folded, ()):
        if len(name) <= len(words) - at and all(words[at + i].folded == part for i, part in enumerate(name)):
            return name
    return None
