"""How many bytes a weight or a cached key takes, with its scales and zero points.

A format is a payload per scalar plus what a block of scalars shares. The names say whose format it is: int4
and int8 are this project's bundles (MatMulNBits, blocks of 32, fp32 scales, no zero points), q4_0 and the
like are GGUF's. Where a real file exists its bytes count, not these.
"""

from __future__ import annotations

import attrs

from seatrial.errors import UserError


@attrs.frozen
class BlockFormat:
    """`bits` per scalar, and `block_bits` shared by `block` scalars (scale, zero point)."""

    name: str
    bits: float
    block: int = 1
    block_bits: float = 0.0

    @property
    def bytes_per_scalar(self) -> float:
        """Payload and shared part together."""
        return (self.bits + self.block_bits / self.block) / 8

    def bytes_of(self, scalars: float) -> float:
        """Bytes of so many scalars."""
        return scalars * self.bytes_per_scalar


@attrs.frozen
class WeightScheme:
    """Formats of the body's matrices, the lookup table, the output matrix, and of norms and biases."""

    name: str
    body: BlockFormat
    embedding: BlockFormat
    head: BlockFormat
    vectors: BlockFormat


@attrs.frozen
class KvFormat:
    """A cached scalar, and the scale bytes that each stored vector (token, layer, head, K or V) carries."""

    name: str
    bytes_per_scalar: float
    scale_bytes_per_vector: float = 0.0


FP32 = BlockFormat("fp32", 32)
FP16 = BlockFormat("fp16", 16)
INT8 = BlockFormat("int8", 8, 32, 32)
INT4 = BlockFormat("int4", 4, 32, 32)
Q8_0 = BlockFormat("q8_0", 8, 32, 16)
Q6_K = BlockFormat("q6_k", 6, 256, 210 * 8 - 6 * 256)
Q5_K = BlockFormat("q5_k", 5, 256, 176 * 8 - 5 * 256)
Q4_K = BlockFormat("q4_k", 4, 256, 144 * 8 - 4 * 256)
Q4_0 = BlockFormat("q4_0", 4, 32, 16)
Q4_1 = BlockFormat("q4_1", 4, 32, 32)

WEIGHTS: dict[str, WeightScheme] = {
    "fp32": WeightScheme("fp32", FP32, FP32, FP32, FP32),
    "fp16": WeightScheme("fp16", FP16, FP16, FP16, FP16),
    "bf16": WeightScheme("bf16", FP16, FP16, FP16, FP16),
    "int8": WeightScheme("int8", INT8, INT8, INT8, FP32),
    "int4": WeightScheme("int4", INT4, INT8, INT8, FP32),
    "q8_0": WeightScheme("q8_0", Q8_0, Q8_0, Q8_0, FP32),
    "q6_k": WeightScheme("q6_k", Q6_K, Q6_K, Q6_K, FP32),
    "q5_k": WeightScheme("q5_k", Q5_K, Q5_K, Q6_K, FP32),
    "q4_k": WeightScheme("q4_k", Q4_K, Q4_K, Q6_K, FP32),
    "q4_0": WeightScheme("q4_0", Q4_0, Q4_0, Q6_K, FP32),
    "q4_1": WeightScheme("q4_1", Q4_1, Q4_1, Q6_K, FP32),
}
# Static scales of the int8 and int4 caches lie in the graph, per channel, and take no bytes per token.
KV: dict[str, KvFormat] = {
    "fp32": KvFormat("fp32", 4),
    "fp16": KvFormat("fp16", 2),
    "int8": KvFormat("int8", 1),
    "int4": KvFormat("int4", 0.5),
    "int8-per-token": KvFormat("int8-per-token", 1, 2),
    "q8_0": KvFormat("q8_0", 34 / 32),
    "q4_0": KvFormat("q4_0", 18 / 32),
}


def weight_scheme(name: str) -> WeightScheme:
    """The scheme called `name`, or an error that lists the known ones."""
    if name not in WEIGHTS:
        raise UserError(f"no weight format {name!r}; known: {', '.join(WEIGHTS)}")
    return WEIGHTS[name]


def kv_format(name: str) -> KvFormat:
    """The cache format called `name`, or an error that lists the known ones."""
    if name not in KV:
        raise UserError(f"no KV format {name!r}; known: {', '.join(KV)}")
    return KV[name]
