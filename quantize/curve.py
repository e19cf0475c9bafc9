"""Size against damage against speed, for a person who has to choose: a row per setting.

Every setting is really made, opened, compared and stepped, then thrown away. Speeds are of this machine and
this moment; compare rows with each other.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.export.bundle import Bundle, open_bundle
from seatrial.export.session import Session
from seatrial.quantize.agreement import Agreement
from seatrial.quantize.bundle import quantize_bundle
from seatrial.quantize.planning import MEGABYTE, plan_mixed
from seatrial.quantize.recipe import Recipe, recipe_for
from seatrial.quantize.result import QuantizeResult
from seatrial.quantize.weights import Progress

CONTEXT, STEPS, TIMES = 128, 16, 3
# Where between the smallest and the largest setting the mixed ones lie.
_BETWEEN = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Point:
    """One setting: bytes of graph and data, agreement per language, decode speed at context 128."""

    name: str
    size_bytes: int
    agreement: dict[str, Agreement]
    tokens_per_s: float

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "size_bytes": self.size_bytes,
            "agreement": {language: found.to_json() for language, found in self.agreement.items()},
            "tokens_per_s": self.tokens_per_s,
        }


def curve(bundle: Bundle, *, kv: str, folder: Path, progress: Progress | None = None) -> list[Point]:
    """Points for nine settings, smallest first; `folder` is where the bundles are made for a while."""
    points: dict[str, Point] = {}
    for name, recipe in _plain():
        points[name] = _point(bundle, name, recipe, kv, folder, progress)
    low, high = points["int4/32"].size_bytes, points["int8/32"].size_bytes
    for share in _BETWEEN:
        megabytes = round((low + share * (high - low)) / MEGABYTE)
        recipe, _ = plan_mixed(bundle, target_mb=megabytes, progress=progress)
        name = f"mixed {megabytes} MB"
        points[name] = _point(bundle, name, recipe, kv, folder, progress)
    return sorted(points.values(), key=lambda point: point.size_bytes)


def _plain() -> Iterator[tuple[str, Recipe]]:
    for weights in ("int4", "int8"):
        for block in (128, 64, 32):
            yield f"{weights}/{block}", recipe_for(weights, block=block)
    yield "int4/32 asymmetric", recipe_for("int4", symmetric=False)


def _point(
    bundle: Bundle, name: str, recipe: Recipe, kv: str, folder: Path, progress: Progress | None
) -> Point:
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        out = Path(scratch) / "bundle"
        result: QuantizeResult = quantize_bundle(bundle, out, weights=name, kv=kv, recipe=recipe, floor=0.0)
        speed = tokens_per_s(open_bundle(out, check_hashes=False))
    if progress is not None:
        progress(f"measured {name}", 1.0)
    return Point(name, result.sizes["quantized"], dict(result.agreement), speed)


def tokens_per_s(bundle: Bundle) -> float:
    """Median decode speed at context 128."""
    with Session(bundle, capacity=CONTEXT + STEPS * (TIMES + 1), prefill="direct") as session:
        session.prefill([1] * CONTEXT)
        rates = []
        for _ in range(TIMES):
            started = time.perf_counter()
            for _ in range(STEPS):
                session.step(1)
            rates.append(STEPS / (time.perf_counter() - started))
    return statistics.median(rates)
