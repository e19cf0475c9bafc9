"""How an engine uses a machine, read from TOML: coefficients of time and memory, each with its error.

A decode step takes `weight_factor x weight bytes / bandwidth + kv_factor x KV bytes / bandwidth + step_s`; a
prompt takes `FLOPs / (compute x efficiency)`, or its passes over the weights where those take longer. The
intervals are quotients around the middle, earned on machines that were left out of the fit.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from seatrial.devices.device import Reader, read_toml
from seatrial.devices.units import parse_bytes
from seatrial.errors import UserError

FOLDER = Path(__file__).parent / "runtimes"
KV_LAYOUTS = ("windowed", "full")
KV_RESERVES = ("used", "limit")


@attrs.frozen
class Spread:
    """Quotients of the 90 % interval around a middle value: `low` at most 1, `high` at least 1."""

    low: float
    high: float

    def around(self, mid: float) -> Interval:
        """The interval around `mid`."""
        return Interval(mid * self.low, mid, mid * self.high)


@attrs.frozen
class Interval:
    """A quantity with its nominal 90 % interval."""

    low: float
    mid: float
    high: float

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.mid + other.mid, self.high + other.high)

    def times(self, factor: float) -> Interval:
        """Scaled by a factor above zero."""
        return Interval(self.low * factor, self.mid * factor, self.high * factor)

    def to_json(self) -> dict[str, float]:
        """`low`, `mid`, `high`."""
        return {"low": self.low, "mid": self.mid, "high": self.high}


@attrs.frozen
class Decode:
    """Time of one step; `measured_share` is what decoding gets of a bandwidth measured by reading."""

    weight_factor: float
    kv_factor: float
    compute_factor: float
    layer_s: float
    step_s: float
    spread: Spread
    measured_share: float = 1.0


@attrs.frozen
class Prefill:
    """Time of a prompt: shares of nominal compute, and compute per bandwidth where no compute figure is
    known.
    """

    efficiency: float
    attention_efficiency: float
    chunk_tokens: int
    chunk_s: float
    spread: Spread
    ops_per_Bps: float
    fallback_spread: Spread


@attrs.frozen
class MemoryUse:
    """What the engine itself takes, and how it stores the cache.

    `kv_copies` is 2 where past and present caches exist side by side during a step; `prompt_bytes_per_token`
    is what a chunk of a prompt needs besides for every token before it; `opening_factor` are the bytes, over
    those of the weights, that opening the model takes for a moment (0: not known apart).
    """

    runtime_bytes: int
    weight_peak_factor: float
    activation_factor: float
    kv_layout: str
    kv_reserve: str
    scores_materialised: bool
    latent_cache: bool
    kv_copies: int
    prompt_bytes_per_token: float = 0.0
    opening_factor: float = 0.0


@attrs.frozen
class Fit:
    """Where the coefficients come from: rows and chips, error of the fit, date."""

    date: str
    data: str
    decode_rows: int
    decode_chips: int
    decode_mdape: float | None
    prefill_rows: int
    prefill_chips: int
    prefill_mdape: float | None
    note: str = ""


@attrs.frozen
class FormatFactors:
    """What one pair of formats costs where it was measured itself, in place of the general coefficients.

    `activation_factor` 0 leaves the general one.
    """

    weight_factor: float
    kv_factor: float
    efficiency: float
    attention_efficiency: float
    weight_peak_factor: float
    prompt_bytes_per_token: float = 0.0
    opening_factor: float = 0.0
    activation_factor: float = 0.0


@attrs.frozen
class Runtime:
    """An engine on a kind of processor. `kind`: fitted | class | reference | measured.

    `formats` holds the factors of pairs such as `int4/int8` (weights/KV) that were measured one by one.
    """

    id: str
    name: str
    processor: str
    kind: str
    weights: str
    kv: str
    decode: Decode
    prefill: Prefill
    memory: MemoryUse
    fit: Fit
    formats: Mapping[str, FormatFactors] = attrs.field(factory=dict)

    def for_formats(self, weights: str, kv: str) -> Runtime:
        """This runtime with the factors of a pair of formats, where that pair was measured."""
        found = self.formats.get(f"{weights}/{kv}")
        if found is None:
            return self
        return attrs.evolve(
            self,
            decode=attrs.evolve(self.decode, weight_factor=found.weight_factor, kv_factor=found.kv_factor),
            prefill=attrs.evolve(
                self.prefill,
                efficiency=found.efficiency,
                attention_efficiency=found.attention_efficiency,
            ),
            memory=attrs.evolve(
                self.memory,
                weight_peak_factor=found.weight_peak_factor,
                prompt_bytes_per_token=found.prompt_bytes_per_token,
                opening_factor=found.opening_factor,
                activation_factor=found.activation_factor or self.memory.activation_factor,
            ),
        )


def runtime_names() -> tuple[str, ...]:
    """Identifiers of the runtimes that come with the package, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


def load_runtime(name_or_path: str | Path) -> Runtime:
    """The runtime of that name, or the one in a TOML file.

    Raises:
        UserError: no such runtime (the nearest names are listed), or a missing or impossible coefficient.
    """
    text = str(name_or_path)
    if text.endswith(".toml"):
        return read_runtime(Path(text))
    names = runtime_names()
    if text not in names:
        nearest = difflib.get_close_matches(text, names, n=3, cutoff=0.3) or names
        raise UserError(f"no runtime {text!r}; nearest: {', '.join(nearest)}")
    return read_runtime(FOLDER / f"{text}.toml")


