"""Proof that a saved bundle really is quantized: looked at in the file, and run.

A bundle that loads and answers fluently may still hold float weights, a scale left at 1 or a cache that
nobody calibrated. Each check here has a figure and a limit.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from seatrial.quantize.agreement import Agreement
from seatrial.quantize.result import Check, at_least, at_most
from seatrial.quantize.targets import survey
from seatrial.quantize.tensors import TensorReader

_SCALES_AT = {"MatMulNBits": 2, "GatherBlockQuantized": 2}


def inspect_weights(model_path: Path, weight_floor: float, share: float) -> list[Check]:
    """Checks on the graph and its scales: `share` is what the writer says it quantized."""
    model = onnx.load(model_path, load_external_data=False)
    reader = TensorReader(model, model_path.parent)
    kinds = [node.op_type for node in model.graph.node]
    tables = len(survey(model).tables)
    names = {node.input[_SCALES_AT[node.op_type]] for node in model.graph.node if node.op_type in _SCALES_AT}
    bad = [name for name in sorted(names) if not sound_scales(reader.read(name))]
    return [
        at_least("share of the weight bytes quantized", share, weight_floor),
        at_least("quantized matmuls in the file", kinds.count("MatMulNBits"), 1),
        at_most("embeddings left in float", tables, 0 if share >= weight_floor else tables),
        at_most("weights with scales that are zero, one or constant", len(bad), 0, ", ".join(bad[:3])),
    ]


def sound_scales(scales: np.ndarray) -> bool:
    """Finite, not all zero, not all one, not all the same."""
    values = np.asarray(scales, np.float32)
    if not np.isfinite(values).all() or not values.any():
        return False
    return values.size < 2 or bool((values != values.flat[0]).any())


def inspect_cache(model_path: Path, kv: str, layers: int) -> list[Check]:
    """Checks on the cache's types and scales."""
    if kv == "fp32":
        return []
    model = onnx.load(model_path, load_external_data=False)
    reader = TensorReader(model, model_path.parent)
    wanted = onnx.TensorProto.INT8 if kv == "int8" else onnx.TensorProto.UINT8
    past = [v for v in model.graph.input if v.name.startswith("past_key_values.")]
    typed = sum(value.type.tensor_type.elem_type == wanted for value in past)
    nodes = [node for node in model.graph.node if node.op_type == "GroupQueryAttention"]
    scales = [reader.read(name) for node in nodes for name in node.input[12:14] if name]
    calibrated = sum(bool(np.isfinite(s).all() and (s > 0).all() and not (s == 1).all()) for s in scales)
    return [
        at_least(f"cache tensors stored as {kv}", typed, 2 * layers),
        at_least("cache scales calibrated", calibrated, 2 * layers),
    ]


def inspect_run(
    agreement: dict[str, Agreement], weight_bytes_per_token: int, expected_bytes: int
) -> list[Check]:
    """Checks on what it does: other output than the reference, and the bytes that were computed."""
    # Identical predictions would mean that nothing was quantized.
    least = min((found.kl for found in agreement.values()), default=0.0)
    ratio = weight_bytes_per_token / expected_bytes if expected_bytes else 0.0
    return [
        at_least("KL from the reference, which must not be zero", least, 1e-9),
        at_most("bytes per token against the computed ones", abs(ratio - 1), 0.05),
    ]
