"""Faults that the outputs hide: a scale in front of a norm, which the norm takes out again.

The input of every norm of the graph is compared with the input of the torch model's norm on the same hidden
state. A norm of the graph belongs to the one whose input points the same way; only its length may then
tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import torch

from seatrial.export.anatomy import join_value
from seatrial.export.faults.fault import Fault
from seatrial.export.faults.forced import ForcedModel

_NORMS = ("SimplifiedLayerNormalization", "LayerNormalization", "RMSNormalization")
_SAME_WAY = 1e-3
_SAME_LENGTH = 1e-3


@dataclass(frozen=True)
class NormInput:
    """A value that a norm of the graph reads, and the norm's epsilon where it is written at the node."""

    value: str
    epsilon: float | None


def norm_inputs(proto: onnx.ModelProto) -> list[NormInput]:
    """What norms of the graph read; a decomposed one shows as the square of its input."""
    made = {output for node in proto.graph.node for output in node.output}
    found = []
    for node in proto.graph.node:
        epsilon = next((float(a.f) for a in node.attribute if a.name == "epsilon"), None)
        if node.op_type in _NORMS:
            found.append(NormInput(node.input[0], epsilon))
        elif node.op_type in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
            found.append(NormInput(join_value(node), epsilon))
        elif node.op_type == "Pow":
            found.append(NormInput(node.input[0], None))
    return [norm for norm in found if norm.value in made]


@dataclass(frozen=True)
class _Call:
    """One norm of the torch model at work."""

    place: str
    given: np.ndarray
    epsilon: float | None


def hidden_faults(
    forced: ForcedModel, hiddens: list[np.ndarray], norms: list[NormInput], taps: dict[str, np.ndarray]
) -> tuple[list[Fault], int, int]:
    """Faults, and how many of the model's norms could be judged. `hiddens[n]` is the input of layer n; the
    last one is the final norm's.
    """
    calls = [call for number in range(len(forced.layers)) for call in _calls(forced, number, hiddens[number])]
    calls += _final_call(forced, hiddens[-1])
    faults, judged = [], 0
    for call in calls:
        matches = [
            (factor, norm) for norm in norms if (factor := _factor(call.given, taps[norm.value])) is not None
        ]
        judged += bool(matches)
        faults += list(_judge(call, matches))
    unique = {(fault.kind, fault.place.split(",")[0], fault.detail): fault for fault in faults}
    return list(unique.values()), judged, len(calls)


def _judge(call: _Call, matches: list[tuple[float, NormInput]]) -> Iterator[Fault]:
    for factor, norm in matches:
        if abs(factor - 1) > _SAME_LENGTH:
            detail = f"its input is {factor:.4g} times what it should be, which the norm hides"
            yield Fault("scale wrong", call.place, detail, 0.0)
        elif norm.epsilon is not None and call.epsilon and not 0.99 < norm.epsilon / call.epsilon < 1.01:
            detail = f"epsilon is {norm.epsilon:g} instead of {call.epsilon:g}"
            yield Fault("epsilon wrong", call.place, detail, 0.0)


def _calls(forced: ForcedModel, number: int, hidden: np.ndarray) -> list[_Call]:
    kept: list[_Call] = []

    def note(name: str) -> Any:
        def hook(module: Any, args: tuple[torch.Tensor, ...]) -> None:
            kept.append(_Call(f"layer {number}, {name}", args[0].detach().numpy().copy(), epsilon_of(module)))

        return hook

    named = forced.layers[number].named_modules()
    modules = [(name, module) for name, module in named if name and "norm" in type(module).__name__.lower()]
    hooks = [module.register_forward_pre_hook(note(name)) for name, module in modules]
    try:
        forced.run_layer(number, hidden)
    finally:
        for hook in hooks:
            hook.remove()
    return kept


def _final_call(forced: ForcedModel, hidden: np.ndarray) -> list[_Call]:
    inside = {module for layer in forced.layers for module in layer.modules()}
    norms = [m for m in forced.model.modules() if "norm" in type(m).__name__.lower() and m not in inside]
    return [_Call("head, final norm", hidden, epsilon_of(norms[-1]))] if norms else []


def epsilon_of(module: Any) -> float | None:
    """A norm module's epsilon, whatever it calls it."""
    for name in ("eps", "variance_epsilon", "epsilon"):
        if isinstance(value := getattr(module, name, None), float):
            return value
    return None


def _factor(given: np.ndarray, value: np.ndarray) -> float | None:
    """The factor by which `value` is longer than `given`, if it points the same way (heads may be in
    another axis).
    """
    if value.size != given.size:
        return None
    forms = [given, given.transpose(0, 2, 1, 3)] if given.ndim == 4 else [given]
    return next((f for form in forms if (f := _along(value.reshape(-1), form.reshape(-1))) is not None), None)


def _along(found: np.ndarray, wanted: np.ndarray) -> float | None:
    square = float(wanted @ wanted)
    factor = float(found @ wanted) / square if square else 0.0
    if not np.isfinite(factor) or abs(factor) < 1e-6:
        return None
    gap = float(np.abs(found - factor * wanted).max())
    return factor if gap <= _SAME_WAY * abs(factor) * float(np.abs(wanted).max()) else None
