"""One Chinese name against the source: the reason, and the nearest name there."""

from __future__ import annotations

import re
from collections.abc import Iterable

from seatrial.guards.names.lexicon import chinese
from seatrial.guards.names.model import NameMention
from seatrial.guards.names.policy import Reason
from seatrial.guards.names.sound import alike, reading
from seatrial.guards.names.source import Source, simplified
from seatrial.guards.verdict import Nearest

Outcome = tuple[Reason, Nearest | None]

NEAR_RATIO = 70.0  # for names of four characters and more, one of which may differ
_DOTS = "·・•‧．"


def match_chinese(mention: NameMention, source: Source, summary: str) -> Outcome:
    """Compare one mention; `summary` is the text it stands in, since the tagger may have cut it short."""
    if mention.kind in ("place", "organisation"):
        return _match_thing(mention, source)
    if mention.surname and not mention.given and mention.title:
        return _match_titled(mention, source)
    key = simplified(mention.bare)
    places = _places(key, source.han)
    if places:
        return _match_present(mention, key, places, source, summary)
    return _match_absent(mention, key, source)


def _places(key: str, text: str, limit: int = 64) -> list[int]:
    found: list[int] = []
    at = text.find(key) if key else -1
    while at >= 0 and len(found) < limit:
        found.append(at)
        at = text.find(key, at + 1)
    return found


def _match_present(
    mention: NameMention, key: str, places: list[int], source: Source, summary: str
) -> Outcome:
    """The characters are there: alone, or inside a longer name?"""
    longer: list[NameMention] = []
    for start in places:
        holder = _holder(source.chinese, start, start + len(key))
        if holder is None or len(simplified(holder.bare)) <= len(key) or _component(key, holder):
            as_written = source.text[start : start + len(key)] == mention.bare
            near = Nearest(source.text[start : start + len(key)], (start, start + len(key)))
            if holder is not None and _component(key, holder) and len(holder.bare) > len(key):
                return Reason.SURNAME_ONLY, _nearest(holder)
            return Reason.EXACT if as_written else Reason.SCRIPT, near
        longer.append(holder)
    for holder in longer:
        if _continued(mention, key, simplified(holder.bare), summary):
            return Reason.EXACT, _nearest(holder)
    return Reason.CUT, _nearest(longer[0])


def _continued(mention: NameMention, key: str, whole: str, summary: str) -> bool:
    """The summary has the whole name too, and only the tagger cut it short."""
    start = mention.span[0] - whole.find(key)
    return start >= 0 and simplified(summary[start : start + len(whole)]) == whole


def _holder(mentions: list[NameMention], start: int, end: int) -> NameMention | None:
    from bisect import bisect_right

    at = bisect_right(mentions, start, key=lambda m: m.span[0]) - 1
    if at >= 0 and mentions[at].span[1] >= end and mentions[at].kind == "person":
        return mentions[at]
    return None


def _component(key: str, holder: NameMention) -> bool:
    """A whole part between the middle dots of a foreign name."""
    bare = simplified(holder.bare)
    if not any(dot in bare for dot in _DOTS):
        return False
    for dot in _DOTS:
        bare = bare.replace(dot, "|")
        key = key.replace(dot, "|")
    return f"|{key}|" in f"|{bare}|"


def _match_absent(mention: NameMention, key: str, source: Source) -> Outcome:
    people = _people(source)
    same_length = [p for p in people if len(p.bare) == len(key)]
    sound = reading(key, mention.surname)
    for person in same_length:
        if reading(simplified(person.bare), person.surname) == sound:
            return Reason.HOMOPHONE, _nearest(person)
    if (place := _sounding_alike(key, source)) is not None:
        return Reason.HOMOPHONE, Nearest(source.text[slice(*place)], place)
    part = _last_part(key)
    if part and (known := next((p for p in people if simplified(p.bare) == part), None)):
        return Reason.OTHER_PERSON, _nearest(known)
    if len(key) >= 4:
        near = _closest(key, people, NEAR_RATIO)
        if near is not None:
            return Reason.NEAR_SPELLING, _nearest(near)
    family = [
        p
        for p in people
        if mention.surname and p.surname and simplified(p.surname) == simplified(mention.surname)
    ]
    if family:
        full = [p for p in family if p.given] or family
        return Reason.OTHER_PERSON, _nearest(_closest(key, full, 0.0) or full[0])
    return Reason.NOT_FOUND, _nearest(_same_title(mention, people))


