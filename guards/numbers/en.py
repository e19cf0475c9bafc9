"""English number words: cardinals by text2num, and own rules for what it does not read.

Own rules: years said in pairs (twenty nineteen), decimals with a scale (one point two million), halves and
fractions (two and a half, three quarters), dozens and couples, digits said one by one. Each word of a run
becomes one letter for its class, and the forms are short patterns over those letters. A word glued
together from number words ("twothousand") makes its run unread instead of half read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import NamedTuple

from text_to_num import text2num

_UNIT_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEEN_NAMES = (
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",  # noqa: E501
)  # fmt: skip
_TEN_NAMES = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
UNIT_WORDS = {word: number for number, word in enumerate(_UNIT_NAMES)}
TEEN_WORDS = {word: number for number, word in enumerate(_TEEN_NAMES, start=10)}
TEN_WORDS = {word: number for number, word in zip(range(20, 100, 10), _TEN_NAMES, strict=True)} | {
    "fourty": 40
}
SCALE_WORDS = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ORDINAL_ONES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth")
_ORDINAL_TEENS = (
    "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth",  # noqa: E501
    "nineteenth",
)  # fmt: skip
_ORDINAL_TENS = (
    "twentieth", "thirtieth", "fortieth", "fiftieth", "sixtieth", "seventieth", "eightieth", "ninetieth",
)  # fmt: skip
ORDINAL_WORDS = (
    {word: number for number, word in enumerate(_ORDINAL_ONES, start=1)}
    | {word: number for number, word in enumerate(_ORDINAL_TEENS, start=10)}
    | {word: number for number, word in zip(range(20, 100, 10), _ORDINAL_TENS, strict=True)}
    | {"hundredth": 100, "thousandth": 1000, "millionth": 10**6, "billionth": 10**9, "trillionth": 10**12}
)
_FRACTIONS = {word: number for word, number in ORDINAL_WORDS.items() if 3 <= number <= 10 or number >= 100}
_FRACTIONS |= {"half": 2, "quarter": 4}
_PLURALS = {f"{word}s": number for word, number in _FRACTIONS.items() if word != "half"} | {"halves": 2}

# One letter for the class of each word.
_CLASSES = (
    dict.fromkeys(UNIT_WORDS, "u")
    | dict.fromkeys(TEEN_WORDS, "e")
    | dict.fromkeys(TEN_WORDS, "t")
    | dict.fromkeys(SCALE_WORDS, "s")
    | dict.fromkeys(ORDINAL_WORDS, "r")
    | dict.fromkeys(_PLURALS, "F")
    | dict.fromkeys(("double", "triple"), "D")
    | dict.fromkeys(("dozen", "dozens", "doz", "dozs", "dz", "dzs"), "d")
    | {"oh": "o", "hundred": "h", "and": "&", "a": "a", "an": "a", "point": "p", "half": "H", "quarter": "q"}
    | {"couple": "c", "of": "O", "several": "v", "few": "w"}
)
_CORE = "|".join(sorted((w for w, c in _CLASSES.items() if c not in "&apOvwD"), key=len, reverse=True))
_LINK = r"(?: {0,2}- {0,2}| {1,3})"
RUN = re.compile(
    rf"(?<![\w'-])(?:(?:an?|several|a{_LINK}few|double|triple){_LINK})?(?:{_CORE})"
    rf"(?:{_LINK}(?:(?:and|point|double|triple|of(?={_LINK}an?)|an?){_LINK}){{0,2}}(?:{_CORE}))*(?!\w)"
)
_BASE = "|".join([*_UNIT_NAMES[1:], *_TEEN_NAMES, *_TEN_NAMES])
GLUED = re.compile(
    rf"(?<!\w)(?:{_BASE})(?:hundred|thousand|million|billion)[a-z]*(?:[ -](?:and[ -])?(?:{_CORE})(?!\w))*"
)
_GLUES = ("hundred", "thousand", "million", "billion")


def glued(folded: str) -> Iterator[re.Match[str]]:
    """Words glued together from number words ("twothousand")."""
    return GLUED.finditer(folded) if any(word in folded for word in _GLUES) else iter(())


class EnglishNumber(NamedTuple):
    """One number of a run; `start` and `end` are offsets in the run's text."""

    start: int
    end: int
    value: Decimal
    high: Decimal | None = None
    quantum: Decimal = Decimal(1)
    form: str = "cardinal"  # cardinal | year | digits | fraction | ordinal | about
    string: str = ""


