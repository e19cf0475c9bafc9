"""A name that the source writes in the other script: compared by its sound, and only when asked for.

Pinyin without tones, surname first or last, with or without a space between the syllables. Other systems
(Wade-Giles, Cantonese) and English names in Chinese characters (约翰 for John) are not read.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.guards.names.model import NameMention
from seatrial.guards.names.policy import Reason
from seatrial.guards.names.script import simplified
from seatrial.guards.names.sound import reading
from seatrial.guards.names.source import Source, folded_words
from seatrial.guards.verdict import Nearest

Outcome = tuple[Reason, Nearest | None]

_UNDECIDED = frozenset((Reason.NOT_FOUND, Reason.OTHER_PERSON, Reason.CUT, Reason.NEAR_SPELLING))


def across_scripts(
    outcome: Outcome, mention: NameMention, told: Source, heard: Source, *, asked: bool
) -> Outcome:
    """What becomes of a name that was not found, where summary and source are written in two scripts."""
    translated = told.main_script != heard.main_script and mention.script != heard.main_script
    if outcome[0] not in _UNDECIDED or not translated:
        return outcome
    if not asked:
        return Reason.NOT_CHECKED, None
    near = _by_sound(mention, heard)
    return (Reason.TRANSLITERATED, near) if near else outcome


def _by_sound(mention: NameMention, source: Source) -> Nearest | None:
    if mention.script == "han":
        for sound in _sounds(simplified(mention.bare), mention.surname):
            found = source.find_words(sound)
            if found:
                start, end = source.span(found[0])
                return Nearest(source.text[start:end], (start, end))
        return None
    letters = "".join(folded_words(mention.given or mention.text))
    for person in source.people.by_name.values():
        surname = simplified(person.surname or "")
        sounds = list(_sounds(simplified(person.bare), person.surname))
        if letters in sounds or (mention.title and letters == "".join(reading(surname, surname))):
            return Nearest(person.text, person.span)
    return None


def _sounds(name: str, surname: str | None) -> Iterator[str]:
    """zhangwei and weizhang."""
    syllables = reading(name, surname)
    head = len(surname or "")
    yield "".join(syllables)
    if head:
        yield "".join(syllables[head:] + syllables[:head])
