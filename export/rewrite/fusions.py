"""The library's fusions (`onnxscript.rewriter.ort_fusions`), with weights held out and constants that stay
small.

Norms, skip + norm, rotary and GELU become the runtime's own operators. What the library does not fuse stays
as the exporter wrote it.
"""

from __future__ import annotations

import onnx_ir as ir
import onnx_ir.passes.common as passes
from onnxscript.rewriter.ort_fusions import optimize_for_ort


def fuse(model: ir.Model) -> dict[str, int]:
    """Apply the fusions in place; returns how often each one matched."""
    fused, counts = optimize_for_ort(model)
    if fused is not model:
        raise RuntimeError("ort_fusions returned another model than it was given")
    passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    return {name: count for name, count in counts.items() if count}