def read_runtime(path: Path) -> Runtime:
    """The runtime in one TOML file, or under [measured_runtime] in a device file of `devices measure`."""
    table = read_toml(path)
    return runtime_from_table(path.stem, table.get("measured_runtime", table))


def runtime_from_table(identifier: str, table: Mapping[str, Any]) -> Runtime:
    """A validated `Runtime` from the table of a TOML file."""
    read = Reader(identifier, table)
    return Runtime(
        id=identifier,
        name=read.text("name"),
        processor=read.choice("processor", ("cpu", "gpu", "npu")),
        kind=read.choice("kind", ("fitted", "class", "reference", "measured")),
        weights=read.text("weights"),
        kv=read.text("kv"),
        decode=_decode(Reader(f"{identifier}: decode", read.table("decode"))),
        prefill=_prefill(Reader(f"{identifier}: prefill", read.table("prefill"))),
        memory=_memory(Reader(f"{identifier}: memory", read.table("memory"))),
        fit=_fit(Reader(f"{identifier}: fit", read.table("fit"))),
        formats=_formats(identifier, read.optional_table("formats")),
    )


def _formats(identifier: str, entries: Mapping[str, Any]) -> dict[str, FormatFactors]:
    fields = attrs.fields(FormatFactors)
    required = [field.name for field in fields if field.default is attrs.NOTHING]
    optional = [field.name for field in fields if field.default is not attrs.NOTHING]
    found = {}
    for pair, entry in entries.items():
        read = Reader(f"{identifier}: formats.{pair}", entry)
        factors = {name: _above_zero(read, name) for name in required}
        factors |= {name: _at_least_zero(read, name) for name in optional if name in entry}
        found[pair] = FormatFactors(**factors)
    return found


def _decode(read: Reader) -> Decode:
    return Decode(
        weight_factor=_above_zero(read, "weight_factor"),
        kv_factor=_at_least_zero(read, "kv_factor"),
        compute_factor=_at_least_zero(read, "compute_factor"),
        layer_s=_at_least_zero(read, "layer_s"),
        step_s=_at_least_zero(read, "step_s"),
        spread=_spread(read, "low", "high"),
        measured_share=_above_zero(read, "measured_share"),
    )


def _prefill(read: Reader) -> Prefill:
    return Prefill(
        efficiency=_above_zero(read, "efficiency"),
        attention_efficiency=_above_zero(read, "attention_efficiency"),
        chunk_tokens=int(_above_zero(read, "chunk_tokens")),
        chunk_s=_at_least_zero(read, "chunk_s"),
        spread=_spread(read, "low", "high"),
        ops_per_Bps=_above_zero(read, "ops_per_Bps"),
        fallback_spread=_spread(read, "fallback_low", "fallback_high"),
    )


def _memory(read: Reader) -> MemoryUse:
    return MemoryUse(
        runtime_bytes=parse_bytes(read.text("runtime")),
        weight_peak_factor=_above_zero(read, "weight_peak_factor"),
        activation_factor=_above_zero(read, "activation_factor"),
        kv_layout=read.choice("kv_layout", KV_LAYOUTS),
        kv_reserve=read.choice("kv_reserve", KV_RESERVES),
        scores_materialised=bool(read.entries.get("scores_materialised", False)),
        latent_cache=bool(read.entries.get("latent_cache", False)),
        kv_copies=int(read.entries.get("kv_copies", 1)),
        prompt_bytes_per_token=float(read.entries.get("prompt_bytes_per_token", 0.0)),
        opening_factor=float(read.entries.get("opening_factor", 0.0)),
    )


def _fit(read: Reader) -> Fit:
    def rows(key: str) -> int:
        return int(_at_least_zero(read, key))

    def error(key: str) -> float | None:
        return _at_least_zero(read, key) if key in read.entries else None

    return Fit(
        date=read.text("date"),
        data=read.text("data"),
        decode_rows=rows("decode_rows"),
        decode_chips=rows("decode_chips"),
        decode_mdape=error("decode_mdape"),
        prefill_rows=rows("prefill_rows"),
        prefill_chips=rows("prefill_chips"),
        prefill_mdape=error("prefill_mdape"),
        note=str(read.entries.get("note", "")),
    )


def _spread(read: Reader, low: str, high: str) -> Spread:
    spread = Spread(_above_zero(read, low), _above_zero(read, high))
    if not spread.low <= 1.0 <= spread.high:
        raise UserError(f"{read.where}: `{low}` must be at most 1 and `{high}` at least 1")
    return spread


def _above_zero(read: Reader, key: str) -> float:
    value = read.number(key)
    if not (value > 0 and math.isfinite(value)):
        raise UserError(f"{read.where}: `{key}` is {value}, it must be above zero")
    return value


def _at_least_zero(read: Reader, key: str) -> float:
    value = read.number(key)
    if value < 0:
        raise UserError(f"{read.where}: `{key}` is {value}, it must not be below zero")
    return value
