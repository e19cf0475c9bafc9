"""Parity of a graph file with what torch computed: the one step of the comparison that needs no torch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.export.anatomy import find_anatomy
from seatrial.export.embedded import Progress
from seatrial.export.graph_file import read_graph_file
from seatrial.export.parity import Case, Check, Reference, compare
from seatrial.export.runner import GraphRunner


def check_graph(
    model: Path, cases: Sequence[Case], wanted: Sequence[Reference], *, say: Progress | None = None
) -> list[Check]:
    """Checks per case and per layer. Raises UserError where the graph does not load."""
    if say is not None:
        say("comparing with torch", 0.9)
    graph = read_graph_file(model)
    residuals = find_anatomy(graph.proto).residuals()
    return compare(GraphRunner(graph, residuals), cases, wanted, residuals)
