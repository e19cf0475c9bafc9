"""Would the number guard have caught a damaged figure?

The figure is put back into its sentence as the candidate would have written it, and the guard judges that
sentence by the document. A figure that passes has escaped: a right value in the wrong role, or none at all.
"""

from __future__ import annotations

from enum import IntEnum

from seatrial.guards.numbers import check_numbers, extract_quantities
from seatrial.guards.sentences import split_sentences
from seatrial.guards.verdict import Verdict
from seatrial.quantize.damage.classes import PERSON, PLACE, Item, LabelledText


class Outcome(IntEnum):
    """What the guard says of a damaged figure."""

    NONE = 0  # not damaged, or not a figure
    SAME_VALUE = 1  # another writing of the same value
    CAUGHT = 2  # a finding that is not "ok"
    ESCAPED = 3  # the guard accepts it: a value of the text, in the wrong place
    NO_FIGURE = 4  # what the candidate wrote is no figure any more; there is nothing to check


def judge(labelled: LabelledText, item: Item, written: str) -> Outcome:
    """The guard's answer to the sentence of `item` with `written` in its place."""
    if item.label in (PERSON, PLACE):
        return Outcome.NONE
    text, (start, end) = labelled.text, item.span
    first, last = _sentence(text, start, end)
    written = written.strip()
    sentence = text[first:start] + written + text[end:last]
    place = (start - first, start - first + len(written))
    findings = [f for f in check_numbers(sentence, text).findings if _overlap(f.span, place)]
    if not findings:
        return Outcome.NO_FIGURE
    if any(f.verdict is not Verdict.OK for f in findings):
        return Outcome.CAUGHT
    was = _values(text[first:last], (start - first, end - first))
    return Outcome.SAME_VALUE if _values(sentence, place) == was else Outcome.ESCAPED


def _values(sentence: str, place: tuple[int, int]) -> list[tuple]:
    """What the figures at a place of a sentence say, however they are written."""
    figures = [q for q in extract_quantities(sentence) if _overlap(q.span, place)]
    return [(q.value, q.high, q.unit, q.fields, q.string) for q in figures]


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    """The span of the sentence or sentences around [start, end)."""
    spans = [s.span for s in split_sentences(text)]
    first = max((a for a, _ in spans if a <= start), default=0)
    last = min((b for _, b in spans if b >= end), default=len(text))
    return first, last


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]
