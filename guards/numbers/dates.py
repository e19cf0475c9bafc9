"""Dates, clock times and weekdays of a text: pieces of both languages, joined where they belong together.

What the text does not say stays unknown: "the 26th" is a day without a month. Relative words keep their
offset ("tomorrow" is day +1); `resolve.py` turns them into calendar days when the meeting's day is known.
Field names: y m d, q(uarter), h(alf), part (1 early .. 3 late), dec(ade), cent(ury), wk (week of the year),
wd (1 Monday .. 7), we(ekend), dp (1 morning .. 4 night), H M S pm; offsets D W Mo Q Y Dec from the day of
speaking; nD nW nMo nQ nY a stretch of so many periods.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from seatrial.guards.numbers.blocks import Block, Table
from seatrial.guards.numbers.dates_en import ENGLISH, YEARS
from seatrial.guards.numbers.dates_zh import CHINESE
from seatrial.guards.numbers.quantity import DATE, TIME, WEEKDAY, Fields
from seatrial.guards.numbers.words_en import DAY, number_of, two_digit_year

_CLOCK_ONLY = frozenset({"H", "M", "S", "pm", "dp"})
_WEEKDAY_ONLY = frozenset({"wd", "we", "W", "dp"})


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of folded text and the calendar parts it states."""

    start: int
    end: int
    fields: dict[str, int]
    other: Fields = ()

    @property
    def kind(self) -> str:
        if self.fields.keys() <= _CLOCK_ONLY:
            return TIME
        return WEEKDAY if {"wd", "we"} & self.fields.keys() and self.fields.keys() <= _WEEKDAY_ONLY else DATE


def find_pieces(blocks: list[Block], taken: bytearray, locale: str | None = None) -> list[Piece]:
    """Date and time pieces of a folded text, joined where they belong together; marks what it takes."""
    if not blocks:
        return []
    text = blocks[0].text
    pieces: list[Piece] = []
    if not text.isascii():
        pieces.extend(_scan(blocks, CHINESE, taken))
    pieces.extend(_scan(blocks, ENGLISH, taken))
    pieces.extend(_numeric_dates(text, taken, locale))
    pieces.extend(_scan(blocks, YEARS, taken))  # bare years come after 16/4/2026
    pieces.extend(_range_ends(text, pieces, taken))
    pieces.sort(key=lambda piece: piece.start)
    return _inherit(text, _join(text, pieces))


def _scan(blocks: list[Block], table: Table, taken: bytearray) -> Iterator[Piece]:
    for block in blocks:
        numbers: list[int] | None = None
        for needs, anchored, pattern, read in table.rows:
            if needs & block.absent or (needs & ~block.present and not block.has(needs)):
                continue
            if not anchored:
                matches = pattern.finditer(block.text, block.start, block.end)
            else:
                numbers = block.numbers(table.likely) if numbers is None else numbers
                matches = _at(numbers, pattern, block)
            for found in matches:
                start, end = found.span()
                if start == end or 1 in taken[start:end]:
                    continue
                fields = read(found)
                if (
                    fields is not None
                    and min(fields.get("d", 1), fields.get("m", 1), fields.get("H", 1)) >= 0
                ):
                    taken[start:end] = b"\1" * (end - start)
                    yield Piece(start, end, fields)


def _at(starts: list[int], pattern: re.Pattern[str], block: Block) -> Iterator[re.Match[str]]:
    for start in starts:
        found = pattern.match(block.text, start, block.end)
        if found is not None:
            yield found


# --- day and month in digits ----------------------------------------------------------------------

_NUMERIC = re.compile(
    r"(?=\d)(?<![a-z0-9_./:$€£])(?<!(?<!\d\d\d)\d-)(\d{1,2})([/.-])(\d{1,2})(?:\2(\d{4}|\d{2}))?(?![\d%:]|[./]\d|-\d{1,3}(?![\d/-])|\.\d| ?(?:mile|inch|cup))"  # noqa: E501
)
_DATE_CUE = re.compile(
    r"(?:\b(?:on|by|until|since|from|due|before|after|monday|tuesday|wednesday|thursday|friday|saturday|sunday"
    r"|mon|tue|wed|thu|fri|sat|sun)\.?,?|于|在|至|到)(?: the| date)? ?$"
)


