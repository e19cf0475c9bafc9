"""The Chinese people of a source, each once, by what they are looked up by: name, surname, sound, title."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from seatrial.guards.names.model import NameMention
from seatrial.guards.names.script import simplified
from seatrial.guards.names.sound import reading


class People:
    """Mentions of people, gathered; of equal ones the first in the text stands for all."""

    def __init__(self, mentions: Iterable[NameMention]) -> None:
        self.by_name: dict[str, NameMention] = {}
        self.by_title: dict[str, NameMention] = {}
        self._family: dict[str, dict[tuple[str, str | None], NameMention]] = defaultdict(dict)
        for mention in mentions:
            if mention.kind != "person":
                continue
            name = simplified(mention.bare)
            self.by_name.setdefault(name, mention)
            if mention.title:
                self.by_title.setdefault(mention.title, mention)
            if mention.surname:
                self._family[simplified(mention.surname)].setdefault((name, mention.title), mention)

    def family(self, surname: str | None) -> list[NameMention]:
        """Everybody with that surname, by name and title, in the order of the text."""
        return list(self._family.get(simplified(surname), {}).values()) if surname else []

    def sounding_like(self, name: str, surname: str | None) -> NameMention | None:
        """The person whose name has the same syllables."""
        return self._by_sound.get(reading(name, surname))

    @cached_property
    def _by_sound(self) -> dict[tuple[str, ...], NameMention]:
        sounds: dict[tuple[str, ...], NameMention] = {}
        for name, mention in self.by_name.items():
            sounds.setdefault(reading(name, simplified(mention.surname or "") or None), mention)
        return sounds

    def closest(self, name: str, among: Iterable[str] | None = None, *, least: float) -> NameMention | None:
        """The name nearest in spelling, at least `least` percent alike."""
        from rapidfuzz import fuzz, process

        names = list(self.by_name if among is None else among)
        best = process.extractOne(name, names, scorer=fuzz.ratio, score_cutoff=least)
        return self.by_name[best[0]] if best else None
