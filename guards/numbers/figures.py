"""Numerals to figures, left to right: two numerals that belong together first, then one alone."""

from __future__ import annotations

from seatrial.guards.numbers.draft import Draft, finish, from_numeral
from seatrial.guards.numbers.digits import Numeral
from seatrial.guards.numbers.pairs import read_compound, read_mixed, read_pair, read_range
from seatrial.guards.numbers.quantity import Quantity
from seatrial.guards.numbers.single import read_single


def read_figures(text: str, folded: str, numerals: list[Numeral]) -> list[Quantity]:
    """Figures of a folded text in order, each numeral used once."""
    figures: list[Quantity] = []
    index = 0
    while index < len(numerals):
        if figures and numerals[index].start < figures[-1].span[1]:
            index += 1  # already inside a figure: the scale of a bracketed amount
            continue
        draft, used = _read(folded, numerals, index)
        index += used
        if draft is not None:
            figures.append(finish(text, draft))
    return figures


def _read(folded: str, numerals: list[Numeral], index: int) -> tuple[Draft | None, int]:
    """The figure that begins at a numeral, and how many numerals it used."""
    following = _following(numerals, index)
    if following is not None:
        after = _following(numerals, index + 1)
        fraction = None if after is None else read_pair(folded, following, after)
        mixed = None if fraction is None else read_mixed(folded, numerals[index], fraction)
        if mixed is not None:
            return mixed, 3
        pair = read_pair(folded, numerals[index], following)
        if pair is not None:
            return pair, 2
    draft = read_single(folded, numerals[index])
    used = 1
    while draft is not None:
        joined = _join(folded, draft, _following(numerals, index + used - 1))
        if joined is None:
            break
        draft, used = joined, used + 1
    return draft, used


def _following(numerals: list[Numeral], index: int) -> Numeral | None:
    return numerals[index + 1] if index + 1 < len(numerals) else None


def _join(folded: str, draft: Draft, following: Numeral | None) -> Draft | None:
    """The figure extended by the next numeral: a range, or an amount or length said in two parts."""
    if following is None or not 0 <= following.start - draft.end <= 14:
        return None
    second = read_single(folded, following)
    if second is None:
        bare = from_numeral(following)
        return read_compound(folded, draft, bare) if bare.form in ("zh", "spelled") else None
    return read_range(folded, draft, second) or read_compound(folded, draft, second)
