"""Two invented meeting transcripts, one Chinese and one English, for demos and tests.

All people, companies and products in them are made up. Each meeting has a good summary, whose every figure
and name agrees with the transcript, and a flawed one with known errors; `planted.toml` lists those errors,
so that the guards can be judged on text whose truth is known. Reading them needs only the standard library.
"""

import tomllib
from dataclasses import dataclass
from datetime import date
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Literal, get_args

from seatrial.errors import UserError

Language = Literal["en", "zh"]
SummaryKind = Literal["good", "flawed"]

LANGUAGES: tuple[Language, ...] = get_args(Language)

# The day each meeting took place: relative dates ("next Friday", 下周三) are counted from it.
MEETING_DATE = MappingProxyType({"en": date(2026, 3, 12), "zh": date(2026, 4, 9)})

_SUMMARY_ENDING = {"good": "summary", "flawed": "summary_flawed"}


@dataclass(frozen=True)
class PlantedError:
    """One error of a flawed summary.

    `text` is what the flawed summary says, exactly once within `context`, which stands there exactly once;
    `right` is what the good summary says in its place. `elsewhere` tells that the wrong value does occur in
    the transcript, in another role, so that looking it up in the source is not enough to notice it.
    """

    language: Language
    text: str
    context: str
    right: str
    kind: str
    elsewhere: bool

    def span(self, summary: str) -> tuple[int, int]:
        """Where the error stands in the flawed summary: [start, end) in characters.

        Raises ValueError when the text does not hold it.
        """
        start = summary.index(self.context) + self.context.index(self.text)
        return start, start + len(self.text)

    @property
    def guard(self) -> Literal["names", "numbers"]:
        """The guard whose business the error is."""
        return "names" if self.kind == "person" else "numbers"


def sample_path(language: str) -> Path:
    """Where the sample transcript of a language lies. Raises `UserError` for an unknown language."""
    return _file(f"meeting_{_known(language)}.txt")


def sample_text(language: str) -> str:
    """The sample transcript of a language, a turn a line. Raises `UserError` for an unknown language."""
    return sample_path(language).read_text(encoding="utf-8")


def summary_path(language: str, kind: SummaryKind = "good") -> Path:
    """Where a summary of a sample lies. Raises `UserError` for an unknown language or kind."""
    if kind not in _SUMMARY_ENDING:
        raise UserError(f"no sample summary of the kind {kind!r}: choose good or flawed")
    return _file(f"meeting_{_known(language)}_{_SUMMARY_ENDING[kind]}.txt")


def summary_text(language: str, kind: SummaryKind = "good") -> str:
    """A summary of a sample, good or flawed. Raises `UserError` for an unknown language or kind."""
    return summary_path(language, kind).read_text(encoding="utf-8")


def planted_errors(language: str) -> tuple[PlantedError, ...]:
    """What was falsified in the flawed summary of a language. Raises `UserError` for an unknown language."""
    wanted = _known(language)
    rows = tomllib.loads(_file("planted.toml").read_text(encoding="utf-8"))["planted"]
    return tuple(PlantedError(**row) for row in rows if row["language"] == wanted)


def _known(language: str) -> str:
    if language not in LANGUAGES:
        raise UserError(f"no sample in the language {language!r}: choose {' or '.join(LANGUAGES)}")
    return language


def _file(name: str) -> Path:
    """A data file of this package; a package that was left inside a zip archive has no path to give."""
    found = files(__name__).joinpath(name)
    if not isinstance(found, Path) or not found.is_file():
        raise UserError(f"sample file {name} is not on disk: install seatrial again, unpacked")
    return found
