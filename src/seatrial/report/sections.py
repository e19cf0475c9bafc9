"""Each kind of result as what the template shows: headline, cards, tables, charts, marked texts.

Plain dictionaries of ready words; the template decides nothing but the tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import Any

from seatrial.report import charts
from seatrial.report.damage import damage_charts, damage_notes, damage_tables, damage_verdict
from seatrial.report.figures import interval, milliseconds, seconds, size
from seatrial.report.load import Result
from seatrial.report.marks import lines_of, pair_marks
from seatrial.report.svg import draw
from seatrial.report.tune import tune_cards, tune_charts, tune_tables, tune_verdict
from seatrial.report.words import Speaker

Section = dict[str, Any]


# Where a plan's document keeps what a row of the comparison needs.
PARTS = (("memory", "fits"), ("time", "total_s"))
SHOWN_REASONS = 5  # of a refused draft; the text's own marks show all of them


def section(result: Result, key: str, say: Speaker) -> Section:
    """What is shown of one result. `key` keeps the ids of several results apart."""
    builders = {"run": _run, "plan": _plan, "plans": _plans, "damage": _damage, "tune": _tune}
    shown = builders[result.kind](result, key, say)
    return {
        "key": key, "name": result.name, "tone": "ok", "verdict": "", "cards": [], "texts": [],
        "source": None, "charts": [], "tables": [], "notes": [], **shown,
    }  # fmt: skip


def comparison(results: Sequence[Result], say: Speaker) -> dict[str, Any] | None:
    """Runs and plans side by side, one column each; None where fewer than two can be compared."""
    columns = [column for result in results if (column := _column(result, say))]
    if len(columns) < 2:
        return None
    heads = [say("result"), *(column[0] for column in columns)]
    names = [name for name, _ in columns[0][1]]
    rows = [[name, *(dict(column[1])[name] for column in columns)] for name in names]
    return _table(say("compare"), heads, rows)


def _column(result: Result, say: Speaker) -> tuple[str, list[tuple[str, str]]] | None:
    data = result.data
    if result.kind == "run":
        values = [data["device"], data["model"], _formats(data), size(data["sizes"].get("bundle_bytes"))]
        values += [
            size(data["memory"]["peak_private_bytes"]),
            seconds(data["prefill"]["first_token_device_s"]),
        ]
        values += [milliseconds(data["decode"]["device_ms_per_token"]), say(f"by_{data['summary_kind']}")]
        values += [_status_word(data, say)]
    elif result.kind == "plan":
        values = [data["device"], data["model"], _formats(data), size(data["memory"]["weights_bytes"])]
        values += [size(data["memory"]["peak_bytes"]), f"{interval(data['time']['prefill_s'])} s"]
        values += [f"{interval(data['time']['decode_ms_per_token'])} ms", say("planned")]
        values += [say("fits") if data["memory"]["fits"] else say("does_not_fit")]
    else:
        return None
    keys = ("device", "model", "format", "size", "peak", "first_token", "per_token", "summary_by", "status")
    return result.name, [(say(key), value) for key, value in zip(keys, values, strict=True)]


def _formats(data: dict[str, Any]) -> str:
    return f"{data['weights']} / {data['kv']} KV"


def _status_word(data: dict[str, Any], say: Speaker) -> str:
    tone = {"ok": "ok", "fallback": "ok", "partial": "warn", "failed": "fail"}[data["status"]]
    return f"{data['status']} ({say(tone)})"


# ---- a run


def _run(result: Result, key: str, say: Speaker) -> Section:
    data = result.data
    texts, source = _texts(result, key, say)
    return {
        "tone": {"ok": "ok", "fallback": "warn", "partial": "warn", "failed": "fail"}[data["status"]],
        "verdict": _verdict_line(data, say),
        "cards": _run_cards(data, say),
        "texts": texts,
        "source": source,
        "charts": _run_charts(result, say),
        "tables": [_fallback_table(data, say)] if data["fallbacks"] else [],
        "notes": list(data.get("notes", [])),
    }


def _verdict_line(data: dict[str, Any], say: Speaker) -> str:
    status, kind = data["status"], data["summary_kind"]
    return say(f"said_fallback_{kind}") if status == "fallback" else say(f"said_{status}")


def _run_cards(data: dict[str, Any], say: Speaker) -> list[dict[str, str]]:
    memory, prefill, decode, sizes = data["memory"], data["prefill"], data["decode"], data["sizes"]
    whole = f"{size(sizes.get('fp32_bytes'))} → {size(sizes.get('bundle_bytes'))}"
    private, mapped = size(memory["peak_private_bytes"]), size(memory["peak_mapped_bytes"])
    peak = f"{private} {say('private')}, {mapped} {say('mapped')}"
    both = lambda device, host: f"{device} {say('on_device')}, {host} {say('on_host')}"
    pairs = [
        ("model", f"{data['model']} ({_formats(data)})"),
        ("device", data["device"]),
        ("size", whole),
        ("ceiling", f"{size(memory['ceiling_bytes'])} ({memory['mechanism']})"),
        ("peak", peak),
        (
            "first_token",
            both(seconds(prefill["first_token_device_s"]), seconds(prefill["first_token_host_s"])),
        ),
        (
            "per_token",
            both(milliseconds(decode["device_ms_per_token"]), milliseconds(decode["host_ms_per_token"])),
        ),
    ]
    planned = data.get("plan", {}).get("time", {}).get("total_s")
    if planned:
        pairs.append(("whole_job", f"{interval(planned)} s {say('on_device')}"))
    return [{"name": say(name), "value": value} for name, value in pairs]


def _texts(result: Result, key: str, say: Speaker) -> tuple[list[dict[str, Any]], Any]:
    """Delivered text and refused drafts with their marks, and the source with the nearest places marked."""
    data = result.data
    delivered = [
        f for guard in data["guards"] if guard["guard"] in ("numbers", "names") for f in guard["findings"]
    ]
    drafts = [attempt for attempt in data.get("attempts", []) if attempt.get("refused")]
    sets: list[tuple[str, str, list[dict[str, Any]], list[dict[str, str]]]] = [
        (say("delivered"), data["summary"], delivered, [])
    ]
    sets += [(say("draft"), draft["text"], _attempt_findings(draft), _refusal(draft)) for draft in drafts]
    texts, places = [], []
    for index, (title, text, findings, refused) in enumerate(sets):
        marks, near = pair_marks(findings, f"{key}-t{index}")
        places += near
        texts.append(
            {
                "title": title,
                "lines": lines_of(text, marks),
                "refused": refused[:SHOWN_REASONS],
                "more": max(0, len(refused) - SHOWN_REASONS),
                "marked": bool(marks),
            }
        )
    return texts, lines_of(result.source, places) if result.source else None


def _attempt_findings(attempt: dict[str, Any]) -> list[dict[str, Any]]:
    return [f for guard in attempt["guards"] for f in guard["findings"] if f["span"][0] < f["span"][1]]


def _refusal(attempt: dict[str, Any]) -> list[dict[str, str]]:
    """What forbade a draft, each text and reason once; the run's own words where no finding says it."""
    failed = [f for guard in attempt["guards"] for f in guard["findings"] if f["verdict"] == "fail"]
    told = dict.fromkeys((" ".join(f["text"].split()), f["reason"]) for f in failed)
    short = [{"text": shorten(text, 60, placeholder=" …"), "reason": reason} for text, reason in told]
    return short or [{"text": "", "reason": attempt["refused"]}]


