"""From the traced graph to a small one: library fusions, then our own rewrites of what surrounds the
attention nodes.

Every rewrite either applies or leaves the graph as it was; none knows an architecture. That it changed
nothing is not argued but shown, by parity before and after.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir
import onnx_ir.passes.common as passes

from seatrial.export.rewrite.fusions import fuse
from seatrial.export.rewrite.packing import pack_projections
from seatrial.export.rewrite.reshapes import drop_reshapes
from seatrial.export.rewrite.rotary import absorb_rotary
from seatrial.export.rewrite.weights import Weights


@dataclass(frozen=True)
class Applied:
    """How many attention nodes each rewrite took, of how many there are."""

    attention_nodes: int
    rotary_absorbed: int
    projections_packed: int
    nodes_before: int
    nodes_after: int


def rewrite_graph(model: ir.Model, context: int, *, absorb: bool = True, pack: bool = True) -> Applied:
    """Fuse and rewrite `model` in place. `context` is the number of positions that rotary tables must
    cover."""
    before = model.graph.num_nodes()
    weights = Weights.hold_out(model)
    fuse(model)
    weights.put_back(model)
    drop_reshapes(model)
    rotary = absorb_rotary(model, context) if absorb else 0
    packed = pack_projections(model) if pack else 0
    clean(model)
    return Applied(
        attention_nodes=_attention_nodes(model),
        rotary_absorbed=rotary,
        projections_packed=packed,
        nodes_before=before,
        nodes_after=model.graph.num_nodes(),
    )


def tidy_graph(model: ir.Model) -> Applied:
    """Leave the traced graph as it is, but for what is not used."""
    before = model.graph.num_nodes()
    clean(model)
    return Applied(
        attention_nodes=_attention_nodes(model),
        rotary_absorbed=0,
        projections_packed=0,
        nodes_before=before,
        nodes_after=model.graph.num_nodes(),
    )


def _attention_nodes(model: ir.Model) -> int:
    return sum(node.op_type == "GroupQueryAttention" for node in model.graph)


def clean(model: ir.Model) -> None:
    """Remove what is no longer used, twice-computed values, and the traces of the exporter."""
    passes.CommonSubexpressionEliminationPass()(model)
    passes.RemoveUnusedNodesPass()(model)
    passes.RemoveUnusedFunctionsPass()(model)
    passes.RemoveUnusedOpsetsPass()(model)
    passes.ClearMetadataAndDocStringPass()(model)
