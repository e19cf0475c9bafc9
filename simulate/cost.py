"""What a model costs before any machine is named: FLOPs and bytes per phase, from its architecture and
formats.

Pure functions. A multiply-add is two FLOPs. Bytes of weights, KV and activations are kept apart, loads apart
from stores. How a runtime lays out and allocates the cache is an argument; how fast anything is, is not known
here.
"""

from __future__ import annotations

import attrs

from seatrial.export.architecture import Architecture, Layer
from seatrial.simulate.formats import KvFormat, WeightScheme, kv_format, weight_scheme

FP32_BYTES = 4


@attrs.frozen
class KvBytes:
    """Cache bytes: the payload and, apart from it, the scales."""

    payload: float
    scales: float

    @property
    def total(self) -> float:
        """Both together."""
        return self.payload + self.scales


@attrs.frozen
class AttentionGroup:
    """Layers that cost the same per token of context: `window` tokens at most, `elements` cached scalars a
    token.
    """

    layers: int
    stored_layers: int
    window: int | None
    elements: int
    vectors: int
    flops_per_context_token: int


@attrs.frozen
class ModelCost:
    """Figures of one model in one pair of formats, ready to be put on a device.

    `weight_bytes` are in memory, `weight_bytes_per_token` are read per decoded token (active experts only,
    the output matrix always, one row of the lookup table). `matmul_flops_per_token` leaves attention out.
    """

    name: str
    weights: str
    kv: KvFormat
    weight_bytes: float
    weight_bytes_per_token: float
    weight_bytes_per_prefill_pass: float
    matmul_flops_per_token: float
    head_flops_per_token: float
    groups: tuple[AttentionGroup, ...]
    hidden: int
    ffn_width: int
    vocabulary: int
    layers: int
    query_heads: int

    def kv_read_bytes(self, context: float) -> float:
        """Cache bytes read to decode one token after `context` tokens."""
        return sum(
            group.layers * _vector_bytes(group, self.kv) * _seen(group, context) for group in self.groups
        )

    def kv_bytes_per_token(self) -> float:
        """Cache bytes that one token adds in all layers."""
        return sum(group.stored_layers * _vector_bytes(group, self.kv) for group in self.groups)

    def kv_stored(self, tokens: float, *, windowed: bool = True) -> KvBytes:
        """Cache bytes held for `tokens`; `windowed` where the runtime keeps only the window of a windowed
        layer.
        """
        held = [(group, _seen(group, tokens) if windowed else tokens) for group in self.groups]
        payload = sum(g.stored_layers * g.elements * self.kv.bytes_per_scalar * n for g, n in held)
        scales = sum(g.stored_layers * g.vectors * self.kv.scale_bytes_per_vector * n for g, n in held)
        return KvBytes(payload, scales)

    def attention_flops(self, new_tokens: float, past: float = 0.0) -> float:
        """Scores and mix for `new_tokens` tokens that follow `past`, causal: each sees itself and what came
        before.
        """
        return sum(
            group.layers * group.flops_per_context_token * _pairs(new_tokens, past, group.window)
            for group in self.groups
        )

    def decode_flops(self, context: float) -> float:
        """FLOPs of one token after `context` tokens."""
        return self.matmul_flops_per_token + self.head_flops_per_token + self.attention_flops(1, context)

    def prefill_flops(self, tokens: float, past: float = 0.0) -> float:
        """FLOPs of a prompt, the output matrix once (only the last position's logits are needed)."""
        return (
            tokens * self.matmul_flops_per_token
            + self.head_flops_per_token
            + self.attention_flops(tokens, past)
        )

    def activation_bytes(self, chunk: float) -> float:
        """Peak of live intermediate tensors for `chunk` tokens at once, in fp32: residual, gate and up,
        logits.
        """
        return FP32_BYTES * (chunk * (3 * self.hidden + 2 * self.ffn_width) + self.vocabulary)


