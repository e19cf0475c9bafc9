"""Exports of the tiny models, made once per test session by two processes.

Each worker traces a family once and keeps the graph twice: as the library's fusions leave it, and a bundle.
"""

from __future__ import annotations

import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from tiny_models import FAMILIES, save

from seatrial.export.rewrite import Applied


@dataclass(frozen=True)
class Made:
    """What one worker made of a family."""

    source: Path
    bundle: Path
    verdicts: dict[str, str]  # of the checks of an export
    fused_worst: float  # the graph before our own rewrites: its worst share of a limit
    rewritten_worst: float
    applied: Applied


def make_all(folder: Path) -> dict[str, Made]:
    """Every family exported below `folder`."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=_one_thread) as pool:
        futures = {family: pool.submit(make, family, folder / family) for family in FAMILIES}
        return {family: future.result() for family, future in futures.items()}


def _one_thread() -> None:
    import logging
    import warnings

    import torch

    torch.set_num_threads(1)
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")


def make(family: str, folder: Path) -> Made:
    """Trace a family once; write and compare the graph as it is fused, then rewritten as a bundle."""
    import onnx_ir as ir

    from seatrial.export.bundle import write_info
    from seatrial.export.doors import save_graph, trace_loaded
    from seatrial.export.graph_check import check_graph
    from seatrial.export.load import load_torch
    from seatrial.export.parity import make_cases, ratio
    from seatrial.export.reference import references
    from seatrial.export.rewrite import rewrite_graph
    from seatrial.export.source import resolve
    from seatrial.export.texts import write_texts

    source, bundle, plain = (folder / name for name in ("source", "bundle", "plain"))
    save(family, source)
    bundle.mkdir()
    plain.mkdir()
    loaded = load_torch(resolve(source), folder)
    cases = make_cases(loaded.vocabulary, loaded.window, loaded.context)
    wanted = references(loaded.model, loaded.layers, cases)
    graph = trace_loaded(loaded)
    before = ir.from_proto(ir.to_proto(graph))
    rewrite_graph(before, loaded.context, absorb=False, pack=False)
    save_graph(before, plain)
    applied = rewrite_graph(graph, loaded.context)
    save_graph(graph, bundle)
    checks = check_graph(bundle / "model.onnx", cases, wanted)
    write_texts(resolve(source), loaded, bundle)
    write_info(bundle, {"kind": "export"})
    return Made(
        source=source,
        bundle=bundle,
        verdicts={check.name: check.verdict for check in checks},
        fused_worst=max(ratio(check) for check in check_graph(plain / "model.onnx", cases, wanted)),
        rewritten_worst=max(ratio(check) for check in checks),
        applied=applied,
    )
