"""Plain data of the names guard: a mention in a text, and an entity for those who only need its class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Script = Literal["han", "latin"]
Kind = Literal["person", "organisation", "place", "name", "calendar"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class NameMention:
    """A name as it stands in a text; `text == source[span[0]:span[1]]` always holds.

    `surname`, `given` and `title` are None where the text does not show them. `certain` is False where only
    the capital at the start of a sentence, or an unsure tag, speaks for a name: such a one never weighs as
    much as a sure one. `speaker` says that it stands as a speaker label.
    """

    text: str
    span: tuple[int, int]
    script: Script
    kind: Kind = "person"
    surname: str | None = None
    given: str | None = None
    title: str | None = None
    certain: bool = True
    speaker: bool = False

    @property
    def bare(self) -> str:
        """The name without its title."""
        if self.title is None:
            return self.text
        return f"{self.surname or ''}{self.given or ''}" if self.script == "han" else (self.given or "")


@dataclass(frozen=True)
class Entity:
    """A stretch of text that names a person, an organisation or a place."""

    text: str
    span: tuple[int, int]
    kind: Literal["person", "organisation", "place"]
