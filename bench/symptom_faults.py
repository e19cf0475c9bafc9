"""The faults whose symptoms are measured, each as a block around the embedded torch model.

A fault of a layer is one of the hypotheses that names it. What the embedded model does not have is stood
in for: it has no biases, so the mean of what a projection gives on the text takes their part; it scales
no branch, so a missing factor is its inverse; it caps no scores, so the right model is then the one with
a cap put in.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from seatrial.export.faults import changes
from seatrial.export.faults.forced import ForcedModel
from seatrial.export.faults.hypotheses import Hypothesis, hypotheses, other_layers
from seatrial.export.faults.modules import modules_of
from seatrial.export.faults.probe import AttentionChange, Rotary, changed

# The hypothesis that stands for a kind: its place and a word of its detail.
WANTED = {
    "activation differs": ("mlp.act_fn", "tanh GELU"),
    "activation after the product": ("mlp.act_fn", ""),
    "activation before the projection": ("mlp.gate_proj", ""),
    "scale wrong": ("mlp.down_proj", "0.5 times"),
    "half of a sum missing": ("mlp.down_proj", "second half of its input"),
    "projection missing": ("mlp.down_proj", "nothing"),
    "projections swapped": ("mlp.gate_proj", "weights exchanged with mlp.up_proj"),
    "weight transposed": ("self_attn.o_proj", ""),
    "window wrong": ("attention", "a window of 16"),
    "attention scale wrong": ("attention", "scaled 0.5 times"),
    "head grouping wrong": ("attention", "strided"),
    "epsilon wrong": ("input_layernorm", "0.001"),
    "norm wrong": ("input_layernorm", "weight is taken as 1"),
    "norm skipped": ("input_layernorm", ""),
    "not causal": ("attention", ""),
    "layer skipped": ("layer", ""),
}
_QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
_CAP, _BRANCH_FACTOR = 50.0, 0.22  # as Gemma 2 and Granite have them
# How much of a bias is there: the kind, then a factor per entry of the bias.
_BIAS_SHARES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "bias dropped": lambda mean: -mean,
    "bias added twice": lambda mean: mean,
    "bias truncated": lambda mean: torch.cat([torch.zeros(len(mean) // 2), -mean[len(mean) // 2 :]]),
}


def find(kind: str, found: Iterator[Hypothesis]) -> Hypothesis:
    place, word = WANTED[kind]
    return next(h for h in found if h.kind == kind and h.place.endswith(place) and word in h.detail)


@contextlib.contextmanager
def broken(kind: str, layers: list[int], forced: ForcedModel) -> Iterator[None]:
    """The model with one kind of fault in some layers."""
    with contextlib.ExitStack() as stack:
        for number in layers:
            hidden = forced.first_hidden
            parts = modules_of(forced, number, hidden)
            hypothesis = find(kind, hypotheses(parts, forced.seen_in(number, hidden), {}))
            stack.enter_context(skipping(parts.layer) if hypothesis.identity else hypothesis.change)
            if hypothesis.attention is not None:
                stack.enter_context(only_in(parts.layer, hypothesis.attention))
        yield


@contextlib.contextmanager
def skipping(layer: torch.nn.Module) -> Iterator[None]:
    """The layer gives back what it was given."""

    def hook(_module: Any, args: tuple[Any, ...], output: Any) -> Any:
        return (args[0], *output[1:]) if isinstance(output, tuple) else args[0]

    handle = layer.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@contextlib.contextmanager
def only_in(layer: torch.nn.Module, change: AttentionChange) -> Iterator[None]:
    """An attention change that holds while this layer runs."""
    block: list[Any] = []

    def before(*_: Any) -> None:
        block.append(changed(change))
        block[-1].__enter__()

    def after(*_: Any) -> None:
        block.pop().__exit__()

    handles = [layer.register_forward_pre_hook(before), layer.register_forward_hook(after)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def means_of(layers: list[Any], run: Callable[[], Any]) -> dict[Any, torch.Tensor]:
    """The mean over the text of what each linear of the layers gives."""
    found: dict[Any, torch.Tensor] = {}

    def keep(module: Any, _args: Any, output: torch.Tensor) -> None:
        found[module] = output.detach().reshape(-1, output.shape[-1]).mean(0)

    linears = [m for layer in layers for m in layer.modules() if isinstance(m, torch.nn.Linear)]
    hooks = [module.register_forward_hook(keep) for module in linears]
    try:
        run()
    finally:
        for hook in hooks:
            hook.remove()
    return found


def bias_faults(
    layers: list[Any], means: dict[Any, torch.Tensor], numbers: list[int]
) -> dict[str, contextlib.AbstractContextManager[Any]]:
    """Faults of biases in the layers `numbers`: of q, k and v; a moved one goes from up to gate."""
    found = {}
    for kind, share in _BIAS_SHARES.items():
        modules = [layers[n].get_submodule(name) for n in numbers for name in _QKV]
        found[kind] = changes.both(*(_shifted(module, share(means[module])) for module in modules))
    moved = []
    for number in numbers:
        up, gate = (layers[number].get_submodule(name) for name in ("mlp.up_proj", "mlp.gate_proj"))
        moved += [_shifted(up, -means[up]), _shifted(gate, means[up])]
    return {**found, "bias moved": changes.both(*moved)}


def _shifted(module: Any, by: torch.Tensor) -> Any:
    return changes.result(module, lambda x: x + by)


def exchanged(layers: list[Any], numbers: list[int]) -> contextlib.AbstractContextManager[Any]:
    """Layers with the weights of the next one."""
    found = []
    for number in numbers:
        following = f"layer {(number + 1) % len(layers)}"
        found.append(next(h for h in other_layers(layers, number) if h.detail.endswith(following)).change)
    return changes.both(*found)


def whole_model(model: Any) -> dict[str, contextlib.AbstractContextManager[Any]]:
    """Faults that have no layer of their own."""
    rotary = next(m for m in model.modules() if hasattr(m, "inv_freq"))
    own = tuple(float(value) for value in rotary.inv_freq)
    half = tuple(own[2 * place] for place in range(len(own) // 2))
    other = torch.tensor([10000.0 ** (-place / len(own)) for place in range(len(own))])
    embedding, rows = model.get_input_embeddings(), model.config.vocab_size
    return {
        "rotary base wrong": changes.attribute(rotary, "inv_freq", other),
        "rotary layout wrong": _rotated(rotary, Rotary(own, "neighbours")),
        "rotary width wrong": _rotated(rotary, Rotary(half)),
        "rotary missing": _rotated(rotary, None),
        "frozen length": changed(AttentionChange(reach=5)),
        "embedding scale missing": changes.result(embedding, partial(operator.mul, 0.25)),
        "embedding wrong": changes.given(embedding, lambda ids: (ids + 1) % rows),
        "tied embedding stored twice": contextlib.nullcontext(),
    }


@contextlib.contextmanager
def _rotated(module: Any, rotary: Rotary | None) -> Iterator[None]:
    """The model's own rotation off, another one in the attention."""

    def unturned(_module: Any, _args: Any, output: Any) -> Any:
        return torch.ones_like(output[0]), torch.zeros_like(output[1])

    hook = module.register_forward_hook(unturned)
    try:
        with changed(AttentionChange(rotary=rotary)):
            yield
    finally:
        hook.remove()


def unscaled_branches(layers: list[Any], numbers: list[int]) -> contextlib.AbstractContextManager[Any]:
    """What layers add to the stream, as if a factor on it were missing."""
    names = ("self_attn.o_proj", "mlp.down_proj")
    ends = [layers[number].get_submodule(name) for number in numbers for name in names]
    return changes.both(*(changes.result(end, partial(operator.mul, 1 / _BRANCH_FACTOR)) for end in ends))


def capped() -> contextlib.AbstractContextManager[Any]:
    """The right model of a dropped soft cap: the embedded model with Gemma 2's cap put in."""
    return changed(AttentionChange(softcap=_CAP))
