"""Reading text: what is dropped, what is refused, and that the offset named is the offset of the fault."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import UserError
from seatrial.textfile import count_words, decode, read_text, read_transcript

CHINESE = "主持人：各位好，预算三万五千元，本周五之前交。\n"


def test_bom_and_crlf_never_reach_the_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf" + CHINESE.replace("\n", "\r\n").encode() + b"Anna:\rfine\r\n")
    assert read_text(path) == CHINESE + "Anna:\nfine\n"


def test_gb18030_is_refused_with_offset_and_the_option_that_helps(tmp_path: Path) -> None:
    path = tmp_path / "gb.txt"
    path.write_bytes(b"ok\n" + CHINESE.encode("gb18030"))
    with pytest.raises(UserError, match=r"offset 3; it could be GB18030: pass --encoding gb18030"):
        read_text(path)
    assert read_text(path, encoding="gb18030") == "ok\n" + CHINESE


@given(st.text(max_size=60), st.text(max_size=60), st.booleans())
def test_the_offset_is_that_of_the_first_bad_byte(before: str, after: str, bom: bool) -> None:
    head = (b"\xef\xbb\xbf" if bom else b"") + before.encode()
    with pytest.raises(UserError, match=rf"byte 0xff at offset {len(head)};"):
        decode(head + b"\xff" + b" " + after.encode(), "x.txt")


@given(st.text(st.characters(exclude_characters="\0\r", exclude_categories=("Cs",)), max_size=80))
def test_utf8_round_trips_whatever_the_script(text: str) -> None:
    wanted = text.removeprefix("\ufeff")
    assert decode(text.encode(), "x") == wanted.removeprefix("\ufeff")
    assert decode(text.replace("\n", "\r\n").encode(), "x") == wanted.removeprefix("\ufeff")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_other_unicode_forms_are_named_not_guessed(encoding: str) -> None:
    with pytest.raises(UserError, match=f"--encoding {encoding}"):
        decode(CHINESE.encode(encoding), "x")
    assert decode(CHINESE.encode(encoding), "x", encoding=encoding) == CHINESE


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf \r\n\t", "is empty"),
        (b"abc\0def and more", "byte 0x00 at offset 3"),
        (b"hello", "has 1 word:"),
        ("会议".encode(), "has 2 words:"),
        (b"good text and then \xe4\xb8", "offset 19"),
    ],
)
def test_what_cannot_be_a_transcript(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "t.txt"
    path.write_bytes(data)
    with pytest.raises(UserError, match=message):
        read_transcript(path)


def test_missing_file_folder_and_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no file"):
        read_text(tmp_path / "none.txt")
    with pytest.raises(UserError, match="is a folder"):
        read_text(tmp_path)
    with pytest.raises(UserError, match="sample:en, sample:zh"):
        read_text("sample:fr")
    with pytest.raises(UserError, match="unknown encoding 'klingon'"):
        decode(b"x", "x", encoding="klingon")
    with pytest.raises(UserError, match="not a text encoding"):
        decode(b"x", "x", encoding="base64")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.write(write, CHINESE.encode())
    os.close(write)
    with os.fdopen(read, encoding="ascii") as piped:  # the locale's encoding must not matter
        monkeypatch.setattr(sys, "stdin", piped)
        assert read_text("-") == CHINESE


def test_words_of_both_scripts() -> None:
    assert count_words("Don't re-open Q3 预算三万") == 3 + 4
    assert count_words("a b c d e f", limit=3) == 3
