"""The word lists of `names.toml`, read once, as the shapes the finders look things up in."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files


@dataclass(frozen=True)
class ChineseLexicon:
    surnames: frozenset[str]  # one character each
    common_surnames: frozenset[str]  # the first hundred
    compound_surnames: frozenset[str]
    surname_readings: dict[str, tuple[str, ...]]  # syllables without tones
    titles: frozenset[str]
    title_families: tuple[frozenset[str], ...]
    title_continues: dict[str, frozenset[str]]
    word_surnames: frozenset[str]
    week_marks: frozenset[str]
    nicknames: frozenset[str]
    look_alikes: frozenset[str]
    empty_characters: frozenset[str]
    asserting: tuple[str, ...]  # the longest first
    assent: frozenset[str]
    reporting: tuple[str, ...]

    def surname_of(self, name: str) -> str | None:
        """The surname that `name` begins with, the compound one first."""
        if name[:2] in self.compound_surnames:
            return name[:2]
        return name[:1] if name[:1] in self.surnames else None

    def title_at_end(self, text: str) -> str | None:
        """The longest title that `text` ends in, if something stands before it."""
        return next((text[i:] for i in range(1, len(text)) if text[i:] in self.titles), None)

    def title_at(self, text: str, start: int) -> str | None:
        """The longest title that begins at `start`."""
        longest = min(6, len(text) - start)
        return next((t for n in range(longest, 0, -1) if (t := text[start : start + n]) in self.titles), None)


@dataclass(frozen=True)
class EnglishLexicon:
    titles: frozenset[str]
    abbreviations: frozenset[str]
    particles: frozenset[str]
    organisation_endings: frozenset[str]
    place_endings: frozenset[str]
    calendar: frozenset[str]
    asserting: frozenset[str]
    assent: frozenset[str]
    small: frozenset[str]
    short_forms: dict[str, str]
    reporting: frozenset[str]
    third_person: frozenset[str]
    everyday: frozenset[str]
    openers: frozenset[str]

    @cached_property
    def plain_words(self) -> frozenset[str]:
        """Words that are no names, capital or not."""
        return self.everyday | self.small | self.openers

    @cached_property
    def stop_words(self) -> frozenset[str]:
        """Words that do not tell what was said."""
        return self.everyday | self.small


@cache
def chinese() -> ChineseLexicon:
    table = _table()["chinese"]
    singles = "".join(table["surnames"].split())
    continues = (entry.partition(":") for entry in table["title_continues"].split(","))
    return ChineseLexicon(
        surnames=frozenset(singles),
        common_surnames=frozenset(singles[:100]),
        compound_surnames=frozenset(table["compound_surnames"].split()),
        surname_readings={
            name: tuple(sound.split("-"))
            for name, _, sound in (entry.partition(":") for entry in table["surname_readings"].split())
        },
        titles=frozenset(table["titles"].split()),
        title_families=tuple(frozenset(family.split()) for family in table["title_families"].split(",")),
        title_continues={title: frozenset(following) for title, _, following in continues},
        week_marks=frozenset(table["week_marks"]),
        word_surnames=frozenset(table["word_surnames"]),
        nicknames=frozenset(table["nicknames"].split()),
        look_alikes=frozenset(table["look_alikes"].split()),
        empty_characters=frozenset(table["empty_characters"]),
        asserting=tuple(sorted(table["asserting"].split(), key=len, reverse=True)),
        assent=frozenset(table["assent"].split()),
        reporting=tuple(sorted(table["reporting"].split(), key=len, reverse=True)),
    )


@cache
def english() -> EnglishLexicon:
    table = _table()["english"]
    short = dict(pair.split(":") for pair in table.pop("short_forms").split())
    return EnglishLexicon(
        short_forms=short, **{key: frozenset(words.split()) for key, words in table.items()}
    )


def _table() -> dict[str, dict[str, str]]:
    return tomllib.loads((files(__package__) / "names.toml").read_text(encoding="utf-8"))
