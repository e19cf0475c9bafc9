"""An attention function that shows its insides and can be told to compute something else on purpose.

Registered with transformers like the exporter's own, so it works for every architecture that goes through the
interface. Plain and slow; for a few tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from transformers import AttentionInterface, AttentionMaskInterface

NAME = "seatrial_probe"


@dataclass(frozen=True)
class AttentionChange:
    """What to compute instead of what the model asks for; None means as it asks."""

    scale_factor: float = 1.0
    scale: float | None = None
    window: int | None = None  # 0: none at all
    softcap: float | None = None  # 0: none at all
    grouping: Literal["neighbours", "strided", "first"] = "neighbours"
    causal: bool = True
    reach: int | None = None  # positions from here on are seen by nobody but themselves
    key_order: tuple[int, ...] | None = None  # which KV head stands in each place
    value_order: tuple[int, ...] | None = None
    # Rotary made here instead of by the model, whose own must then be switched off (cos 1, sin 0).
    rotary: Rotary | None = None


@dataclass(frozen=True)
class Rotary:
    """A rotary embedding by its frequencies; `layout` says which channels are a pair."""

    inverse_frequencies: tuple[float, ...]
    layout: Literal["halves", "neighbours"] = "halves"
    shift: int = 0
    factor: float = 1.0
    only: Literal["both", "query", "key"] = "both"


@dataclass
class Seen:
    """What the attention of one layer was given and gave: (B, H, T, D) each, keys and values per KV head."""

    query: torch.Tensor
    key: torch.Tensor
    value: torch.Tensor
    output: torch.Tensor
    scaling: float
    window: int | None
    softcap: float | None


@dataclass
class _State:
    change: AttentionChange = field(default_factory=AttentionChange)
    seen: dict[int, Seen] = field(default_factory=dict)


_state = _State()


def install_probe() -> str:
    """Register the probe; returns its name."""
    AttentionInterface.register(NAME, _attention)
    AttentionMaskInterface.register(NAME, lambda *_, **__: None)
    return NAME


def seen() -> dict[int, Seen]:
    """What was seen since the last `clear`, by layer."""
    return _state.seen


class changed:
    """Compute with `change` inside a block; what was seen before is forgotten."""

    def __init__(self, change: AttentionChange | None = None) -> None:
        self.change = change or AttentionChange()

    def __enter__(self) -> dict[int, Seen]:
        _state.change, _state.seen = self.change, {}
        return _state.seen

    def __exit__(self, *_: object) -> None:
        _state.change = AttentionChange()


def _attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """Softmax attention in the open, with the changes asked for. Shapes as in `attention.attention_node`."""
    del attention_mask
    change = _state.change
    asked = scaling if scaling is not None else query.shape[-1] ** -0.5
    query = _rotate(query, change.rotary, "query", key.shape[2] - query.shape[2])
    key = _rotate(key, change.rotary, "key")
    key = key if change.key_order is None else key[:, list(change.key_order)]
    value = value if change.value_order is None else value[:, list(change.value_order)]
    window = sliding_window if change.window is None else change.window
    cap = softcap if change.softcap is None else change.softcap
    scale = (asked if change.scale is None else change.scale) * change.scale_factor
    scores = torch.matmul(query, _spread(key, query.shape[1], change.grouping).transpose(2, 3)) * scale
    if cap:
        scores = torch.tanh(scores / cap) * cap
    seen = _visible(scores.shape[-2], scores.shape[-1], window, change)
    scores = scores.masked_fill(~seen, float("-inf"))
    output = torch.matmul(torch.softmax(scores, -1), _spread(value, query.shape[1], change.grouping))
    _state.seen[int(module.layer_idx)] = Seen(query, key, value, output, asked, sliding_window, softcap)
    return output.transpose(1, 2).contiguous(), None


def _spread(x: torch.Tensor, heads: int, grouping: str) -> torch.Tensor:
    """KV heads given to query heads: neighbours share one, or every n-th does, or all take the first."""
    times = heads // x.shape[1]
    if grouping == "strided":
        return x.repeat(1, times, 1, 1)
    if grouping == "first":
        return x[:, :1].expand(-1, heads, -1, -1)
    return x.repeat_interleave(times, 1)


def _visible(queries: int, tokens: int, window: int | None, change: AttentionChange) -> torch.Tensor:
    """(Q, T): may row attend to column? With a cache the queries are the last of the tokens."""
    row, column = torch.arange(tokens - queries, tokens)[:, None], torch.arange(tokens)[None, :]
    allowed = column <= row if change.causal else torch.ones(queries, tokens, dtype=torch.bool)
    if window:
        allowed = allowed & (row - column < window)
    return allowed if change.reach is None else allowed & ((column < change.reach) | (column == row))


def _rotate(x: torch.Tensor, rotary: Rotary | None, side: str, first: int = 0) -> torch.Tensor:
    """Rotate the first 2 * len(frequencies) channels of (B, H, T, D), whose positions begin at `first`."""
    if rotary is None or rotary.only not in ("both", side):
        return x
    frequencies = torch.tensor(rotary.inverse_frequencies, dtype=x.dtype)
    angles = (torch.arange(x.shape[2], dtype=x.dtype) + rotary.shift + first)[:, None] * frequencies
    cos, sin = angles.cos() * rotary.factor, angles.sin() * rotary.factor
    width = 2 * len(rotary.inverse_frequencies)
    turned, rest = x[..., :width], x[..., width:]
    if rotary.layout == "halves":
        a, b = turned[..., : width // 2], turned[..., width // 2 :]
        turned = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    else:
        a, b = turned[..., 0::2], turned[..., 1::2]
        turned = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
    return torch.cat([turned, rest], -1)


def with_rotary(change: AttentionChange, rotary: Rotary) -> AttentionChange:
    """`change` with the rotary made in the probe."""
    return replace(change, rotary=rotary)
