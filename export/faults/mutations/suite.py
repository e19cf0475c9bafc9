"""The suite: every fault with its name, the kinds that name it rightly, and the edit that makes it."""

from __future__ import annotations

from collections.abc import Callable

from seatrial.export.faults.mutations import activations, attention, biases, matrices, norms, whole
from seatrial.export.faults.mutations.graph import DOWN, GATE, OUT, UP, Edit

_HEAD = ("lm_head", "embed_out")


def _plus(tokens: int) -> Callable[[float], float]:
    return lambda window: window + tokens


SUITE: tuple[tuple[str, tuple[str, ...], Edit], ...] = (
    ("q bias dropped", ("bias dropped",), biases.change_packed_bias(biases.dropped, 0)),
    ("k bias dropped", ("bias dropped",), biases.change_packed_bias(biases.dropped, 1)),
    ("v bias dropped", ("bias dropped",), biases.change_packed_bias(biases.dropped, 2)),
    ("o bias dropped", ("bias dropped",), biases.change_bias(biases.dropped, *OUT)),
    ("up bias dropped", ("bias dropped",), biases.change_bias(biases.dropped, *UP)),
    ("down bias dropped", ("bias dropped",), biases.change_bias(biases.dropped, *DOWN)),
    ("head bias dropped", ("bias dropped",), biases.change_bias(biases.dropped, *_HEAD)),
    ("bias moved to another projection", ("bias moved",), biases.move_bias),
    ("bias truncated", ("bias truncated",), biases.cut_bias),
    ("q bias added twice", ("bias added twice",), biases.change_packed_bias(biases.doubled, 0)),
    ("bias added twice", ("bias added twice",), biases.change_bias(biases.doubled, *OUT, *UP, *DOWN, *GATE)),
    ("GELU of the other kind", ("activation differs",), activations.other_gelu),
    ("SiLU after the gate product", ("activation after the product",), activations.silu_after_product),
    (
        "activation before the projection",
        ("activation before the projection",),
        activations.activation_before,
    ),
    ("scale 1/2 on a branch", ("scale wrong",), matrices.scale_branch(0.5)),
    ("scale 1/4 on a branch", ("scale wrong",), matrices.scale_branch(0.25)),
    ("scale 1/2 before a norm", ("scale wrong",), norms.scale_before_norm(0.5)),
    ("scale 1/4 before a norm", ("scale wrong",), norms.scale_before_norm(0.25)),
    ("factor on a residual branch missing", ("residual scale missing",), whole.branch_scale),
    ("logits scaled", ("scale wrong",), matrices.scale_logits(1.7)),
    ("half of the o projection's inputs", ("half of a sum missing",), matrices.half_of_sum(*OUT)),
    ("half of the down projection's inputs", ("half of a sum missing",), matrices.half_of_sum(*DOWN)),
    ("gate and up swapped", ("projections swapped",), matrices.swap_gate_up),
    ("square weight transposed", ("weight transposed",), matrices.transpose_square),
    ("rotary base wrong", ("rotary base wrong",), attention.rotary_base),
    ("rotary over the wrong share of a head", ("rotary width wrong",), attention.rotary_width),
    ("rotary halves interleaved", ("rotary layout wrong",), attention.interleave_rotary),
    ("KV grouping wrong", ("head grouping wrong",), matrices.regroup_heads),
    ("KV heads permuted", ("head grouping wrong",), matrices.permute_kv_heads),
    ("window ignored", ("window wrong",), attention.change_attention("local_window_size", lambda _: 0)),
    ("window one too long", ("window wrong",), attention.change_attention("local_window_size", _plus(1))),
    ("window one too short", ("window wrong",), attention.change_attention("local_window_size", _plus(-1))),
    ("soft cap dropped", ("soft cap dropped",), attention.change_attention("softcap", lambda _: 0.0)),
    (
        "attention scale wrong",
        ("attention scale wrong",),
        attention.change_attention("scale", lambda s: s * 2),
    ),
    ("epsilon wrong", ("epsilon wrong",), norms.change_epsilon),
    ("norm of the other kind", ("norm wrong",), norms.other_norm),
    ("1 not added to a norm's weight", ("norm wrong",), norms.offset_weight(-1.0)),
    ("1 added to a norm's weight", ("norm wrong",), norms.offset_weight(1.0)),
    ("norms of a layer exchanged", ("norm wrong",), norms.exchange_norms),
    ("norm of queries or keys left out", ("norm skipped",), norms.skip_qk_norm),
    ("embedding scale missing", ("embedding scale missing",), whole.embedding_scale),
    ("learned positions shifted", ("positions wrong",), whole.shift_positions),
    ("lengths frozen at the example's", ("frozen length",), attention.frozen_length),
    ("tied embedding stored twice", ("tied embedding stored twice",), whole.store_tied_twice),
    ("one layer skipped", ("layer skipped",), whole.skip_layer),
    ("two layers exchanged", ("layers swapped",), matrices.exchange_layers),
)
