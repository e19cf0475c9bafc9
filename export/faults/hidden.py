"""Faults that the outputs hide: a scale in front of a norm, which the norm takes out again.

The input of every norm of the graph is compared with the input of the torch model's norm on the same hidden
state. A norm of the graph belongs to the one whose input points the same way; only its length may then
tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

from seatrial.export.anatomy import join_value
from seatrial.export.audit import load_tensor
from seatrial.export.faults.fault import Fault
from seatrial.export.faults.forced import ForcedModel
from seatrial.export.faults.head import final_norms
from seatrial.export.faults.norm_hypotheses import EPSILON_NAMES

_NORMS = ("SimplifiedLayerNormalization", "LayerNormalization", "RMSNormalization")
_SAME_WAY = 1e-3
_SAME_LENGTH = 1e-3


@dataclass(frozen=True)
class NormInput:
    """A value that a norm of the graph reads, and the norm's epsilon and weight where the node has them."""

    value: str
    epsilon: float | None
    weight: np.ndarray | None = None


def norm_inputs(proto: onnx.ModelProto, folder: Path = Path()) -> list[NormInput]:
    """What norms of the graph read; a decomposed one shows as the square of its input. `folder` is where the
    graph's data is.
    """
    tensors = {tensor.name: tensor for tensor in proto.graph.initializer}

    def weight(name: str) -> np.ndarray | None:
        return load_tensor(tensors[name], folder) if name in tensors else None

    made = {output for node in proto.graph.node for output in node.output}
    found = []
    for node in proto.graph.node:
        epsilon = next((float(a.f) for a in node.attribute if a.name == "epsilon"), None)
        if node.op_type in _NORMS:
            found.append(NormInput(node.input[0], epsilon, weight(node.input[1])))
        elif node.op_type in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization"):
            found.append(NormInput(join_value(node), epsilon, weight(node.input[2])))
        elif node.op_type == "Pow":
            found.append(NormInput(node.input[0], None))
    return [norm for norm in found if norm.value in made]


@dataclass(frozen=True)
class _Call:
    """One norm of the torch model at work."""

    place: str
    given: np.ndarray
    epsilon: float | None
    weight: np.ndarray | None

    def owns(self, norm: NormInput) -> bool:
        """Is the graph's norm this one, by its weight? A norm may multiply by 1 + weight."""
        if self.weight is None or norm.weight is None or norm.weight.shape != self.weight.shape:
            return False
        return any(np.allclose(norm.weight, self.weight + offset, atol=1e-6) for offset in (0, 1))


def hidden_faults(
    forced: ForcedModel, hiddens: list[np.ndarray], norms: list[NormInput], taps: dict[str, np.ndarray]
) -> tuple[list[Fault], int, int]:
    """Faults, and how many of the model's norms could be judged. `hiddens[n]` is the input of layer n; the
    last one is the final norm's.
    """
    calls = [call for number in range(len(forced.layers)) for call in _calls(forced, number, hiddens[number])]
    calls += _final_call(forced, hiddens[-1])
    assigned: dict[int, list[tuple[float, NormInput]]] = {}
    for norm in norms:
        if (found := _belongs_to(norm, taps[norm.value], calls)) is not None:
            assigned.setdefault(found[0], []).append((found[1], norm))
    faults = [fault for place, matches in assigned.items() for fault in _judge(calls[place], matches)]
    unique = {(fault.kind, fault.place.split(",")[0], fault.detail): fault for fault in faults}
    return list(unique.values()), len(assigned), len(calls)


def _belongs_to(norm: NormInput, value: np.ndarray, calls: list[_Call]) -> tuple[int, float] | None:
    """Which of the model's norms a norm of the graph is, and by what factor its input is longer.

    Where two norms read the same value, as in parallel layers, the weight tells which is which. Neighbouring
    layers of a model with one huge channel read almost the same direction: then the nearest counts.
    """
    found = [(place, alike) for place, call in enumerate(calls) if (alike := _alike(call.given, value))]
    own = [(place, alike) for place, alike in found if calls[place].owns(norm)]
    if not (own or found):
        return None
    place, (_, factor) = min(own or found, key=lambda entry: entry[1][0])
    return place, factor


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
            place, given = f"layer {number}, {name}", args[0].detach().numpy().copy()
            kept.append(_Call(place, given, epsilon_of(module), _weight_of(module)))

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
    norms = final_norms(forced)
    if not norms:
        return []
    return [_Call("head, final norm", hidden, epsilon_of(norms[-1]), _weight_of(norms[-1]))]


def _weight_of(module: Any) -> np.ndarray | None:
    weight = getattr(module, "weight", None)
    return None if weight is None else weight.detach().numpy()


def epsilon_of(module: Any) -> float | None:
    """A norm module's epsilon, whatever it calls it."""
    for name in EPSILON_NAMES:
        if isinstance(value := getattr(module, name, None), float):
            return value
    return None


def _alike(given: np.ndarray, value: np.ndarray) -> tuple[float, float] | None:
    """How far `value` is from pointing the same way as `given`, and the factor by which it is longer; None if
    it does not (heads may be in another axis).
    """
    if value.size != given.size:
        return None
    forms = [given, given.transpose(0, 2, 1, 3)] if given.ndim == 4 else [given]
    along = [found for form in forms if (found := _along(value.reshape(-1), form.reshape(-1))) is not None]
    return min(along, default=None)


def _along(found: np.ndarray, wanted: np.ndarray) -> tuple[float, float] | None:
    square = float(wanted @ wanted)
    factor = float(found @ wanted) / square if square else 0.0
    if not np.isfinite(factor) or abs(factor) < 1e-6:
        return None
    gap = float(np.abs(found - factor * wanted).max()) / (abs(factor) * float(np.abs(wanted).max()))
    return (gap, factor) if gap <= _SAME_WAY else None
