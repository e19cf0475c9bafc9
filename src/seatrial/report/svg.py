"""Vega-Lite specifications to SVG that follows the page's colours, light or dark.

The library draws with fixed colours; each of ours is a value that occurs nowhere else and is exchanged for
a CSS variable afterwards.
"""

from __future__ import annotations

import re
from typing import Any

from markupsafe import Markup

from seatrial.errors import UserError

# Drawn colour -> variable of the style sheet. The series are the colour-blind safe ones of Okabe and Ito.
PALETTE = {
    "#010203": "--ink",
    "#040506": "--faint",
    "#070809": "--grid",
    "#0a0b0c": "--series-1",
    "#0d0e0f": "--series-2",
    "#101112": "--series-3",
    "#131415": "--series-4",
    "#161718": "--bad",
}
INK, FAINT, GRID, BLUE, ORANGE, GREEN, PINK, BAD = PALETTE

CONFIG: dict[str, Any] = {
    "background": None,
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK, "titleColor": INK, "domainColor": FAINT, "tickColor": FAINT, "gridColor": GRID,
        "titleFontWeight": "normal", "labelFontSize": 12, "titleFontSize": 12,
    },
    "legend": {
        "labelColor": INK, "titleColor": INK, "orient": "top", "title": None, "labelFontSize": 12,
        "columns": 2, "labelLimit": 260,
    },
    "title": {"color": INK},
    "text": {"color": INK},
    "range": {"category": [BLUE, ORANGE, GREEN, PINK]},
}  # fmt: skip


def engine() -> Any:
    """The drawing library. Raises UserError when the `report` extra is not installed."""
    try:
        import vl_convert
    except ImportError as error:
        raise UserError('a report needs its extra: pip install "seatrial[report]"') from error
    return vl_convert


def draw(spec: dict[str, Any]) -> Markup:
    """The chart of a Vega-Lite specification as inline SVG. Raises UserError as `engine` does."""
    whole = {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "config": CONFIG, **spec}
    svg = engine().vegalite_to_svg(whole)
    for colour, variable in PALETTE.items():
        svg = re.sub(re.escape(colour), f"var({variable})", svg, flags=re.IGNORECASE)
    return Markup(svg)
