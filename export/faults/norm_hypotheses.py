"""What may be wrong with a norm: its epsilon, its weight, its kind, or that it is not there at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from seatrial.export.faults import changes

EPSILON_NAMES = ("eps", "variance_epsilon", "epsilon")
_EPSILONS = (1e-5, 1e-6, 1e-8, 1e-12, 1e-3, 1e-2, 1e-7, 0.0)


def norm_changes(module: Any) -> Iterator[tuple[str, str, Any]]:
    """(kind, detail, change) for one norm module."""
    for name in EPSILON_NAMES:
        if isinstance(own := getattr(module, name, None), float):
            for value in _EPSILONS:
                if value != own:
                    detail = f"epsilon is {value:g} instead of {own:g}"
                    yield "epsilon wrong", detail, changes.attribute(module, name, value)
    yield from _weights(module)
    yield from _kinds(module)
    yield "norm skipped", "what it is given comes out unchanged", changes.result_of_input(module)


def _weights(module: Any) -> Iterator[tuple[str, str, Any]]:
    for which, neutral in (("weight", 1.0), ("bias", 0.0), ("weight", 0.0)):
        if (owned := getattr(module, which, None)) is not None:
            change = changes.parameter(module, which, torch.full_like(owned, neutral))
            yield "norm wrong", f"its {which} is taken as {neutral:g}", change
    if (weight := getattr(module, "weight", None)) is not None:
        for offset, detail in ((-1.0, "its weight is 1 too small"), (1.0, "its weight is 1 too large")):
            yield "norm wrong", detail, changes.parameter(module, "weight", weight.detach() + offset)


def _kinds(module: Any) -> Iterator[tuple[str, str, Any]]:
    """The other kind of norm: with the mean taken out, or left in."""
    if (width := getattr(getattr(module, "weight", None), "numel", lambda: 0)()) < 2:
        return
    if not takes_out_mean(module, width):
        change = changes.given(module, lambda x: x - x.mean(-1, keepdim=True))
        yield "norm wrong", "the mean is taken out: LayerNorm instead of RMSNorm", change
        return
    epsilon = next((getattr(module, n) for n in EPSILON_NAMES if hasattr(module, n)), 0.0)

    def without_mean(x: torch.Tensor) -> torch.Tensor:
        scaled = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * module.weight
        return scaled if module.bias is None else scaled + module.bias

    yield (
        "norm wrong",
        "the mean is left in: RMSNorm instead of LayerNorm",
        changes.forward(module, without_mean),
    )


def takes_out_mean(module: Any, width: int) -> bool:
    """Does it give the same for what is shifted by a constant?"""
    given = torch.linspace(-1.0, 2.0, width)[None, None]
    with torch.no_grad():
        return bool(torch.allclose(module(given), module(given + 3.0), atol=1e-4))
