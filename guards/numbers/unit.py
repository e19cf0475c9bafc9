"""What a unit is, and how its tables are written. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class Unit:
    """`name` is canonical (USD, kg, %); `factor` converts to the base unit of `dimension`, after `offset`."""

    name: str
    kind: str
    dimension: str
    factor: Decimal = Decimal(1)
    offset: Decimal = Decimal(0)


def table(kind: str, dimension: str, rows: str) -> dict[str, Unit]:
    """Rows "canonical factor: name, name" -> name -> Unit."""
    units = {}
    for row in rows.strip().splitlines():
        head, names = row.split(":", 1)
        name, factor = head.split()
        ratio = factor.split("/")
        size = Decimal(ratio[0]) / (Decimal(ratio[1]) if len(ratio) > 1 else 1)
        for alias in names.split(","):
            units[alias.strip()] = Unit(name, kind, dimension, size)
    return units