def _numeric_dates(text: str, taken: bytearray, locale: str | None) -> Iterator[Piece]:
    """15/4/2026 and 2/5: the order of day and month is that of the unambiguous dates of the same text.

    Without a neighbour or a locale to tell, both readings are kept. Two numbers without a year are a date
    only when the text has dates of that form with a year, or a word like "on" or a weekday stands before.
    """
    found = [f for f in _NUMERIC.finditer(text) if not any(taken[f.start() : f.end()])]
    full = [f for f in found if f[4] and _orders(f)]
    order = _shared_order(full) or _locale_order(locale)
    for match in found:
        if not match[4] and not _short_date_allowed(text, match, full):
            continue
        piece = _numeric_piece(match, order)
        if piece is not None:
            taken[match.start() : match.end()] = b"\1" * (match.end() - match.start())
            yield piece


def _orders(found: re.Match[str]) -> set[str]:
    first, second = int(found[1]), int(found[3])
    orders = set()
    if 1 <= first <= 31 and 1 <= second <= 12:
        orders.add("dm")
    if 1 <= first <= 12 and 1 <= second <= 31:
        orders.add("md")
    return orders


def _shared_order(full: list[re.Match[str]]) -> str | None:
    """The order that every clear date of the text shares, or None."""
    clear = {next(iter(orders)) for orders in map(_orders, full) if len(orders) == 1}
    return clear.pop() if len(clear) == 1 else None


def _locale_order(locale: str | None) -> str | None:
    if locale is None:
        return None
    language, _, region = locale.lower().replace("_", "-").partition("-")
    if language == "zh" or region == "us":
        return "md"
    return "dm" if region or language != "en" else None


def _short_date_allowed(text: str, found: re.Match[str], full: list[re.Match[str]]) -> bool:
    if found[2] == "-" or not _orders(found):
        return False
    if found[2] == "/" and 12 < int(found[1]) <= 31 and (found[1], found[3]) != ("24", "7"):
        return True  # 23/12 is neither a fraction nor a month first
    if _DATE_CUE.search(text, max(0, found.start() - 14), found.start()) is not None:
        return found[2] == "/" or re.search(r"day,? ?$", text[: found.start()][-6:]) is not None
    return any(match[2] == found[2] for match in full)


def _numeric_piece(found: re.Match[str], order: str | None) -> Piece | None:
    orders = _orders(found)
    first, second = int(found[1]), int(found[3])
    year = {"y": int(found[4]) if len(found[4]) == 4 else two_digit_year(int(found[4]))} if found[4] else {}
    readings = {"dm": {"d": first, "m": second} | year, "md": {"m": first, "d": second} | year}
    if order in orders:
        return Piece(*found.span(), readings[order])
    if len(orders) == 1 or (orders and first == second):
        return Piece(*found.span(), readings[next(iter(orders))])
    other = tuple(sorted(readings["dm"].items()))
    return Piece(*found.span(), readings["md"], other) if orders else None


# --- ranges ---------------------------------------------------------------------------------------

_TO = r" ?(?:through|thru|to|till|until|and|-|–|~|到|至|和) ?(?:the )?"
_END_DAY = re.compile(rf"{_TO}(?P<d>{DAY})(?![a-z0-9_%:/]|[.,]\d)")
_START_DAY = re.compile(rf"\b(?:from |between )?(?:the )?(?P<d>{DAY}|\d{{1,2}}){_TO}$")
_END_HOUR = re.compile(
    r" ?(?:-|–|to|till|until|and|到|至) ?(?P<H>\d{1,2})(?P<mark>[点时](?!代|期))?"
    r"(?![a-z0-9_%:/]|[.,]\d| ?[a-z]{3,}s\b)"
)
_RANGE_GAP = re.compile(_TO)


