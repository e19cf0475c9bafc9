"""Reads published measurements (tokens/s on named devices) into rows that a runtime can be fitted on.

A row gets what the formulas need: bytes, bandwidth, peak compute of the processor that ran, layers. Peak
compute and model shapes come from tables of public facts (`seatrial.devices.facts`); where a chip is not in
them its compute is left open. Which rows are firm is the file's own word.
"""

from __future__ import annotations

import csv
import math
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from seatrial import devices
from seatrial.devices.units import parse_ops
from seatrial.errors import UserError

COLUMNS = (
    "device",
    "chip",
    "nominal_bandwidth_GBps",
    "backend",
    "processor",
    "model",
    "params",
    "weight_bytes",
    "prompt_tokens",
    "metric",
    "tok_per_s",
    "device_class",
    "firm",
)
KV_BYTES = 2
# One engine under several labels; "" means the label says nothing about the kernels behind it.
ENGINES = (
    ("llama.cpp metal", "llama-cpp-metal"),
    ("llama.cpp cuda", "llama-cpp-cuda"),
    ("llama.cpp vulkan", "llama-cpp-vulkan"),
    ("llama.cpp hip", "llama-cpp-hip"),
    ("llama.cpp rocm", "llama-cpp-hip"),
    ("llama.cpp opencl", "llama-cpp-opencl"),
    ("llama.cpp sycl", "llama-cpp-sycl"),
    ("llama.cpp hexagon", "llama-cpp-hexagon"),
    ("llama.cpp cpu", "llama-cpp-cpu"),
    ("ik_llama", "ik-llama-cpp-cpu"),
    ("t-mac", "t-mac-cpu"),
    ("mnn cpu", "mnn-cpu"),
    ("openvino", "openvino"),
    ("qualcomm", "qualcomm-ai-engine"),
    ("rkllm", "rkllm"),
    ("mlx", "mlx"),
    ("executorch", "executorch-xnnpack"),
    ("onnxruntime", "onnxruntime"),
)
GPU_ENGINE_OF_VENDOR = {
    "apple": "llama-cpp-metal",
    "nvidia": "llama-cpp-cuda",
    "amd": "llama-cpp-vulkan",
    "intel": "llama-cpp-vulkan",
}


@attrs.frozen
class Row:
    """One measurement: `tokens` took `seconds`. A decode row has tokens = 1.

    `ops` is the peak of the processor that ran, None where nobody knows it; `layers` and `kv_bytes` (read per
    decoded token) follow the model's shape.
    """

    device: str
    chip: str
    vendor: str
    device_class: str
    engine: str
    processor: str
    metric: str
    firm: bool
    tokens: int
    seconds: float
    params: float
    layers: float
    weight_bytes: float
    kv_bytes: float
    attention_flops: float
    bandwidth_Bps: float
    ops: float | None


@attrs.frozen
class Shape:
    """Layers, hidden size, and the width of K in one layer."""

    layers: int
    hidden: int
    kv_width: int


