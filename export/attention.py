"""The swapped attention: every layer of a transformers model becomes one `GroupQueryAttention` node.

transformers hands query, key and value *after* the rotary embedding to one function per model, whatever the
architecture; registering ours is what makes the export free of code per architecture. It deliberately does
not know how a model computes q, k and v, nor which model it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface

from seatrial.errors import UserError

NAME = "seatrial_group_query_attention"


@dataclass
class CacheTensors:
    """What the attention nodes of one trace take and give: KV per layer and the lengths they share."""

    past: Sequence[tuple[torch.Tensor, torch.Tensor]]  # per layer, each (B, KV, P, D)
    seqlens_k: torch.Tensor  # (B,) int32, valid tokens - 1
    total_length: torch.Tensor  # () int32, past + present columns of the mask
    present: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)


_trace: list[CacheTensors] = []


@contextmanager
def tracing(caches: CacheTensors) -> Iterator[CacheTensors]:
    """Make `caches` the ones that attention functions use inside the block."""
    _trace.append(caches)
    try:
        yield caches
    finally:
        _trace.pop()


def install() -> str:
    """Register the attention and its mask (none: the node masks by lengths); returns the name to use."""
    AttentionInterface.register(NAME, attention_node)
    AttentionMaskInterface.register(NAME, lambda *_, **__: None)
    return NAME


def attention_node(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **rest: Any,
) -> tuple[torch.Tensor, None]:
    """One GroupQueryAttention node. query (B, H, T, D), key and value (B, KV, T, D) -> (B, T, H, D).

    Raises UserError for attention that the node cannot express.
    """
    # A mask that the model built itself (OPT) is the causal one again; parity shows where it was not.
    del attention_mask
    _refuse_unsupported(module, query, value, rest)
    caches = _trace[-1]
    layer = int(module.layer_idx)
    batch, heads, tokens, head_dim = query.shape
    past_key, past_value = caches.past[layer]
    cache_shape = [batch, key.shape[1], past_key.shape[2] + tokens, head_dim]
    output, present_key, present_value = torch.onnx.ops.symbolic_multi_out(
        "com.microsoft::GroupQueryAttention",
        [_flat(query), _flat(key), _flat(value), past_key, past_value, caches.seqlens_k, caches.total_length],
        _attributes(heads, key.shape[1], head_dim, scaling, sliding_window, softcap),
        dtypes=[query.dtype] * 3,
        shapes=[[batch, tokens, heads * head_dim], cache_shape, cache_shape],
        version=1,
    )
    caches.present[layer] = (present_key, present_value)
    return output.reshape(batch, tokens, heads, head_dim), None


def _flat(x: torch.Tensor) -> torch.Tensor:
    """(B, H, T, D) -> (B, T, H*D)."""
    return x.transpose(1, 2).flatten(2)


def _attributes(
    heads: int, kv_heads: int, head_dim: int, scaling: float | None, window: int | None, softcap: float | None
) -> dict[str, int | float]:
    """The node's attributes; a scale that is the default is still written, so that a reader can check it."""
    found: dict[str, int | float] = {
        "num_heads": int(heads),
        "kv_num_heads": int(kv_heads),
        "scale": float(scaling) if scaling is not None else float(head_dim) ** -0.5,
    }
    if window:
        found["local_window_size"] = int(window)
    if softcap:
        found["softcap"] = float(softcap)
    return found


def _refuse_unsupported(
    module: torch.nn.Module,
    query: torch.Tensor,
    value: torch.Tensor,
    rest: dict[str, Any],
) -> None:
    kind = type(module).__name__
    if rest.get("is_causal") is False or getattr(module, "is_causal", True) is False:
        raise UserError(f"{kind} is not causal; only decoder models have a KV cache to export")
    if value.shape[-1] != query.shape[-1]:
        raise UserError(
            f"{kind} has keys and values of different width, which the attention node cannot take"
        )
    if rest.get("s_aux") is not None:
        raise UserError(f"{kind} has attention sinks, which this exporter does not map")
