"""One layer of the torch model on exactly what the graph's layer was given, so that each layer is judged
alone.

A fault in an early layer changes everything behind it; feeding every torch layer with the graph's own input
takes that away. The layer is called with the arguments that the model itself passed to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from seatrial.export.faults.probe import AttentionChange, Seen, changed, install_probe
from seatrial.export.quiet import quiet
from seatrial.export.reference import attention, find_layers


@dataclass
class Call:
    """How the model calls one layer: arguments apart from the hidden state."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass
class LayerResult:
    """What a layer computes, as numpy: keys, values (B, KV, T, D), mid and out (B, T, hidden)."""

    key: np.ndarray | None
    value: np.ndarray | None
    mid: np.ndarray | None
    out: np.ndarray

    def parts(self) -> list[tuple[str, np.ndarray | None]]:
        return [("key", self.key), ("value", self.value), ("mid", self.mid), ("out", self.out)]


class ForcedModel:
    """A torch model opened layer by layer, under the probing attention. Use as a context manager."""

    def __init__(self, model: Any, layer_count: int, ids: np.ndarray) -> None:
        self.model, self.ids = model, ids
        self.layers = list(find_layers(model, layer_count))
        self.calls: list[Call] = []
        self.first_hidden = np.zeros(0)
        self.logits_factor = 1.0  # put in by who tries a wrong one
        self._attention = attention(model, install_probe())

    def __enter__(self) -> ForcedModel:
        self._attention.__enter__()
        hooks = [layer.register_forward_pre_hook(self._keep, with_kwargs=True) for layer in self.layers]
        try:
            self._forward()
        finally:
            for hook in hooks:
                hook.remove()
        return self

    def __exit__(self, *_: object) -> None:
        self._attention.__exit__()

    def _keep(self, _module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        hidden, args, kwargs = _without_hidden(args, kwargs)
        if not self.calls:
            self.first_hidden = hidden.detach().numpy().copy()
        self.calls.append(Call(args, kwargs))

    def _forward(self) -> Any:
        with torch.no_grad(), quiet():
            return self.model(input_ids=torch.from_numpy(self.ids), use_cache=False, return_dict=True)

    def embed(self) -> np.ndarray:
        """What goes into the first layer now, (B, T, hidden)."""
        found: list[np.ndarray] = []

        def keep(_module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            found.append(_without_hidden(args, kwargs)[0].detach().numpy().copy())

        hook = self.layers[0].register_forward_pre_hook(keep, with_kwargs=True)
        try:
            self._forward()
        finally:
            hook.remove()
        return found[0]

    def run_layer(
        self,
        number: int,
        hidden: np.ndarray,
        change: AttentionChange | None = None,
        no_rotary: bool = False,
    ) -> LayerResult:
        """One layer on `hidden` (B, T, hidden)."""
        call = self.calls[number]
        kwargs = without_rotary(call.kwargs) if no_rotary else call.kwargs
        given = torch.from_numpy(np.ascontiguousarray(hidden, dtype=np.float32))
        with torch.no_grad(), changed(change) as found, _watched(self.layers[number]) as events:
            output = self.layers[number](given, *call.args, **kwargs)
        out = output[0] if isinstance(output, tuple) else output
        inside = found.get(_index(self.layers[number], number))
        return LayerResult(
            None if inside is None else inside.key.numpy(),
            None if inside is None else inside.value.numpy(),
            _middle(events, out),
            out.numpy(),
        )

    def seen_in(self, number: int, hidden: np.ndarray, no_rotary: bool = False) -> Seen | None:
        """The inside of a layer's attention on `hidden`."""
        call = self.calls[number]
        kwargs = without_rotary(call.kwargs) if no_rotary else call.kwargs
        given = torch.from_numpy(np.ascontiguousarray(hidden, dtype=np.float32))
        with torch.no_grad(), changed() as found:
            self.layers[number](given, *call.args, **kwargs)
        return found.get(_index(self.layers[number], number))

    def logits_from(self, last: np.ndarray) -> np.ndarray:
        """Final norm and head on `last` (B, T, hidden), the output of the last layer."""
        given = torch.from_numpy(np.ascontiguousarray(last, dtype=np.float32))

        def put(_module: Any, _args: Any, output: Any) -> Any:
            return (given, *output[1:]) if isinstance(output, tuple) else given

        hook = self.layers[-1].register_forward_hook(put)
        try:
            logits: np.ndarray = self._forward().logits.float().numpy()
            return logits if self.logits_factor == 1.0 else logits * np.float32(self.logits_factor)
        finally:
            hook.remove()


def _index(layer: torch.nn.Module, number: int) -> int:
    for module in layer.modules():
        if isinstance(getattr(module, "layer_idx", None), int):
            return int(module.layer_idx)
    return number


def _without_hidden(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.Tensor, tuple[Any, ...], dict[str, Any]]:
    if args:
        return args[0], args[1:], dict(kwargs)
    rest = dict(kwargs)
    return rest.pop("hidden_states"), (), rest


def without_rotary(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The same call with a rotation by nothing: cosines one, sines zero."""
    found = dict(kwargs)
    for name, value in kwargs.items():
        if name.startswith("position_embeddings") and isinstance(value, tuple):
            found[name] = (torch.ones_like(value[0]), torch.zeros_like(value[1]))
    return found


@contextmanager
def _watched(layer: torch.nn.Module) -> Iterator[list[tuple[torch.Tensor, torch.Tensor]]]:
    """(input, output) of every module inside the layer that ended after the attention did, in order."""
    events: list[tuple[torch.Tensor, torch.Tensor]] = []
    state = {"attended": False}

    def after(module: Any, args: tuple[Any, ...], output: Any) -> None:
        output = output[0] if isinstance(output, tuple) else output
        if state["attended"] and args and torch.is_tensor(output):
            events.append((args[0], output))
        state["attended"] = state["attended"] or hasattr(module, "layer_idx")

    hooks = [m.register_forward_hook(after) for name, m in layer.named_modules() if name]
    try:
        yield events
    finally:
        for hook in hooks:
            hook.remove()


def _middle(events: list[tuple[torch.Tensor, torch.Tensor]], out: torch.Tensor) -> np.ndarray | None:
    """The residual after the attention: an input of a module which, with a multiple of a later output,
    makes `out`.
    """
    for number, (x, _) in enumerate(events):
        if x.numel() != out.numel():
            continue
        rest = out - x.reshape(out.shape)
        for _, y in events[number:]:
            if y.numel() == out.numel() and _proportional(rest, y.reshape(out.shape)):
                return x.reshape(out.shape).numpy()
    return None


def _proportional(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Is a = c * b for one number c?"""
    square = float((b * b).sum())
    factor = float((a * b).sum()) / square if square else 0.0
    return factor != 0.0 and float((a - factor * b).abs().max()) <= 1e-4 * float(a.abs().max())
