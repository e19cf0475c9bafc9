"""One Chinese name against the source: the reason, and the nearest name there."""

from __future__ import annotations

import re
from bisect import bisect_right

from seatrial.guards.names.lexicon import chinese
from seatrial.guards.names.model import NameMention
from seatrial.guards.names.policy import Reason
from seatrial.guards.names.script import simplified
from seatrial.guards.names.sound import alike
from seatrial.guards.names.source import Source
from seatrial.guards.verdict import Nearest

Outcome = tuple[Reason, Nearest | None]

NEAR_RATIO = 70.0  # for names of four characters and more, one of which may differ
_DOTS = "·・•‧．"
_COUNTRY = re.compile(r"^(?:中国|全国|国家|我国|中华人民共和国)")
_GENERIC_END = re.compile(r"(?:省|市|县|区|州|国|镇|村|部门?|公司|集团|局|院|厅|队|政府)$")


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
    people = source.people
    if (person := people.sounding_like(key, mention.surname)) is not None:
        return Reason.HOMOPHONE, _nearest(person)
    if (place := _sounding_alike(key, source)) is not None:
        return Reason.HOMOPHONE, Nearest(source.text[slice(*place)], place)
    part = _last_part(key)
    if part in people.by_name:
        return Reason.OTHER_PERSON, _nearest(people.by_name[part])
    if len(key) >= 4 and (near := people.closest(key, least=NEAR_RATIO)):
        return Reason.NEAR_SPELLING, _nearest(near)
    family = people.family(mention.surname)
    if family:
        full = [simplified(p.bare) for p in family if p.given]
        return Reason.OTHER_PERSON, _nearest(people.closest(key, full, least=0.0) or family[0])
    return Reason.NOT_FOUND, _nearest(people.by_title.get(mention.title or ""))


def _sounding_alike(key: str, source: Source) -> tuple[int, int] | None:
    """A surname and two syllables of the same sound, where the tagger saw no name: three are no accident."""
    pattern = alike(key, source.han)
    if len(key) < 3 or pattern is None:
        return None
    found = (m.span() for m in re.finditer(pattern, source.han))
    return next((s for s in found if chinese().surname_of(source.han[slice(*s)])), None)


def _last_part(key: str) -> str:
    """The surname of a foreign name, behind its last middle dot; empty for other names."""
    return next((key.rsplit(dot, 1)[1] for dot in _DOTS if dot in key), "")


def _match_titled(mention: NameMention, source: Source) -> Outcome:
    """张总, 王经理, 老李: a surname with a title or a nickname."""
    text = simplified(mention.text)
    family = source.people.family(mention.surname)
    same = [p for p in family if p.title and _same_family(p.title, mention.title or "")]
    literal = [p for p in same if simplified(p.text) == text]
    if literal:
        as_written = any(p.text == mention.text for p in literal)
        return Reason.EXACT if as_written else Reason.SCRIPT, _nearest(literal[0])
    if same:
        return Reason.SURNAME_ONLY if same[0].given else Reason.EXACT, _nearest(same[0])
    if not family and (places := _places(text, source.han)):
        span = places[0], places[0] + len(text)
        return Reason.EXACT, Nearest(source.text[slice(*span)], span)
    titled = {p.bare for p in family if p.title}
    untitled = [p for p in family if p.given and p.bare not in titled]
    if untitled:
        return Reason.SURNAME_ONLY if len(untitled) == 1 else Reason.AMBIGUOUS, _nearest(untitled[0])
    if family:
        return Reason.TITLE_CHANGED, _nearest(family[0])
    return Reason.NOT_FOUND, _nearest(source.people.by_title.get(mention.title or ""))


def _same_family(one: str, other: str) -> bool:
    return one == other or any(one in family and other in family for family in chinese().title_families)


def _match_thing(mention: NameMention, source: Source) -> Outcome:
    """Places and organisations are shortened freely: 广东 for 广东省, 国防大学 for 中国国防大学."""
    key = simplified(mention.text)
    for form in dict.fromkeys(
        (key, _COUNTRY.sub("", key), _GENERIC_END.sub("", key), key[:2] if len(key) == 3 else key)
    ):
        at = source.han.find(form) if len(form) > 1 else -1
        if at >= 0:
            found = source.text[at : at + len(form)]
            written = Reason.EXACT if found in mention.text else Reason.SCRIPT
            return written, Nearest(found, (at, at + len(form)))
    return Reason.NOT_FOUND, None


def _nearest(mention: NameMention | None) -> Nearest | None:
    return None if mention is None else Nearest(mention.text, mention.span)
