"""The words of the page, by language, from words.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib.resources import files

from seatrial.errors import UserError


def languages() -> dict[str, dict[str, str]]:
    """Language -> key -> word."""
    return tomllib.loads(files("seatrial.report").joinpath("words.toml").read_text(encoding="utf-8"))


def speaker(language: str) -> Callable[[str], str]:
    """Looks words up in one language; an unknown key is a fault of ours and raises KeyError.

    Raises UserError for a language that the page does not have.
    """
    known = languages()
    if language not in known:
        raise UserError(f"--lang is {language!r}: one of {', '.join(known)}")
    return known[language].__getitem__
