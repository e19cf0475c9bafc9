"""What is wrong with what goes into the first layer: a factor, the positions, or something else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from seatrial.export.faults import changes
from seatrial.export.faults.fault import Fault
from seatrial.export.faults.forced import ForcedModel
from seatrial.export.parity import FLOORS, RELATIVE_FLOOR

_SHIFTS = (1, -1, 2, -2)


def embedding_faults(forced: ForcedModel, graph: np.ndarray) -> list[Fault]:
    """`graph` is the graph's value in front of its first layer, (B, T, hidden)."""
    right = forced.first_hidden
    if graph.size != right.size or not np.isfinite(graph).all():
        return [Fault("not finite", "embedding", "values are not finite or have another shape")]
    graph, limit = graph.reshape(right.shape), FLOORS * RELATIVE_FLOOR * float(np.abs(right).max())
    if (misfit := _distance(graph, right) / limit) <= 1.0:
        return []
    factor = float((graph * right).sum() / (right * right).sum())
    if factor and _distance(graph / factor, right) / limit <= 10:
        return [Fault("embedding scale missing", "embedding", f"{factor:.4g} times what it should be", 0.0)]
    for detail, change in _positions(forced):
        with change:
            left = _distance(graph, forced.embed()) / limit
        if left <= 1.0:
            return [Fault("positions wrong", "embedding", detail, round(left, 4))]
    wrong = np.abs(graph - right).max(-1)[0] > limit
    first = int(np.flatnonzero(wrong)[0])
    detail = f"differs {misfit:.3g} times the limit, first at token {first}"
    return [Fault("embedding wrong", "embedding", detail)]


def _distance(found: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(found - wanted).max())


def _positions(forced: ForcedModel) -> Iterator[tuple[str, Any]]:
    """Learned positions that are counted from elsewhere, or are not added."""
    words = forced.model.get_input_embeddings()
    for module in forced.model.modules():
        if isinstance(module, torch.nn.Embedding) and module is not words:
            table = module.weight.detach()
            for shift in _SHIFTS:
                moved = changes.parameter(module, "weight", table.roll(-shift, 0))
                yield f"learned positions are counted from {shift} instead of 0", moved
            missing = changes.parameter(module, "weight", torch.zeros_like(table))
            yield "learned positions are not added", missing
