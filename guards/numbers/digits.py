"""Numbers in digits: separators, decimals, scales, fractions, powers.

Commas group by three (or the Indian way) and the point is the decimal mark, unless the locale or the form
says otherwise: 1.234,56 can only be read one way. What can be read two ways (1.234) is marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from seatrial.guards.numbers.units import currency_before

COMMA_LOCALES = frozenset("de fr es it pt nl pl ru tr sv da nb no fi cs el ro hu uk id vi".split())


class Numeral(NamedTuple):
    """A number as written, before anybody looked at its neighbours."""

    start: int
    end: int
    value: Decimal
    quantum: Decimal
    high: Decimal | None = None
    form: str = "digits"  # digits | zh | en | ordinal | fraction | year | about | spelled
    string: str = ""
    bound: str = ""
    other: Decimal | None = None  # the second reading of a number that can be read two ways


PLAIN = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?!\d)|\d+(?:\.\d+)?|\.\d+"
_UNIT_NEXT = r"(?= ?(?:%|percent|million|billion|thousand|€|£|eur|km|kg|mio|mrd|万|亿|元))"
_VULGAR_SIGNS = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"
_VULGAR_PARTS = ("1/2 1/3 2/3 1/4 3/4 1/5 2/5 3/5 4/5 1/6 5/6 1/8 3/8 5/8 7/8").split()
VULGAR = {
    sign: Decimal(part[0]) / Decimal(part[2]) for sign, part in zip(_VULGAR_SIGNS, _VULGAR_PARTS, strict=True)
}
_DIGITS = re.compile(
    r"(?<![\d.])(?:"
    r"(?P<power>\d{1,12}(?:\.\d{1,12})?\^[+-]?\d{1,3}(?![\d.]))"
    r"|(?P<exp>\d{1,12}(?:\.\d{1,12})?e[+-]?\d{1,3}(?![\w.]))"
    r"|(?P<indian>\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d+)?(?![\d,]))"
    r"|(?P<points>\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}(?![\d.]))"
    rf"|(?P<comma>\d{{1,3}},\d{{1,2}}(?![\d,]){_UNIT_NEXT}|\d+,00(?![\d,]))"
    r"|(?P<spaces>\d{1,3}(?:['\u2009 ]\d{3}){2,}(?![\d])|\d{1,3}(?:[ ']000)+(?!\d))"
    rf"|(?P<plain>{PLAIN})"
    rf"|(?P<vulgar>[{_VULGAR_SIGNS}]))"
)
_POINTS_LOCALE = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?(?!\d)|\d+,\d+")
_SPACED_DECIMAL = re.compile(r" \. (\d+)(?= ?(?:%|percent|per cent|million|billion|thousand))")
SCALES = {
    "k": 10**3,
    "thousand": 10**3,
    "thousands": 10**3,
    "hundred": 100,
    "hundreds": 100,
    "m": 10**6,
    "mm": 10**6,
    "mn": 10**6,
    "mil": 10**6,
    "mln": 10**6,
    "mio": 10**6,
    "million": 10**6,
    "millions": 10**6,
    "b": 10**9,
    "bn": 10**9,
    "bln": 10**9,
    "mrd": 10**9,
    "billion": 10**9,
    "billions": 10**9,
    "t": 10**12,
    "tn": 10**12,
    "trillion": 10**12,
    "trillions": 10**12,
    "lakh": 10**5,
    "lakhs": 10**5,
    "crore": 10**7,
    "crores": 10**7,
    "dozen": 12,
    "dozens": 12,
    "doz": 12,
    "dozs": 12,
    "dz": 12,
    "dzs": 12,
}
_LONG = sorted((name for name in SCALES if len(name) > 2 or name == "dz"), key=len, reverse=True)
_SCALE = re.compile(rf"(?: ?- ?| {{1,2}})?({'|'.join(_LONG)})\b")
_SHORT_SCALE = re.compile(r" ?(k|mm|mn|m|bn|b|tn|t)(?![a-z0-9²³/])")
_MORE_SCALE = re.compile(r" (million|billion|trillion|crore)s?\b")
_AND_HALF = re.compile(r" and (?:a|one) (half|quarter)(?: (million|billion|thousand|trillion))?\b")
_MIXED = re.compile(rf"(?: {{1,2}}|(?<=\d)-)?(?:(\d{{1,2}})/(\d{{1,3}})(?![\d/])|([{_VULGAR_SIGNS}]))")


def digit_numerals(text: str, original: str, taken: bytearray, locale: str | None) -> Iterator[Numeral]:
    """Numbers in digits of a folded text outside `taken`; `original` tells 5M from 5m."""
    points = locale is not None and locale.split("-")[0].split("_")[0].lower() in COMMA_LOCALES
    for found in _written(text):
        if taken[found.start()] or taken[found.end() - 1]:
            continue
        numeral = _read_points(text, found) if points else None
        yield _extended(text, original, numeral or _read(found))


_THREE_PLACES = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_HALF_MORE = re.compile(r" and (?:a|one) half\b")
_START = re.compile(rf"\.?\d|[{_VULGAR_SIGNS}]")


def _written(text: str) -> Iterator[re.Match[str]]:
    """Every number in digits, looked for only where one can begin."""
    start = _START.search(text)
    while start is not None:
        found = _DIGITS.match(text, start.start())
        if found is not None:
            yield found
        start = _START.search(text, start.end() if found is None else found.end())


def _read_points(text: str, found: re.Match[str]) -> Numeral | None:
    """1.234 and 1,5 as a locale with decimal commas writes them."""
    written = _POINTS_LOCALE.match(text, found.start())
    if written is None or written.end() < found.end():
        return None
    return _numeral(found.start(), written.end(), written[0].replace(".", "").replace(",", "."))


def _read(found: re.Match[str]) -> Numeral:
    written, kind = found[0], found.lastgroup
    if kind == "vulgar":
        return Numeral(found.start(), found.end(), VULGAR[written], Decimal("0.01"), form="fraction")
    if kind == "power":
        base, exponent = written.split("^")
        value = Decimal(base) ** int(exponent) if Decimal(base) else Decimal(0)
        return Numeral(found.start(), found.end(), value, Decimal(1))
    if kind in ("points", "comma"):
        written = written.replace(".", "").replace(",", ".")
    elif kind == "spaces":
        written = re.sub(r"['\u2009 ]", "", written)
    numeral = _numeral(found.start(), found.end(), written.replace(",", ""))
    if "." in found[0] and _THREE_PLACES.fullmatch(found[0]):
        return numeral._replace(other=numeral.value * 1000)
    return numeral


def _numeral(start: int, end: int, written: str) -> Numeral:
    mantissa = written.partition("e")[0]
    return Numeral(start, end, Decimal(written), _place(len(mantissa.partition(".")[2])))


@lru_cache(maxsize=64)
def _place(decimals: int) -> Decimal:
    """What one counts in the last of so many places."""
    return Decimal((0, (1,), -decimals))


def _extended(text: str, original: str, numeral: Numeral) -> Numeral:
    """Takes in what follows: the decimals of tokenized text, a fraction, a scale word."""
    spaced = _SPACED_DECIMAL.match(text, numeral.end)
    if spaced is not None and numeral.quantum == 1:
        numeral = _numeral(numeral.start, spaced.end(), f"{numeral.value}.{spaced[1]}")
    mixed = _MIXED.match(text, numeral.end) if numeral.quantum == 1 and numeral.form == "digits" else None
    part = None if mixed is None else _part(mixed)
    if mixed is not None and part is not None:
        numeral = numeral._replace(end=mixed.end(), value=numeral.value + part, quantum=Decimal("0.01"))
    half = _AND_HALF.match(text, numeral.end)
    if half is not None:
        fraction = Decimal("0.5") if half[1] == "half" else Decimal("0.25")
        size = SCALES[half[2]] if half[2] else 1
        value = (numeral.value + fraction) * size
        return numeral._replace(end=half.end(), value=value, quantum=fraction * size)
    return _scaled(text, original, numeral)


def _part(mixed: re.Match[str]) -> Decimal | None:
    if mixed[3]:
        return VULGAR[mixed[3]]
    return Decimal(mixed[1]) / Decimal(mixed[2]) if int(mixed[2]) else None


def _scaled(text: str, original: str, numeral: Numeral) -> Numeral:
    scale = _SCALE.match(text, numeral.end)
    if scale is None:
        scale = _SHORT_SCALE.match(text, numeral.end)
        if scale is None or not _short_scale_allowed(text, original, numeral, scale):
            return numeral
    size, end = Decimal(SCALES[scale[1]]), scale.end()
    again = _MORE_SCALE.match(text, end)
    if again is not None and size <= 10**5:
        size, end = size * SCALES[again[1]], again.end()
    half = _HALF_MORE.match(text, end)
    value = numeral.value
    if half is not None and size >= 1000:
        value, end = value + Decimal("0.5"), half.end()
    return numeral._replace(end=end, value=value * size, quantum=numeral.quantum * size, other=None)


_INDIAN = re.compile(r" (lakh|crore)s?\b(?: (crore)s?\b)?")


def indian_scale(text: str, numeral: Numeral) -> Numeral:
    """Three lakh, two crore, three lakh crore: the scales that text2num does not know."""
    scale = _INDIAN.match(text, numeral.end) if numeral.form == "en" else None
    if scale is None:
        return numeral
    size = Decimal(SCALES[scale[1]] * (SCALES[scale[2]] if scale[2] else 1))
    return numeral._replace(end=scale.end(), value=numeral.value * size, quantum=numeral.quantum * size)


def _short_scale_allowed(text: str, original: str, numeral: Numeral, scale: re.Match[str]) -> bool:
    """ "5k" and "5M" always; "5m", "5b", "5t" only beside a currency, else they are units or codes."""
    letter = scale[1]
    if letter == "k":
        return True
    if currency_before(text, numeral.start) is not None:
        return True
    if letter in ("mn", "bn", "tn"):
        return text[numeral.end] != " "
    return letter in ("m", "b") and original[scale.start(1)].isupper()
