"""Which groups of matrices get 8 bits and which 4: a greedy choice by measured harm per byte saved.

Pure functions of sizes and sensitivities. The KL of several groups together is taken as the sum of their
own: an estimate that ranks well and is checked by measuring the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from seatrial.errors import UserError
from seatrial.quantize.recipe import Format, Recipe


@dataclass(frozen=True)
class Group:
    """A group's matrices: bytes in the low and the high format, and what the low one costs in KL (nats)."""

    name: str
    low_bytes: int
    high_bytes: int
    kl: float

    @property
    def benefit(self) -> float:
        """KL that a byte more buys."""
        return self.kl / max(1, self.high_bytes - self.low_bytes)


@dataclass(frozen=True)
class Choice:
    """Groups that get the high format, and what that comes to."""

    high: tuple[str, ...]
    weight_bytes: int
    estimated_kl: float


def by_size(groups: list[Group], limit_bytes: int) -> Choice:
    """As many groups in the high format as fit `limit_bytes`, those that gain most per byte first.

    Raises `UserError` when not even all low fits.
    """
    size = sum(group.low_bytes for group in groups)
    if size > limit_bytes:
        raise UserError(
            f"the weights take {size / 1e6:.1f} MB with the fewest bits, which is above the target: "
            f"ask for at least {size / 1e6 + 1:.0f} MB or use larger blocks"
        )
    high = []
    for group in sorted(groups, key=lambda g: g.benefit, reverse=True):
        extra = group.high_bytes - group.low_bytes
        if size + extra <= limit_bytes:
            size += extra
            high.append(group.name)
    return _choice(groups, high)


def by_kl(groups: list[Group], limit_kl: float, high_kl: float = 0.0) -> Choice:
    """The smallest set of groups in the high format whose estimate stays within `limit_kl` nats.

    `high_kl` is what remains with everything high; a limit below it raises `UserError`.
    """
    if limit_kl < high_kl:
        raise UserError(f"KL {limit_kl:g} cannot be reached: with 8 bits everywhere {high_kl:.4f} remain")
    high: list[str] = []
    for group in sorted(groups, key=lambda g: g.benefit, reverse=True):
        if _choice(groups, high).estimated_kl + high_kl <= limit_kl:
            break
        high.append(group.name)
    return _choice(groups, high)


def _choice(groups: list[Group], high: list[str]) -> Choice:
    chosen = set(high)
    return Choice(
        high=tuple(group.name for group in groups if group.name in chosen),
        weight_bytes=sum(g.high_bytes if g.name in chosen else g.low_bytes for g in groups),
        estimated_kl=sum(g.kl for g in groups if g.name not in chosen),
    )


def recipe_of(choice: Choice, base: Recipe, high: Format) -> Recipe:
    """The recipe that a choice stands for: `base` with the chosen groups in the high format."""
    exceptions: Mapping[str, Format] = {name: high for name in choice.high if name != "head"}
    return replace(base, groups=exceptions)
