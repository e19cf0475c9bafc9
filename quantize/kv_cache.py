"""int8 and int4 KV cache inside the attention node: scales from calibration, and the change to the graph.

onnxruntime's `GroupQueryAttention` quantizes keys and values with static scales when it writes them: code =
round(x / scale), clipped to the type. A scale of 1 would lose nearly everything, so scales always come from
what the model really wrote while reading text: the largest magnitude per channel (or per tensor, which one
outlier channel ruins) times a headroom, because other text goes further than the calibration did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from seatrial.errors import UserError
from seatrial.export.session import Session
from seatrial.quantize.packing import Floats

Granularity = Literal["channel", "tensor"]
KV_BITS = {"int8": 8, "int4": 4}
# The calibrated maximum alone clips on other text, a wide range rounds more coarsely. `bench/kv.py headroom`
# on the embedded model, KL in English and Chinese: .0011 and .0015 at 1.0, .0009 and .0014 at 1.1, .0009 and
# .0020 at 1.25, .0012 and .0030 at 1.5. 1.25 clips six times less than 1.1: text of other kinds needs room.
HEADROOM = 1.25
# A channel that stayed at zero still needs a step; this share of the tensor's largest channel is harmless.
_SMALLEST_SHARE = 1e-4
_K_SCALE, _V_SCALE = 12, 13  # places among the node's inputs


@dataclass(frozen=True)
class KvScales:
    """Scales of every cache tensor by its input's name: (1, kv_heads, 1, head_dim), or (1,) per tensor."""

    bits: int
    granularity: Granularity
    headroom: float
    scales: Mapping[str, Floats]
    warnings: tuple[str, ...] = ()


def peaks_of(session: Session, texts: Sequence[Sequence[int]]) -> dict[str, Floats]:
    """Largest magnitude of every cache channel, (kv_heads, head_dim), over texts.

    `session` must be a float one that shares its buffers.
    """
    peaks: dict[str, Floats] = {}
    for ids in texts:
        session.reset()
        session.prefill(ids)
        for name, rows in session.kv_rows().items():
            peak = np.abs(rows).max(axis=(0, 2)).astype(np.float32)
            peaks[name] = np.maximum(peaks.get(name, peak), peak)
    return peaks


def scales_from(
    peaks: Mapping[str, Floats],
    *,
    bits: int,
    granularity: Granularity = "channel",
    headroom: float = HEADROOM,
) -> KvScales:
    """Scales for peaks (kv_heads, head_dim): peak * headroom / largest code.

    Raises `UserError` when a cache tensor stayed empty or is not finite: there is no scale to fall back on.
    """
    top = 2 ** (bits - 1) - 1
    scales, warnings = {}, []
    for name, peak in peaks.items():
        largest = float(peak.max())
        if not np.isfinite(largest) or largest <= 0:
            raise UserError(
                f"calibration saw nothing usable in {name} (largest value {largest}): check the model"
            )
        if granularity == "tensor":
            scales[name] = np.array([largest * headroom / top], np.float32)
            warnings += _outlier_warning(name, peak)
        else:
            floor = largest * _SMALLEST_SHARE
            scales[name] = (np.maximum(peak, floor) * headroom / top).astype(np.float32)[None, :, None, :]
    return KvScales(bits, granularity, headroom, scales, tuple(warnings))


def _outlier_warning(name: str, peak: Floats) -> list[str]:
    """A word for tensors whose typical channel gets fewer than 16 of the 127 steps."""
    share = float(np.median(peak) / peak.max())
    if share >= 16 / 127:
        return []
    return [f"{name}: one scale for all channels leaves the median channel {share * 127:.1f} of 127 steps"]


def quantize_cache(model: onnx.ModelProto, scales: KvScales) -> int:
    """Make the cache of `model` (changed in place) int8 or int4; returns the number of attention nodes.

    Raises `UserError` when a cache tensor does not go straight into a GroupQueryAttention node.
    """
    left = set(scales.scales)
    changed = 0
    for node in model.graph.node:
        if node.op_type != "GroupQueryAttention" or not {node.input[3], node.input[4]} & left:
            continue
        _give_scales(model, node, scales)
        left -= {node.input[3], node.input[4]}
        changed += 1
    if left or not changed:
        missing = min(left, default="the model")
        raise UserError(
            f"a quantized cache needs GroupQueryAttention nodes and {missing} has none: "
            "export the model with --exporter attention, or keep --kv fp32"
        )
    _retype(model, scales)
    return changed


def _give_scales(model: onnx.ModelProto, node: onnx.NodeProto, scales: KvScales) -> None:
    inputs = list(node.input) + [""] * (_V_SCALE + 1 - len(node.input))
    for place, source in ((_K_SCALE, node.input[3]), (_V_SCALE, node.input[4])):
        inputs[place] = f"{source}.scale"
        model.graph.initializer.append(numpy_helper.from_array(scales.scales[source], inputs[place]))
    node.input[:] = inputs
    kind = "PER_CHANNEL" if scales.granularity == "channel" else "PER_TENSOR"
    for name, value in _attributes(kind, scales.bits).items():
        node.attribute.append(helper.make_attribute(name, value))


def _attributes(kind: str, bits: int) -> dict[str, Any]:
    return {"k_quant_type": kind, "v_quant_type": kind, "kv_cache_bit_width": bits}


def _retype(model: onnx.ModelProto, scales: KvScales) -> None:
    """Cache inputs and outputs become int8, or uint8 with two values in a byte."""
    outputs = {name.replace("past_key_values.", "present.") for name in scales.scales}
    for value in [*model.graph.input, *model.graph.output]:
        if value.name not in scales.scales and value.name not in outputs:
            continue
        tensor = value.type.tensor_type
        tensor.elem_type = TensorProto.INT8 if scales.bits == 8 else TensorProto.UINT8
        if scales.bits == 4:
            tensor.shape.dim[3].dim_value //= 2
    del model.graph.value_info[:]


def share_clipped(session: Session, bits: int = 8) -> float:
    """Share, 0 to 1, of the values in a session's quantized cache that lie on either end of the range."""
    rows = session.kv_rows().values()
    values = sum(codes.size * 8 // bits for codes in rows)
    return sum(clipped(codes, bits) for codes in rows) / values if values else 0.0


def clipped(codes: NDArray, bits: int) -> int:
    """Values of a quantized cache that lie on either end of the range: what may have been clipped."""
    if bits == 8:
        return int(np.count_nonzero(codes >= 127) + np.count_nonzero(codes <= -127))
    return sum(
        int(np.count_nonzero((nibbles == 0) | (nibbles == 15))) for nibbles in (codes & 15, codes >> 4)
    )
