"""`seatrial devices measure` and `seatrial devices fit`: figures of this machine, a runtime from somebody's
log."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from seatrial.devices.measure import MachineFigures
    from seatrial.simulate.calibrate import Calibration
    from seatrial.simulate.logs import LogFit

# Formats that are stepped when no bundle is named: the embedded model's, made into the cache when they are
# missing.
FORMATS = tuple((weights, kv) for weights in ("int4", "int8", "fp32") for kv in ("fp32", "int8"))

# A bundle takes up to ten seconds: begun before this, the whole stays below a minute.
TIME_FOR_MORE_S = 45.0


def measure(
    out: Annotated[Path, typer.Option("--out", help="The device file to write.")],
    bundle: Annotated[
        list[Path] | None,
        typer.Option(
            "--bundle", help="A bundle to step, once per pair of formats; the embedded model's by default."
        ),
    ] = None,
    no_bundle: bool = typer.Option(False, "--no-bundle", help="Probe the bare machine only."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing on the way."),
) -> int:
    """Measure this machine and write a device file that the other commands take.

    Example: seatrial devices measure --out here.toml
    """
    from seatrial.cli.output import print_json
    from seatrial.devices.measure import measure_machine

    say, began_s = _silent if quiet else _tell, time.monotonic()
    figures = measure_machine(out.resolve().parent, progress=say)
    found = [] if no_bundle else _calibrations(bundle or [], figures.bandwidth_Bps, began_s, say)
    table = device_table(figures, found)
    _write(out, table)
    if as_json:
        print_json(_document(figures, found, out))
    else:
        _print(figures, found, out)
    return 0


def fit(
    log: Annotated[Path, typer.Argument(help="llama-bench's CSV or JSON, or a trace of ours.")],
    device: str = typer.Option(
        ..., "--device", help="The device that the log comes from: a name or a TOML file."
    ),
    runtime: str | None = typer.Option(
        None, "--runtime", help="Where the fit starts; the device's by default."
    ),
    model: str | None = typer.Option(None, "--model", help="The bundle that a trace is of."),
    out: Annotated[Path | None, typer.Option("--out", help="The runtime file to write.")] = None,
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    quiet: bool = typer.Option(False, "--quiet", help="No table."),
) -> int:
    """Fit a runtime on a log, beside what was predicted.

    Example: seatrial devices fit bench.json --device apple-m4-pro --out mine.toml
    """
    from seatrial.cli.output import print_json
    from seatrial.devices.device import load_device
    from seatrial.devices.runtime import load_runtime
    from seatrial.export.architecture import read_architecture
    from seatrial.simulate.logs import fit_log, read_log

    machine = load_device(device)
    engine = load_runtime(runtime or machine.runtime)
    architecture = read_architecture(Path(model)) if model else None
    rows = read_log(log, machine, engine, architecture)
    made = fit_log(rows, machine, engine, date=_today(), source=f"log {log.name} of {machine.name}")
    if out is not None:
        _write(out, made.table)
    if as_json:
        print_json(_fit_document(made, out))
    else:
        _print_fit(made, out, quiet)
    return 0


def device_table(figures: MachineFigures, found: Sequence[Calibration]) -> dict[str, Any]:
    """The content of a device file from measured figures."""
    import psutil

    from seatrial.devices.measure import peak_cpu_ops

    peak, derived = peak_cpu_ops(figures.cores)
    threads = max(figures.bandwidth_by_threads, key=lambda n: figures.bandwidth_by_threads[n])
    used = max(1 << 20, min(psutil.virtual_memory().used, figures.memory.bytes // 2))
    table: dict[str, Any] = {
        "name": f"this machine ({figures.chip})",
        "vendor": "measured",
        "chip": figures.chip,
        "class": "desktop",
        "confidence": "measured",
        "runtime": "measured" if found else "llama-cpp-cpu",
        "memory": {"total": f"{figures.memory.bytes}B", "source": figures.memory.source},
        "system": {"reserved": f"{used}B", "source": "in use when it was measured"},
        "bandwidth": {
            "measured": {
                "value": f"{figures.bandwidth_Bps:.0f}B/s",
                "kind": "read",
                "source": f"read with {threads} threads, best of several rounds",
            }
        },
        "compute": {
            "cpu": {"nominal": f"{peak / 1e9:.1f}GFLOPS", "precision": "fp32", "source": derived},
        },
    }
    if figures.storage_Bps is not None:
        table["storage"] = {"read": f"{figures.storage_Bps:.0f}B/s", "source": figures.storage_note}
    if found:
        table["measured_runtime"] = _runtime_table(table, found, peak)
    return table


def _runtime_table(table: Mapping[str, Any], found: Sequence[Calibration], ops: float) -> dict[str, Any]:
    from seatrial.devices.device import device_from_table
    from seatrial.simulate.calibrate import measured_runtime

    return measured_runtime(device_from_table("measured", table), found, date=_today(), ops=ops)


def _calibrations(
    bundles: Sequence[Path], quiet_Bps: float, began_s: float, say: Callable[[str], None]
) -> list[Calibration]:
    """Every bundle stepped; those beside which the machine was busy once more while there is time."""
    from seatrial.simulate.calibrate import calibrate, quickest

    folders = list(bundles) or _embedded_bundles(say)
    found: list[Calibration] = []
    again: list[int] = []
    for place, folder in enumerate(folders):
        say(f"stepping {folder.name}")
        found.append(calibrate(folder))
        if _was_busy(found[-1], quiet_Bps):
            again.append(place)
    for place in again:
        if time.monotonic() - began_s > TIME_FOR_MORE_S:
            break
        say(f"stepping {folders[place].name} again: other programs were busy")
        found[place] = quickest(found[place], calibrate(folders[place]))
    return found


def _was_busy(one: Calibration, quiet_Bps: float) -> bool:
    """Whether steps were uneven, or memory is now read much more slowly than at the beginning."""
    from seatrial.devices.measure import read_bandwidth, usable_cores
    from seatrial.simulate.calibrate import NOISY, SLOWED

    return one.noise > NOISY or read_bandwidth(usable_cores(), rounds=2) < SLOWED * quiet_Bps


def _embedded_bundles(say: Callable[[str], None]) -> list[Path]:
    from seatrial.simulate.prepare import ensure_bundle

    folders = []
    for weights, kv in FORMATS:
        say(f"bundle with {weights} weights and {kv} KV")
        folders.append(ensure_bundle(None, weights, kv).folder)
    return folders


def _write(path: Path, table: Mapping[str, Any]) -> None:
    """Writes under a temporary name and renames, so that a half-written file is never taken for a device."""
    from seatrial.devices.toml import toml_text
    from seatrial.errors import UserError

    temporary = path.with_name(f".{path.name}.partial")
    try:
        temporary.write_text(toml_text(table), encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None


def _document(figures: MachineFigures, found: Sequence[Calibration], out: Path) -> dict[str, Any]:
    from seatrial.simulate.calibrate import as_mapping

    return {
        "out": str(out),
        "chip": figures.chip,
        "cores": figures.cores,
        "memory_bytes": figures.memory.bytes,
        "memory_source": figures.memory.source,
        "bandwidth_by_threads_Bps": figures.bandwidth_by_threads,
        "matmul_ops": figures.matmul_ops,
        "storage_read_Bps": figures.storage_Bps,
        "storage_note": figures.storage_note,
        "calibrations": [as_mapping(one) for one in found],
    }


def _print(figures: MachineFigures, found: Sequence[Calibration], out: Path) -> None:
    from rich.table import Table

    from seatrial.cli.tables import wide_console
    from seatrial.devices.units import format_bytes, format_ops, format_rate, format_time

    console = wide_console()
    console.print(f"{figures.chip}, {figures.cores} cores")
    console.print(f"memory {format_bytes(figures.memory.bytes)} ({figures.memory.source})")
    for threads, rate in figures.bandwidth_by_threads.items():
        console.print(f"read bandwidth, {threads} threads: {format_rate(rate)}")
    console.print(f"fp32 matrix product: {format_ops(figures.matmul_ops)}")
    told = format_rate(figures.storage_Bps) if figures.storage_Bps else "not measured"
    console.print(f"storage, reading: {told} ({figures.storage_note})")
    table = Table("weights", "KV", "ms/token by context", "prompt of 512", "peak private", "noise", box=None)
    for one in found:
        steps = ", ".join(f"{context}: {seconds * 1e3:.2f}" for context, seconds in one.step_s.items())
        prompt = format_time(one.prompt_s[min(one.prompt_s)])
        table.add_row(one.weights, one.kv, steps, prompt, format_bytes(one.peak_bytes), f"{one.noise:.2f}")
    if found:
        console.print(table)
    if any(one.noise > 1.3 for one in found):
        console.print(
            "note: the slowest tenth of the steps is far above the median: other programs were busy"
        )
    console.print(f"written: {out}; use it with --device {out}")


def _fit_document(made: LogFit, out: Path | None) -> dict[str, Any]:
    return {
        "out": str(out) if out else None,
        "mdape_predicted": made.error(fitted=False),
        "mdape_fitted": made.error(fitted=True),
        "lines": [
            {
                "metric": line.row.metric,
                "tokens": line.row.tokens,
                "measured_tok_per_s": line.row.tokens / line.row.seconds,
                "predicted_tok_per_s": line.row.tokens / line.predicted_s,
                "fitted_tok_per_s": line.row.tokens / line.fitted_s,
            }
            for line in made.lines
        ],
        "runtime": made.table,
    }


def _print_fit(made: LogFit, out: Path | None, quiet: bool) -> None:
    from rich.table import Table

    from seatrial.cli.tables import wide_console

    console = wide_console()
    if not quiet:
        table = Table("metric", "tokens", "measured tok/s", "predicted", "fitted", box=None)
        for line in made.lines[:40]:
            speeds = (line.row.tokens / s for s in (line.row.seconds, line.predicted_s, line.fitted_s))
            table.add_row(line.row.metric, str(line.row.tokens), *(f"{speed:.2f}" for speed in speeds))
        console.print(table)
        if len(made.lines) > 40:
            console.print(f"... and {len(made.lines) - 40} lines more")
    before, after = made.error(fitted=False), made.error(fitted=True)
    console.print(f"median error: predicted {before:.1%}, fitted {after:.1%}, {len(made.lines)} lines")
    if out is not None:
        console.print(f"written: {out}; use it with --runtime {out}")


def _today() -> str:
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()


def _tell(text: str) -> None:
    typer.echo(text, err=True)


def _silent(_: str) -> None:
    """Nothing is said."""
