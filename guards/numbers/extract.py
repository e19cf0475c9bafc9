"""Text -> quantities: the order in which the rules read a text.

Digit strings first, then calendar and clock, then numerals with their sign, currency, unit, hedge and range.
A pure function of the text; every span is exact in the text that was given.
"""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.guards.numbers import dates, en, strings
from seatrial.guards.numbers.blocks import blocks_of
from seatrial.guards.numbers.figures import read_figures
from seatrial.guards.numbers.halves import read_halves
from seatrial.guards.numbers.normalize import fold
from seatrial.guards.numbers.numerals import find_numerals
from seatrial.guards.numbers.quantity import IDENTIFIER, UNREAD, Quantity


def extract_quantities(text: str, *, locale: str | None = None) -> list[Quantity]:
    """All figures of `text`, in order. Pure; `text[q.span[0]:q.span[1]] == q.text` for each.

    `locale` decides what the text cannot: "de", "fr", "es", "it", "pt", "nl" ... read 1.234 as a thousand and
    1,5 as a decimal; "en-GB" and the like read 2/5 as 2 May, "en-US" as 5 February.
    """
    return extract_folded(text, fold(text), locale)


def extract_folded(text: str, folded: str, locale: str | None = None) -> list[Quantity]:
    """The same where `folded` is known to be `fold(text)`."""
    taken = bytearray(len(folded))
    blocks = blocks_of(folded)
    figures = [_string(text, folded, *span) for span in strings.find_strings(blocks, taken)]
    figures += [_calendar(text, piece) for piece in dates.find_pieces(blocks, taken, locale)]
    figures += read_halves(text, folded, taken)
    figures += read_figures(text, folded, find_numerals(folded, text, taken, locale))
    figures += [Quantity(text[g.start() : g.end()], g.span(), UNREAD) for g in en.glued(folded)]
    return list(_apart(sorted(figures, key=lambda figure: (figure.span[0], -figure.span[1]))))


def _apart(figures: list[Quantity]) -> Iterator[Quantity]:
    """Figures in order without those that begin inside the one before: each character is read once."""
    end = 0
    for figure in figures:
        if figure.span[0] >= end:
            end = figure.span[1]
            yield figure


def _string(text: str, folded: str, start: int, end: int) -> Quantity:
    return Quantity(text[start:end], (start, end), IDENTIFIER, string=strings.canonical(folded[start:end]))


def _calendar(text: str, piece: dates.Piece) -> Quantity:
    fields = tuple(sorted(piece.fields.items()))
    return Quantity(
        text[piece.start : piece.end], (piece.start, piece.end), piece.kind, fields=fields, other=piece.other
    )