def _range_ends(text: str, pieces: list[Piece], taken: bytearray) -> list[Piece]:
    """The other end of "April 9th through 17th", "9 to 12 of June", "from 7:30 to 9"."""
    found = []
    for piece in pieces:
        if {"m", "d"} <= piece.fields.keys():
            after = _END_DAY.match(text, piece.end)
            before = _START_DAY.search(text, max(0, piece.start - 36), piece.start)
            rest = {name: part for name, part in piece.fields.items() if name in ("m", "y")}
            found += [_end_piece(match, rest, taken) for match in (after, before) if match is not None]
        elif piece.fields.keys() >= {"H"}:
            after = _END_HOUR.match(text, piece.end)
            if after is not None and 1 <= int(after["H"]) <= (24 if after["mark"] else 12):
                found.append(_end_piece(after, {}, taken))
    return [piece for piece in found if piece is not None]


def _end_piece(match: re.Match[str], rest: dict[str, int], taken: bytearray) -> Piece | None:
    name = "d" if "d" in match.groupdict() else "H"
    start, end = match.span(name)
    number = number_of(match[name])
    if any(taken[start:end]) or not 1 <= number <= 31:
        return None
    taken[start:end] = b"\1" * (end - start)
    return Piece(start, end, {**rest, name: number} | ({"M": 0} if name == "H" else {}))


def _inherit(text: str, pieces: list[Piece]) -> list[Piece]:
    """从一月十日到十二日: the second day has the month and year of the first."""
    result: list[Piece] = []
    for piece in pieces:
        last = result[-1] if result else None
        ranged = (
            last is not None
            and piece.start - last.end <= 6
            and _RANGE_GAP.fullmatch(text, last.end, piece.start) is not None
        )
        if last is not None and ranged and piece.fields.keys() == {"d"} and {"m", "d"} <= last.fields.keys():
            rest = {name: part for name, part in last.fields.items() if name in ("m", "y")}
            piece = replace(piece, fields={**rest, **piece.fields})
        elif (
            last is not None
            and ranged
            and "y" in piece.fields
            and "y" not in last.fields
            and "m" in last.fields
        ):
            result[-1] = replace(last, fields={**last.fields, "y": piece.fields["y"]})
        result.append(piece)
    return result


# --- joining --------------------------------------------------------------------------------------

_GAP = re.compile(r"-|,? ?(?:of|in|the|on|的|\(|，)?(?: ?the)?,? ?")


def _join(text: str, pieces: list[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else None
        if last is not None and _belong(text, last, piece):
            other = last.other or piece.other
            joined[-1] = replace(last, end=piece.end, fields=last.fields | piece.fields, other=other)
        else:
            joined.append(piece)
    return joined


def _belong(text: str, left: Piece, right: Piece) -> bool:
    """Parts of one date: no part twice, no more than "of", "the" or a comma between, and a pair that dates
    have."""
    keys, more = frozenset(left.fields), frozenset(right.fields)
    gap = text[left.end : right.start]
    if keys & more or len(gap) > 8 or _GAP.fullmatch(gap) is None:
        return False
    if "，" in gap and more != {"wd"}:
        return False
    comma = "," in gap or "，" in gap
    return any(
        keys <= first and more <= second and (allowed or not comma) for first, second, allowed in _PAIRS
    )


# (parts of the left piece, parts of the right piece, whether a comma may stand between)
_PAIRS = tuple(
    (frozenset(left.split()), frozenset(right.split()), comma)
    for left, right, comma in (
        ("m d wd", "y", True),
        ("q h part wk m", "y Y", False),
        ("y Y", "m d q h part wk", False),
        ("wd W", "m d y", True),
        ("m d y", "wd", True),
        ("m y Y Mo", "d part wk", False),
        ("part wk d", "m y Y Mo d", False),
        ("wd W D d m y we", "dp", False),
        ("dp D", "H M S pm", False),
        ("dp", "D wd W", False),
    )
)