def _sounding_alike(key: str, source: Source) -> tuple[int, int] | None:
    """A surname and two syllables of the same sound, where the tagger saw no name: three are no accident."""
    pattern = alike(key, source.han)
    if len(key) < 3 or pattern is None:
        return None
    found = (m.span() for m in re.finditer(pattern, source.han))
    return next((s for s in found if chinese().surname_of(source.han[slice(*s)])), None)


def _last_part(key: str) -> str | None:
    """The surname of a foreign name, behind its last middle dot."""
    return next((key.rsplit(dot, 1)[1] for dot in _DOTS if dot in key), None)


def _match_titled(mention: NameMention, source: Source) -> Outcome:
    """张总, 王经理, 老李: a surname with a title or a nickname."""
    surname = simplified(mention.surname or "")
    text = simplified(mention.text)
    family = [p for p in _people(source) if p.surname and simplified(p.surname) == surname]
    same = [p for p in family if p.title and _same_family(p.title, mention.title or "")]
    if same:
        literal = [p for p in same if simplified(p.text) == text]
        as_written = not literal or any(p.text == mention.text for p in literal)
        if literal:
            return Reason.EXACT if as_written else Reason.SCRIPT, _nearest(literal[0])
        return Reason.SURNAME_ONLY if same[0].given else Reason.EXACT, _nearest(same[0])
    if not family and (places := _places(text, source.han)):
        return Reason.EXACT, Nearest(
            source.text[places[0] : places[0] + len(text)], (places[0], places[0] + len(text))
        )
    untitled = {p.bare: p for p in family if p.given and not p.title}
    if len(untitled) == 1:
        return Reason.SURNAME_ONLY, _nearest(next(iter(untitled.values())))
    if untitled:
        return Reason.AMBIGUOUS, _nearest(next(iter(untitled.values())))
    if family:
        return Reason.TITLE_CHANGED, _nearest(family[0])
    return Reason.NOT_FOUND, _nearest(_same_title(mention, _people(source)))


def _same_family(one: str, other: str) -> bool:
    return one == other or any(one in family and other in family for family in chinese().title_families)


def _match_thing(mention: NameMention, source: Source) -> Outcome:
    """Places and organisations are shortened freely: 广东 for 广东省, 财务部 for 财务."""
    key = simplified(mention.text)
    for shorter in (key, key.rstrip("省市县区州国镇村部门公司局院厅"), key[:2] if len(key) <= 3 else key[:4]):
        if len(shorter) >= 2 and (at := source.han.find(shorter)) >= 0:
            found = Nearest(source.text[at : at + len(shorter)], (at, at + len(shorter)))
            return Reason.EXACT if source.text[at : at + len(shorter)] == mention.text[
                : len(shorter)
            ] else Reason.SCRIPT, found
    return Reason.NOT_FOUND, None


def _people(source: Source) -> list[NameMention]:
    return [m for m in source.chinese if m.kind == "person"]


def _closest(key: str, people: Iterable[NameMention], cutoff: float) -> NameMention | None:
    from rapidfuzz import fuzz, process

    by_name = {simplified(p.bare): p for p in people}
    best = process.extractOne(key, list(by_name), scorer=fuzz.ratio, score_cutoff=cutoff)
    return by_name[best[0]] if best else None


def _same_title(mention: NameMention, people: list[NameMention]) -> NameMention | None:
    return next((p for p in people if mention.title and p.title == mention.title), None)


def _nearest(mention: NameMention | None) -> Nearest | None:
    return None if mention is None else Nearest(mention.text, mention.span)
