"""Numerals to figures, left to right: two numerals that belong together first, then one alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.guards.numbers.context import counted_nouns
from seatrial.guards.numbers.digits import Numeral
from seatrial.guards.numbers.draft import Draft, finish, from_numeral
from seatrial.guards.numbers.pairs import read_compound, read_mixed, read_pair, read_range
from seatrial.guards.numbers.quantity import COUNT, PERCENT, Quantity
from seatrial.guards.numbers.single import read_single

_PAIR_REACH = 16  # characters between the two numbers of a fraction, a ratio or a score


def read_figures(text: str, folded: str, numerals: list[Numeral]) -> list[Quantity]:
    """Figures of a folded text in order, each numeral used once."""
    drafts = list(_Reader(folded, numerals).drafts())
    for index in range(1, len(drafts)):
        _share_percent(folded, drafts, index)
    return [finish(text, draft) for draft in drafts]


_CHANGE = re.compile(
    r",? ?(?:up |down )?(?:from|to|versus|vs\.?|compared (?:with|to)|against) ?"
    r"|[，,]? ?(?:从|由|到|至|[升增涨提降跌减][高长至到为]{1,2}|对比?) ?"
)


def _share_percent(folded: str, drafts: list[Draft], index: int) -> None:
    """ "64 percent from 32", 从32升到64%: a bare number beside a percentage that it changes from or to."""
    first, second = drafts[index - 1], drafts[index]
    if {first.kind, second.kind} != {PERCENT, COUNT} or not 0 < second.start - first.end <= 16:
        return
    place = index if second.kind == COUNT else index - 1
    bare = drafts[place]
    said = folded[first.end : second.start]
    if bare.unit is None and not counted_nouns(folded, bare.end) and _CHANGE.fullmatch(said):
        drafts[place] = bare._replace(kind=PERCENT, unit="%")


class _Reader:
    """Walks the numerals of one text; each is read once with its neighbours."""

    def __init__(self, folded: str, numerals: list[Numeral]) -> None:
        self._folded = folded
        self._numerals = numerals
        self._singles: dict[int, Draft | None] = {}

    def drafts(self) -> Iterator[Draft]:
        index, end = 0, 0
        while index < len(self._numerals):
            if self._numerals[index].start < end:
                index += 1  # already inside a figure: the scale of a bracketed amount
                continue
            draft, used = self._read(index)
            index += used
            if draft is not None:
                end = draft.end
                yield draft

    def _read(self, index: int) -> tuple[Draft | None, int]:
        """The figure that begins at a numeral, and how many numerals it used."""
        pair = self._pair(index)
        if pair is not None:
            return pair
        draft, used = self._single(index) or self._low_end(index), 1
        while draft is not None:
            joined = self._join(draft, index + used)
            if joined is None:
                break
            draft, used = joined, used + 1
        return draft, used

    def _pair(self, index: int) -> tuple[Draft, int] | None:
        """一又二分之一 takes three numerals, 四分之三 and 21比15 take two."""
        if index + 1 >= len(self._numerals):
            return None
        first, second = self._numerals[index : index + 2]
        if second.start - first.end > _PAIR_REACH:
            return None
        if index + 2 < len(self._numerals) and "又" in self._folded[first.end : second.start]:
            fraction = read_pair(self._folded, second, self._numerals[index + 2])
            mixed = None if fraction is None else read_mixed(self._folded, first, fraction)
            if mixed is not None:
                return mixed, 3
        pair = read_pair(self._folded, first, second)
        return None if pair is None else (pair, 2)

    def _low_end(self, index: int) -> Draft | None:
        """A lone numeral that is no figure by itself begins one in 六到八周."""
        bare = from_numeral(self._numerals[index])
        if bare.form not in ("zh", "spelled", "en") or self._join(bare, index + 1) is None:
            return None
        return bare

    def _single(self, index: int) -> Draft | None:
        if index not in self._singles:
            self._singles[index] = read_single(self._folded, self._numerals[index])
        return self._singles[index]

    def _join(self, draft: Draft, index: int) -> Draft | None:
        """The figure extended by the next numeral: a range, or an amount or length said in two parts."""
        if index >= len(self._numerals) or not 0 <= self._numerals[index].start - draft.end <= 14:
            return None
        second = self._single(index)
        if second is None:
            bare = from_numeral(self._numerals[index])
            return read_compound(self._folded, draft, bare) if bare.form in ("zh", "spelled") else None
        return read_range(self._folded, draft, second) or read_compound(self._folded, draft, second)
