"""Verify graphs of the tiny models, with torch's side computed once per family."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from tiny_exports import Made

from seatrial.export.graph_file import GraphFile
from seatrial.export.load import load_torch
from seatrial.export.parity import make_cases
from seatrial.export.reference import references
from seatrial.export.source import resolve
from seatrial.export.verify import Verification, verify_graph


class Verifier:
    """Call with a family's name, and optionally a changed graph."""

    def __init__(self, families: dict[str, Made]) -> None:
        self._families = families
        self._side = cache(self._torch_side)
        self.proto = cache(self._read)

    def __call__(self, family: str, proto: onnx.ModelProto | None = None) -> Verification:
        model, layers, cases, wanted = self._side(family)
        graph = GraphFile(Path(f"{family}.onnx"), proto or self.proto(family), (), 0, ())
        return verify_graph(model, layers, graph, cases, wanted)

    def _read(self, family: str) -> onnx.ModelProto:
        return onnx.load(self._families[family].bundle / "model.onnx")

    def _torch_side(self, family: str) -> Any:
        loaded = load_torch(resolve(self._families[family].source), Path())
        cases = make_cases(loaded.vocabulary, loaded.window, loaded.context)
        return loaded.model, loaded.layers, cases, references(loaded.model, loaded.layers, cases)


def draw(name: str, seed: int) -> np.random.Generator:
    """A generator for one fault of the suite: its name and a seed."""
    return np.random.default_rng([seed, *name.encode()])
