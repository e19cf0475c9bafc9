"""What may be wrong inside the attention: window, cap, scale, who shares which KV head, causality."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seatrial.export.faults.probe import AttentionChange, Seen

Change = tuple[str, str, AttentionChange]  # kind, detail, change
_LONGEST_WINDOW_TRIED = 48


def attention_changes(
    seen: Seen, key: np.ndarray | None, value: np.ndarray | None, factors: tuple[float, ...]
) -> Iterator[Change]:
    """`key` and `value` are the graph's, (B, KV, T, D); `factors` are scales to try."""
    yield from _windows(seen)
    if seen.softcap:
        yield "soft cap dropped", f"scores are not capped at {seen.softcap:g}", AttentionChange(softcap=0.0)
    yield from _scales(seen, factors)
    if seen.key.shape[1] != seen.query.shape[1]:
        for label in ("strided", "first"):
            detail = f"query heads share KV heads the wrong way ({label})"
            yield "head grouping wrong", detail, AttentionChange(grouping=label)
    yield from _orders(seen, key, value)
    yield "not causal", "it sees later tokens", AttentionChange(causal=False)


def _windows(seen: Seen) -> Iterator[Change]:
    tokens, own = seen.query.shape[2], seen.window or 0
    near = [0, own + 1, own - 1, own + 2, own - 2, 2 * own, own // 2]
    for size in dict.fromkeys([*near, *range(1, min(tokens, _LONGEST_WINDOW_TRIED))]):
        if size >= 0 and size != own and (own or 0 < size < tokens):
            detail = f"{size or 'no'} window instead of {own}" if own else f"a window of {size}"
            yield "window wrong", detail, AttentionChange(window=size)


def _scales(seen: Seen, factors: tuple[float, ...]) -> Iterator[Change]:
    head_dim, heads = seen.query.shape[-1], seen.query.shape[1]
    names = {
        "1/sqrt(head_dim)": head_dim**-0.5,
        "1": 1.0,
        "1/head_dim": 1 / head_dim,
        "1/sqrt(heads * head_dim)": (heads * head_dim) ** -0.5,
    }
    for label, value in names.items():
        if abs(value / seen.scaling - 1) > 1e-3:
            detail = f"scores are scaled by {label} = {value:.4g} instead of {seen.scaling:.4g}"
            yield "attention scale wrong", detail, AttentionChange(scale=value)
    for factor in (*factors, head_dim**0.5, 2**0.5, 2**-0.5, 1.1, 0.9, 1.5):
        detail = f"scores are scaled {factor:.4g} times as much"
        yield "attention scale wrong", detail, AttentionChange(scale_factor=factor)


def _orders(seen: Seen, key: np.ndarray | None, value: np.ndarray | None) -> Iterator[Change]:
    """Another order of the KV heads, read off the graph's own cache."""
    keys, values = _order(seen.key.numpy(), key), _order(seen.value.numpy(), value)
    if keys is None or values is None:
        return
    straight = tuple(range(len(keys)))
    orders = {"key": keys, "value": values}
    found = [f"{what} heads are in the order {list(o)}" for what, o in orders.items() if o != straight]
    if found:
        change = AttentionChange(key_order=keys, value_order=values)
        yield "head grouping wrong", " and ".join(found), change


def _order(right: np.ndarray, graph: np.ndarray | None) -> tuple[int, ...] | None:
    """Which head of `right` each head of `graph` is nearest to; None when that is no order of the heads."""
    if graph is None or graph.shape != right.shape or not np.isfinite(graph).all():
        return None
    heads = right.shape[1]
    gaps = [[float(np.abs(graph[:, a] - right[:, b]).max()) for b in range(heads)] for a in range(heads)]
    order = tuple(int(np.argmin(row)) for row in gaps)
    return order if sorted(order) == list(range(heads)) else None
