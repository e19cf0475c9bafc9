"""English number words: cardinals by text2num, and own rules for what it does not read.

Own rules: years said in pairs (twenty nineteen), decimals with a scale (one point two million), halves and
fractions (two and a half, three quarters), dozens and couples, digits said one by one. A run of number words
is split into as many numbers as it holds; a word glued together from number words ("twothousand") makes the
whole run unread instead of half read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from text_to_num import text2num

UNIT_WORDS = {
    w: n
    for n, w in enumerate(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])
}
TEEN_WORDS = {
    w: n
    for n, w in enumerate(
        "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(), start=10
    )
}
TEN_WORDS = {
    w: n
    for n, w in zip(
        range(20, 100, 10), "twenty thirty forty fifty sixty seventy eighty ninety".split(), strict=True
    )
} | {"fourty": 40}
SCALE_WORDS = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ORDINAL_UNITS = "first second third fourth fifth sixth seventh eighth ninth".split()
_ORDINAL_TEENS = "tenth eleventh twelfth thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth".split()
_ORDINAL_TENS = "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth".split()
ORDINAL_WORDS = (
    {w: n for n, w in enumerate(_ORDINAL_UNITS, start=1)}
    | {w: n for n, w in enumerate(_ORDINAL_TEENS, start=10)}
    | {w: n for n, w in zip(range(20, 100, 10), _ORDINAL_TENS, strict=True)}
    | {"hundredth": 100, "thousandth": 1000, "millionth": 10**6, "billionth": 10**9, "trillionth": 10**12}
)
_FRACTIONS = {
    "half": 2,
    "halves": 2,
    "third": 3,
    "quarter": 4,
    "fourth": 4,
    "fifth": 5,
    "sixth": 6,
    "seventh": 7,
}
_FRACTIONS |= {
    "trillionth": 10**12,
    "eighth": 8,
    "ninth": 9,
    "tenth": 10,
    "hundredth": 100,
    "thousandth": 1000,
}
_PLURAL_FRACTIONS = {word + "s": n for word, n in _FRACTIONS.items() if word not in ("half", "halves")} | {
    "halves": 2
}

_UNIT = "|".join(UNIT_WORDS)
_TEEN = "|".join(TEEN_WORDS)
_TEN = "|".join(TEN_WORDS)
_SCALE = "|".join(SCALE_WORDS)
_SUB = rf"(?:(?:{_TEN})(?: (?:{_UNIT}))?|{_TEEN}|{_UNIT})"
_GROUP = rf"(?:(?:{_SUB} |a )?hundred(?: (?:and )?{_SUB})?|{_SUB})"
_CARDINAL = rf"(?:{_GROUP}|a(?= (?:{_SCALE})\b)|(?:{_SCALE}))(?: (?:{_SCALE})(?: (?:and )?{_GROUP}(?= (?:{_SCALE})\b))?)*"
_NUMBER = re.compile(rf"{_CARDINAL}(?: (?:and )?{_GROUP})?\b")
_DIGITS = re.compile(rf"(?:(?:{_UNIT}|oh|double|triple) ){{2,}}(?:{_UNIT}|oh)\b")
_YEAR = re.compile(
    rf"(eighteen|nineteen|twenty|sixteen|seventeen) (?:(oh|zero) ({_UNIT})|((?:{_TEN})(?: (?:{_UNIT}))?|{_TEEN}))\b"
)
_DECIMAL = re.compile(
    rf"({_CARDINAL}|zero|oh) point ((?:(?:{_UNIT}|oh)(?: |\b))+|{_SUB}\b)(?: ?({_SCALE}|hundred)\b)?"
)
_HALF = re.compile(
    rf"({_CARDINAL}(?: (?:and )?{_GROUP})?) and (?:a|one) (half|quarter|third)(?: ({_SCALE}|dozen)\b)?\b"
)
_HALF_A = re.compile(rf"(?:a |one )?(half|quarter) (?:a |an |of a )?({_SCALE}|dozen|hundred)s?\b")
_FRACTION_WORDS = sorted(_FRACTIONS | _PLURAL_FRACTIONS, key=len, reverse=True)
_FRACTION = re.compile(
    rf"(?:({_CARDINAL}) and )?({_CARDINAL}|a) ({'|'.join(_FRACTION_WORDS)})(?:(?: of)?(?: an?)? ({_SCALE})\b)?(?![a-z])"
)
_DOZEN = re.compile(rf"(?:({_SUB}|a|several|a few|a couple of|couple of) )?(?:dozens?|dozs?|dzs?)\b")
_COUPLE = re.compile(r"a couple\b")
_ORDINAL_WORD = "|".join(sorted(ORDINAL_WORDS, key=len, reverse=True))
_ORDINAL = re.compile(rf"(?:({_CARDINAL}(?: and)?|{_TEN}) )?({_ORDINAL_WORD})\b")

_ALL = "|".join(
    sorted(
        [*UNIT_WORDS, *TEEN_WORDS, *TEN_WORDS, *SCALE_WORDS, *ORDINAL_WORDS, *_FRACTIONS, *_PLURAL_FRACTIONS]
        + ["hundred", "dozen", "dozens", "dozs", "doz", "dzs", "couple", "oh"],
        key=len,
        reverse=True,
    )
)
_LINK = r"(?: {0,2}- {0,2}| {1,3}|\n)"
RUN = re.compile(
    rf"(?<![\w'’-])(?:an?{_LINK})?(?:{_ALL})(?:(?:{_LINK}(?:and{_LINK}|point{_LINK}|of{_LINK}(?=a)|double{_LINK})?"
    rf"(?:an?{_LINK})?)(?:{_ALL}))*(?![\w])"
)
_BASE = "|".join([*list(UNIT_WORDS)[1:], *TEEN_WORDS, *TEN_WORDS])
GLUED = re.compile(
    rf"(?<![\w])(?:{_BASE})(?:hundred|thousand|million|billion)[a-z]*(?:[ -](?:and[ -])?(?:{_ALL})(?![\w]))*"
)


@dataclass(frozen=True, slots=True)
class EnglishNumber:
    """One number of a run; `start` and `end` are offsets in the run's text."""

    start: int
    end: int
    value: Decimal
    high: Decimal | None = None
    quantum: Decimal = Decimal(1)
    form: str = "cardinal"  # cardinal | year | digits | fraction | ordinal | about
    string: str = ""


