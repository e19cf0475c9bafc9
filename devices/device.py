"""Facts of a machine, read from TOML: memory, bandwidth, compute and storage, each with its source.

One file per machine, so that a new machine is data and no code. What an engine makes of these facts is the
runtime's matter (`seatrial.devices.runtime`); how long a model takes is the plan's.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from seatrial.devices.units import format_rate, parse_bytes, parse_ops, parse_rate
from seatrial.errors import UserError

FOLDER = Path(__file__).parent
CLASSES = ("laptop", "desktop", "phone", "sbc", "gpu", "server")
MEASURED_KINDS = ("read", "copy", "decode")
# Sold as 16 GB, reported as 14.9 GiB: firmware and graphics keep a part that no program sees.
FIRMWARE_SHARE = 0.08


@attrs.frozen
class Compute:
    """Throughput of one processor in operations per second; a multiply-add counts as two."""

    precision: str
    source: str
    nominal_ops: float | None = None
    effective_ops: float | None = None
    tensor_units: bool = False


@attrs.frozen
class Sustained:
    """Share of the first run's speed that is left once the machine is hot."""

    decode: float
    prefill: float


@attrs.frozen
class Device:
    """A machine as its TOML file tells it. Bytes and bytes per second; `None` where nobody found a figure.

    `bandwidth_Bps` is what a plan divides by: the nominal figure, else the measured one.
    `sources` names the origin of each figure.
    """

    id: str
    name: str
    vendor: str
    chip: str
    device_class: str
    confidence: str
    runtime: str
    memory_bytes: int
    system_bytes: int
    nominal_bandwidth_Bps: float | None
    measured_bandwidth_Bps: float | None
    measured_kind: str | None
    storage_read_Bps: float | None
    compute: Mapping[str, Compute]
    sources: Mapping[str, str]
    sustained: Sustained | None = None
    variants: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def bandwidth_Bps(self) -> float:
        """Nominal bandwidth, else the measured one."""
        return self.nominal_bandwidth_Bps or self.measured_bandwidth_Bps or math.nan

    def available_bytes(self, other_programs_bytes: int = 0) -> int:
        """Memory left for a model: total - system - other programs, never below zero."""
        return max(0, self.memory_bytes - self.system_bytes - other_programs_bytes)


def device_names() -> tuple[str, ...]:
    """Identifiers of the machines that come with the package, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def load_device(name_or_path: str | Path) -> Device:
    """The machine `name`, its variant `name:variant`, or the one in a TOML file.

    Raises:
        UserError: no such machine (the nearest names are listed), an unreadable file, no source.
    """
    text = str(name_or_path)
    if text.endswith(".toml"):
        return read_device(Path(text))
    name, _, variant = text.partition(":")
    if name not in device_names():
        raise UserError(_unknown(name, device_names()))
    return read_device(FOLDER / f"{name}.toml", variant=variant or None)


def read_device(path: Path, *, variant: str | None = None) -> Device:
    """The machine in one TOML file, with the figures of `variant` put over the main ones."""
    table = read_toml(path)
    if "measured_runtime" in table:
        # Its own runtime lies in the same file: the path leads back to it.
        table["runtime"] = str(path)
    variants = tuple(table.get("variants", {}))
    if variant is not None:
        if variant not in variants:
            listed = ", ".join(variants) or "none"
            raise UserError(f"device {path.stem} has no variant {variant!r}; it has: {listed}")
        over = table["variants"][variant]
        if "bandwidth" in over:
            # A measurement belongs to the board that was measured.
            table["bandwidth"].pop("measured", None)
        table = _merged(table, over)
    identifier = path.stem if variant is None else f"{path.stem}:{variant}"
    return device_from_table(identifier, table, variants=variants)


def read_toml(path: Path) -> dict[str, Any]:
    """The table in a TOML file; one clear line when it cannot be read."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: not a readable TOML file: {error}") from None


def device_from_table(identifier: str, table: Mapping[str, Any], *, variants: tuple[str, ...] = ()) -> Device:
    """A validated `Device` from the table of a TOML file."""
    read = Reader(identifier, table)
    bandwidth = read.table("bandwidth")
    measured = Reader(f"{identifier}: bandwidth", bandwidth).optional_table("measured")
    nominal_Bps = _optional(bandwidth, "nominal", parse_rate)
    measured_Bps = _optional(measured, "value", parse_rate)
    if nominal_Bps is None and measured_Bps is None:
        raise UserError(f"{identifier}: [bandwidth] needs `nominal`, or `measured.value`, as in 50GB/s")
    sources = {key: read.source(key) for key in ("memory", "system")}
    if nominal_Bps is not None:
        sources["bandwidth"] = read.source("bandwidth")
    if measured_Bps is not None:
        sources["bandwidth.measured"] = Reader(f"{identifier}: bandwidth", bandwidth).source("measured")
    storage = read.optional_table("storage")
    if storage:
        sources["storage"] = read.source("storage")
    compute = {name: _compute(identifier, name, entry) for name, entry in table.get("compute", {}).items()}
    sources |= {f"compute.{name}": entry.source for name, entry in compute.items()}
    return Device(
        id=identifier,
        name=read.text("name"),
        vendor=read.text("vendor"),
        chip=read.text("chip"),
        device_class=read.choice("class", CLASSES),
        confidence=read.choice("confidence", ("high", "medium", "low", "reference", "measured")),
        runtime=read.text("runtime"),
        memory_bytes=parse_bytes(Reader(f"{identifier}: memory", read.table("memory")).text("total")),
        system_bytes=parse_bytes(Reader(f"{identifier}: system", read.table("system")).text("reserved")),
        nominal_bandwidth_Bps=nominal_Bps,
        measured_bandwidth_Bps=measured_Bps,
        measured_kind=_measured_kind(identifier, measured),
        storage_read_Bps=_optional(storage, "read", parse_rate),
        compute=compute,
        sources=sources,
        sustained=_sustained(read, sources),
        variants=variants,
        warnings=_warnings(nominal_Bps, measured_Bps, table),
    )


