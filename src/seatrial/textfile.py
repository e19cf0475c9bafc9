"""Reading what people hand over as text: a file, standard input or one of the packaged samples.

UTF-8 is read explicitly, whatever the system's default encoding is. A byte order mark is dropped, so that it
never becomes part of the first name or figure; CRLF becomes LF. Anything that cannot be read is a `UserError`
that names the byte offset and the option that helps. This module does not know what a transcript looks like.
"""

from __future__ import annotations

import codecs
import re
import sys
from importlib.resources import files
from pathlib import Path

from seatrial.errors import UserError

SAMPLES = {"sample:en": "meeting_en.txt", "sample:zh": "meeting_zh.txt"}

# Encodings that are tried only to name a likely one in the message, never to decode silently.
_LIKELY = ("gb18030", "big5", "shift_jis")

_BOMS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

# One word: a CJK character counts as one, a run of other letters or digits as one.
_WORD = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[^\W_\u3400-\u9fff]+(?:['’-][^\W_]+)*")

LEAST_WORDS = 5


def read_text(name: str | Path, *, encoding: str | None = None, what: str = "text") -> str:
    """The text of a file, of standard input (`-`) or of a packaged sample (`sample:en`, `sample:zh`).

    Raises `UserError` for a missing or unreadable file, an empty one, and bytes that are not `encoding`
    (UTF-8 when None).
    """
    label = "standard input" if str(name) == "-" else str(name)
    text = decode(_read_bytes(str(name), what), label, encoding=encoding)
    if not text.strip():
        raise UserError(f"{label} is empty: a {what} was needed")
    return text


def read_transcript(name: str | Path, *, encoding: str | None = None) -> str:
    """`read_text` for a transcript: at least one sentence of `LEAST_WORDS` words, else `UserError`."""
    text = read_text(name, encoding=encoding, what="transcript")
    words = count_words(text, limit=LEAST_WORDS)
    if words < LEAST_WORDS:
        label = "standard input" if str(name) == "-" else str(name)
        raise UserError(
            f"{label} has {words} word{'' if words == 1 else 's'}: a transcript needs at least a sentence "
            f"({LEAST_WORDS} words); is this the right file?"
        )
    return text


def count_words(text: str, *, limit: int | None = None) -> int:
    """Words of a text (each CJK character is one), counted up to `limit`."""
    count = 0
    for count, _ in enumerate(_WORD.finditer(text), start=1):
        if limit is not None and count >= limit:
            break
    return count


def decode(data: bytes, label: str, *, encoding: str | None = None) -> str:
    """Bytes to text: no byte order mark, LF line ends; `UserError` names the offset of the first bad byte."""
    wanted = _known_encoding(encoding or "utf-8")
    body, skipped = _without_bom(data, label, wanted, given=encoding is not None)
    try:
        text = body.decode(wanted)
    except UnicodeDecodeError as error:
        raise UserError(_bad_byte(data, label, wanted, error, skipped)) from None
    if "\0" in text:
        offset = len(text[: text.index("\0")].encode("utf-8")) + skipped
        raise UserError(
            f"{label} is not text: byte 0x00 at offset {offset}; give a plain text, SRT or VTT file"
        )
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _known_encoding(name: str) -> str:
    try:
        found = codecs.lookup(name)
    except LookupError:
        raise UserError(
            f"unknown encoding {name!r}: give a name such as utf-8, gb18030, big5 or utf-16"
        ) from None
    if not getattr(found, "_is_text_encoding", True):
        raise UserError(f"{name!r} is not a text encoding: give a name such as utf-8, gb18030 or utf-16")
    return found.name


def _without_bom(data: bytes, label: str, encoding: str, *, given: bool) -> tuple[bytes, int]:
    """Drops a UTF-8 mark and refuses another one that speaks against the encoding."""
    if encoding == "utf-8" and data.startswith(codecs.BOM_UTF8):
        return data[len(codecs.BOM_UTF8) :], len(codecs.BOM_UTF8)
    if not given:
        for mark, name in _BOMS:
            if data.startswith(mark):
                raise UserError(
                    f"{label} is not UTF-8: byte 0x{data[0]:02x} at offset 0 begins a {name.upper()} mark; "
                    f"pass --encoding {name}"
                )
    return data, 0


def _bad_byte(data: bytes, label: str, encoding: str, error: UnicodeDecodeError, skipped: int) -> str:
    offset = error.start + skipped
    byte = data[offset] if offset < len(data) else 0
    told = f"{label} is not {encoding.upper()}: byte 0x{byte:02x} at offset {offset}"
    likely = [name for name in _LIKELY if name != encoding and _decodes(data, name)]
    if likely:
        return f"{told}; it could be {likely[0].upper()}: pass --encoding {likely[0]}, or save it as UTF-8"
    return f"{told}; repair that byte, or pass --encoding with the right name"


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _read_bytes(name: str, what: str) -> bytes:
    if name == "-":
        return sys.stdin.buffer.read()
    if name.startswith("sample:"):
        return _read_sample(name)
    path = Path(name)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"no file {name}: give a {what} file, - for standard input, or sample:en") from None
    except IsADirectoryError:
        raise UserError(f"{name} is a folder: a {what} file was needed") from None
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror or error}; a {what} file was needed") from None


def _read_sample(name: str) -> bytes:
    try:
        file = SAMPLES[name]
    except KeyError:
        raise UserError(f"no sample {name!r}: there are {', '.join(SAMPLES)}") from None
    return (files("seatrial.samples") / file).read_bytes()
