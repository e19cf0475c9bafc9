"""One name in a script with capitals against the source: the reason, and the nearest name there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import permutations

from seatrial.guards.names.fold import fold
from seatrial.guards.names.lexicon import english
from seatrial.guards.names.model import NameMention
from seatrial.guards.names.policy import Reason
from seatrial.guards.names.source import Folded, Source, folded_words
from seatrial.guards.names.words import Token
from seatrial.guards.verdict import Nearest

Outcome = tuple[Reason, Nearest | None]

NEAR_RATIO = 80.0  # rapidfuzz ratio of two words from which they count as one name written otherwise
_MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec"
_INFLECTED = re.compile(r"(?:s|es|n|an|ian|ean|ese|ish)$")


def match_english(mention: NameMention, source: Source) -> Outcome:
    """Compare one mention; titles apart from the name."""
    name = folded_words(mention.given or mention.text)
    found = source.find_words("".join(name))
    if found:
        return _titled(mention, name, found, source)
    if mention.title and (whole := source.find_words("".join(folded_words(mention.text)))):
        return Reason.EXACT, _near(source, whole[0])
    for attempt in (
        _same_day,
        _reordered,
        _in_pieces,
        _by_initials,
        _inflected,
        _other_person,
        _near_spelling,
        _cut,
    ):
        outcome = attempt(mention, name, source)
        if outcome is not None:
            return outcome
    return Reason.NOT_FOUND, None


def _titled(mention: NameMention, name: Folded, found: list[tuple[int, int]], source: Source) -> Outcome:
    """The name is there: does it carry the same title, and does it stand for one longer name?"""
    if mention.title:
        titles = {t for place in found if (t := _title_before(source, place[0]))}
        if titles and not titles & {_canonical(t) for t in folded_words(mention.title)}:
            place = next(p for p in found if _title_before(source, p[0]))
            return Reason.TITLE_CHANGED, _near(source, (place[0] - 1, place[1]))
    whole = [p for p in found if not _inside_longer(source, p)]
    if whole or len(name) > 1 or mention.kind not in ("person", "name"):
        return Reason.EXACT, _near(source, (whole or found)[0])
    return Reason.SURNAME_ONLY, _near(source, found[0])


_SAME_TITLE = {"doctor": "dr", "professor": "prof", "captain": "capt", "colonel": "col", "general": "gen"}
_SAME_TITLE |= {"lieutenant": "lt", "sergeant": "sgt", "reverend": "rev", "miss": "ms", "chairwoman": "chair"}
_SAME_TITLE |= {"chairman": "chair"}


def _canonical(title: str) -> str:
    return _SAME_TITLE.get(title, title)


def _title_before(source: Source, first: int) -> str | None:
    if first == 0:
        return None
    before = source.words[first - 1]
    gap = source.text[before.end : source.words[first].start]
    return _canonical(before.folded) if before.folded in english().titles and len(gap) <= 2 else None


def _inside_longer(source: Source, place: tuple[int, int]) -> bool:
    """A capital neighbour, one space away, that belongs to the same name."""
    first, last = place
    words = source.words
    return (first > 0 and _one_name(source, words[first - 1], words[first])) or (
        last < len(words) and _one_name(source, words[last - 1], words[last])
    )


def _one_name(source: Source, left: Token, right: Token) -> bool:
    together = source.text[left.end : right.start] == " " and left.capital and right.capital
    lexicon = english()
    return (
        together
        and not ({left.folded, right.folded} & (lexicon.everyday | lexicon.titles))
        and not right.opens
    )


def _in_pieces(_: NameMention, name: Folded, source: Source) -> Outcome | None:
    """A run of capitals that the source says in parts: Sales Agent Sarah, University Hospital Leeds."""
    if len(name) < 2 or not all(word in source.places for word in name):
        return None
    pieces = [p for p in range(1, len(name)) if source.find_words("".join(name[:p]))]
    for cut in reversed(pieces):
        rest = source.find_words("".join(name[cut:]))
        if rest and (len(name) > 2 or _is_word(name[0], source)):
            return Reason.EXACT, _near(source, rest[0])
    return None


def _is_word(word: str, source: Source) -> bool:
    """The source writes it in lower case too: a role, not a name."""
    return any(not source.words[place].capital for place in source.places.get(word, ()))


def _reordered(_: NameMention, name: Folded, source: Source) -> Outcome | None:
    if not 2 <= len(name) <= 4 or not all(word in source.places for word in name):
        return None
    for other in permutations(name):
        found = source.find_words("".join(other))
        if found:
            return Reason.ORDER, _near(source, found[0])
    return None


def _by_initials(mention: NameMention, name: Folded, source: Source) -> Outcome | None:
    """NPCC for National Police Chiefs' Council, J. Smith for Jane Smith, and the other way round."""
    letters = "".join(name)
    if len(name) == 1 and mention.text.isupper() and 2 <= len(letters) <= 6:
        spelled = _spelled_out(letters, source)
        if spelled:
            return Reason.INITIALS, _near(source, spelled)
    if len(name) < 2:
        return None
    for place in source.places.get(name[-1], ()):
        others = source.words[max(0, place - len(name) + 1) : place]
        if len(others) == len(name) - 1 and all(
            _initial_of(a, b.folded) for a, b in zip(name, others, strict=False)
        ):
            return Reason.INITIALS, _near(source, (place - len(others), place + 1))
    short = source.find_words("".join(word[0] for word in name))
    if len(name) > 2 and short and any(source.words[a].text.isupper() for a, _ in short):
        return Reason.INITIALS, _near(source, short[0])
    return None


