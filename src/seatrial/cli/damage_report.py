"""What `seatrial damage` prints for people: a heading, a table by class, and what could not be seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from seatrial.quantize.damage.verdicts import Verdict
from seatrial.quantize.probes.errors import ERRORS

if TYPE_CHECKING:
    from seatrial.quantize.damage.figures import ClassFigures
    from seatrial.quantize.damage.item_figures import ItemFigures
    from seatrial.quantize.damage.report import DamageReport
    from seatrial.quantize.stats import Interval

_LEFT = ("verdict", "error")
# Names of the experiment's variants, as short as a column of figures.
_SHORT_PARTS = {
    "weights, exact arithmetic": "weights",
    "head and embedding": "head",
    "KV cache": "KV",
    "all together": "all",
}
_COLOURS = {"none": "green", "does not concentrate": "green", "concentrates": "red", "cannot tell": "yellow"}


def print_report(report: DamageReport) -> None:
    """The whole report on stdout."""
    # Folders may be called anything: neither [int4] nor :100: in a name is markup.
    console = Console(highlight=False, emoji=False)
    _heading(console, report)
    console.print(_class_table("all languages", report.classes))
    console.print(_concentration_table(report.classes))
    for language, classes in report.languages.items():
        if len(report.languages) > 1:
            console.print(_class_table(language, classes))
    console.print(_item_table(report.items))
    _guard(console, report.guard)
    if report.probes is not None:
        _probes(console, report.probes)
    if report.factorial is not None:
        console.print(_factorial_table(report.factorial))
    _limits_of_sight(console, report)
    for warning in report.warnings:
        console.print(f"warning: {warning}", markup=False)


def _heading(console: Console, report: DamageReport) -> None:
    for role, heading in (("reference", report.reference), ("candidate", report.candidate)):
        console.print(f"{role}: {heading.name} (weights {heading.weights}, KV {heading.kv})", markup=False)
        console.print(f"  {heading.provenance}", markup=False)
    counts = ", ".join(f"{count} {language}" for language, count in report.documents.items())
    console.print(f"documents: {counts}; {report.tokens:,} tokens; intervals 95 %, documents resampled")
    for whose, noise in report.noise.items():
        told = "; ".join(f"{n.kind} KL {n.kl:.2g}, flips {n.flips:.2%}" for n in noise)
        if told:
            console.print(f"noise of the {whose}: {told}")


def _table(title: str, *columns: str) -> Table:
    """A table without frames, so that it fits 80 columns; the first column is never broken."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for place, name in enumerate(columns):
        left = place == 0 or name in _LEFT
        table.add_column(name, justify="left" if left else "right", no_wrap=place == 0, overflow="fold")
    return table


def _keep_words(table: Table) -> Table:
    """Make every column as wide as its longest word, so that lines break between words only."""
    for column in table.columns:
        cells = [Text.from_markup(str(cell)).plain for cell in (column.header, *column.cells)]
        column.min_width = max((cell_len(word) for cell in cells for word in cell.split()), default=1)
    return table


def _class_table(title: str, classes: Mapping[str, ClassFigures]) -> Table:
    table = _table(f"damage by class, {title}", "class", "n", "KL, nats", "harm, %", "repair, %", "verdict")
    for name, found in classes.items():
        table.add_row(
            name,
            f"{found.tokens:,}",
            _interval(found.kl),
            _interval(found.kinds["harm"], 100),
            _interval(found.kinds["repair"], 100),
            f"[{_COLOURS[str(found.verdict)]}]{found.verdict}[/]" if found.compared else "",
        )
    return _keep_words(table)


def _concentration_table(classes: Mapping[str, ClassFigures]) -> Table:
    title = "against other tokens of the same entropy"
    table = _table(title, "class", "NLL +", "times other", "p", "would have shown")
    for name, found in classes.items():
        if found.compared is None or not found.tokens:
            continue
        seen = found.compared.detectable
        table.add_row(
            name,
            _interval(found.nll_delta),
            _interval(found.compared.ratio),
            _p(found.p_adjusted),
            f"+{seen:.0%}" if math.isfinite(seen) else "-",
        )
    return _keep_words(table)


def _p(value: float) -> str:
    if not math.isfinite(value):
        return "-"
    return "<.001" if value < 0.001 else f"{value:.3f}"


def _interval(found: Interval, scale: float = 1) -> str:
    """The value and its interval, with one blank between them so that a narrow window breaks there."""
    if not math.isfinite(found.value):
        return "-"
    value = _short(found.value * scale)
    if not math.isfinite(found.low):
        return value
    return f"{value} \\[{_short(found.low * scale)},{_short(found.high * scale)}]"


def _two_digits(value: float | None) -> str:
    """Two digits that count, so that small figures can be compared: 0.00041."""
    if value is None or not math.isfinite(value):
        return "-"
    return f"{value:#.2g}" if 0 < abs(value) < 1 else _short(value)


def _short(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.2f}" if abs(value) < 100 else f"{value:.0f}"


def _item_table(items: Mapping[str, ItemFigures]) -> Table:
    columns = ("class", "n", "right", "harmed", "harm, %", "repaired", "p", "NLL + a digit")
    table = _table("whole figures and names (harm: any wrong token; p: McNemar)", *columns)
    for name, found in items.items():
        table.add_row(
            name,
            str(found.items),
            str(found.right),
            str(found.harmed),
            _interval(found.harm, 100),
            str(found.repaired),
            _p(found.mcnemar_p),
            _interval(found.nll_delta_per_size),
        )
    return _keep_words(table)


