"""Values of the published cases against ours: our figures, written as the cases write them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

from seatrial.guards.numbers import Quantity
from seatrial.guards.numbers.normalize import fold
from seatrial.guards.numbers.numerals import find_numerals
from seatrial.guards.numbers.pairs import read_mixed, read_pair
from seatrial.guards.numbers.single import read_sign, read_single
from seatrial.guards.numbers.units import BY_NAME


def number_of(text: str | None) -> Decimal | None:
    try:
        return Decimal((text or "").rstrip("%"))
    except InvalidOperation:
        return None


def _same(left: Decimal | None, right: Decimal | None) -> bool:
    """Equal to the 12 digits that the cases show."""
    if left is None or right is None:
        return left is right
    return abs(left - right) <= max(abs(left), abs(right)) * Decimal("1e-12")


def _values(figures: list[Quantity], kinds: set[str]) -> list[Decimal | None]:
    return [q.value for q in figures if q.kind in kinds]


def judge_number(_: list[Quantity], row: dict[str, Any]) -> bool:
    expected = [number_of(r["value"]) for r in row["results"]]
    ours = list(_plain_numbers(row["text"]))
    return len(ours) == len(expected) and all(_same(a, b) for a, b in zip(ours, expected, strict=True))


def _plain_numbers(text: str) -> Iterator[Decimal]:
    """The numerals of a text before units, dates and counting words are read; 12ml is a measure, not a
    number."""
    folded = fold(text)
    numerals = find_numerals(folded, text, bytearray(len(folded)))
    index = 0
    while index < len(numerals):
        numeral = numerals[index]
        following = numerals[index + 1] if index + 1 < len(numerals) else None
        after = numerals[index + 2] if index + 2 < len(numerals) else None
        fraction = None if following is None or after is None else read_pair(folded, following, after)
        mixed = None if fraction is None else read_mixed(folded, numeral, fraction)
        if mixed is not None:
            index += 3
            yield mixed.value
            continue
        pair = None if following is None else read_pair(folded, numeral, following)
        if pair is not None and pair.unit != ":":
            index += 2
            yield pair.value * _PER.get(numeral.string, Decimal(1))
            continue
        index += 1
        start, negative = read_sign(folded, numeral.start)
        attached = folded[numeral.end : numeral.end + 1]
        if numeral.form == "ordinal" or attached == "%" or (attached.isascii() and attached.isalpha()):
            continue
        if read_single(folded, numeral) is None or folded[start - 1 : start] == "第":
            continue
        yield -numeral.value if negative else numeral.value


# 百分之三 is the number 3 to the cases, 一百分之三 is 0.03.
_PER = {"百": Decimal(1)}


def judge_percent(figures: list[Quantity], row: dict[str, Any]) -> bool:
    expected = [number_of(r["value"]) for r in row["results"]]
    # Of a range the cases keep the end that carries the sign.
    ours = [
        q.value if q.high is None else q.high for q in figures if q.kind in ("percent", "percentage_point")
    ]
    return len(ours) == len(expected) and all(_same(a, b) for a, b in zip(ours, expected, strict=True))


_ISO = {"Dollar": "USD", "Pound": "GBP", "Pence": "GBP", "Cent": "USD", "Euro": "EUR"}


def judge_currency(figures: list[Quantity], row: dict[str, Any]) -> bool:
    expected = []
    for r in row["results"]:
        value = number_of(r["value"])
        if value is not None and r.get("unit") in ("Pence", "Cent"):
            value = value / 100
        expected.append((value, r.get("isoCurrency") or _ISO.get(r.get("unit", ""))))
    ours = [(q.value, q.unit) for q in figures if q.kind == "amount"]
    return len(ours) == len(expected) and all(
        _same(a[0], b[0]) and (b[1] is None or a[1] == b[1]) for a, b in zip(ours, expected, strict=True)
    )


_UNIT_NAMES = {
    "Metric ton": "t", "Ton": "t", "Mile": "mi", "Square meter": "m2", "Milliliter": "ml", "Kilometer": "km",
    "Meter": "m", "Inch": "in", "Foot": "ft", "Kilometer per hour": "km/h", "Kilowatt": "kW", "Kilobyte": "kB",  # noqa: E501
    "Centimeter": "cm", "Microgram": "ug", "Millimeter": "mm", "Pound": "lb", "Gallon": "gal", "Barrel": "bbl",  # noqa: E501
    "Cubic foot": "ft3", "Kilocalorie": "kcal", "Megabyte": "MB", "Degree": "degree", "Teaspoon": "tsp", "Gram": "g", "Kilogram": "kg", "Liang": "liang", "Jin": "jin",  # noqa: E501
}  # fmt: skip


def judge_dimension(figures: list[Quantity], row: dict[str, Any]) -> bool:
    expected = [(number_of(r["value"]), _UNIT_NAMES.get(r["unit"])) for r in row["results"]]
    ours = [q for q in figures if q.kind == "measure" and q.unit not in ("C", "F")]
    return len(ours) == len(expected) and all(
        _same_measure(q, *b) for q, b in zip(ours, expected, strict=True)
    )


def _same_measure(figure: Quantity, value: Decimal | None, unit: str | None) -> bool:
    """Equal in base units; of a range the cases keep the end that carries the unit."""
    ours = figure.value if figure.high is None else figure.high
    if unit is None or ours is None or value is None:
        return _same(ours, value)
    left, right = BY_NAME[figure.unit or ""], BY_NAME[unit]
    same = _same(ours * left.factor, value * right.factor)
    return left.dimension == right.dimension and (
        same or abs(ours * left.factor - value * right.factor) < Decimal("1e-9")
    )


def judge_temperature(figures: list[Quantity], row: dict[str, Any]) -> bool:
    expected = [
        (number_of(r.get("value")), r["unit"].replace("Degree", "degree"))
        for r in row["results"]
        if r.get("value")
    ]
    ours = [(q.value, q.unit) for q in figures if q.unit in ("degree", "C", "F")]
    return len(ours) == len(expected) and all(
        _same(a[0], b[0]) and a[1] == b[1] for a, b in zip(ours, expected, strict=True)
    )


def judge_ordinal(figures: list[Quantity], row: dict[str, Any]) -> bool:
    expected = [number_of(r["value"]) for r in row["results"] if r["type"] == "ordinal"]
    ours = _values(figures, {"ordinal"})
    return len(ours) == len(expected) and all(_same(a, b) for a, b in zip(ours, expected, strict=True))


def judge_phone(figures: list[Quantity], row: dict[str, Any]) -> bool:
    """Every expected number is one of our strings; what else is a string to us (a card, a code) is not
    theirs."""
    expected = [re.sub(r"\D", "", r["value"]) for r in row["results"]]
    ours = [re.sub(r"\D", "", q.text) for q in figures if q.kind == "identifier"]
    return all(phone in ours for phone in expected)


def judge_range(figures: list[Quantity], row: dict[str, Any]) -> bool:
    """Ours keep the ends as value and high, or one end with a hedge: the numbers must be the same ones."""
    expected: list[Decimal] = []
    for r in row["results"]:
        expected += [Decimal(n) for n in re.findall(r"-?\d+(?:\.\d+)?(?:[Ee][+-]?\d+)?", r["value"])]
    ours: list[Decimal] = []
    for q in figures:
        ours += [v for v in (q.value, q.high) if v is not None and q.kind not in ("date", "time")]
    return all(any(_same(e, o) for o in ours) for e in expected)