def model_cost(
    architecture: Architecture,
    *,
    weights: str = "int4",
    kv: str = "fp16",
    latent_cache: bool = False,
) -> ModelCost:
    """Cost figures of `architecture` with `weights` (a format, or `stored` for the bytes of its own file)."""
    stored = architecture.stored
    if weights == "stored" and stored is not None:
        total, once, active = _stored_bytes(architecture)
        name = stored.format
    else:
        scheme = weight_scheme(weights)
        total, once, active = _scheme_bytes(architecture, scheme)
        name = weights
    return ModelCost(
        name=architecture.name,
        weights=name,
        kv=kv_format(kv),
        weight_bytes=total,
        weight_bytes_per_token=active,
        weight_bytes_per_prefill_pass=once,
        matmul_flops_per_token=2.0 * architecture.active_body_params,
        head_flops_per_token=2.0 * architecture.head_params,
        groups=_groups(architecture.layers, latent_cache),
        hidden=architecture.hidden,
        ffn_width=architecture.ffn_width,
        vocabulary=architecture.vocabulary,
        layers=len(architecture.layers),
        query_heads=max(layer.query_heads for layer in architecture.layers),
    )


def _scheme_bytes(architecture: Architecture, scheme: WeightScheme) -> tuple[float, float, float]:
    """Bytes in memory, bytes of one pass over all weights (every expert), bytes of one token."""
    table = scheme.embedding.bytes_of(architecture.embedding_params)
    head = scheme.head.bytes_of(architecture.head_params)
    extra = scheme.embedding.bytes_of(architecture.extra_embedding_params)
    vectors = scheme.vectors.bytes_of(architecture.vector_params)
    body = scheme.body.bytes_of(architecture.body_params)
    active = scheme.body.bytes_of(architecture.active_body_params)
    row = scheme.embedding.bytes_of(architecture.embedding_width)
    # A tied table is stored once, in the head's format.
    in_memory = body + vectors + head + extra + (0.0 if architecture.tied else table)
    return in_memory, body + vectors + head + row, active + vectors + head + row


def _stored_bytes(architecture: Architecture) -> tuple[float, float, float]:
    """The same three from a file: its total, less a lookup table of its own, less the idle experts."""
    stored = architecture.stored
    total = float(stored.total_bytes) if stored else 0.0
    table_share = (architecture.embedding_params + architecture.extra_embedding_params) / architecture.params
    table = stored.embedding_bytes if stored and stored.embedding_bytes else total * table_share
    once = total - (0.0 if architecture.tied else table)
    idle = architecture.body_params - architecture.active_body_params
    if idle == 0:
        return total, once, once
    expert_bytes = stored.expert_bytes if stored and stored.expert_bytes else None
    idle_bytes = once * idle / architecture.params
    if expert_bytes is not None:
        idle_bytes = expert_bytes * (1 - architecture.active_experts / architecture.experts)
    return total, once, once - idle_bytes


def _groups(layers: tuple[Layer, ...], latent_cache: bool) -> tuple[AttentionGroup, ...]:
    counts: dict[tuple[int | None, int, int, int], list[int]] = {}
    for layer in layers:
        latent = layer.latent_elements if latent_cache else None
        elements = latent or layer.kv_elements
        vectors = 1 if latent else 2 * layer.kv_heads
        flops = 2 * layer.query_heads * (layer.head_dim + layer.value_dim)
        count = counts.setdefault((layer.window, elements, vectors, flops), [0, 0])
        count[0] += 1
        count[1] += not layer.kv_shared
    return tuple(
        AttentionGroup(every, stored, window, elements, vectors, flops)
        for (window, elements, vectors, flops), (every, stored) in counts.items()
    )


def _vector_bytes(group: AttentionGroup, kv: KvFormat) -> float:
    return group.elements * kv.bytes_per_scalar + group.vectors * kv.scale_bytes_per_vector


def _seen(group: AttentionGroup, context: float) -> float:
    return context if group.window is None else min(context, group.window)


def _pairs(new_tokens: float, past: float, window: int | None) -> float:
    """Sum of context lengths seen by tokens past+1 ... past+new, each capped at the window."""
    end = past + new_tokens
    if window is None or end <= window:
        return _triangle(end) - _triangle(past)
    if past >= window:
        return new_tokens * window
    return _triangle(window) - _triangle(past) + (end - window) * window


def _triangle(n: float) -> float:
    return n * (n + 1) / 2