def _guard(console: Console, guard: Mapping[str, Any]) -> None:
    if not guard["damaged"]:
        console.print("number guard: no whole figure was damaged")
        return
    console.print(
        f"number guard: of {guard['damaged']} damaged figures {guard['caught']} would be caught, "
        f"{guard['escaped']} escape (right value, wrong role), {guard['no_figure']} are no figure any more"
    )


def _probes(console: Console, probes: Mapping[str, Any]) -> None:
    # Broken here and not by rich, which shrinks the widest column even below its words.
    columns = ("probes", "n", "ref\n%", "cand\n%", "change,\npoints", "harms", "repairs", "p", "verdict")
    title = f"copy probes ({probes['plan']}, {probes['pages']} pages): right copies, intervals by page"
    table = _table(title, *columns)
    rows = [("all", probes["all"])]
    for cut in ("language", "context", "depth", "distractors", "kind"):
        rows += [(f"{cut} {value}", cell) for value, cell in probes[cut].items()]
    for name, cell in rows:
        table.add_row(
            name,
            str(cell["n"]),
            f"{100 * cell['reference']['normalized']['value']:.0f}",
            f"{100 * cell['candidate']['normalized']['value']:.0f}",
            _points(cell["difference"]),
            str(cell["harms"]),
            str(cell["repairs"]),
            _p(cell.get("p_adjusted", cell["mcnemar_p"])),
            cell["verdict"].replace(" ", "\n"),
        )
    console.print(_keep_words(table))
    console.print(_error_table(probes))
    guard = probes["guard"]
    console.print(
        f"number guard on the candidate's {guard['wrong_figures']} wrong copies of figures: "
        f"{guard['caught']} caught, {guard['escaped']} escaped, {guard['no_figure']} no figure"
    )


def _points(difference: Mapping[str, float | None]) -> str:
    """Candidate minus reference in points, its interval in a line below."""
    ends = (difference[end] for end in ("value", "low", "high"))
    value, low, high = (math.nan if end is None else 100 * end for end in ends)
    if not math.isfinite(value):
        return "-"
    told = f"{value:+.1f}"
    return f"{told}\n\\[{low:+.1f},{high:+.1f}]" if math.isfinite(low) and math.isfinite(high) else told


def _error_table(probes: Mapping[str, Any]) -> Table:
    """How wrong copies are wrong: the reference's count and the candidate's, by language and in all."""
    languages = list(probes["language"]) if len(probes["language"]) > 1 else []
    cells = [*(probes["language"][name] for name in languages), probes["all"]]
    table = _table("wrong copies, reference > candidate", "error", *languages, "all")
    for error in ERRORS:
        counts = [[cell[of]["errors"].get(error, 0) for of in ("reference", "candidate")] for cell in cells]
        if any(counts[-1]):
            table.add_row(error, *(f"{before} > {after}" for before, after in counts))
    return table


def _factorial_table(rows: Any) -> Table:
    """Values only: five parts with intervals are wider than a terminal."""
    heads = [_short_part(row["variant"]) for row in rows]
    table = _table("one part at a time: KL, nats (intervals: --json, --html)", "class", *heads)
    for name in rows[0]["classes"]:
        table.add_row(name, *(_two_digits(row["classes"][name]["kl"]["value"]) for row in rows))
    return _keep_words(table)


def _short_part(variant: str) -> str:
    """ "weights, accuracy level 4" -> "level 4"; what is not known stays as it is."""
    return _SHORT_PARTS.get(variant, variant.removeprefix("weights, accuracy "))


def _limits_of_sight(console: Console, report: DamageReport) -> None:
    seen = ", ".join(
        f"{name} {excess:.0%}"
        for name, excess in report.minimum_detectable()["classes"].items()
        if excess is not None and math.isfinite(excess)
    )
    if seen:
        console.print(
            f"smallest excess over other tokens that this run would have shown (power 80 %): {seen}"
        )
    elif _too_few(report.classes.values()):
        console.print("too few documents or tokens for any verdict: give more texts with --text")
    elif all(found.verdict is Verdict.NONE for found in report.classes.values() if found.tokens):
        console.print("no class differs by more than two runs of one bundle do")
    if report.probes is None:
        console.print("copying was not tested: add --quick or --full")
    else:
        _limits_of_probes(console, report.probes)


def _too_few(classes: Iterable[ClassFigures]) -> bool:
    """Whether no class could be judged for its size; two identical bundles are judged at any."""
    return all(found.verdict is Verdict.CANNOT_TELL and not found.enough for found in classes)


def _limits_of_probes(console: Console, probes: Mapping[str, Any]) -> None:
    """The smallest change of the copy rate that would have shown, over all probes and of one kind."""
    everything = probes["all"]["minimum_detectable"]
    told = "none at this size" if everything is None else f"{100 * everything:.0f} points"
    console.print(
        f"smallest change of the copy rate that would have shown (power 80 %): {told} over all probes"
    )
    by_kind = {kind: cell["minimum_detectable"] for kind, cell in probes["kind"].items()}
    seen = ", ".join(f"{kind} {100 * least:.0f}" for kind, least in by_kind.items() if least is not None)
    blind = ", ".join(kind for kind, least in by_kind.items() if least is None)
    if seen:
        console.print(f"of one kind, points: {seen}")
    if blind:
        console.print(f"of these kinds no change would have shown: {blind}")
    if probes["contexts_left_out"]:
        left_out = ", ".join(map(str, probes["contexts_left_out"]))
        console.print(f"contexts longer than the model allows were left out: {left_out} tokens")
