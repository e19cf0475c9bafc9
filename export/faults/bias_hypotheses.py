"""What may be wrong with a bias: missing, in part or whole, added twice, or added somewhere else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from seatrial.export.faults import changes
from seatrial.export.faults.modules import LayerModules
from seatrial.export.faults.probe import Seen

Change = tuple[str, str, str, Any]  # kind, place, detail, block


def bias_changes(parts: LayerModules, seen: Seen | None) -> Iterator[Change]:
    """Changes for every bias of a layer."""
    owners = [name for name in parts.linears() if getattr(parts.get(name), "bias", None) is not None]
    for name in owners:
        module = parts.get(name)
        for label, chosen in _shares(module.bias.detach(), seen):
            yield from _missing_or_twice(name, module, label, chosen)
        yield from _cut(name, module)
    for name in owners:
        for other in owners:
            if other != name:
                yield from _moved(parts, name, other)


def _shares(bias: torch.Tensor, seen: Seen | None) -> Iterator[tuple[str, torch.Tensor]]:
    """The whole bias, then the parts that a packed one is made of, each as a mask."""
    length = len(bias)
    yield "", torch.ones(length, dtype=torch.bool)
    for label, start, stop in _spans(length, seen):
        chosen = torch.zeros(length, dtype=torch.bool)
        chosen[start:stop] = True
        yield label, chosen


def _spans(length: int, seen: Seen | None) -> Iterator[tuple[str, int, int]]:
    if seen is not None:
        width = seen.query.shape[-1]
        sizes = [x.shape[1] * width for x in (seen.query, seen.key, seen.value)]
        if sum(sizes) == length:
            ends = [sizes[0], sizes[0] + sizes[1], length]
            for label, start, stop in zip(("query", "key", "value"), [0, *ends], ends, strict=False):
                yield f"the {label} part of ", start, stop
            return
    if length % 2 == 0:
        yield "the first half of ", 0, length // 2


def _missing_or_twice(name: str, module: Any, label: str, chosen: torch.Tensor) -> Iterator[Change]:
    bias = module.bias.detach()
    gone = changes.parameter(module, "bias", bias * ~chosen)
    # The end of a bias that is missing is a truncated one, below; here whole parts are.
    kind = "bias truncated" if label.startswith("the first half") else "bias dropped"
    yield kind, name, f"{label}its bias is missing", gone
    twice = changes.parameter(module, "bias", bias * (1 + chosen.to(bias.dtype)))
    yield "bias added twice", name, f"{label}its bias counts twice", twice


def _cut(name: str, module: Any) -> Iterator[Change]:
    bias, length = module.bias.detach(), len(module.bias)
    for share in (1 / 2, 1 / 4, 3 / 4, 1 / 8, 7 / 8, 1 / 3, 2 / 3):
        cut = bias.clone()
        cut[int(length * share) :] = 0
        detail = f"only the first {int(length * share)} of {length} entries are there"
        yield "bias truncated", name, detail, changes.parameter(module, "bias", cut)


def _moved(parts: LayerModules, name: str, other: str) -> Iterator[Change]:
    """The bias of `name` ended on `other`: added to the one there, or in its place."""
    module, target = parts.get(name), parts.get(other)
    moved = changes.fit_length(module.bias.detach(), len(target.bias))
    gone = changes.parameter(module, "bias", torch.zeros_like(module.bias))
    block = changes.both(gone, changes.parameter(target, "bias", target.bias.detach() + moved))
    yield "bias moved", name, f"its bias is added to {other} instead", block
    if name < other:
        swapped = changes.fit_length(target.bias.detach(), len(module.bias))
        block = changes.both(
            changes.parameter(module, "bias", swapped), changes.parameter(target, "bias", moved)
        )
        yield "bias moved", name, f"its bias and that of {other} are exchanged", block
