"""The parts of one torch layer, told apart by when they run and by their shapes, not by their names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from seatrial.export.faults.forced import ForcedModel


@dataclass
class LayerModules:
    """Names (inside the layer) of the leaf modules, in running order, split at the attention."""

    layer: torch.nn.Module
    before: list[str] = field(default_factory=list)  # linears that feed the attention
    output: list[str] = field(default_factory=list)  # the attention's own output projection
    mlp: list[str] = field(default_factory=list)  # linears of the feed-forward part
    norms: list[str] = field(default_factory=list)
    activations: list[str] = field(default_factory=list)
    gate: str | None = None  # the linear whose output goes into the activation

    def get(self, name: str) -> Any:
        return self.layer.get_submodule(name)

    def linears(self) -> list[str]:
        return [*self.before, *self.output, *self.mlp]


def modules_of(forced: ForcedModel, number: int, hidden: np.ndarray) -> LayerModules:
    """Run the layer once and sort its leaf modules."""
    layer = forced.layers[number]
    found = LayerModules(layer)
    inside = next(
        (name for name, module in layer.named_modules() if name and hasattr(module, "layer_idx")), ""
    )
    order: list[tuple[str, Any, torch.Tensor, torch.Tensor]] = []

    def note(name: str) -> Any:
        def hook(module: Any, args: tuple[Any, ...], output: Any) -> None:
            order.append((name, module, args[0], output))

        return hook

    leaves = [(name, m) for name, m in layer.named_modules() if name and not any(True for _ in m.children())]
    hooks = [module.register_forward_hook(note(name)) for name, module in leaves]
    try:
        forced.run_layer(number, hidden)
    finally:
        for hook in hooks:
            hook.remove()
    _sort(found, order, inside)
    return found


def is_linear(module: Any) -> bool:
    """Does it have a matrix, and is it no embedding?"""
    weight = getattr(module, "weight", None)
    return weight is not None and weight.ndim == 2 and not isinstance(module, torch.nn.Embedding)


def matrix(module: Any) -> torch.Tensor:
    """The weight as (out, in), whatever way the module stores it."""
    return module.weight.T if type(module).__name__ == "Conv1D" else module.weight


def _sort(found: LayerModules, order: list[tuple[str, Any, torch.Tensor, torch.Tensor]], inside: str) -> None:
    attention = [name for name, module, _, _ in order if is_linear(module) and name.startswith(inside + ".")]
    for name, module, given, _ in order:
        if is_linear(module):
            if name not in attention:
                found.mlp.append(name)
            elif name == attention[-1]:
                found.output.append(name)
            else:
                found.before.append(name)
        elif "norm" in type(module).__name__.lower():
            found.norms.append(name)
        elif not list(module.parameters()) and not isinstance(module, torch.nn.Dropout):
            found.activations.append(name)
            found.gate = next((n for n, m, _, out in order if is_linear(m) and out is given), found.gate)
