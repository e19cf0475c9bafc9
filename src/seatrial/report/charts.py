"""Vega-Lite specifications of the charts: pure functions of a result's document.

Each takes the words of the page's language and returns a specification for `svg.draw`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from seatrial.report.svg import BAD, BLUE, FAINT, GREEN, INK, ORANGE, PINK

Words = Callable[[str], str]
Spec = dict[str, Any]
WIDTH = 480


def timeline(tokens: Sequence[dict[str, Any]], entropy_nats: float | None, say: Words) -> Spec:
    """Two panels over the tokens of all drafts: device milliseconds, and entropy with its threshold."""
    rows = [
        {
            "n": n,
            "ms": 1e3 * row["device_s"] if row.get("index") else None,
            "entropy": row.get("entropy"),
            "smoothed": row.get("smoothed"),
            "alert": bool(row.get("alert")),
        }
        for n, row in enumerate(tokens)
    ]
    x = {"field": "n", "type": "quantitative", "title": say("token"), "axis": {"grid": False}}
    starts = [n for n, row in enumerate(tokens) if n and row.get("index") == 0]
    time_panel = {
        "width": WIDTH,
        "height": 90,
        "mark": {"type": "line", "color": BLUE, "clip": True},
        "encoding": {
            "x": x,
            "y": {"field": "ms", "type": "quantitative", "title": say("device_ms"), "axis": {"tickCount": 4}},
        },
    }
    layers: list[Spec] = [
        _line("entropy", FAINT, x, say("entropy_nats"), 1.0),
        _line("smoothed", ORANGE, x, say("entropy_nats"), 2.0),
        {
            "transform": [{"filter": "datum.alert"}],
            "mark": {"type": "point", "color": BAD, "shape": "triangle-up", "filled": True, "size": 36},
            "encoding": {"x": x, "y": {"field": "entropy", "type": "quantitative"}},
        },
    ]
    if entropy_nats is not None:
        layers.append(_rule("y", entropy_nats, BAD, dashed=True))
    layers += [_rule("x", start, FAINT) for start in starts]
    panel = {"width": WIDTH, "height": 130, "layer": layers}
    return {"data": {"values": rows}, "vconcat": [time_panel, panel], "description": say("timeline")}


def _line(field: str, colour: str, x: Spec, title: str, width: float) -> Spec:
    y = {"field": field, "type": "quantitative", "title": title, "axis": {"tickCount": 5}}
    return {"mark": {"type": "line", "color": colour, "strokeWidth": width}, "encoding": {"x": x, "y": y}}


def _rule(axis: str, value: float, colour: str, *, dashed: bool = False) -> Spec:
    mark = {"type": "rule", "color": colour, "strokeDash": [5, 4] if dashed else [1, 0]}
    return {
        "data": {"values": [{"at": value}]},
        "mark": mark,
        "encoding": {axis: {"field": "at", "type": "quantitative"}},
    }


def memory(data: dict[str, Any], say: Words) -> Spec:
    """Planned parts beside the measured peaks, against the ceiling, in GB."""
    planned = data.get("plan", {}).get("memory", {})
    measured = data["memory"]
    parts = [
        *(
            _part("planned", name, planned.get(f"{name}_bytes"), say)
            for name in ("weights", "kv", "activation", "runtime")
        ),
        _part("measured", "private", measured.get("peak_private_bytes"), say),
        _part("measured", "mapped", measured.get("peak_mapped_bytes"), say),
    ]
    order = [say(name) for name in ("weights", "kv", "activation", "runtime", "private", "mapped")]
    bars = {
        "data": {"values": [part for part in parts if part["gb"]]},
        "mark": {"type": "bar", "stroke": INK, "strokeWidth": 0.5},
        "encoding": {
            "y": {
                "field": "side",
                "type": "nominal",
                "title": None,
                "sort": [say("planned"), say("measured")],
            },
            "x": {"field": "gb", "type": "quantitative", "title": "GB", "stack": "zero"},
            "color": {
                "field": "part",
                "type": "nominal",
                "sort": order,
                "scale": {"domain": order, "range": [BLUE, ORANGE, GREEN, PINK, FAINT, INK]},
            },
            "order": {"field": "order", "type": "quantitative"},
        },
    }
    ceiling = _rule("x", measured["ceiling_bytes"] / 1e9, BAD, dashed=True)
    return {"width": WIDTH, "height": 90, "layer": [bars, ceiling], "description": say("memory")}


def _part(side: str, name: str, size: float | None, say: Words) -> Spec:
    names = ("weights", "kv", "activation", "runtime", "private", "mapped")
    return {"side": say(side), "part": say(name), "gb": (size or 0) / 1e9, "order": names.index(name)}


def roofline(plan: dict[str, Any], say: Words) -> Spec | None:
    """Attained against attainable FLOP/s over arithmetic intensity, log-log; None where terms are missing.

    Intensity is FLOPs over the bytes of weights and KV cache that a pass reads (Williams, Waterman and
    Patterson, 2009). Prefill reads the weights once per chunk in truth; here once: as far right as it can be.
    """
    terms, times = plan.get("terms", {}), plan.get("time", {})
    bandwidth, compute = terms.get("bandwidth_Bps"), terms.get("effective_ops")
    decode = terms.get("decode_flops_per_token")
    if not (bandwidth and compute and decode):
        return None
    per_token = terms["weight_bytes_per_token"] + terms["kv_bytes_per_token"]
    points = [
        _point(
            say("prefill"), terms["prefill_flops"], terms["weight_bytes_per_token"], times["prefill_s"]["mid"]
        ),
        _point(say("decode"), decode, per_token, times["decode_ms_per_token"]["mid"] / 1e3),
    ]
    low, high = 0.1, max(10 * compute / bandwidth, 10 * points[0]["intensity"])
    steps = [low * (high / low) ** (i / 60) for i in range(61)]
    roof = [{"intensity": x, "flops": min(x * bandwidth, compute)} for x in steps]
    x = {
        "field": "intensity",
        "type": "quantitative",
        "scale": {"type": "log"},
        "title": say("intensity"),
        "axis": {"format": "~s", "tickCount": 6},
    }
    y = {
        "field": "flops",
        "type": "quantitative",
        "scale": {"type": "log"},
        "title": "FLOP/s",
        "axis": {"format": "~s", "tickCount": 6},
    }
    return {
        "width": WIDTH,
        "height": 200,
        "description": say("roofline"),
        "layer": [
            {
                "data": {"values": roof},
                "mark": {"type": "line", "color": FAINT},
                "encoding": {"x": x, "y": y},
            },
            {
                "data": {"values": points},
                "mark": {"type": "point", "filled": True, "size": 90, "color": ORANGE},
                "encoding": {"x": x, "y": y},
            },
            {
                "data": {"values": points},
                "mark": {"type": "text", "dy": -12, "color": INK},
                "encoding": {"x": x, "y": y, "text": {"field": "phase"}},
            },
        ],
    }  # fmt: skip


def _point(phase: str, flops: float, read_bytes: float, seconds: float) -> Spec:
    return {"phase": phase, "intensity": flops / read_bytes, "flops": flops / seconds}


def intervals(rows: Sequence[dict[str, Any]], title: str, *, log: bool = False) -> Spec:
    """Low-mid-high as a bar with a dot, one row each; rows have label, low, mid, high and `bad`."""
    shown = drawable(rows)
    scale: Spec = {"type": "log"} if log else {"zero": False}
    axis = {"labelOverlap": "greedy", "labelSeparation": 8}
    x: Spec = {"type": "quantitative", "title": title, "scale": scale, "axis": axis}
    y = {"field": "label", "type": "nominal", "title": None, "sort": None, "axis": {"labelLimit": 220}}
    colour = {"condition": {"test": "datum.bad", "value": BAD}, "value": BLUE}
    return {
        "width": WIDTH - 120,
        "height": {"step": 18},
        "data": {"values": shown},
        "description": title,
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": colour},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 50},
                "encoding": {"y": y, "x": {**x, "field": "mid"}, "color": colour},
            },
        ],
    }


def drawable(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that have a whole interval."""
    return [row for row in rows if all(_finite(row.get(key)) for key in ("low", "mid", "high"))]