class _Read(NamedTuple):
    """What a form makes of its words."""

    value: Decimal
    quantum: Decimal = Decimal(1)
    form: str = "cardinal"
    high: Decimal | None = None
    string: str = ""


class _Words(NamedTuple):
    """A match over the letters of a run, with the words behind them."""

    words: list[str]
    found: re.Match[str]

    def of(self, group: int | str) -> list[str]:
        """The words of a group; none when the group is absent."""
        start, end = self.found.span(group)
        return self.words[start:end] if start >= 0 else []


def parse_run(run: str) -> Iterator[EnglishNumber]:
    """Every number in a folded run of number words, left to right, with offsets into the run."""
    tokens = list(re.finditer(r"[a-z]+", run))
    words = [token[0] for token in tokens]
    letters = "".join(_CLASSES.get(word, "-") for word in words)
    index = 0
    while index < len(words):
        found = _read_at(words, letters, index)
        if found is None:
            index += 1
            continue
        end, read = found
        yield EnglishNumber(
            tokens[index].start(),
            tokens[end - 1].end(),
            read.value,
            read.high,
            read.quantum,
            read.form,
            read.string,
        )
        index = end


def _read_at(words: list[str], letters: str, index: int) -> tuple[int, _Read] | None:
    """The reading that starts here, in the order in which one form hides another."""
    for pattern, read in _FORMS:
        found = pattern.match(letters, index)
        if found is None:
            continue
        try:
            result = read(_Words(words, found))
        except ValueError:  # text2num refuses this order of words: another form, or not a number
            continue
        if result is not None:
            return found.end(), result
    return None


def cardinal(words: list[str]) -> int:
    """A plain cardinal in words, read by text2num: one million one hundred and eighty two thousand."""
    if words and words[-1] == "and":
        words = words[:-1]
    if "trillion" in words:  # text2num ends at billions
        at = words.index("trillion")
        rest = words[at + 1 :]
        return (cardinal(words[:at]) if at else 1) * 10**12 + (
            cardinal(rest[rest[0] == "and" :]) if rest else 0
        )
    words = ["forty" if word == "fourty" else word for word in words]
    if words[0] in ("a", "an"):
        words = ["one", *words[1:]]
    elif words[0] in SCALE_WORDS:
        words = ["one", *words]
    return int(text2num(" ".join(words), "en"))


def _place(words: list[str]) -> Decimal:
    """The place of the last word: thirty-four hundred -> 100, two million -> 1000000."""
    place = 1
    for word in reversed(words):
        size = {"hundred": 100, **SCALE_WORDS}.get(word)
        if size is None:
            break
        place *= size
    return Decimal(place)


def _size(words: list[str]) -> int:
    """The scale that a group states; 1 when it is absent."""
    return {"hundred": 100, **SCALE_WORDS}.get(words[0], 12) if words else 1


def _digits(words: _Words) -> _Read:
    string, times = "", 1
    for word in words.of(0):
        if word in ("double", "triple"):
            times = 2 if word == "double" else 3
            continue
        string += str(UNIT_WORDS.get(word, 0)) * times
        times = 1
    return _Read(Decimal(string), form="digits", string=string)


