"""Numerals as they are written: digits with separators and scales, Chinese runs, English words.

A numeral has a value, a span and the place of its last digit; what it counts is decided by its neighbours, in
`extract.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from seatrial.guards.numbers import en, zh
from seatrial.guards.numbers.units import currency_before


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number as written, before anybody looked at its neighbours."""

    start: int
    end: int
    value: Decimal
    quantum: Decimal
    high: Decimal | None = None
    form: str = "digits"  # digits | zh | en | ordinal | fraction | year | about | spelled
    string: str = ""
    bound: str = ""


# --- numerals ------------------------------------------------------------------------------------------------

_PLAIN = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
_DIGITS = re.compile(
    rf"(?<![\d.,])(?:(?P<ind>\d{{1,2}}(?:,\d\d)+,\d{{3}}(?:\.\d+)?)|(?P<eu>\d{{1,3}}(?:\.\d{{3}})+,\d+|\d{{1,3}}(?:\.\d{{3}}){{2,}})"
    rf"|(?P<sp>\d{{1,3}}(?:['\u2009 ]\d{{3}}){{2,}}(?![\d]))|(?P<plain>{_PLAIN})|(?P<lone>(?<=\d,)\d+))"
)
_SPACED_DECIMAL = re.compile(r" \. (\d+)(?= ?(?:%|percent|per cent|million|billion|thousand))")
_SCALES = {
    "k": 10**3, "thousand": 10**3, "hundred": 100, "m": 10**6, "mm": 10**6, "mn": 10**6, "mln": 10**6, "mil": 10**6,
    "million": 10**6, "millions": 10**6, "b": 10**9, "bn": 10**9, "bln": 10**9, "billion": 10**9, "billions": 10**9,
    "t": 10**12, "tn": 10**12, "trillion": 10**12, "trillions": 10**12, "dozen": 12, "dozens": 12, "crore": 10**7,
    "crores": 10**7, "lakh": 10**5, "lakhs": 10**5, "thousands": 10**3, "hundreds": 100,
}  # fmt: skip
_SCALE = re.compile(
    rf"(?: ?- ?| {{1,2}})?({'|'.join(sorted((s for s in _SCALES if len(s) > 3), key=len, reverse=True))}|mil|mln|bln)\b"
)
_SHORT_SCALE = re.compile(r" ?(k|mm|mn|m|bn|b|tn|t)(?![a-z0-9²³])")
_MORE_SCALE = re.compile(r" (million|billion|trillion)\b")
_AND_HALF = re.compile(r" and a (half|quarter)(?: (million|billion|thousand|trillion))?\b")
_MIXED_FRACTION = re.compile(r"(?: |(?<=\d)-)?(\d{1,2})/(\d{1,3})(?![\d/])|([½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])")
_VULGAR = {
    c: Decimal(a) / b
    for c, a, b in zip(
        "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞",
        (1, 1, 2, 1, 3, 1, 2, 3, 4, 1, 5, 1, 3, 5, 7),
        (2, 3, 3, 4, 4, 5, 5, 5, 5, 6, 6, 8, 8, 8, 8),
        strict=True,
    )
}

_Z1 = "零一二两三四五六七八九"
_ZU = "十百千万亿兆廿卅"
_ZH_RUN = re.compile(
    rf"(?:(?:{_PLAIN}) ?[多几余来]?[百千万亿兆]|(?<![{_Z1}\d.])[{_Z1}{_ZU}]|好?几(?= ?[十百千万亿]))"
    rf"(?:(?<=[{_ZU}])(?:{_PLAIN})(?=[{_ZU}])| ?[{_ZU}](?<! [十百千])|(?<=[{_ZU}]) ?[{_Z1}]|[{_Z1}{_ZU}]|点(?= ?[{_Z1}])|(?<=点) [{_Z1}]| 点 (?=[{_Z1}])"
    rf"|(?<=[{_ZU}])[几多余来](?=[{_ZU}])|(?<=[{_ZU}])几)*(?:(?<=[{_ZU}])\d+(?![\d.]))?(?:(?<=[{_ZU}])[多余来])?"
)
_FORMAL_RUN = re.compile(
    r"(?=[万亿零]{0,2}[壹贰叁肆伍陆柒捌玖拾佰仟参])[壹贰叁肆伍陆柒捌玖拾佰仟万亿零参]{2,}"
)


def find_numerals(text: str, taken: bytearray) -> list[Numeral]:
    """Every number of a folded text outside `taken`, in order; marks what it reads."""
    found: list[Numeral] = []
    for numeral in _chinese_numerals(text, taken):
        found.append(_mark(numeral, taken))
    for numeral in _digit_numerals(text, taken):
        found.append(_mark(numeral, taken))
    for numeral in _english_numerals(text, taken):
        found.append(_mark(numeral, taken))
    return sorted(found, key=lambda numeral: numeral.start)


