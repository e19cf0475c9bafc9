"""Makes docs/tuning.md and its figures: runs the commands of the tutorial and writes down what came out.

    python docs/make_tuning.py [--work FOLDER] [--workers N]

The traces stay in the work folder, so that a second run only draws. Needs the `docs` group (matplotlib).
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams.update({"svg.hashsalt": "seatrial", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3})

import matplotlib.pyplot as plt  # noqa: E402 - the backend must be chosen first

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from tuning_meetings import write_meetings  # noqa: E402

PLANTS = ("flat-logits", "hot-sampler", "loop", "not-finite")
SHOWN = ("10 in a row above", "smoothed entropy", "repetition", "monotony", "foreign to the source")


def run(*arguments: str) -> dict[str, Any]:
    """The document of one command line; exit code 1 (no threshold) is a result as well."""
    command = [sys.executable, "-m", "seatrial", *arguments, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(arguments)}: exit {done.returncode}")
    return json.loads(done.stdout)


def draw_rules(result: dict[str, Any], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(4.6, 3.4))
    for row in result["rules"]:
        if row["rule"] in SHOWN:
            points = row["roc"]
            label = f"{row['rule']} ({row['auroc']['value']:.2f})"
            axes.plot(
                [p["false_stops"] for p in points],
                [p["caught"] for p in points],
                label=label,
                drawstyle="steps-post",
            )
    axes.plot([0, 1], [0, 1], color="grey", linestyle=":", label="chance")
    axes.set(xlabel="good summaries stopped", ylabel="broken summaries caught")
    axes.legend(fontsize=7, loc="lower right")
    save(figure, path)


def draw_sweep(result: dict[str, Any], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(4.6, 3.4))
    for length, style in ((5, "-"), (10, "--"), (20, ":")):
        rows = [row for row in result["sweep"] if row["run_length"] == length]
        nats = [row["entropy_nats"] for row in rows]
        axes.plot(nats, [row["caught"] for row in rows], "C0" + style, label=f"caught, {length} in a row")
        axes.plot(
            nats, [row["false_stops"] for row in rows], "C3" + style, label=f"false stops, {length} in a row"
        )
    axes.set(xlabel="entropy threshold (nats)", ylabel="share of summaries")
    axes.legend(fontsize=7)
    save(figure, path)


def draw_costs(result: dict[str, Any], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(4.6, 3.4))
    for row in [*result["rules"], *result["baselines"]]:
        if row["rule"] in (*SHOWN, "never", "always"):
            style = ":" if row["rule"] in ("never", "always") else "-"
            axes.plot(
                [c["missed_cost"] for c in row["costs"]],
                [c["cost"] for c in row["costs"]],
                style,
                label=row["rule"],
            )
    axes.set(xscale="log", xlabel="price of a missed error (needless fallbacks)", ylabel="cost of a summary")
    axes.legend(fontsize=7)
    save(figure, path)


def save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def percent(interval: dict[str, float | None]) -> str:
    value, low, high = (interval[name] for name in ("value", "low", "high"))
    told = "-" if value is None else f"{value:.0%}"
    return told if low is None or high is None else f"{told} ({low:.0%} to {high:.0%})"


def page(result: dict[str, Any], thresholds: str) -> str:
    best = result["held_out"]
    rows = [
        f"| {row['rule']} | {row['auroc']['value']:.2f} | {row['caught']:.0%} | {row['false_stops']:.0%} |"
        for row in [*result["rules"], *result["baselines"]]
    ]
    policies = [
        f"| {row['policy']} | {row['seconds']:.2f} | {row['wrong_shown']:.2f} | {row['extractive']:.0%} |"
        for row in result["policies"]["rows"]
    ]
    fires = result["fires"]
    values = {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "broken": result["runs"]["broken"],
        "good": result["runs"]["good"],
        "documents": result["runs"]["documents"],
        "rules": "\n".join(rows),
        "policies": "\n".join(policies) or "| no checked texts | - | - | - |",
        "why": result["why"],
        "meets": "It recommends this point" if result["meets"] else "It recommends nothing",
        "caught": percent(best["caught"]) if best else "-",
        "false": percent(best["false_stops"]) if best else "-",
        "thresholds": thresholds.rstrip() or "(no file was written)",
        "spent": f"{fires['share_of_budget']['p50']:.0%}" if fires["runs"] else "-",
        "delay": f"{fires['tokens_after_the_fault']['p50']:.0f}" if fires["runs"] else "-",
        "device": result["policies"]["device"],
        "plants": " ".join(f"--plant {kind}" for kind in PLANTS),
    }
    text = (HERE / "tuning.template.md").read_text(encoding="utf-8")
    for name, value in values.items():
        text = text.replace("{{" + name + "}}", str(value))
    return text


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", type=Path, default=Path("tuning-work"))
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    work: Path = options.work
    write_meetings(work)
    planted = [word for kind in PLANTS for word in ("--plant", kind)]
    folders = [
        str(work / "transcripts"),
        "--references",
        str(work / "summaries"),
        "--out",
        str(work / "traces"),
    ]
    run("trace", *folders, *planted, "--max-tokens", "120", "--workers", str(options.workers))
    out = work / "thresholds.toml"
    out.unlink(missing_ok=True)
    result = run("tune", str(work / "traces"), "--out", str(out), "--draws", "1000")
    (HERE / "figures").mkdir(exist_ok=True)
    draw_rules(result, HERE / "figures" / "tuning-rules.svg")
    draw_sweep(result, HERE / "figures" / "tuning-sweep.svg")
    draw_costs(result, HERE / "figures" / "tuning-costs.svg")
    thresholds = out.read_text(encoding="utf-8") if out.is_file() else ""
    (HERE / "tuning.md").write_text(page(result, thresholds), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