def with_measured_bandwidth(device: Device, measured_Bps: float, *, kind: str = "read") -> Device:
    """The same machine with somebody's own measurement in place of the nominal bandwidth.

    Raises:
        UserError: the measurement is above the nominal figure: no memory gives more than it has.
    """
    nominal = device.nominal_bandwidth_Bps
    if nominal is not None and measured_Bps > nominal:
        raise UserError(
            f"a measured bandwidth of {format_rate(measured_Bps)} exceeds the nominal {format_rate(nominal)} "
            f"of {device.id}: a cache was measured, or it is another board"
        )
    sources = {**device.sources, "bandwidth.measured": "given on the command line"}
    sources.pop("bandwidth", None)
    return attrs.evolve(
        device,
        nominal_bandwidth_Bps=None,
        measured_bandwidth_Bps=measured_Bps,
        measured_kind=kind,
        sources=sources,
    )


def matches_memory(sold_bytes: int, reported_bytes: int) -> bool:
    """Whether a machine that reports `reported_bytes` may be one sold with `sold_bytes`.

    Firmware and integrated graphics keep up to about 8 % out of sight, and vendors count 16 GB as 16 GiB.
    """
    return sold_bytes * (1 - FIRMWARE_SHARE) <= reported_bytes <= sold_bytes * 2**30 / 10**9 * (1 + 1e-9)


@attrs.frozen
class Reader:
    """Reads required entries of a table and names what is missing."""

    where: str
    entries: Mapping[str, Any]

    def text(self, key: str) -> str:
        """A required string."""
        value = self.entries.get(key)
        if not isinstance(value, str) or not value:
            raise UserError(f"{self.where}: `{key}` is missing or not a text")
        return value

    def number(self, key: str) -> float:
        """A required finite number."""
        value = self.entries.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise UserError(f"{self.where}: `{key}` is missing or not a finite number")
        return float(value)

    def choice(self, key: str, allowed: tuple[str, ...]) -> str:
        """A required string out of a few."""
        value = self.text(key)
        if value not in allowed:
            raise UserError(f"{self.where}: `{key}` is {value!r}, not one of {', '.join(allowed)}")
        return value

    def table(self, key: str) -> Mapping[str, Any]:
        """A required sub-table."""
        value = self.entries.get(key)
        if not isinstance(value, Mapping):
            raise UserError(f"{self.where}: the table [{key}] is missing")
        return value

    def optional_table(self, key: str) -> Mapping[str, Any]:
        """A sub-table, empty where there is none."""
        return self.table(key) if key in self.entries else {}

    def source(self, key: str) -> str:
        """The source of the figure in sub-table `key`: a figure without one is refused."""
        return Reader(f"{self.where}: {key}", self.table(key)).text("source")


def _compute(identifier: str, name: str, entry: Any) -> Compute:
    if name not in ("cpu", "gpu", "npu") or not isinstance(entry, Mapping):
        raise UserError(f"{identifier}: [compute.{name}] is not a table of cpu, gpu or npu")
    read = Reader(f"{identifier}: compute.{name}", entry)
    nominal, effective = (_optional(entry, key, parse_ops) for key in ("nominal", "effective"))
    if nominal is None and effective is None:
        raise UserError(f"{identifier}: [compute.{name}] needs `nominal` or `effective`, as in 20TOPS")
    return Compute(
        precision=read.text("precision"),
        source=read.text("source"),
        nominal_ops=nominal,
        effective_ops=effective,
        tensor_units=bool(entry.get("tensor_units", False)),
    )


def _sustained(read: Reader, sources: dict[str, str]) -> Sustained | None:
    entry = read.optional_table("sustained")
    if not entry:
        return None
    sources["sustained"] = read.source("sustained")
    inner = Reader(f"{read.where}: sustained", entry)
    shares = Sustained(inner.number("decode"), inner.number("prefill"))
    if not (0 < shares.decode <= 1 and 0 < shares.prefill <= 1):
        raise UserError(f"{inner.where}: shares of speed lie above 0 and at most at 1")
    return shares


def _optional(entry: Mapping[str, Any], key: str, parse: Any) -> Any:
    return parse(entry[key]) if key in entry else None


def _measured_kind(identifier: str, measured: Mapping[str, Any]) -> str | None:
    return (
        Reader(f"{identifier}: bandwidth.measured", measured).choice("kind", MEASURED_KINDS)
        if measured
        else None
    )


def _warnings(
    nominal_Bps: float | None, measured_Bps: float | None, table: Mapping[str, Any]
) -> tuple[str, ...]:
    warnings = []
    if nominal_Bps and measured_Bps and measured_Bps > nominal_Bps:
        warnings.append(
            "measured bandwidth is above the nominal one: a cache, or another board, was measured"
        )
    if "note" in table:
        warnings.append(str(table["note"]))
    return tuple(warnings)


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        inner = merged.get(key)
        merged[key] = (
            _merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
        )
    return merged


def _unknown(name: str, names: tuple[str, ...]) -> str:
    """The error for a name that is not there, with the nearest ones (parts of a name count too)."""
    near = [known for known in names if name and name.lower() in known]
    near += [
        known
        for known in difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.4)
        if known not in near
    ]
    nearest = ", ".join(near[:5] or names[:5])
    return f"no device {name!r}; nearest: {nearest} (see `seatrial devices list`, or give a TOML file)"
