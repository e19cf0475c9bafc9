"""How `seatrial tune` tells its result: one document for programs, tables for people."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.guards.costs import PolicyResult
    from seatrial.guards.curves import Interval
    from seatrial.guards.operating import Fired, Judged
    from seatrial.guards.tune import RuleRow, TuneResult

# Without frames the widest table fits 80 columns.
_PLAIN: dict[str, Any] = {"title_justify": "left", "box": None, "pad_edge": False, "padding": (0, 1, 0, 0)}


def document(
    result: TuneResult, policies: Sequence[PolicyResult], device: str, written: Path | None
) -> dict[str, Any]:
    """The document of `tune --json`: rates and shares of one, entropies in nats, seconds of the device."""
    best = result.recommended
    return {
        "meets": best.meets,
        "why": best.why,
        "thresholds_file": None if written is None else str(written),
        "thresholds": None if best.thresholds is None else vars(best.thresholds),
        "fitted": _judged(best.fitted),
        "held_out": _judged(best.held_out),
        "expected_cost": best.cost,
        "runs": {"broken": result.bad_runs, "good": result.good_runs, "documents": result.documents},
        "wish": vars(result.wish),
        "rules": [_rule(row) for row in result.rules],
        "baselines": [_rule(row) for row in result.baselines],
        "run_rule_alone": _judged(result.plain),
        "sweep": [
            {"run_length": k, "entropy_nats": nats, "caught": caught, "false_stops": false}
            for k, nats, caught, false in result.sweep
        ],
        "groups": [vars(group) for group in result.groups],
        "fires": _fires(result.fired),
        "policies": {"device": device, "rows": [vars(policy) for policy in policies]},
    }


def _judged(judged: Judged | None) -> dict[str, Any] | None:
    if judged is None:
        return None
    return {
        "caught": judged.caught.to_json(),
        "false_stops": judged.false_stops.to_json(),
        "gain": judged.gain.to_json(),
        "broken": judged.bad_runs,
        "good": judged.good_runs,
        "documents": judged.documents,
    }


def _rule(row: RuleRow) -> dict[str, Any]:
    return {
        "rule": row.rule,
        "auroc": row.auroc.to_json(),
        "average_precision": row.average_precision.to_json(),
        "auroc_by_language": row.auroc_by_language,
        "threshold": row.threshold,
        "caught": row.caught,
        "false_stops": row.false_stops,
        "costs": [vars(point) for point in row.costs],
        "risk_coverage": [{"shown": shown, "broken_of_shown": risk} for shown, risk in row.risk_coverage],
        "roc": [dict(zip(("false_stops", "caught", "precision"), point, strict=True)) for point in row.roc],
    }


def _fires(fired: Sequence[Fired]) -> dict[str, Any]:
    """Where the recommended setting stops broken runs: quantiles of tokens and of the budget spent."""
    import numpy as np

    if not fired:
        return {"runs": 0}
    delays = [f.delay for f in fired if f.delay is not None]
    spread = lambda values: dict(
        zip(("p10", "p50", "p90"), np.quantile(values, (0.1, 0.5, 0.9)).tolist(), strict=True)
    )
    return {
        "runs": len(fired),
        "at_token": spread([f.at_token for f in fired]),
        "share_of_budget": spread([f.share_of_budget for f in fired]),
        "tokens_after_the_fault": spread(delays) if delays else None,
    }


def print_report(result: TuneResult, policies: Sequence[PolicyResult], device: str, out: Path) -> None:
    """Verdict, rules, groups and policies as tables on stdout."""
    from seatrial.cli.tables import wide_console

    console = wide_console()
    best = result.recommended
    console.print(
        f"{result.bad_runs} broken and {result.good_runs} good runs of {result.documents} documents\n"
    )
    console.print(_rule_table([*result.rules, *result.baselines], result.wish.max_false_stops))
    if result.groups:
        console.print(_group_table(result))
    if policies:
        console.print(_policy_table(policies, device))
    alone = result.plain
    console.print(
        f"\nThe run rule alone catches {_told(alone.caught)} at {_told(alone.false_stops)} false stops."
    )
    if best.meets:
        console.print(f"Recommended, written to {out}: {best.why}.")
    else:
        console.print(f"Nothing is written: {best.why}.")


def _told(interval: Interval) -> str:
    if not math.isfinite(interval.value):
        return "-"
    if not math.isfinite(interval.low):
        return f"{interval.value:.1%}"
    return f"{interval.value:.1%} ({interval.low:.1%} to {interval.high:.1%})"


def _rule_table(rows: Sequence[RuleRow], rate: float) -> Any:
    from rich.table import Table

    table = Table(title=f"Rules, thresholds at {rate:.0%} false stops", **_PLAIN)
    for name in ("rule", "AUROC", "95 %", "above", "caught", "false stops"):
        table.add_column(name, justify="left" if name == "rule" else "right")
    for row in rows:
        area = row.auroc
        table.add_row(
            row.rule,
            f"{area.value:.3f}",
            f"{area.low:.3f}-{area.high:.3f}" if math.isfinite(area.low) else "-",
            f"{row.threshold:.3f}" if math.isfinite(row.threshold) else "-",
            f"{row.caught:.1%}",
            f"{row.false_stops:.1%}",
        )
    return table


def _group_table(result: TuneResult) -> Any:
    from rich.table import Table

    table = Table(title="The recommended setting by group", **_PLAIN)
    for name in ("group", "runs", "label", "stopped"):
        table.add_column(name, justify="left" if name in ("group", "label") else "right")
    for group in result.groups:
        label = "broken" if group.is_bad else "good"
        table.add_row(group.group, str(group.runs), label, f"{group.stopped:.1%}")
    return table


def _policy_table(policies: Sequence[PolicyResult], device: str) -> Any:
    from rich.table import Table

    table = Table(title=f"Per summary, by policy, on {device}", **_PLAIN)
    for name in ("policy", "seconds", "wrong figures shown", "extractive"):
        table.add_column(name, justify="left" if name == "policy" else "right")
    for row in policies:
        table.add_row(row.policy, f"{row.seconds:.2f}", f"{row.wrong_shown:.2f}", f"{row.extractive:.0%}")
    return table
