"""What a model wrote for a needle: right or not, how far off, what kind of error. Pure functions of texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from rapidfuzz.distance import Levenshtein

from seatrial.guards.numbers import Quantity, extract_quantities
from seatrial.quantize.probes.names import name_in
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
# One point or comma inside a string of digits groups them, as a hyphen does.
_SPACED_DIGITS = re.compile(r"\d(?:[ \-.,]?\d)+")
_LAST_GROUP = re.compile(r"\d+$")
_ATTACHED_DIGIT = re.compile(r"[.,-]?\d")
# Between two figures that are written as one: nothing, spaces, or one joining mark.
_JOINT = re.compile(r"\s*|[-./,]")


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
    given = name_in(answer, needle) if needle.is_name else answer
    if _same(needle, needle.answer, given):
        return Answer(answer, _starts_with(answer, needle.answer), True, 0, "")
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


def same_figure(wanted: str, given: str) -> bool:
    """Whether the first figure of `given` is the value of `wanted`, however it is written.

    What follows may not extend it: a scale word, a unit that `wanted` lacks, or a figure joined to it. A
    classifier after a plain count (三千零二十六间) changes no value and is none.
    """
    if _is_digit_string(wanted):
        return digits_of(_first_digits(given)) == digits_of(wanted) and not _extended(given)
    return _same_value(wanted, given)


def _extended(given: str) -> bool:
    """Whether what follows the last group of digits makes another value of it: 4 8 2万, 4 8 2 million."""
    group, after = _last_group(given)
    figure = first_figure(group + after)
    # Only values can be extended: 3号 may read as a day of a month, yet it closes a number.
    return figure is not None and figure.value is not None and not _same_value(group, group + after)


def _same_value(wanted: str, given: str) -> bool:
    left, right = first_figure(wanted), first_figure(given)
    if left is None or right is None or _joined(given) != right.text:
        return False
    # A date may be given more fully than asked, with its weekday.
    return set(left.fields) <= set(right.fields) and _key(left) == _key(right) and _same_unit(left, right)


def _same_unit(wanted: Quantity, found: Quantity) -> bool:
    return wanted.unit == found.unit or (wanted.unit is None and wanted.kind == found.kind)


def _joined(text: str) -> str:
    """The first figure with the figures written right after it; "" without one."""
    figures = extract_quantities(text)
    if not figures:
        return ""
    start, end = figures[0].span
    for figure in figures[1:]:
        # A time after a date adds to the day, it does not change it.
        if figure.value is None or not _JOINT.fullmatch(text[end : figure.span[0]]):
            break
        end = figure.span[1]
    return text[start:end]


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
    said = _joined(text) or text
    return digits_of(said) or folded(said)


def _error(needle: Needle, given: str, others: Collection[str]) -> str:
    if not _answers(needle, given):
        return "no answer"
    if any(_same(needle, other, given) for other in others):
        return "wrong role"
    if needle.is_name:
        return _name_error(folded(needle.answer), folded(given))
    wanted, found = carrier(needle.answer, needle), carrier(given, needle)
    digit_string = _is_digit_string(needle.answer)
    if digit_string and wanted != found:
        return edit_error(wanted, found)
    # Where the digits of a string are right, what follows its last group made it wrong.
    group, after = _last_group(given)
    said, read = (group, group + after) if digit_string else (needle.answer, given)
    left, right = first_figure(said), first_figure(read)
    by_value = _figure_error(left, right) if left and right else ""
    return by_value or ("inserted" if wanted == found else edit_error(wanted, found))


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
        return "" if _same_unit(wanted, found) else "unit"
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


def _last_group(text: str) -> tuple[str, str]:
    """The last unbroken digits of the first string of digits, and all text after them."""
    plain = unicodedata.normalize("NFKC", text)
    found = _SPACED_DIGITS.search(plain)
    group = _LAST_GROUP.search(found.group()) if found else None
    return (group.group(), plain[found.end() :]) if found and group else ("", "")


def _key(figure: Quantity) -> tuple[object, ...]:
    value, high = (None if v is None else v.normalize() for v in (figure.value, figure.high))
    return bool(figure.fields), value, high, figure.string


def _starts_with(answer: str, wanted: str) -> bool:
    """Whether a right answer begins with the wanted text itself, with no digit or letter right after it."""
    if not answer.startswith(wanted):
        return False
    after = answer[len(wanted) :]
    if _ATTACHED_DIGIT.match(after):
        return False
    return not (wanted[-1].isalpha() and wanted[-1].isascii() and after[:1].isalpha())
