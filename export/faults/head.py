"""What is wrong behind the last layer: the final norm, the head, what is done to the logits."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from seatrial.export.faults import changes
from seatrial.export.faults.fault import Fault
from seatrial.export.faults.forced import ForcedModel
from seatrial.export.faults.modules import matrix
from seatrial.export.faults.norm_hypotheses import norm_changes
from seatrial.export.other_kernels import OtherKernels
from seatrial.export.parity import FLOORS, RELATIVE_FLOOR

_SCALES = (0.5, 0.25, 2.0, 4.0, 0.125, 8.0, 3.0, 1 / 3)
_HEAD, _FINAL_NORM = "head", "head, final norm"


@dataclass(frozen=True)
class _Guess:
    """A change to what follows the last layer, and its name."""

    kind: str
    place: str
    detail: str
    change: Any


def head_faults(forced: ForcedModel, hidden: np.ndarray, logits: np.ndarray) -> list[Fault]:
    """Final norm and head on the graph's own last residual (B, T, hidden)."""
    if not np.isfinite(hidden).all():
        return []
    right = forced.logits_from(hidden)
    with OtherKernels(3 / 7):
        floor = float(np.abs(forced.logits_from(hidden) - right).max())
    limit = FLOORS * max(floor, RELATIVE_FLOOR * float(np.abs(right).max()))
    if (misfit := _distance(logits, right) / limit) <= 1.0:
        return []
    best: tuple[float, _Guess] | None = None
    for guess in _guesses(forced, right, logits):
        with guess.change:
            left = _distance(logits, forced.logits_from(hidden)) / limit
        if best is None or left < best[0] * 0.7:
            best = (left, guess)
        if left <= 0.25:
            break
    if best is not None and (best[0] <= 1.0 or best[0] < misfit * 0.01):
        return [Fault(best[1].kind, best[1].place, best[1].detail, round(best[0], 4))]
    detail = f"logits differ {misfit:.3g} times the limit from those of the last residual"
    return [Fault("head wrong", _HEAD, detail)]


def _distance(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference; infinite where shapes or finiteness differ."""
    if found.size != wanted.size:
        return float("inf")
    gap = float(np.abs(found.reshape(wanted.shape) - wanted).max())
    return gap if np.isfinite(gap) else float("inf")


def _guesses(forced: ForcedModel, right: np.ndarray, logits: np.ndarray) -> Iterator[_Guess]:
    """Every change to what follows the last layer; the factor of the logits is read off them."""
    head = forced.model.get_output_embeddings()
    yield from _biases(head)
    yield from _caps_and_scales(forced, head, right, logits)
    columns = matrix(head).shape[1]
    for label, start, stop in (("second", columns // 2, columns), ("first", 0, columns // 2)):
        detail = f"the {label} half of its input channels is missing"
        yield _Guess("half of a sum missing", _HEAD, detail, changes.without_inputs(head, start, stop))
    for module in final_norms(forced)[-1:]:
        for kind, detail, change in norm_changes(module):
            yield _Guess(kind, _FINAL_NORM, detail, change)


def _biases(head: Any) -> Iterator[_Guess]:
    if getattr(head, "bias", None) is None:
        return
    bias = head.bias.detach()
    for kind, detail, value in (
        ("bias dropped", "its bias is missing", torch.zeros_like(bias)),
        ("bias added twice", "its bias counts twice", 2 * bias),
    ):
        yield _Guess(kind, _HEAD, detail, changes.parameter(head, "bias", value))
    for share in (1 / 2, 1 / 4, 3 / 4):
        cut = bias.clone()
        cut[int(len(cut) * share) :] = 0
        detail = f"{share:.0%} of its bias is there"
        yield _Guess("bias truncated", _HEAD, detail, changes.parameter(head, "bias", cut))


def _caps_and_scales(
    forced: ForcedModel, head: Any, right: np.ndarray, logits: np.ndarray
) -> Iterator[_Guess]:
    config = forced.model.config
    if cap := getattr(config, "final_logit_softcapping", None):
        change = changes.attribute(config, "final_logit_softcapping", None)
        yield _Guess("soft cap dropped", _HEAD, f"logits are not capped at {cap:g}", change)
    factor = _factor(logits, right)
    if factor is not None:
        detail = f"logits are {factor:.4g} times what they should be"
        yield _Guess("scale wrong", _HEAD, detail, changes.attribute(forced, "logits_factor", factor))
    own = getattr(config, "logits_scaling", None)
    for factor in (*_SCALES, *([own, 1 / own] if own else [])):
        detail = f"logits are {factor:.4g} times what they should be before the cap"
        yield _Guess("scale wrong", _HEAD, detail, changes.result(head, partial(operator.mul, factor)))


def _factor(found: np.ndarray, wanted: np.ndarray) -> float | None:
    """By how much `found` is longer than `wanted`; None where it is no number."""
    if found.size != wanted.size:
        return None
    wanted = wanted.astype(np.float64)
    factor = float((found.reshape(wanted.shape) * wanted).sum() / (wanted * wanted).sum())
    return factor if np.isfinite(factor) and factor else None


def final_norms(forced: ForcedModel) -> list[Any]:
    """Norm modules outside of the layers, in the model's order."""
    inside = {module for layer in forced.layers for module in layer.modules()}
    return [m for m in forced.model.modules() if "norm" in type(m).__name__.lower() and m not in inside]
