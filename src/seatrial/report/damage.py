"""A damage result as tables: classes, languages, whole figures and names, copies, one part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from seatrial.report.charts import drawable, intervals
from seatrial.report.figures import DASH
from seatrial.report.words import Speaker

Table = dict[str, Any]

# An interval is not broken: a dash between two word joiners.
_TO = "\N{WORD JOINER}–\N{WORD JOINER}"


VERDICTS = {"concentrates": "fail", "cannot tell": "warn", "does not concentrate": "ok", "none": "ok"}


def damage_verdict(data: dict[str, Any], say: Speaker) -> tuple[str, str]:
    """(tone, sentence): which classes have each verdict, the most serious first."""
    by_verdict: dict[str, list[str]] = {verdict: [] for verdict in VERDICTS}
    for name, found in data["classes"].items():
        if found["concentration"] is not None:
            by_verdict[found["verdict"]].append(say.term(name))
    told = [(verdict, names) for verdict, names in by_verdict.items() if names]
    sentence = "; ".join(f"{say.term(verdict)}: {', '.join(names)}" for verdict, names in told)
    return VERDICTS[told[0][0]] if told else "warn", sentence or say("damage_unseen")


def damage_charts(data: dict[str, Any], say: Speaker) -> list[tuple[str, dict[str, Any], str]]:
    """(title, specification, note): added NLL by class, and the ratio to other tokens of the same entropy."""
    kinds = data["classes"].items()
    bad = lambda found: found["verdict"] == "concentrates"
    added = [_row(say.term(name), found["nll_delta"], bad(found)) for name, found in kinds]
    ratios = [
        _row(say.term(name), found["concentration"]["ratio"], bad(found))
        for name, found in kinds
        if found["concentration"]
    ]
    shown = [
        (say("damage"), added, "NLL Δ", say("damage_note")),
        (say("concentration"), ratios, say("times_other"), say("concentration_note")),
    ]
    return [(title, intervals(rows, axis), note) for title, rows, axis, note in shown if drawable(rows)]


def _row(label: str, found: dict[str, Any], bad: bool) -> dict[str, Any]:
    return {"label": label, "bad": bad, "low": found["low"], "mid": found["value"], "high": found["high"]}


def damage_tables(data: dict[str, Any], say: Speaker) -> list[Table]:
    """Every table of a result of `seatrial damage --json`."""
    languages = data["languages"] if len(data["languages"]) > 1 else {}
    tables = [_classes(data["classes"], say, say("damage"))]
    tables += [
        _classes(found["classes"], say, f"{say('damage')}: {name}") for name, found in languages.items()
    ]
    tables.append(_items(data["items"], say))
    if data.get("probes"):
        tables.append(_probes(data["probes"], say))
    if data.get("factorial"):
        tables.append(_parts(data["factorial"], say))
    return tables


def damage_notes(data: dict[str, Any], say: Speaker) -> list[str]:
    """The guard's share, and what the run could not have seen."""
    guard, seen = data["guard"], data["minimum_detectable"]["classes"]
    notes = [
        say("damage_guard").format(
            **{key: guard[key] for key in ("damaged", "caught", "escaped", "no_figure")}
        )
    ]
    told = ", ".join(f"{say.term(name)} {excess:.0%}" for name, excess in seen.items() if excess is not None)
    if told:
        notes.append(f"{say('damage_seen')} {told}")
    elif all(found["verdict"] == "cannot tell" for found in data["classes"].values()):
        notes.append(say("damage_unseen"))  # of identical bundles there is a verdict: none
    if data.get("probes"):
        notes += _probe_notes(data["probes"], say)
    return [*notes, *data.get("warnings", [])]


def _probe_notes(probes: dict[str, Any], say: Speaker) -> list[str]:
    """The smallest change of the copy rate that would have shown, over all and of one kind."""
    cells = {say("all_copies"): probes["all"], **probes["kind"]}
    points = {name: cell["minimum_detectable"] for name, cell in cells.items()}
    told = ", ".join(
        f"{name} {DASH if least is None else round(100 * least)}" for name, least in points.items()
    )
    return [f"{say('copies_seen')} {told}"]