def parse_run(run: str) -> Iterator[EnglishNumber]:
    """Every number in a folded run of number words, left to right, with offsets into the run."""
    flat, offsets = _flatten(run)
    position = 0
    while position < len(flat):
        found = _read_at(flat, position)
        if found is None:
            space = flat.find(" ", position)
            if space < 0:
                return
            position = space + 1
            continue
        end, number = found
        yield EnglishNumber(offsets[position], offsets[end - 1] + 1, *number)
        position = end + 1


def _flatten(run: str) -> tuple[str, list[int]]:
    """Words joined by single spaces, with the offset of each character in the run."""
    flat: list[str] = []
    offsets: list[int] = []
    for match in re.finditer(r"[a-z]+", run):
        if flat:
            flat.append(" ")
            offsets.append(match.start())
        flat.extend(match[0])
        offsets.extend(range(match.start(), match.end()))
    return "".join(flat), offsets


_Read = tuple[Decimal, Decimal | None, Decimal, str, str]


def _read_at(flat: str, position: int) -> tuple[int, _Read] | None:
    """The longest reading that starts here, in the order in which one form hides another."""
    for pattern, read in _READERS:
        found = pattern.match(flat, position)
        if found is not None:
            try:
                result = read(found)
            except ValueError:  # text2num refuses this order of words: another form, or not a number
                continue
            if result is not None:
                return found.end(), result
    return None


def _read_digits(found: re.Match[str]) -> _Read | None:
    string, times = "", 1
    for word in found[0].split():
        if word in ("double", "triple"):
            times = 2 if word == "double" else 3
            continue
        string += str(UNIT_WORDS.get(word, 0)) * times
        times = 1
    return Decimal(string), None, Decimal(1), "digits", string


def _read_year(found: re.Match[str]) -> _Read:
    century = cardinal(found[1]) * 100
    year = century + (UNIT_WORDS[found[3]] if found[3] else cardinal(found[4]))
    return Decimal(year), None, Decimal(1), "year", ""


def _read_decimal(found: re.Match[str]) -> _Read | None:
    whole = 0 if found[1] in ("oh", "zero") else cardinal(found[1])
    words = found[2].split()
    if len(words) > 1 and words[0] in TEN_WORDS or words[0] in TEEN_WORDS or words[0] in TEN_WORDS:
        fraction = str(cardinal(found[2].strip()))
    else:
        fraction = "".join(str(UNIT_WORDS.get(word, 0)) for word in words)
    scale = {"hundred": 100, **SCALE_WORDS}.get(found[3] or "", 1)
    quantum = Decimal(scale).scaleb(-len(fraction))
    return Decimal(f"{whole}.{fraction}") * scale, None, quantum, "cardinal", ""


def _read_half(found: re.Match[str]) -> _Read | None:
    """Two and a half million = 2500000, two million and a half too, one billion and a quarter million."""
    scale = {"dozen": 12, **SCALE_WORDS}.get(found[3] or "", 1)
    part = Decimal(1) / _FRACTIONS[found[2]]
    return _with_part(found[1], part, scale)