_CENTURIES = {"sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20}


def _year(words: _Words) -> _Read | None:
    century, *rest = words.of(0)
    if century not in _CENTURIES or (rest[0] in UNIT_WORDS and rest[0] != "zero"):
        return None
    years = UNIT_WORDS[rest[1]] if rest[0] in ("oh", "zero") else cardinal(rest)
    return _Read(Decimal(_CENTURIES[century] * 100 + years), form="year")


def _decimal(words: _Words) -> _Read:
    whole = 0 if words.of(1) == ["oh"] else cardinal(words.of(1))
    said = words.of(2)
    if all(word in UNIT_WORDS or word == "oh" for word in said):
        fraction = "".join(str(UNIT_WORDS.get(word, 0)) for word in said)
    else:
        fraction = str(cardinal(said))
    size = _size(words.of(3))
    return _Read(Decimal(f"{whole}.{fraction}") * size, Decimal(size).scaleb(-len(fraction)))


def _with_part(whole_words: list[str], part: Decimal, size: int) -> _Read:
    """Two and a half million = 2500000, two million and a half too, one billion and a quarter million."""
    whole = Decimal(cardinal(whole_words))
    last = SCALE_WORDS.get(whole_words[-1], 1)
    if last >= 1000:
        return _Read(whole + part * (size if size > 1 else last), part * size)
    return _Read((whole + part) * size, part * size)


def _half_more(words: _Words) -> _Read | None:
    if words.of(2)[0] not in ("a", "an", "one") or words.of(3)[0] not in ("half", "quarter", "third"):
        return None
    return _with_part(words.of(1), Decimal(1) / _FRACTIONS[words.of(3)[0]], _size(words.of(4)))


def _half_of(words: _Words) -> _Read | None:
    """Half a million, a quarter of a million, half a dozen."""
    if words.of(1) not in ([], ["a"], ["one"]):
        return None
    size = Decimal(_size(words.of(3)))
    return _Read(size / _FRACTIONS[words.of(2)[0]], size / 10)


def _fraction(words: _Words) -> _Read | None:
    """One third, two thirds, one billion and three quarters million, thirty-two fifths."""
    whole, top, name = words.of(1), words.of(2), words.of(3)[0]
    count = 1 if top in (["a"], ["an"]) else cardinal(top)
    plural = name in _PLURALS
    bottom = (_PLURALS if plural else _FRACTIONS).get(name)
    if bottom is None or plural != (count != 1):
        return None
    if whole and count > bottom:  # one hundred and thirty-two fifths
        return _Read(Decimal(cardinal([*whole, "and", *top])) / bottom, Decimal("0.01"), "fraction")
    part, size = Decimal(count) / bottom, _size(words.of(4))
    if whole:
        return _with_part(whole, part, size)
    return _Read(part * size, part * size, "cardinal" if words.of(4) else "fraction")


def _dozen(words: _Words) -> _Read:
    before = words.of(1)
    if not before and words.of(0) == ["dozens"]:
        return _Read(Decimal(24), Decimal(12), "about", Decimal(120))
    if "several" in before or "few" in before:
        return _Read(Decimal(36), Decimal(12), "about", Decimal(84))
    count = 2 if "couple" in before else 1 if before in ([], ["a"]) else cardinal(before)
    return _Read(Decimal(12 * count))


def _couple(_: _Words) -> _Read:
    return _Read(Decimal(2), form="about", high=Decimal(3))


def _ordinal(words: _Words) -> _Read | None:
    last, before = ORDINAL_WORDS[words.of(2)[0]], words.of(1)
    if not before:
        return _Read(Decimal(last), form="ordinal")
    first = cardinal(before)
    if last >= 100:
        return _Read(Decimal(first * last), form="ordinal")
    return _Read(Decimal(first + last), form="ordinal") if first % 10 == 0 and first > last else None


def _plain(words: _Words) -> _Read:
    return _Read(Decimal(cardinal(words.of(0))), _place(words.of(0)))


_SUB = "(?:tu?|e|u)"
_GROUP = f"(?:(?:{_SUB}|a)?h(?:&?{_SUB})?|{_SUB})"
_CARDINAL = f"(?:{_GROUP}|a(?=s)|s)(?:s(?:&?{_GROUP}(?=s))?)*"
_FORMS: tuple[tuple[re.Pattern[str], Callable[[_Words], _Read | None]], ...] = tuple(
    (re.compile(pattern), read)
    for pattern, read in (
        ("[uoD]{2,}[uo]", _digits),
        (f"({_CARDINAL}|[uo])p([uo]+|{_SUB})([sh])?", _decimal),
        ("[et](?:[ou]u|tu?|e)", _year),
        (f"({_CARDINAL}(?:&?{_GROUP})?)&([au])([Hqr])([sd])?", _half_more),
        ("([au])?([Hq])(?:Oa|a)?([sdh])", _half_of),
        (f"(?:({_CARDINAL})&)?({_CARDINAL}|a)([rFHq])(?:O?a?(s))?", _fraction),
        (f"(v|aw|acO|cO|a|{_SUB})?d", _dozen),
        ("ac", _couple),
        (f"({_CARDINAL}&?|t)?(r)", _ordinal),
        (f"{_CARDINAL}(?:&?{_GROUP})?", _plain),
        (_CARDINAL, _plain),
        (_SUB, _plain),
    )
)
