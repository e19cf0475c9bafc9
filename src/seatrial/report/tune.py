"""A tune result as the page shows it: what was recommended at what price, the rules, and their curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.report import charts
from seatrial.report.figures import DASH, interval, percent, percent_with_ends
from seatrial.report.words import Speaker

Table = dict[str, Any]
# A threshold that no value passes is how a rule is switched off in the file.
SHOWN = (
    "run_length",
    "entropy_nats",
    "smoothed_enter_nats",
    "smoothed_leave_nats",
    "repeat_times",
    "monotony_share",
)


def tune_verdict(data: dict[str, Any], say: Speaker) -> str:
    """What the recommendation does on documents that it was not fitted to, or that there is none."""
    held_out = data["held_out"]
    if not data["meets"] or held_out is None:
        return say("said_no_thresholds")
    rates = {key: percent_with_ends(held_out[key]) for key in ("caught", "false_stops")}
    return say("said_thresholds").format(**rates)


def tune_cards(data: dict[str, Any], say: Speaker) -> list[dict[str, str]]:
    """How many runs there were, and the thresholds that are recommended."""
    runs, found = data["runs"], data["thresholds"] or {}
    kinds = (("broken", "broken_runs"), ("good", "good_runs"), ("documents", "documents"))
    counted = ", ".join(f"{runs[key]} {say(word)}" for key, word in kinds)
    told = ", ".join(f"{name} {found[name]:.3g}" for name in SHOWN if found.get(name) is not None)
    return [
        {"name": say("runs"), "value": counted},
        {"name": say("recommended"), "value": told or say("none")},
        {"name": say("thresholds_file"), "value": data["thresholds_file"] or say("none")},
    ]


def tune_tables(data: dict[str, Any], say: Speaker) -> list[Table]:
    """The price of the recommendation, the rules one by one, groups of runs, and policies on the device."""
    tables = [_judged(data, say), _rules([*data["rules"], *data["baselines"]], say)]
    if data["groups"]:
        tables.append(_groups(data["groups"], say))
    if data["policies"]["rows"]:
        tables.append(_policies(data["policies"], say))
    return tables


def tune_charts(data: dict[str, Any], say: Speaker) -> list[tuple[str, dict[str, Any], str]]:
    """(title, specification, note) of each curve; empty where one kind of run is missing."""
    rules = [rule for rule in data["rules"] if rule["auroc"]["value"] is not None]
    shown = []
    if rules:
        rows = [{"label": rule["rule"], "bad": False, **_as_interval(rule["auroc"])} for rule in rules]
        shown.append((say("auroc"), charts.intervals(rows, "AUROC"), say("auroc_note")))
        shown.append((say("roc"), charts.roc(rules, say), ""))
        shown.append((say("risk"), charts.risk_coverage(rules, say), say("risk_note")))
    if data["sweep"]:
        length = (data["thresholds"] or {}).get("run_length") or data["sweep"][0]["run_length"]
        lengths = sorted({row["run_length"] for row in data["sweep"]})
        nearest = min(lengths, key=lambda known: abs(known - length))
        rows = [row for row in data["sweep"] if row["run_length"] == nearest]
        shown.append((say("sweep").format(length=nearest), charts.sweep(rows, say), ""))
    return shown


def _judged(data: dict[str, Any], say: Speaker) -> Table:
    cases = [("fitted", data["fitted"]), ("held_out", data["held_out"]), ("run_rule", data["run_rule_alone"])]
    rows = [
        [say(name), *(percent_with_ends(found[key]) for key in ("caught", "false_stops", "gain"))]
        for name, found in cases
        if found
    ]
    return {
        "title": say("price"),
        "heads": ["", say("caught"), say("false_stops"), say("gain")],
        "rows": rows,
    }


def _rules(rules: Sequence[dict[str, Any]], say: Speaker) -> Table:
    heads = [say("rule"), "AUROC", say("average_precision"), say("above"), say("caught"), say("false_stops")]
    rows = [
        [
            rule["rule"],
            interval(_as_interval(rule["auroc"])),
            interval(_as_interval(rule["average_precision"])),
            DASH if rule["threshold"] is None else f"{rule['threshold']:.3g}",
            percent(rule["caught"]),
            percent(rule["false_stops"]),
        ]
        for rule in rules
    ]
    return {"title": say("rules"), "heads": heads, "rows": rows}


def _groups(groups: Sequence[dict[str, Any]], say: Speaker) -> Table:
    rows = [
        [
            group["group"],
            str(group["runs"]),
            say("broken_runs" if group["is_bad"] else "good_runs"),
            percent(group["stopped"]),
        ]
        for group in groups
    ]
    return {"title": say("groups"), "heads": [say("group"), say("runs"), "", say("stopped")], "rows": rows}


def _policies(policies: dict[str, Any], say: Speaker) -> Table:
    rows = [
        [
            row["policy"],
            f"{row['seconds']:.2f}",
            f"{row['wrong_shown']:.2f}",
            percent(row["broken_shown"]),
            percent(row["extractive"]),
        ]
        for row in policies["rows"]
    ]
    heads = [
        say("policy"),
        say("device_seconds"),
        say("wrong_shown"),
        say("broken_shown"),
        say("by_extractive"),
    ]
    return {"title": f"{say('policies')}: {policies['device']}", "heads": heads, "rows": rows}


def _as_interval(figure: dict[str, Any]) -> dict[str, Any]:
    return {"low": figure["low"], "mid": figure["value"], "high": figure["high"]}
