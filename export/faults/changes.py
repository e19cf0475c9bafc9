"""Ways to break a torch layer on purpose: each one undone when its block ends.

A fault in a graph is named by finding the change that makes the torch layer compute the same. Changes work on
modules by shape; no architecture is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from seatrial.export.faults.modules import matrix


@contextmanager
def parameter(owner: Any, name: str, value: Tensor) -> Iterator[None]:
    """Another content for a parameter of the same shape."""
    kept = getattr(owner, name).data
    getattr(owner, name).data = value.to(kept.dtype)
    try:
        yield
    finally:
        getattr(owner, name).data = kept


@contextmanager
def weight(module: Any, value: Tensor) -> Iterator[None]:
    """Another (out, in) matrix for a linear module."""
    stored = value.T if type(module).__name__ == "Conv1D" else value
    with parameter(module, "weight", stored.contiguous()):
        yield


@contextmanager
def given(module: Any, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Something else goes into the module."""
    hook = module.register_forward_pre_hook(lambda _m, args: (change(args[0]), *args[1:]))
    try:
        yield
    finally:
        hook.remove()


@contextmanager
def result(module: Any, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Something else comes out of the module."""

    def hook(_module: Any, _args: Any, output: Any) -> Any:
        return (change(output[0]), *output[1:]) if isinstance(output, tuple) else change(output)

    handle = module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def result_of_input(module: Any) -> Iterator[None]:
    """The module gives back what it is given, as if it were not there."""
    kept = module.forward
    module.forward = lambda x, *_, **__: x
    try:
        yield
    finally:
        module.forward = kept


@contextmanager
def weights_of(module: Any, other: Any) -> Iterator[None]:
    """The parameters of another module of the same shapes."""
    theirs = dict(other.named_parameters())
    kept = {name: own.data for name, own in module.named_parameters()}
    for name, own in module.named_parameters():
        own.data = theirs[name].data
    try:
        yield
    finally:
        for name, own in module.named_parameters():
            own.data = kept[name]


@contextmanager
def exchanged(one: Any, two: Any) -> Iterator[None]:
    """Two modules of the same shapes have each other's parameters."""
    mine, theirs = ({name: p.data for name, p in m.named_parameters()} for m in (one, two))
    try:
        _set_all(one, theirs)
        _set_all(two, mine)
        yield
    finally:
        _set_all(one, mine)
        _set_all(two, theirs)


def _set_all(module: Any, values: dict[str, Tensor]) -> None:
    for name, parameter_ in module.named_parameters():
        parameter_.data = values[name]


@contextmanager
def both(*blocks: Any) -> Iterator[None]:
    """Several changes at once."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        for block in blocks:
            stack.enter_context(block)
        yield


@contextmanager
def forward(module: Any, function: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Another function in place of a module without weights."""
    kept = module.forward
    module.forward = lambda x, *_, **__: function(x)
    try:
        yield
    finally:
        module.forward = kept


@contextmanager
def attribute(module: Any, name: str, value: Any) -> Iterator[None]:
    """Another value for a plain attribute."""
    kept = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, kept)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "exact GELU": lambda x: F.gelu(x),
    "tanh GELU": lambda x: F.gelu(x, approximate="tanh"),
    "quick GELU": lambda x: x * torch.sigmoid(1.702 * x),
    "SiLU": F.silu,
    "ReLU": F.relu,
    "squared ReLU": lambda x: F.relu(x) ** 2,
    "no activation": lambda x: x,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}


def without_inputs(module: Any, start: int, stop: int) -> Any:
    """A linear that misses the input channels `[start, stop)`, as when a sum over ranks was never made."""
    changed = matrix(module).detach().clone()
    changed[:, start:stop] = 0
    return weight(module, changed)


def without_outputs(module: Any, rows: int, half: str) -> Any:
    """A linear of which one half of the output channels is nothing, bias included."""
    kept = torch.ones(rows)
    kept[: rows // 2] = 0.0 if half == "first" else 1.0
    kept[rows // 2 :] = 0.0 if half == "second" else 1.0
    return result(module, lambda x: x * kept)


def fit_length(vector: Tensor, length: int) -> Tensor:
    """A vector cut or padded with zeros to `length`."""
    found = torch.zeros(length, dtype=vector.dtype)
    found[: min(length, len(vector))] = vector[:length]
    return found
