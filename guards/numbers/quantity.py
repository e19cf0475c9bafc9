"""What a figure is once it has been read: value, unit, kind and its exact place in the text.

Plain data, no rules. A `Quantity` never holds text of its neighbours, so the same extraction serves the
guard, the extractive fallback and the labels of the damage report.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

COUNT: Final = "count"
AMOUNT: Final = "amount"
PERCENT: Final = "percent"
PERCENTAGE_POINT: Final = "percentage_point"
BASIS_POINT: Final = "basis_point"
RATIO: Final = "ratio"
ORDINAL: Final = "ordinal"
DATE: Final = "date"
TIME: Final = "time"
DURATION: Final = "duration"
WEEKDAY: Final = "weekday"
MEASURE: Final = "measure"
IDENTIFIER: Final = "identifier"
UNREAD: Final = "unread"

KINDS: Final = (
    COUNT,
    AMOUNT,
    PERCENT,
    PERCENTAGE_POINT,
    BASIS_POINT,
    RATIO,
    ORDINAL,
    DATE,
    TIME,
    DURATION,
    WEEKDAY,
    MEASURE,
    IDENTIFIER,
    UNREAD,
)

Fields = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Quantity:
    """One figure of a text.

    `span` is `[start, end)` in characters of the text that was given, and `text` is exactly that slice.
    `value` is in `unit`; `high` is the upper end when the text gives a range or an open approximation.
    `quantum` is the place of the last digit shown ("1.2 million" -> 100000), in the same unit.
    `bound` says how the text hedges: "" as it stands, "about", "over" (at least), "under" (at most).
    `fields` are the known parts of a date, time or weekday, such as (("m", 3), ("d", 14)).
    `string` is the folded text of an identifier. `other` holds a second reading when the text allows two.
    """

    text: str
    span: tuple[int, int]
    kind: str
    value: Decimal | None = None
    unit: str | None = None
    high: Decimal | None = None
    quantum: Decimal | None = None
    bound: str = ""
    fields: Fields = ()
    other: Fields = ()
    string: str = ""
    words: bool = False  # written in words, not digits

    @property
    def low(self) -> Decimal | None:
        """The lower end of a range, or the value itself."""
        return self.value

    def field(self, name: str) -> int | None:
        """A part of a date or time, or None when the text does not state it."""
        return dict(self.fields).get(name)
