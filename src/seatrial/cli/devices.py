"""`seatrial devices`: the machines that plans are made for, and figures of new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from seatrial.cli.devices_measure import fit, measure

if TYPE_CHECKING:
    from seatrial.devices.device import Device
    from seatrial.devices.runtime import Runtime

app = typer.Typer(no_args_is_help=True, help="List, show and measure devices.")
app.command("measure")(measure)
app.command("fit")(fit)


@app.command("list")
def list_devices(
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    quiet: bool = typer.Option(False, "--quiet", help="Print the names only."),
) -> int:
    """List the devices that come with the package.

    Example: seatrial devices list
    """
    from seatrial.cli.output import print_json
    from seatrial.devices.device import device_names, load_device

    if quiet:
        print("\n".join(device_names()))
        return 0
    found = [load_device(name) for name in device_names()]
    if as_json:
        print_json({"devices": [device_json(device) for device in found]})
        return 0
    _print_table(found)
    return 0


@app.command("show")
def show(
    name: str = typer.Argument(help="A device's name, name:variant, or a TOML file."),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    quiet: bool = typer.Option(False, "--quiet", help="Print nothing but the figures."),
) -> int:
    """Show one device: each figure with its source.

    Example: seatrial devices show thin-laptop-8gb
    """
    from seatrial.cli.output import print_json
    from seatrial.devices.device import load_device

    device = load_device(name)
    if as_json:
        print_json(device_json(device))
    else:
        _print_device(device, quiet)
    return 0


@app.command("runtimes")
def runtimes(
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    quiet: bool = typer.Option(False, "--quiet", help="Print the names only."),
) -> int:
    """List the runtimes: on how much each was fitted, its error and its 90 % intervals.

    Example: seatrial devices runtimes
    """
    import attrs

    from seatrial.cli.output import print_json
    from seatrial.devices.runtime import load_runtime, runtime_names

    if quiet:
        print("\n".join(runtime_names()))
        return 0
    found = [load_runtime(name) for name in runtime_names()]
    if as_json:
        print_json({"runtimes": [attrs.asdict(one) for one in found]})
    else:
        _print_runtimes(found)
    return 0


def device_json(device: Device) -> dict[str, Any]:
    """The document of one device: bytes, bytes per second, operations per second, sources."""
    return {
        "id": device.id,
        "name": device.name,
        "class": device.device_class,
        "chip": device.chip,
        "confidence": device.confidence,
        "runtime": device.runtime,
        "memory_bytes": device.memory_bytes,
        "system_bytes": device.system_bytes,
        "nominal_bandwidth_Bps": device.nominal_bandwidth_Bps,
        "measured_bandwidth_Bps": device.measured_bandwidth_Bps,
        "measured_kind": device.measured_kind,
        "storage_read_Bps": device.storage_read_Bps,
        "compute": {
            name: {"precision": c.precision, "nominal_ops": c.nominal_ops, "effective_ops": c.effective_ops}
            for name, c in device.compute.items()
        },
        "sources": dict(device.sources),
        "variants": list(device.variants),
        "warnings": list(device.warnings),
    }


def _print_table(found: list[Device]) -> None:
    from seatrial.cli.tables import table_of_names, wide_console
    from seatrial.devices.units import format_bytes, format_rate

    console = wide_console()
    columns = ("device", "name", "memory", "bandwidth", "runtime", "confidence")
    table, whole = table_of_names(console, *columns, droppable="runtime")
    for device in found:
        table.add_row(
            device.id,
            device.name,
            format_bytes(device.memory_bytes),
            format_rate(device.bandwidth_Bps),
            *([device.runtime] if whole else []),
            device.confidence,
        )
    console.print(table)


def _print_runtimes(found: list[Runtime]) -> None:
    from seatrial.cli.tables import table_of_names, wide_console

    console = wide_console()
    columns = ("runtime", "kind", "decode rows", "error", "90 %", "prefill rows", "error", "90 %")
    table, whole = table_of_names(console, *columns, droppable="kind")
    for one in found:
        cells = []
        for rows, chips, error, spread in (
            (one.fit.decode_rows, one.fit.decode_chips, one.fit.decode_mdape, one.decode.spread),
            (one.fit.prefill_rows, one.fit.prefill_chips, one.fit.prefill_mdape, one.prefill.spread),
        ):
            told = "-" if error is None else f"{error:.1%}"
            cells += [f"{rows} on {chips} chips", told, f"{spread.low:.2f} - {spread.high:.2f}"]
        table.add_row(one.id, *([one.kind] if whole else []), *cells)
    console.print(table)


def _print_device(device: Device, quiet: bool) -> None:
    from rich.table import Table

    from seatrial.cli.tables import wide_console

    table = Table("figure", "value", "source", box=None)
    for figure, value, source in _rows(device):
        table.add_row(figure, value, source)
    console = wide_console()
    if not quiet:
        console.print(f"{device.name} ({device.id}), {device.device_class}, confidence {device.confidence}")
    console.print(table)
    if device.variants and not quiet:
        console.print("variants: " + ", ".join(f"{device.id.partition(':')[0]}:{v}" for v in device.variants))
    for warning in device.warnings:
        console.print(f"note: {warning}")


def _rows(device: Device) -> list[tuple[str, str, str]]:
    from seatrial.devices.units import format_bytes, format_ops, format_rate

    sources = device.sources
    rows = [
        ("memory", format_bytes(device.memory_bytes), sources["memory"]),
        ("kept by the system", format_bytes(device.system_bytes), sources["system"]),
    ]
    if device.nominal_bandwidth_Bps is not None:
        rows.append(("bandwidth, nominal", format_rate(device.nominal_bandwidth_Bps), sources["bandwidth"]))
    if device.measured_bandwidth_Bps is not None:
        label = f"bandwidth, measured ({device.measured_kind})"
        rows.append((label, format_rate(device.measured_bandwidth_Bps), sources["bandwidth.measured"]))
    if device.storage_read_Bps is not None:
        rows.append(("storage, reading", format_rate(device.storage_read_Bps), sources["storage"]))
    for name, compute in device.compute.items():
        parts = [("nominal", compute.nominal_ops), ("effective", compute.effective_ops)]
        told = ", ".join(f"{format_ops(ops)} {kind}" for kind, ops in parts if ops)
        rows.append((f"compute, {name} ({compute.precision})", told, compute.source))
    return rows