def _mark(numeral: Numeral, taken: bytearray) -> Numeral:
    taken[numeral.start : numeral.end] = b"\1" * (numeral.end - numeral.start)
    return numeral


def _chinese_numerals(text: str, taken: bytearray) -> Iterator[Numeral]:
    if text.isascii():
        return
    for pattern in (_FORMAL_RUN, _ZH_RUN):
        for found in pattern.finditer(text):
            if any(taken[found.start() : found.end()]):
                continue
            number = zh.parse(found[0])
            if number is not None:
                form = "spelled" if number.spelled else "zh"
                yield Numeral(
                    *found.span(), number.value, number.quantum, number.high, form, found[0], number.bound
                )


_FORMS = {"cardinal": "en", "digits": "spelled"}


def _english_numerals(text: str, taken: bytearray) -> Iterator[Numeral]:
    for glued in en.GLUED.finditer(text):
        taken[glued.start() : glued.end()] = b"\2" * (glued.end() - glued.start())
    for run in en.RUN.finditer(text):
        if any(taken[run.start() : run.end()]):
            continue
        for number in en.parse_run(run[0]):
            start, end = run.start() + number.start, run.start() + number.end
            form = (
                "en" if number.form == "cardinal" else "spelled" if number.form == "digits" else number.form
            )
            yield Numeral(start, end, number.value, number.quantum, number.high, form, number.string)


def _digit_numerals(text: str, taken: bytearray) -> Iterator[Numeral]:
    for found in _DIGITS.finditer(text):
        if any(taken[found.start() : found.end()]):
            continue
        yield _with_scale(text, _read_digits(found))


def _read_digits(found: re.Match[str]) -> Numeral:
    written = found[0]
    if found["eu"]:
        written = written.replace(".", "").replace(",", ".")
    elif found["sp"]:
        written = re.sub(r"['\u2009 ]", "", written)
    else:
        written = written.replace(",", "")
    places = len(written.partition(".")[2])
    quantum = Decimal((0, (1,), -places))
    return Numeral(found.start(), found.end(), Decimal(written), quantum)


def _with_scale(text: str, numeral: Numeral) -> Numeral:
    """Takes in a scale word, a spaced decimal of tokenized text, or a fraction: "1.2 million", "2 1/2", "5k"."""
    spaced = _SPACED_DECIMAL.match(text, numeral.end)
    if spaced is not None and numeral.quantum == 1:
        value = Decimal(f"{numeral.value}.{spaced[1]}")
        numeral = replace(numeral, end=spaced.end(), value=value, quantum=Decimal((0, (1,), -len(spaced[1]))))
    fraction = _MIXED_FRACTION.match(text, numeral.end)
    if fraction is not None and numeral.quantum == 1:
        part = _VULGAR[fraction[3]] if fraction[3] else _part(fraction[1], fraction[2])
        if part is not None:
            numeral = replace(
                numeral, end=fraction.end(), value=numeral.value + part, quantum=Decimal("0.01")
            )
    half = _AND_HALF.match(text, numeral.end)
    if half is not None:
        part = Decimal("0.5") if half[1] == "half" else Decimal("0.25")
        size = _SCALES[half[2]] if half[2] else 1
        return replace(numeral, end=half.end(), value=(numeral.value + part) * size, quantum=part * size)
    return _scaled(text, numeral)


def _part(top: str, bottom: str) -> Decimal | None:
    return Decimal(top) / Decimal(bottom) if int(bottom) and int(top) < int(bottom) else None


def _scaled(text: str, numeral: Numeral) -> Numeral:
    scale = _SCALE.match(text, numeral.end)
    if scale is None:
        short = _SHORT_SCALE.match(text, numeral.end)
        if short is None or not _short_scale_allowed(text, numeral, short):
            return numeral
        scale = short
    size, end = Decimal(_SCALES[scale[1]]), scale.end()
    again = _MORE_SCALE.match(text, end)
    if again is not None and size == 1000:
        size, end = size * _SCALES[again[1]], again.end()
    return replace(numeral, end=end, value=numeral.value * size, quantum=numeral.quantum * size)


def _short_scale_allowed(text: str, numeral: Numeral, short: re.Match[str]) -> bool:
    """ "5k" always; "5m", "5b", "5t" only after a currency sign or before one, else they are units or codes."""
    letter = short[1]
    if letter == "k":
        return short.end() - numeral.end == 1
    return (
        currency_before(text, numeral.start) is not None
        or letter in ("mm", "mn", "bn", "tn")
        and text[numeral.end] != " "
    )