def _with_part(words: str, part: Decimal, scale: int) -> _Read:
    """A whole number in words and a part; the scale belongs to both, or the part takes that of the whole."""
    whole = Decimal(cardinal(words))
    last = SCALE_WORDS.get(words.split()[-1], 1)
    if last >= 1000:
        value = whole + part * (scale if scale > 1 else last)
        return value, None, part * max(scale, 1), "cardinal", ""
    return (whole + part) * scale, None, part * scale, "cardinal", ""


def _read_half_a(found: re.Match[str]) -> _Read:
    scale = Decimal({"dozen": 12, "hundred": 100, **SCALE_WORDS}[found[2]])
    return scale / (2 if found[1] == "half" else 4), None, scale / 10, "cardinal", ""


def _read_fraction(found: re.Match[str]) -> _Read | None:
    """One third, two thirds, one billion and three quarters million, thirty-two fifths."""
    count = 1 if found[2] == "a" else cardinal(found[2])
    plural = found[3] in _PLURAL_FRACTIONS
    if plural != (count != 1):
        return None
    denominator = (_PLURAL_FRACTIONS if plural else _FRACTIONS)[found[3]]
    if found[1] and count > denominator:  # one hundred and thirty-two fifths
        return (
            Decimal(cardinal(f"{found[1]} {found[2]}")) / denominator,
            None,
            Decimal("0.01"),
            "fraction",
            "",
        )
    part = Decimal(count) / denominator
    scale = SCALE_WORDS.get(found[4] or "", 1)
    if found[1]:
        return _with_part(found[1], part, scale)
    return part * scale, None, part * scale, "cardinal" if found[4] else "fraction", ""


def _read_dozen(found: re.Match[str]) -> _Read:
    if found[1] is None and found[0] == "dozens":
        return Decimal(24), Decimal(120), Decimal(12), "about", ""
    words = found[1] or "a"
    if words in ("several", "a few"):
        return Decimal(36), Decimal(84), Decimal(12), "about", ""
    count = 2 if "couple" in words else 1 if words == "a" else cardinal(words)
    return Decimal(12 * count), None, Decimal(1), "cardinal", ""


def _read_couple(_: re.Match[str]) -> _Read:
    return Decimal(2), Decimal(3), Decimal(1), "about", ""


def _read_ordinal(found: re.Match[str]) -> _Read | None:
    last = ORDINAL_WORDS[found[2]]
    before = (found[1] or "").removesuffix(" and")
    if before in ("", "a"):
        return Decimal(last), None, Decimal(1), "ordinal", ""
    first = cardinal(before)
    if last >= 100:
        return Decimal(first * last), None, Decimal(1), "ordinal", ""
    return (
        (Decimal(first + last), None, Decimal(1), "ordinal", "") if first % 10 == 0 and first > last else None
    )


def _read_cardinal(found: re.Match[str]) -> _Read:
    value = Decimal(cardinal(found[0]))
    return value, None, _place(found[0]), "cardinal", ""


def cardinal(words: str) -> int:
    """A plain cardinal in words, read by text2num: "one million one hundred and eighty two thousand"."""
    words = words.replace("fourty", "forty").removesuffix(" and")
    words = "one " + words.removeprefix("a ") if words.startswith("a ") else words
    words = "one " + words if words.split()[0] in SCALE_WORDS else words
    left, scale, right = words.partition("trillion")  # text2num ends at billions
    if scale:
        return int(text2num(left, "en")) * 10**12 + (
            cardinal(right.removeprefix(" and").strip()) if right.strip() else 0
        )
    return int(text2num(words, "en"))


def _place(words: str) -> Decimal:
    """The place of the last word: thirty-four hundred -> 100, two million -> 1000000."""
    place = 1
    for word in reversed(words.split()):
        if word in SCALE_WORDS:
            place *= SCALE_WORDS[word]
        elif word == "hundred":
            place *= 100
        else:
            break
    return Decimal(place)


_READERS = (
    (_DIGITS, _read_digits),
    (_DECIMAL, _read_decimal),
    (_YEAR, _read_year),
    (_HALF, _read_half),
    (_HALF_A, _read_half_a),
    (_FRACTION, _read_fraction),
    (_DOZEN, _read_dozen),
    (_COUPLE, _read_couple),
    (_ORDINAL, _read_ordinal),
    (_NUMBER, _read_cardinal),
    (re.compile(rf"{_CARDINAL}\b"), _read_cardinal),
    (re.compile(rf"{_SUB}\b"), _read_cardinal),
)
