"""`seatrial ops`: every operator of an ONNX graph with its FLOPs and bytes, and what binds it on a device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from seatrial.devices.device import Device
    from seatrial.simulate.operator_table import OperatorRow, OperatorTable


def ops(
    model: Annotated[Path, typer.Argument(help="An ONNX file, or a folder with model.onnx.")],
    dim: Annotated[
        list[str] | None,
        typer.Option("--dim", help="A named dimension, as in batch=1; the beginning of its name will do."),
    ] = None,
    device: str | None = typer.Option(
        None, "--device", help="A device's name or a TOML file: says what binds."
    ),
    processor: str | None = typer.Option(
        None, "--processor", help="cpu, gpu or npu; the device's runtime's by default."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print one JSON document."),
    quiet: bool = typer.Option(False, "--quiet", help="Subtotals only."),
) -> int:
    """Print FLOPs and bytes of each operator of an ONNX graph.

    Example: seatrial ops bundles/fp32 --dim batch=1 --dim sequence=128
    """
    from seatrial.cli.output import print_json
    from seatrial.simulate.operator_table import operator_table

    machine, engine = _device(device, processor)
    table = operator_table(model, _dims(dim or []))
    if as_json:
        print_json(_document(table, machine, engine))
    else:
        _print_table(table, machine, engine, quiet)
    return 0


def _device(name: str | None, processor: str | None) -> tuple[Device | None, str]:
    from seatrial.devices.device import load_device
    from seatrial.devices.runtime import load_runtime
    from seatrial.errors import UserError

    if name is None:
        return None, ""
    device = load_device(name)
    chosen = processor or load_runtime(device.runtime).processor
    if chosen not in ("cpu", "gpu", "npu"):
        raise UserError(f"no processor {chosen!r}: cpu, gpu or npu is needed")
    return device, chosen


def _dims(given: list[str]) -> dict[str, int]:
    from seatrial.errors import UserError

    dims = {}
    for text in given:
        name, _, number = text.partition("=")
        if not name or not number.isascii() or not number.isdigit():
            raise UserError(f"--dim {text!r} is not name=number, as in batch=1")
        dims[name] = int(number)
    return dims


def _document(table: OperatorTable, device: Device | None, processor: str) -> dict[str, Any]:
    rows = []
    for row in table.rows:
        entry = {
            "name": row.name,
            "operator": row.op,
            "kind": row.kind,
            "inputs": [list(shape) for shape in row.inputs],
            "output": list(row.output),
            "flops": row.flops,
            "flops_by_part": row.parts,
            "parameters": row.parameters,
            "stored_bytes": row.stored_bytes,
            "weight_bytes": row.weight_bytes,
            "kv_load_bytes": row.kv_load_bytes,
            "kv_store_bytes": row.kv_store_bytes,
            "load_bytes": row.load_bytes,
            "store_bytes": row.store_bytes,
            "intensity": row.intensity,
            "note": row.note,
        }
        if device is not None:
            entry["bound"] = row.bound(device, processor)
        rows.append(entry)
    document: dict[str, Any] = {"operators": rows, "subtotals": table.subtotals(), "notes": list(table.notes)}
    if device is not None:
        document |= {"device": device.id, "processor": processor}
    return document


def _print_table(table: OperatorTable, device: Device | None, processor: str, quiet: bool) -> None:
    from rich.table import Table

    from seatrial.cli.tables import wide_console

    console = wide_console()
    if not quiet:
        columns = ["operator", "shape in -> out", "FLOPs", "weights", "KV r/w", "activations r/w", "FLOP/B"]
        shown = Table(*columns, *([f"bound ({processor})"] if device else []), box=None)
        for row in table.rows:
            shown.add_row(*_cells(row), *([row.bound(device, processor)] if device else []))
        console.print(shown)
    sums = Table(
        "kind", "operators", "FLOPs", "parameters", "stored", "weights", "KV r/w", "activations r/w", box=None
    )
    for kind, total in table.subtotals().items():
        sums.add_row(*_sum_cells(kind, total))
    console.print(sums)
    for note in table.notes:
        console.print(f"note: {note}")


def _cells(row: OperatorRow) -> list[str]:
    shapes = " ".join("x".join(map(str, shape)) or "scalar" for shape in row.inputs[:2])
    out = "x".join(map(str, row.output)) or "scalar"
    return [
        f"{row.op} {row.note}".strip(),
        f"{shapes} -> {out}",
        "unknown" if row.flops is None else f"{row.flops:.4g}",
        _size(row.weight_bytes),
        f"{_size(row.kv_load_bytes)}/{_size(row.kv_store_bytes)}",
        f"{_size(row.load_bytes)}/{_size(row.store_bytes)}",
        "-" if row.intensity is None else f"{row.intensity:.2f}",
    ]


def _sum_cells(kind: str, total: dict[str, float]) -> list[str]:
    return [
        kind,
        f"{total['operators']:.0f}",
        f"{total['flops']:.5g}",
        f"{total['parameters']:.0f}",
        _size(total["stored_bytes"]),
        _size(total["weight_bytes"]),
        f"{_size(total['kv_load_bytes'])}/{_size(total['kv_store_bytes'])}",
        f"{_size(total['load_bytes'])}/{_size(total['store_bytes'])}",
    ]


def _size(amount: float) -> str:
    from seatrial.devices.units import format_bytes

    return format_bytes(amount) if amount else "0"
