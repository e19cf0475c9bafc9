"""The words of the page, by language: its own from words.toml, those of guards and runs from terms.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from seatrial.errors import UserError


@dataclass(frozen=True)
class Speaker:
    """One language: `say(key)` for the page's own words, `say.term(text)` for what guards and runs say.

    An unknown key is a fault of ours and raises KeyError. An unknown term stays in English: results may come
    from other versions, with reasons that this one has never heard of.
    """

    words: Mapping[str, str]
    terms: Mapping[str, str]

    def __call__(self, key: str) -> str:
        return self.words[key]

    def term(self, text: str) -> str:
        return self.terms.get(text, text)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("seatrial.report").joinpath(name).read_text(encoding="utf-8"))


def languages() -> dict[str, dict[str, str]]:
    """Language -> key -> word."""
    return _read("words.toml")


def terms(language: str) -> dict[str, str]:
    """English term -> the same in `language`; empty for English."""
    found: dict[str, str] = _read("terms.toml").get(language, {})
    return found


def speaker(language: str) -> Speaker:
    """The words of one language. Raises UserError for a language that the page does not have."""
    known = languages()
    if language not in known:
        raise UserError(f"--lang is {language!r}: one of {', '.join(known)}")
    return Speaker(known[language], terms(language))