def roc(rules: Sequence[dict[str, Any]], say: Words) -> Spec:
    """Share of broken runs caught over share of good runs stopped, for the four best rules."""
    rows = [
        {"rule": rule["rule"], "x": point["false_stops"], "y": point["caught"], "order": order}
        for rule in _best(rules)
        for order, point in enumerate(rule["roc"])
    ]
    return {
        "width": WIDTH,
        "height": 240,
        "description": "ROC",
        "data": {"values": rows},
        "mark": {"type": "line", "interpolate": "step-after"},
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "title": say("false_stops")},
            "y": {"field": "y", "type": "quantitative", "title": say("caught")},
            "order": {"field": "order", "type": "quantitative"},
            "color": {"field": "rule", "type": "nominal"},
            "strokeDash": {"field": "rule", "type": "nominal"},
        },
    }


def risk_coverage(rules: Sequence[dict[str, Any]], say: Words) -> Spec:
    """Share of broken runs among those shown, over the share that is shown, for the four best rules."""
    rows = [
        {"rule": rule["rule"], "x": point["shown"], "y": point["broken_of_shown"]}
        for rule in _best(rules)
        for point in rule["risk_coverage"]
    ]
    return _curves(rows, say("shown"), say("broken_of_shown"))


def sweep(rows: Sequence[dict[str, Any]], say: Words) -> Spec:
    """Shares of broken and of good runs that "so many steps above" stops, over the entropy in nats."""
    lines = [
        {"rule": say(share), "x": row["entropy_nats"], "y": row[share]}
        for share in ("caught", "false_stops")
        for row in rows
    ]
    return _curves(lines, say("entropy_nats"), say("stopped"))


def _best(rules: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rules, key=lambda rule: -(rule["auroc"]["value"] or 0))[:4]


def _curves(rows: Sequence[dict[str, Any]], x: str, y: str) -> Spec:
    """Lines told apart by colour and by their dashes; rows have rule, x and y."""
    return {
        "width": WIDTH,
        "height": 240,
        "description": y,
        "data": {"values": [row for row in rows if _finite(row["y"])]},
        "mark": {"type": "line"},
        "encoding": {
            "x": {"field": "x", "type": "quantitative", "title": x},
            "y": {"field": "y", "type": "quantitative", "title": y},
            "color": {"field": "rule", "type": "nominal"},
            "strokeDash": {"field": "rule", "type": "nominal"},
        },
    }


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
