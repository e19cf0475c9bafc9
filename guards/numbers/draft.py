"""A figure under construction, and what becomes of it."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from seatrial.guards.numbers.digits import Numeral
from seatrial.guards.numbers.quantity import COUNT, DATE, IDENTIFIER, RATIO, Fields, Quantity


class Draft(NamedTuple):
    """Offsets are those of the folded text; `form` is how the numeral is written (see `Numeral.form`)."""

    start: int
    end: int
    value: Decimal
    quantum: Decimal
    kind: str = COUNT
    unit: str | None = None
    high: Decimal | None = None
    bound: str = ""
    other: Fields = ()
    string: str = ""
    form: str = "digits"


def from_numeral(numeral: Numeral) -> Draft:
    """The bare number, before its neighbours are read."""
    start, end, value, quantum, high, form, string, bound, second = numeral
    other: Fields = () if second is None else (("thousands", 1),)
    return Draft(start, end, value, quantum, COUNT, None, high, bound, other, string, form)


def finish(text: str, draft: Draft) -> Quantity:
    """The figure, with its text cut from the text that was given."""
    kind, unit, value, string = draft.kind, draft.unit, draft.value, ""
    fields: Fields = ()
    if draft.form == "spelled" and kind == COUNT and unit is None:
        kind, string = IDENTIFIER, draft.string if draft.string.isdigit() else format(draft.value, "f")
    elif draft.form == "year" and kind == COUNT:
        kind, fields = DATE, (("y", int(draft.value)),)
    elif kind == RATIO:
        string = draft.string
    elif kind == COUNT and draft.form == "fraction":
        kind, unit = RATIO, "fraction"
    valued = kind not in (IDENTIFIER, DATE)
    return Quantity(
        text=text[draft.start : draft.end],
        span=(draft.start, draft.end),
        kind=kind,
        value=value if valued else None,
        unit=unit,
        high=draft.high if valued else None,
        quantum=draft.quantum if valued else None,
        bound=draft.bound,
        fields=fields,
        other=draft.other,
        string=string,
        words=draft.form != "digits",
    )