def _initial_of(one: str, other: str) -> bool:
    return one == other or ((len(one) == 1 or len(other) == 1) and one[:1] == other[:1])


def _spelled_out(letters: str, source: Source) -> tuple[int, int] | None:
    small = english().particles | {"and", "for"}
    for place, word in enumerate(source.words):
        if word.folded[:1] != letters[0] or not word.capital:
            continue
        at, last = 0, place
        while last < len(source.words) and at < len(letters):
            if source.words[last].folded[:1] == letters[at]:
                at += 1
            elif source.words[last].folded not in small:
                break
            last += 1
        if at == len(letters):
            return place, last
    return None


def _inflected(mention: NameMention, name: Folded, source: Source) -> Outcome | None:
    """Floridian for Florida, Spaniards no: only endings that are put on or taken off."""
    if len(name) != 1 or len(name[0]) < 4 or mention.kind == "person":
        return None
    word = name[0]
    bare = word.rstrip("0123456789")  # COVID-19 for COVID; GPT-4 for GPT-3 is no such case
    if len(bare) > 2 and bare != word and bare in source.places:
        return Reason.EXACT, _near(source, (source.places[bare][0], source.places[bare][0] + 1))
    for stem in {_INFLECTED.sub("", word), *(word + ending for ending in ("s", "n", "es"))} - {word}:
        if len(word) > 4 and len(stem) > 3 and stem in source.places:
            return Reason.EXACT, _near(source, (source.places[stem][0], source.places[stem][0] + 1))
    return None


def _other_person(mention: NameMention, name: Folded, source: Source) -> Outcome | None:
    """The surname is there, behind another given name or behind none."""
    if len(name) < 2 or mention.kind in ("organisation", "place", "calendar"):
        return None
    places = [p for p in source.places.get(name[-1], ()) if source.words[p].capital]
    if not places or (closest := _near_spelling(mention, name, source)):
        return closest if places else None
    place = next((p for p in places if _inside_longer(source, (p, p + 1))), places[0])
    first = place - 1 if place and _one_name(source, source.words[place - 1], source.words[place]) else place
    return Reason.OTHER_PERSON, _near(source, (first, place + 1))


def _near_spelling(mention: NameMention, name: Folded, source: Source) -> Outcome | None:
    """Every word of the name has a neighbour in spelling, in the same order."""
    from rapidfuzz import fuzz, process

    if mention.kind == "calendar" or max(map(len, name)) < 4:
        return None
    candidates = [word for word in source.places if len(word) > 2]
    best = process.extract(
        max(name, key=len), candidates, scorer=fuzz.ratio, score_cutoff=NEAR_RATIO, limit=5
    )
    longest = max(range(len(name)), key=lambda i: len(name[i]))
    for word, _, _ in best:
        for place in source.places[word]:
            first = place - longest
            others = source.words[max(first, 0) : first + len(name)]
            if first < 0 or len(others) < len(name) or not _name_like(others, mention):
                continue
            if all(
                a == b.folded or fuzz.ratio(a, b.folded) >= NEAR_RATIO
                for a, b in zip(name, others, strict=True)
            ):
                return Reason.NEAR_SPELLING, _near(source, (first, first + len(name)))
    return None


def _same_day(mention: NameMention, name: Folded, source: Source) -> Outcome | None:
    """Fri for Friday, the weekend for Saturday, 26/06 for June: what the number guard reads as a date."""
    if mention.kind != "calendar":
        return None
    days = english().calendar
    short = {word[:3]: places for word, places in source.places.items() if word in days}
    for word in name:
        if word[:3] not in short and not (word[:3] in ("sat", "sun") and "weekend" in source.places):
            month = _MONTHS.find(word[:3]) // 3 + 1
            if not month or not re.search(
                rf"\b(?:0?{month}[./-]\d{{1,2}}|\d{{1,2}}[./-]0?{month})\b", source.text
            ):
                return None
    places = short.get(name[0][:3]) or source.places.get("weekend")
    return Reason.EXACT, _near(source, (places[0], places[0] + 1)) if places else None


def _cut(mention: NameMention, name: Folded, source: Source) -> Outcome | None:
    """Alex for Alexander: customary in English, so it only warns (see `policy.py`)."""
    if len(name) != 1 or len(name[0]) < 3 or mention.kind == "calendar":
        return None
    for word, places in source.places.items():
        if word.startswith(name[0]) and all(source.words[place].capital for place in places):
            return Reason.CUT, _near(source, (places[0], places[0] + 1))
    return None


def _name_like(words: Iterable[Token], mention: NameMention) -> bool:
    """A name's neighbour is a name: it has a capital, or nothing in a lower-case text has."""
    return (
        all(w.capital for w in words) or mention.text.islower() or all(len(fold(w.text)) > 4 for w in words)
    )


def _near(source: Source, words: tuple[int, int]) -> Nearest:
    start, end = source.span(words)
    return Nearest(source.text[start:end], (start, end))
