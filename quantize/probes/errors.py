"""What a model wrote for a needle: right or not, how far off, what kind of error. Pure functions of texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from rapidfuzz.distance import Levenshtein

from seatrial.guards.numbers import Quantity, extract_quantities
from seatrial.quantize.probes.needles import Needle

ERRORS = (
    "wrong role",
    "unit",
    "magnitude",
    "date field",
    "swapped",
    "substituted",
    "dropped",
    "inserted",
    "name character",
    "no answer",
    "other",
)
_END = re.compile(r"[\n。！？；]|[.!?;](?=\s|$)")
_NAME_EN = re.compile(r"[A-Z][\w'’-]*(?:\s+[A-Z][\w'’-]*)*")
_NAME_ZH = re.compile(r"[㐀-鿿]+")
_SPACED_DIGITS = re.compile(r"\d(?:[ \-]?\d)+")


@dataclass(frozen=True)
class Answer:
    """The judgement of one answer. `distance` is in digits of a figure, characters of a name."""

    written: str
    exact: bool
    normalized: bool
    distance: int
    error: str  # "" when normalized

    def to_json(self) -> dict[str, object]:
        return {
            "written": self.written,
            "exact": self.exact,
            "normalized": self.normalized,
            "distance": self.distance,
            "error": self.error,
        }


def judge_answer(needle: Needle, written: str, others: Collection[str] = ()) -> Answer:
    """Judge what was written after the question; `others` are answers of other needles on the page."""
    answer = first_statement(written)
    exact = _starts_with(answer, needle.answer)
    given = name_in(answer, needle) if needle.is_name else answer
    if needle.is_name:
        same = folded(given) == folded(needle.answer)
    else:
        same = exact or same_figure(needle.answer, given)
    if same or exact:
        return Answer(answer, exact, True, 0, "")
    wanted, found = carrier(needle.answer, needle), carrier(given, needle)
    return Answer(answer, False, False, Levenshtein.distance(wanted, found), _error(needle, given, others))


def first_statement(written: str) -> str:
    """Up to the end of the first line or sentence; a point inside a figure ends nothing."""
    written = written.strip()
    end = _END.search(written)
    return written[: end.start()].strip() if end else written


def folded(text: str) -> str:
    """Compatible characters, case and spaces out of the way."""
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


def name_in(answer: str, needle: Needle) -> str:
    """The name an answer begins with: capitalised words, or hanzi up to one more than were asked for."""
    text = unicodedata.normalize("NFKC", answer)
    if needle.language == "en":
        found = _NAME_EN.search(text)
        return found.group() if found else ""
    found = _NAME_ZH.search(text)
    return found.group()[: len(needle.answer) + 1] if found else ""


def same_figure(wanted: str, given: str) -> bool:
    """Whether the first figure of `given` is the value of `wanted`, however it is written."""
    if _is_digit_string(wanted):
        return digits_of(_first_digits(given)) == digits_of(wanted)
    left, right = first_figure(wanted), first_figure(given)
    return left is not None and right is not None and _key(left) == _key(right)


def first_figure(text: str) -> Quantity | None:
    """The first figure the number guard reads."""
    return next(iter(extract_quantities(text)), None)


def digits_of(text: str) -> str:
    """The digits of a text as ASCII digits."""
    return "".join(str(unicodedata.decimal(c)) for c in text if c.isdecimal())


def carrier(text: str, needle: Needle) -> str:
    """What distances are counted in: the name, the digits of the first figure, or the words of it."""
    if needle.is_name:
        return folded(text)
    if _is_digit_string(needle.answer):
        return digits_of(_first_digits(text))
    figure = first_figure(text)
    said = figure.text if figure else text
    return digits_of(said) or folded(said)


def _error(needle: Needle, given: str, others: Collection[str]) -> str:
    if not _answers(needle, given):
        return "no answer"
    if any(_same(needle, other, given) for other in others):
        return "wrong role"
    if needle.is_name:
        return _name_error(folded(needle.answer), folded(given))
    edits = edit_error(carrier(needle.answer, needle), carrier(given, needle))
    if _is_digit_string(needle.answer):
        return edits
    wanted, found = first_figure(needle.answer), first_figure(given)
    return (_figure_error(wanted, found) if wanted and found else "") or edits


def _answers(needle: Needle, given: str) -> bool:
    """Whether there is a name, or a figure, at all."""
    if needle.is_name:
        return bool(folded(given))
    return bool(digits_of(given)) or first_figure(given) is not None


def _same(needle: Needle, other: str, given: str) -> bool:
    return folded(other) == folded(given) if needle.is_name else same_figure(other, given)


def _figure_error(wanted: Quantity, found: Quantity) -> str:
    """Errors that only values show: unit, magnitude, one field of a date; "" for the rest."""
    if wanted.fields and found.fields:
        left, right = dict(wanted.fields), dict(found.fields)
        kept = [name for name in left if left[name] == right.get(name)]
        return "date field" if kept else ""
    if wanted.value is None or found.value is None:
        return ""
    if wanted.value == found.value:
        return "unit"
    return "magnitude" if _power_of_ten(wanted.value, found.value) else ""


def _power_of_ten(one: Decimal, other: Decimal) -> bool:
    if not one or not other or (one < 0) != (other < 0):
        return False
    return one.normalize().as_tuple().digits == other.normalize().as_tuple().digits


def edit_error(wanted: str, found: str) -> str:
    """Swapped, substituted, dropped or inserted, by what turns one into the other; else "other"."""
    if len(wanted) == len(found):
        differing = [i for i, (a, b) in enumerate(zip(wanted, found, strict=True)) if a != b]
        if len(differing) == 2 and sorted(wanted) == sorted(found):
            return "swapped"
        return "substituted" if 2 * len(differing) <= len(wanted) else "other"
    if _subsequence(found, wanted):
        return "dropped"
    return "inserted" if _subsequence(wanted, found) else "other"


def _name_error(wanted: str, found: str) -> str:
    if wanted != found and (_subsequence(found, wanted) or _subsequence(wanted, found)):
        return "dropped" if len(found) < len(wanted) else "inserted"
    close = Levenshtein.distance(wanted, found) <= max(1, len(wanted) // 2)
    return "name character" if close else "other"


def _subsequence(short: str, long: str) -> bool:
    rest = iter(long)
    return bool(short) and all(c in rest for c in short)


def _is_digit_string(answer: str) -> bool:
    """Phone numbers, codes and spaced digits: compared digit by digit, not by value."""
    plain = unicodedata.normalize("NFKC", answer)
    return bool(re.fullmatch(r"[\d \-]+", plain))


def _first_digits(text: str) -> str:
    found = _SPACED_DIGITS.search(unicodedata.normalize("NFKC", text))
    return found.group() if found else ""


def _key(figure: Quantity) -> tuple[object, ...]:
    value = None if figure.value is None else figure.value.normalize()
    return figure.fields, value, figure.unit, figure.string


def _starts_with(answer: str, wanted: str) -> bool:
    """The answer begins with the wanted text, and no further digit or letter follows right after."""
    if not answer.startswith(wanted):
        return False
    after = answer[len(wanted) : len(wanted) + 2]
    if not after:
        return True
    if after[0].isdecimal() or (after[0] in ".,-" and after[1:].isdecimal()):
        return False
    return not (wanted[-1].isalpha() and wanted[-1].isascii() and after[0].isalpha())