def _run_charts(result: Result, say: Speaker) -> list[dict[str, Any]]:
    data, shown = result.data, []
    if result.tokens:
        threshold = data.get("thresholds", {}).get("entropy_nats")
        spec = charts.timeline(result.tokens, threshold, say)
        shown.append(_chart(say("timeline"), spec, say("timeline_note")))
    shown.append(_chart(say("memory"), charts.memory(data, say), say("memory_note")))
    roof = charts.roofline(data.get("plan", {}), say)
    if roof:
        shown.append(_chart(say("roofline"), roof, say("roofline_note")))
    if data.get("planned"):
        shown.append(
            _chart(
                say("elsewhere"),
                charts.intervals(_rows(data["planned"], say, data), say("total_s"), log=True),
                "",
            )
        )
    return shown


def _rows(
    planned: Sequence[dict[str, Any]], say: Speaker, run: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Plans as rows of an interval chart; one that does not fit says so in its label, not by colour alone.

    The row of the formats and the device that were run, if there is one, is marked.
    """
    rows = []
    for row in planned:
        label = f"{row['device']}, {row['weights']}, {row['kv']} KV"
        if run and all(row[key] == run[key] for key in ("device", "weights", "kv")):
            label = f"▸ {label}"
        bad = not row["fits"]
        rows.append(
            {"label": f"{label} ({say('does_not_fit')})" if bad else label, "bad": bad, **row["total_s"]}
        )
    return rows


def _fallback_table(data: dict[str, Any], say: Speaker) -> dict[str, Any]:
    rows = [
        [
            say.term(f["trigger"]),
            say.term(f["action"]),
            str(f["at_token"] if f["at_token"] is not None else "–"),
        ]
        for f in data["fallbacks"]
    ]
    return _table(say("fallbacks"), [say("reason"), say("action"), say("token")], rows)


# ---- plans


def _plan(result: Result, _key: str, say: Speaker) -> Section:
    data = result.data
    memory, time = data["memory"], data["time"]
    roof = charts.roofline(data, say)
    rows = [
        {"label": f"@{row['context']}", "bad": False, **row} for row in time.get("decode_ms_by_context", [])
    ]
    fits = say("fits" if memory["fits"] else "does_not_fit")
    need = f"{size(memory['peak_bytes'])} / {size(memory['available_bytes'])} {say('available')}"
    return {
        "tone": "ok" if memory["fits"] else "fail",
        "verdict": f"{data['model']}, {_formats(data)}, {data['device']}: {fits}",
        "cards": [
            {"name": say("peak"), "value": need},
            {"name": say("prefill"), "value": interval(time["prefill_s"], " s")},
            {"name": say("per_token"), "value": interval(time["decode_ms_per_token"], " ms")},
            {"name": say("total_s"), "value": interval(time["total_s"], " s")},
        ],
        "charts": [
            *([_chart(say("per_token"), charts.intervals(rows, "ms"), "")] if rows else []),
            *([_chart(say("roofline"), roof, say("roofline_note"))] if roof else []),
        ],
        "notes": [*data.get("notes", []), *(f"{f['action']}: {f['effect']}" for f in data["fallbacks"])],
    }  # fmt: skip


def _plans(result: Result, _key: str, say: Speaker) -> Section:
    plans = result.data["plans"]
    rows = [
        {**{key: p[key] for key in ("device", "weights", "kv")}, **{key: p[part][key] for part, key in PARTS}}
        for p in plans
    ]  # fmt: skip
    return {
        "verdict": f"{plans[0]['model']}: {len(plans)}" if plans else say("none"),
        "charts": [
            _chart(say("elsewhere"), charts.intervals(_rows(rows, say), say("total_s"), log=True), "")
        ],
    }


# ---- damage and tune


def _damage(result: Result, _key: str, say: Speaker) -> Section:
    data = result.data
    tone, verdict = damage_verdict(data, say)
    return {
        "tone": tone,
        "verdict": verdict,
        "cards": [
            {"name": say(role), "value": f"{_heading(data[role])}: {data[role].get('provenance', '')}"}
            for role in ("reference", "candidate")
        ],
        "charts": [_chart(*one) for one in damage_charts(data, say)],
        "tables": damage_tables(data, say),
        "notes": damage_notes(data, say),
    }


def _heading(bundle: dict[str, Any]) -> str:
    return " ".join(str(bundle[key]) for key in ("name", "weights", "kv") if bundle.get(key))


def _tune(result: Result, _key: str, say: Speaker) -> Section:
    data = result.data
    return {
        "tone": "ok" if data["meets"] else "warn",
        "verdict": tune_verdict(data, say),
        "cards": tune_cards(data, say),
        "charts": [_chart(*one) for one in tune_charts(data, say)],
        "tables": tune_tables(data, say),
        "notes": [data["why"]],
    }


def _chart(title: str, spec: dict[str, Any], note: str) -> dict[str, Any]:
    return {"title": title, "svg": draw(spec), "note": note}


def _table(title: str, heads: list[str], rows: list[list[str]]) -> dict[str, Any]:
    return {"title": title, "heads": heads, "rows": rows}
