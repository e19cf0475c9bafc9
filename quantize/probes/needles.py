"""Needles: sentences that state one invented fact, and the question that asks for it again. Seeded.

The kinds are written as people write them: amounts, dates, phone numbers, names of two to four hanzi, English
names, numbers with a scale word, in words, in full width, and spaced digits. A distractor is the same
sentence about another subject, with a value that is nearly the same.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Needle:
    """One fact: `sentence` is planted, `question` ends where the model must write `answer`."""

    language: str
    kind: str
    subject: str
    answer: str
    sentence: str
    question: str

    @property
    def is_name(self) -> bool:
        """Whether a name is asked for, not a figure."""
        return self.kind.startswith("name")


Write = Callable[[random.Random], str]


@cache
def words() -> dict[str, Any]:
    """Invented subjects and names, and the sentences, from `words.toml`."""
    return tomllib.loads(files("seatrial.quantize.probes").joinpath("words.toml").read_text(encoding="utf-8"))


def kinds(language: str) -> tuple[str, ...]:
    """The kinds of needles of a language, in a fixed order."""
    return tuple(_WRITERS[language])


def make_needle(language: str, kind: str, subject: str, chance: random.Random) -> Needle:
    """A needle of a kind about a subject, its value drawn with `chance`."""
    return _needle(language, kind, subject, _WRITERS[language][kind](chance))


def make_distractor(needle: Needle, subject: str, chance: random.Random) -> Needle:
    """The same about another subject, with a value that is close but never equal."""
    answer = needle.answer
    while answer == needle.answer:
        answer = _near(needle, chance)
    return _needle(needle.language, needle.kind, subject, answer)


def _needle(language: str, kind: str, subject: str, answer: str) -> Needle:
    role = words()[language]["roles"][kind]
    forms = words()[language]["forms"]
    said = forms["statement"].format(role=role, subject=subject)
    asked = forms["question"].format(role=role, subject=subject, statement=said)
    return Needle(language, kind, subject, answer, said + forms["gap"] + answer + forms["stop"], asked)


def _near(needle: Needle, chance: random.Random) -> str:
    """One digit changed or two neighbours swapped; another value of the kind where digits do not carry it."""
    places = [i for i, c in enumerate(needle.answer) if c.isdecimal()]
    if needle.is_name or "date" in needle.kind or len(places) < 3:
        return _WRITERS[needle.language][needle.kind](chance)
    letters = list(needle.answer)
    at = chance.randrange(1, len(places) - 1)
    here, after = places[at], places[at + 1]
    if chance.random() < 0.5 and letters[here] != letters[after]:
        letters[here], letters[after] = letters[after], letters[here]
    else:
        zero = ord("０") if ord(letters[here]) > 0xFF00 else ord("0")
        shift = chance.randrange(1, 9)
        letters[here] = chr(zero + 1 + (ord(letters[here]) - zero - 1 + shift) % 9)
    return "".join(letters)


_HAN = "零一二三四五六七八九"


def english_words(number: int) -> str:
    """A whole number from 1 to 999 as people say it: 412 is "four hundred and twelve"."""
    ones, tens = words()["en"]["ones"], words()["en"]["tens"]
    hundreds, rest = divmod(number, 100)
    parts = [f"{ones[hundreds]} hundred"] if hundreds else []
    if 0 < rest < 20:
        parts.append(ones[rest])
    elif rest:
        parts.append(tens[rest // 10] + (f"-{ones[rest % 10]}" if rest % 10 else ""))
    return " and ".join(parts)


def chinese_words(number: int) -> str:
    """A whole number from 100 to 9999 in hanzi: 3026 is 三千零二十六."""
    written, gap = "", False
    for unit, power in (("千", 1000), ("百", 100), ("十", 10), ("", 1)):
        digit = number // power % 10
        if digit:
            written += ("零" if gap and written else "") + _HAN[digit] + unit
        gap = not digit
    return written


def _amount(chance: random.Random) -> str:
    return f"{chance.randrange(11_000, 99_000) + chance.choice([0.25, 0.5, 0.75]):,.2f}"


def _spaced(chance: random.Random) -> str:
    return " ".join(str(chance.randrange(1, 10)) for _ in range(6))


def _scaled(chance: random.Random) -> str:
    return f"{chance.randrange(12, 98)}.{chance.randrange(1, 10)}"


def _date_en(chance: random.Random) -> str:
    return (
        f"{chance.randrange(1, 29)} {chance.choice(words()['en']['months'])} {chance.randrange(2021, 2033)}"
    )


def _date_zh(chance: random.Random) -> str:
    return f"{chance.randrange(2021, 2033)}年{chance.randrange(1, 13)}月{chance.randrange(1, 29)}日"


def _name_en(chance: random.Random) -> str:
    pool = words()["en"]
    return f"{chance.choice(pool['given'])} {chance.choice(pool['surnames'])}"


def _name_zh(length: int) -> Write:
    def write(chance: random.Random) -> str:
        pool = words()["zh"]
        surname = chance.choice(pool["double_surnames"] if length == 4 else pool["surnames"])
        given = length - len(surname)
        return surname + "".join(chance.sample(pool["given"], given))

    return write


def _phone(chance: random.Random) -> str:
    return f"0{chance.randrange(500, 599)} {chance.randrange(100, 999)} {chance.randrange(1000, 9999)}"


_WRITERS: dict[str, dict[str, Write]] = {
    "en": {
        "amount": lambda chance: "$" + _amount(chance),
        "date": _date_en,
        "phone": _phone,
        "name": _name_en,
        "million": lambda chance: f"{_scaled(chance)} million",
        "words": lambda chance: english_words(chance.randrange(101, 999)),
        "spaced": _spaced,
    },
    "zh": {
        "amount": lambda chance: _amount(chance).replace(",", "") + "元",
        "date": _date_zh,
        "phone": lambda chance: _phone(chance).replace(" ", "-"),
        "name_2": _name_zh(2),
        "name_3": _name_zh(3),
        "name_4": _name_zh(4),
        "wan": lambda chance: f"{_scaled(chance)}万元",
        "yi": lambda chance: f"{chance.randrange(2, 9)}.{chance.randrange(11, 99)}亿元",
        "words": lambda chance: chinese_words(chance.randrange(1001, 9999)),
        "full_width": lambda chance: "".join(chr(ord("０") + chance.randrange(1, 10)) for _ in range(5)),
        "spaced": _spaced,
    },
}
