"""The report as one page that opens offline: the tables of the command, from its JSON document."""

from __future__ import annotations

import math
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment


def page(document: Mapping[str, Any]) -> str:
    """HTML of the document that `seatrial damage --json` prints. Everything in it is escaped."""
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["interval"] = interval
    environment.filters["short"] = short
    source = files("seatrial.quantize.damage").joinpath("page.html.jinja").read_text(encoding="utf-8")
    return environment.from_string(source).render(d=document)


def interval(found: Mapping[str, Any] | None, scale: float = 1) -> str:
    """ "0.114 [0.102, 0.127]", a dash where there is no figure."""
    if found is None or found["value"] is None or not math.isfinite(found["value"]):
        return "–"
    ends = (found["low"], found["high"])
    value = short(found["value"] * scale)
    if any(end is None or not math.isfinite(end) for end in ends):
        return value
    return f"{value} [{short(ends[0] * scale)}, {short(ends[1] * scale)}]"


def short(value: float | None) -> str:
    """Three figures or so, whatever the size."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"
