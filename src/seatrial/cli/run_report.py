"""The report of a run for people, on stdout: 80 columns are enough, Chinese included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from seatrial.devices.units import format_bytes, format_time
from seatrial.guards.verdict import Finding, GuardReport, Verdict
from seatrial.simulate.job import Attempt, RunResult

_STYLE = {Verdict.OK: "green", Verdict.WARN: "yellow", Verdict.FAIL: "red"}
_STATUS_STYLE = {"ok": "green", "fallback": "yellow", "partial": "red", "failed": "red"}
_KINDS = {
    "model": "written by the model",
    "long": "written by the model, second and longer attempt",
    "extractive": "sentences of the transcript",
    "partial": "what the model had written when it was stopped",
}
_SHOWN = 8


def print_report(result: RunResult, console: Console | None = None) -> None:
    """Model, limits, times, verdicts, what was refused and why, fallbacks, and the summary last."""
    console = console or Console(highlight=False)
    console.print(Rule(Text(f"{result.model} on {result.device}", style="bold"), align="left"))
    if result.stand_in:
        console.print(Text(f"STAND-IN: time and memory are those of {result.stand_in}", style="bold yellow"))
    console.print(_facts(result))
    console.print(_times(result))
    for note in (*result.notes, *result.memory.notes):
        console.print(Text(f"note: {note}", style="dim"))
    for attempt in result.attempts:
        _print_attempt(console, attempt)
    _print_guards(console, result.guards)
    for death in result.deaths:
        at = f" at token {death['at_token']}" if death["at_token"] else " at the start"
        console.print(Text(f"died: {death['way']}: {death['detail']}{at}", style="red"))
    if result.status == "partial":
        fits = format_bytes(result.would_fit_bytes)
        console.print(Text(f"would fit: a ceiling of about {fits}, by the guard's forecast", style="red"))
    for fallback in result.fallbacks:
        at = f" at token {fallback.at_token}" if fallback.at_token else ""
        console.print(Text(f"fallback: {fallback.trigger}{at} -> {fallback.action}", style="yellow"))
    _print_summary(console, result)


def _facts(result: RunResult) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for name, value in _fact_rows(result):
        table.add_row(name, value)
    return table


def _fact_rows(result: RunResult) -> Iterator[tuple[str, str]]:
    memory, sizes = result.memory, result.sizes
    yield "model", f"{result.model}, {result.weights} weights, {result.kv} KV cache"
    fp32, own = sizes.get("fp32_bytes"), sizes["bundle_bytes"]
    if fp32 is not None and fp32 != own:
        yield "size", f"{format_bytes(fp32)} fp32 -> {format_bytes(own)} {result.weights} ({fp32 / own:.1f}x)"
    else:
        yield "size", f"{format_bytes(own)} {result.weights}"
    held = f"{format_bytes(result.kv_allocated_bytes)} held" if result.kv_allocated_bytes else "none held"
    yield "KV cache", f"{held}, {format_bytes(result.kv_bytes_per_token)} read per token"
    yield "ceiling", f"{format_bytes(memory.ceiling_bytes)} by {memory.mechanism}"
    yield "peak", _peak(result)
    if result.windows > 1:
        joined = (
            "their summaries joined" if result.windows_read == result.windows else "the rest was not read"
        )
        yield "windows", f"{result.windows}, cut at speaker turns; {result.windows_read} read, {joined}"


def _peak(result: RunResult) -> str:
    memory = result.memory
    if memory.peak_private_bytes is None or memory.peak_mapped_bytes is None:
        return "not sampled"
    weights = ", weights mapped" if memory.mapped_weights else ""
    return (
        f"{format_bytes(memory.peak_private_bytes)} private, "
        f"{format_bytes(memory.peak_mapped_bytes)} file-backed{weights}"
    )


def _times(result: RunResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("")
    table.add_column("device (clock)", justify="right")
    table.add_column("this machine", justify="right")
    decode = result.to_json()["decode"]
    table.add_row(
        f"first token, {result.prefill.tokens} read",
        _seconds(result.first_token_device_s),
        _seconds(result.first_token_host_s),
    )
    table.add_row(
        f"each of {result.decode.tokens} written",
        _milliseconds(decode["device_ms_per_token"]),
        _milliseconds(decode["host_ms_per_token"]),
    )
    if result.memory.mapped_weights and decode["host_ms_first"] is not None:
        steady = f"{decode['host_ms_first']:.0f} ms, then {decode['host_ms_steady']:.0f} ms"
        table.add_row("first step, then steady", "", steady)
    if decode["host_limited"]:
        table.add_row("slower than the device", "", f"{decode['host_limited']:.0%} of tokens")
    return table


def _seconds(value: float | None) -> str:
    return "-" if value is None else format_time(value)


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} ms ({1e3 / value:.0f}/s)"


def _print_attempt(console: Console, attempt: Attempt) -> None:
    console.print()
    console.print(Rule(Text(f"refused: {_KINDS[attempt.kind]}", style="red"), align="left", style="red"))
    console.print(Padding(_marked(attempt.text, attempt.guards), (0, 0, 0, 2)))
    _print_findings(console, attempt.guards, (Verdict.FAIL,))


def _marked(text: str, reports: Sequence[GuardReport]) -> Text:
    """The text with its findings coloured; later and worse ones win."""
    marked = Text(text or "(nothing)")
    for verdict in (Verdict.WARN, Verdict.FAIL):
        for report in reports:
            for finding in report.findings:
                if finding.verdict is verdict and finding.guard != "breakdown":
                    marked.stylize(f"bold {_STYLE[verdict]}", *finding.span)
    return marked


def _print_guards(console: Console, reports: Sequence[GuardReport]) -> None:
    console.print()
    console.print(Rule(Text("guards", style="bold"), align="left"))
    for report in reports:
        line = Text(f"{report.guard:<10} ")
        line.append(f"{report.verdict!s:<5}", style=_STYLE[report.verdict])
        line.append(_counts(report))
        console.print(line)
    _print_findings(console, reports, (Verdict.FAIL, Verdict.WARN))


def _counts(report: GuardReport) -> str:
    counts = [
        (v, sum(f.verdict is v for f in report.findings)) for v in (Verdict.OK, Verdict.WARN, Verdict.FAIL)
    ]
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts if count)
    unsure = sum(finding.start_nats is not None for finding in report.findings)
    return (f" {told}" if told else "") + (f"; {unsure} begun uncertainly" if unsure else "")


def _print_findings(console: Console, reports: Sequence[GuardReport], which: Sequence[Verdict]) -> None:
    found = [f for report in reports for f in report.findings if f.verdict in which]
    times = Counter((f.text, f.reason) for f in found)
    once = list({(f.text, f.reason): f for f in found}.values())
    for finding in once[:_SHOWN]:
        console.print(Padding(_told(finding, times[finding.text, finding.reason]), (0, 0, 0, 2)))
    if len(once) > _SHOWN:
        console.print(f"  and {len(once) - _SHOWN} more in the JSON document")


def _told(finding: Finding, times: int) -> Text:
    line = Text()
    line.append(f"{finding.verdict!s:<5}", style=_STYLE[finding.verdict])
    if finding.text:
        shown = finding.text if len(finding.text) <= 60 else finding.text[:57] + "..."
        line.append(f"{' '.join(shown.split())!r} ", style="bold")
    detail = finding.detail.removeprefix(f"{finding.reason}: ")
    line.append(finding.reason)
    if finding.nearest is not None and finding.nearest.text not in detail:
        line.append(f" (nearest: {finding.nearest.text!r})")
    if detail and detail != finding.reason:
        line.append(f": {detail}", style="dim")
    if times > 1:
        line.append(f" ({times} times)")
    return line


def _print_summary(console: Console, result: RunResult) -> None:
    console.print()
    style = _STATUS_STYLE[result.status]
    title = Text(f"summary: {_KINDS[result.summary_kind]}")
    console.print(Rule(title, align="left", style=style))
    console.print(Text(result.summary or "(none)"))
    console.print(Rule(style=style))
    closing = Text("status ")
    closing.append(result.status, style=f"bold {style}")
    closing.append(f"; summary, result and trace in {result.trace.parent}")
    console.print(closing)
