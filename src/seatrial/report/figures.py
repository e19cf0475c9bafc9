"""Figures as people read them: bytes, seconds, intervals. A dash stands where there is none."""

from __future__ import annotations

from typing import Any

from seatrial.devices.units import format_bytes

DASH = "–"


def size(count: float | None) -> str:
    """Bytes in decimal units."""
    return DASH if count is None else format_bytes(round(count))


def seconds(value: float | None) -> str:
    """Three digits; milliseconds below one second."""
    if value is None:
        return DASH
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def milliseconds(value: float | None) -> str:
    """Milliseconds with three digits."""
    return DASH if value is None else f"{value:.3g} ms"


def interval(value: dict[str, Any] | None, unit: str = "") -> str:
    """`mid (low–high) unit`; the middle alone where there are no ends."""
    if not value or value.get("mid") is None:
        return DASH
    if value["low"] is None or value["high"] is None:
        return f"{value['mid']:.3g}{unit}"
    return f"{value['mid']:.3g} ({value['low']:.3g}–{value['high']:.3g}){unit}"


def percent(share: float | None) -> str:
    """A share of one in percent."""
    return DASH if share is None else f"{100 * share:.1f} %"


def percent_with_ends(found: dict[str, Any] | None) -> str:
    """`value (low–high) %` of shares of one."""
    if not found or found["value"] is None:
        return DASH
    if found["low"] is None or found["high"] is None:
        return percent(found["value"])
    return f"{100 * found['value']:.1f} ({100 * found['low']:.1f}–{100 * found['high']:.1f}) %"