def _classes(classes: dict[str, Any], say: Speaker, title: str) -> Table:
    heads = [say("class"), say("tokens"), "KL", say("harm_share"), say("repair_share"), "NLL Δ"]
    heads += [say("times_other"), "p", say("verdict")]
    rows = []
    for name, found in classes.items():
        compared = found["concentration"]
        row = [say.term(name), f"{found['n']:,}", with_ends(found["kl"])]
        row += [with_ends(found["flips"][kind], 100) for kind in ("harm", "repair")]
        row += [with_ends(found["nll_delta"])]
        row += [with_ends(compared["ratio"]), _p(compared["p_adjusted"])] if compared else ["", ""]
        rows.append([*row, say.term(found["verdict"]) if compared else ""])
    return {"title": title, "heads": heads, "rows": rows}


def _items(items: dict[str, Any], say: Speaker) -> Table:
    heads = [say("class"), "n", say("right_before"), say("harmed"), "%", say("repaired"), "McNemar p"]
    rows = [
        [
            say.term(name),
            str(found["n"]),
            str(found["right_in_reference"]),
            str(found["harmed"]),
            with_ends(found["harm"], 100),
            str(found["repaired"]),
            _p(found["mcnemar_p"]),
        ]
        for name, found in items.items()
    ]
    return {"title": say("damage_items"), "heads": heads, "rows": rows}


def _probes(probes: dict[str, Any], say: Speaker) -> Table:
    heads = [say("copies"), "n", say("reference") + " %", say("candidate") + " %"]
    heads += [say("harmed"), say("repaired"), "p", say("verdict"), say("errors")]
    rows = [_probe_row(name or say("all_copies"), cell, say) for name, cell in _cells(probes)]
    return {"title": say("copies"), "heads": heads, "rows": rows}


def _cells(probes: dict[str, Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    yield "", probes["all"]
    for cut in ("language", "context", "depth", "distractors", "kind"):
        for value, cell in probes[cut].items():
            yield f"{cut} {value}", cell


def _probe_row(name: str, cell: dict[str, Any], say: Speaker) -> list[str]:
    rates = [with_ends(cell[whose]["normalized"], 100) for whose in ("reference", "candidate")]
    errors = ", ".join(f"{say.term(error)} {n}" for error, n in cell["candidate"]["errors"].items())
    p = _p(cell.get("p_adjusted", cell["mcnemar_p"]))
    return [
        name,
        str(cell["n"]),
        *rates,
        str(cell["harms"]),
        str(cell["repairs"]),
        p,
        say.term(cell["verdict"]),
        errors,
    ]


def _parts(parts: list[dict[str, Any]], say: Speaker) -> Table:
    rows = [
        [say.term(name), *(with_ends(part["classes"][name]["kl"], digits=two_digits) for part in parts)]
        for name in parts[0]["classes"]
    ]
    heads = [say("class"), *(say.term(part["variant"]) for part in parts)]
    return {"title": f"{say('damage_parts')}: KL", "heads": heads, "rows": rows}


def with_ends(
    found: dict[str, Any] | None, scale: float = 1, digits: Callable[[float | None], str] | None = None
) -> str:
    """ "0.114 (0.102–0.127)", a dash where there is no figure; `digits` writes one figure."""
    if not found or found["value"] is None:
        return DASH
    write = digits or short
    value = write(found["value"] * scale)
    if found["low"] is None or found["high"] is None:
        return value
    return f"{value} ({write(found['low'] * scale)}{_TO}{write(found['high'] * scale)})"


def _p(value: float | None) -> str:
    return "<0.001" if value is not None and value < 0.001 else short(value)


def short(value: float | None) -> str:
    """Three figures or so, whatever the size."""
    if value is None:
        return DASH
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"


def two_digits(value: float | None) -> str:
    """Two digits that count, so that small figures can be compared: 0.00041."""
    return f"{value:#.2g}" if value is not None and 0 < abs(value) < 1 else short(value)
