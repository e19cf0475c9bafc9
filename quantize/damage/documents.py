"""What the damage is measured on: the package's own short documents, or texts of the user's.

Documents, not tokens, are the independent observations, so a text may hold several, parted by lines of three
or more dashes. Reading files is the command's business. Language is told from the
script, to keep the two apart in every figure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files

from seatrial.errors import UserError

LANGUAGES = ("en", "zh")
_PART = re.compile(r"^-{3,}[ \t]*$", re.MULTILINE)
_HAN = re.compile(r"[㐀-鿿]")
_LETTER = re.compile(r"[^\W\d_]")
# A hanzi says about as much as two letters and a half do; a text is Chinese when most of it is.
_HAN_SHARE = 0.3


@dataclass(frozen=True)
class Document:
    """One text with its language and a name for messages."""

    name: str
    language: str
    text: str


def own_documents(language: str) -> list[Document]:
    """The package's own documents of a language: invented, short, dense with figures and names."""
    if language not in LANGUAGES:
        raise UserError(f"no documents in the language {language!r}: use {' or '.join(LANGUAGES)}")
    text = files("seatrial.quantize.damage").joinpath(f"documents_{language}.txt").read_text(encoding="utf-8")
    return split_documents(f"documents_{language}", text)


def echoed(document: Document) -> Document:
    """The document twice: a model that reads it again could copy every figure and name, as a summary does."""
    return Document(document.name, document.language, f"{document.text}\n\n{document.text}")


def split_documents(name: str, text: str) -> list[Document]:
    """The documents of one text, parted by lines of dashes; empty ones are left out."""
    parts = [part.strip() for part in _PART.split(text)]
    kept = [part for part in parts if part]
    one = len(kept) == 1
    return [
        Document(name if one else f"{name}#{number}", language_of(part), part)
        for number, part in enumerate(kept, 1)
    ]


def language_of(text: str) -> str:
    """ "zh" where hanzi are a good part of the letters, else "en"."""
    letters = len(_LETTER.findall(text))
    return "zh" if letters and len(_HAN.findall(text)) / letters >= _HAN_SHARE else "en"