def read_throughput(path: Path) -> list[Row]:
    """The usable rows of a measurement file; rows without bandwidth, bytes or speed are left out.

    Raises:
        UserError: no such file, or a column is missing.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            records = list(csv.DictReader(file))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
    missing = [name for name in COLUMNS if records and name not in records[0]]
    if not records or missing:
        raise UserError(f"{path}: measurements with the columns {', '.join(missing or COLUMNS)} are needed")
    rows = (_row(record) for record in records)
    return [row for row in rows if row is not None]


def _row(record: Mapping[str, str]) -> Row | None:
    numbers = {
        key: _number(record[key]) for key in ("nominal_bandwidth_GBps", "weight_bytes", "tok_per_s", "params")
    }
    if any(not (value > 0) for value in numbers.values()) or record["metric"] not in ("tg", "pp"):
        return None
    vendor, ops = chip_facts(record["device"], record["chip"], record["processor"])
    shape = model_shape(record["model"], numbers["params"])
    prefill = record["metric"] == "pp"
    prompt = _number(record["prompt_tokens"])
    prompt = prompt if prompt > 0 else (512 if prefill else 0)
    tokens = int(prompt) if prefill else 1
    # llama-bench decodes 128 tokens from an empty cache; the context is then 64 on average.
    context = prompt / 2 if prefill else prompt + 64
    return Row(
        device=record["device"],
        chip=record["chip"],
        vendor=vendor,
        device_class=record["device_class"],
        engine=engine_of(record["backend"], record["processor"], vendor),
        processor=record["processor"],
        metric=record["metric"],
        firm=record["firm"] == "yes",
        tokens=tokens,
        seconds=tokens / numbers["tok_per_s"],
        params=numbers["params"],
        layers=shape.layers,
        weight_bytes=numbers["weight_bytes"],
        kv_bytes=2.0 * shape.layers * shape.kv_width * KV_BYTES * context,
        attention_flops=4.0 * shape.layers * shape.hidden * context * tokens,
        bandwidth_Bps=numbers["nominal_bandwidth_GBps"] * 1e9,
        ops=ops if ops is not None else _stated_ops(record.get("compute", ""), record["processor"]),
    )


def engine_of(backend: str, processor: str, vendor: str) -> str:
    """The engine behind a backend's label; wrappers (ollama, LM Studio) are llama.cpp."""
    label = backend.lower()
    known = next((engine for prefix, engine in ENGINES if label.startswith(prefix)), None)
    if known in ("openvino", "onnxruntime"):
        return f"{known}-{processor}"
    if known is not None:
        return known
    if processor == "cpu":
        return "llama-cpp-cpu"
    return (
        GPU_ENGINE_OF_VENDOR.get(vendor, f"other-{processor}") if processor == "gpu" else f"other-{processor}"
    )


def chip_facts(device: str, chip: str, processor: str) -> tuple[str, float | None]:
    """Vendor, and peak operations per second of `processor`; the longest name in the table that matches."""
    for text in (device, chip):
        found = [entry for entry in _chips() if _is_part(entry["match"], text)]
        if found:
            entry = max(found, key=lambda one: len(one["match"]))
            return entry["vendor"], _peak(entry, device, processor)
    return _vendor_by_name(f"{chip} {device}"), None


def model_shape(name: str, params: float) -> Shape:
    """The shape of a named model, else one of the usual proportions for its parameters."""
    key = re.sub(r"[^a-z0-9]", "", name.lower())
    found = [entry for entry in _models() if entry["match"] in key]
    if found:
        entry = max(found, key=lambda one: len(one["match"]))
        return Shape(entry["layers"], entry["hidden"], entry["kv_width"])
    layers = max(8, round(32 * (params / 7e9) ** 0.35))
    hidden = math.sqrt(params / (12.5 * layers))
    return Shape(layers, round(hidden), round(hidden / 4))


def _peak(entry: Mapping[str, Any], device: str, processor: str) -> float | None:
    if processor == "gpu" and "gpu_per_core" in entry:
        counted = re.search(r"(\d+)[- ]?c(?:ore)? GPU", device)
        return parse_ops(entry["gpu_per_core"]) * (int(counted[1]) if counted else entry["gpu_cores"])
    return parse_ops(entry[processor]) if processor in entry else None


def _stated_ops(text: str, processor: str) -> float | None:
    """The first rate in a measurement's own words, for a GPU only: others' rates follow it."""
    found = re.search(r"([0-9.]+) TFLOPS", text) if processor == "gpu" else None
    return float(found[1]) * 1e12 if found else None


def _vendor_by_name(text: str) -> str:
    names = {
        "apple": ("Apple", "Mac", "iPhone", "iPad"),
        "nvidia": ("RTX", "GTX", "NVIDIA", "Tesla", "Quadro", "Jetson", "Orin"),
        "amd": ("Radeon", "Ryzen", "AMD", "RX "),
        "intel": ("Intel", "Core", "Arc ", "Xeon"),
        "qualcomm": ("Snapdragon", "Qualcomm"),
    }
    return next((vendor for vendor, parts in names.items() if any(part in text for part in parts)), "other")


def _is_part(name: str, text: str) -> bool:
    """Whether `name` stands in `text` as whole words: RTX 4070 is not in RTX 40700."""
    return re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text) is not None


@cache
def _chips() -> list[dict[str, Any]]:
    return _facts("chips.toml")["chip"]


@cache
def _models() -> list[dict[str, Any]]:
    return _facts("models.toml")["model"]


def _facts(name: str) -> dict[str, Any]:
    folder = Path(str(devices.__file__)).parent / "facts"
    return tomllib.loads((folder / name).read_text(encoding="utf-8"))


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan
