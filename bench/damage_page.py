"""The tables of docs/damage.md as Markdown, from reports of several formats; written by bench/damage.py."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import onnxruntime

from seatrial.quantize.damage.report import DamageReport
from seatrial.quantize.stats import Interval

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "damage.md"
BEGIN, END = "<!-- table: bench/damage.py -->", "<!-- end of table -->"
SHOWN = ("digit", "number_word", "date_time", "amount", "unit", "person", "organisation_place", "other")


def write_docs(
    reports: Sequence[tuple[str, DamageReport]], parts: Sequence[dict], of: int, seconds: float
) -> None:
    """Put the tables between the marks of the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    table = "\n".join(tables(reports, parts, of, seconds))
    part = PAGE.with_suffix(".part")
    part.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{after}", encoding="utf-8")
    part.replace(PAGE)
    print(f"wrote {PAGE.relative_to(ROOT)}")


def tables(
    reports: Sequence[tuple[str, DamageReport]], parts: Sequence[dict], of: int, seconds: float
) -> list[str]:
    """Markdown: by class, language and format; whole items; one part at a time on `of` documents."""
    first = reports[0][1]
    lines = [
        f"Measured {date.today().isoformat()} on {machine()}, {first.tokens:,} tokens of "
        + " and ".join(f"{n} documents ({language})" for language, n in first.documents.items())
        + f". Reference: {first.reference.provenance}. Reading took {seconds / 60:.0f} minutes.",
        "",
    ]
    for language in ("en", "zh"):
        lines += [f"### {language}: KL in nats, harm in %, and times the damage of other tokens", ""]
        lines += ["| class | tokens | " + " | ".join(name for name, _ in reports) + " |"]
        lines += ["|---|---|" + "---|" * len(reports)]
        for name in SHOWN:
            cells = [_cell(report.languages[language][name]) for _, report in reports]
            tokens = first.languages[language][name].tokens
            lines.append(f"| {name} | {tokens:,} | " + " | ".join(cells) + " |")
        lines.append("")
    return [*lines, *_verdicts(reports), *_items(reports), *_parts(parts, of)]


def _cell(found) -> str:
    """KL with its interval, harm, and the ratio to other tokens of the same entropy."""
    text = f"{_with_ends(found.kl)}; {100 * found.kinds['harm'].value:.1f} %"
    return text if found.compared is None else f"{text}; x{_with_ends(found.compared.ratio, 2)}"


def _with_ends(found: Interval, digits: int = 3) -> str:
    return f"{found.value:.{digits}f} [{found.low:.{digits}f}, {found.high:.{digits}f}]"


def _verdicts(reports: Sequence[tuple[str, DamageReport]]) -> list[str]:
    lines = [
        "### Verdicts, both languages together",
        "",
        "| class | " + " | ".join(n for n, _ in reports) + " |",
    ]
    lines.append("|---|" + "---|" * len(reports))
    for name in SHOWN[:-1]:
        cells = []
        for _, report in reports:
            found = report.classes[name]
            tested = f" (p {found.p_adjusted:.3f}; seen from +{found.compared.detectable:.0%})"
            cells.append(f"{found.verdict}{tested if found.enough else ''}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    floors = ", ".join(f"{name} {report.floor:.1e}" for name, report in reports)
    return [*lines, "", f"Noise floors, KL in nats: {floors}.", ""]


def _items(reports: Sequence[tuple[str, DamageReport]]) -> list[str]:
    lines = ["### Whole figures and names: harmed of those right before", ""]
    lines += ["| class | " + " | ".join(n for n, _ in reports) + " |", "|---|" + "---|" * len(reports)]
    for name in ("digit", "number_word", "date_time", "amount", "person", "organisation_place"):
        cells = []
        for _, report in reports:
            item = report.items[name]
            rate = f"{100 * item.harm.value:.1f} % [{100 * item.harm.low:.1f}, {100 * item.harm.high:.1f}]"
            cells.append(f"{item.harmed} of {item.right}: {rate}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    told = []
    for name, report in reports:
        guard = report.guard
        told.append(
            f"{name}: {guard['caught']} of {guard['damaged']} caught, {guard['escaped']} escape, "
            f"{guard['no_figure']} no figure any more"
        )
    return [*lines, "", "Damaged figures and the number guard: " + "; ".join(told) + ".", ""]


def _parts(parts: Sequence[dict], of: int) -> list[str]:
    if not parts:
        return []
    title = "### One part at a time (int4 weights, int8 head, int8 KV): KL in nats, en / zh"
    lines = [title, "", f"From the float reference, on the first {of} of the documents above.", ""]
    lines += ["| part | " + " | ".join(SHOWN) + " |", "|---|" + "---|" * len(SHOWN)]
    for row in parts:
        cells = [
            " / ".join(f"{row['languages'][language][name]['kl']['value']:.4f}" for language in ("en", "zh"))
            for name in SHOWN
        ]
        lines.append(f"| {row['variant']} | " + " | ".join(cells) + " |")
    return lines


def machine() -> str:
    """Processor, threads and versions, without the machine's name."""
    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        models = [
            line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if "model name" in line
        ]
        processor = models[0] if models else processor
    return f"{processor}, {len(os.sched_getaffinity(0))} CPUs, onnxruntime {onnxruntime.__version__}"
