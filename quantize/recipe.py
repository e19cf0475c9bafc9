"""What to do with which weight: formats, and how they are given to the parts of a model.

Plain data; `Format` is one way to store a matrix, `Recipe` says which one each matrix gets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from seatrial.errors import UserError
from seatrial.quantize.packing import check_format
from seatrial.quantize.rounding import ALGORITHMS

# Raised when the same options make other bytes, so that bundles kept from before are made anew.
GENERATION = 2
# Weights that stay as they are, in a bundle whose cache alone is quantized.
KEPT = "fp32"
WEIGHTS = ("int4", "int8", "mixed", KEPT)


@dataclass(frozen=True)
class Format:
    """How one matrix is stored."""

    bits: int
    block: int = 32
    symmetric: bool = True
    algorithm: str = "rtn"

    def __post_init__(self) -> None:
        check_format(self.bits, self.block)
        if self.algorithm not in ALGORITHMS:
            raise UserError(f"unknown algorithm {self.algorithm!r}: use one of {', '.join(ALGORITHMS)}")
        if self.symmetric and self.algorithm in ("k_quant", "hqq"):
            raise UserError(f"{self.algorithm} needs asymmetric blocks: add --asymmetric, or use rtn or gptq")

    def name(self) -> str:
        """A short label: `int4/32 sym rtn`."""
        return f"int{self.bits}/{self.block} {'sym' if self.symmetric else 'asym'} {self.algorithm}"

    def bytes_for(self, rows: int, width: int) -> int:
        """Bytes of codes, float32 scales and zero points of a rows x width matrix."""
        blocks = -(-width // self.block)
        zero_bytes = 0 if self.symmetric else -(-blocks * self.bits // 8)
        if self.algorithm == "hqq":
            zero_bytes = 4 * blocks
        return rows * (blocks * self.block * self.bits // 8 + 4 * blocks + zero_bytes)


@dataclass(frozen=True)
class Recipe:
    """The format of every matrix: the body's, the head's (and embedding's), and exceptions by group.

    Groups are `layers.N.attention`, `layers.N.mlp`, `head`, `matmul`. Head and embedding have a width of
    their own because 4 bits there cost the most accuracy for the fewest bytes.
    """

    body: Format
    head: Format
    groups: Mapping[str, Format] = field(default_factory=dict)
    balanced: bool = True  # even out the inputs of matmuls first, see balance.py

    def algorithms(self) -> set[str]:
        """The algorithms that some matrix is quantized with."""
        return {form.algorithm for form in (self.body, self.head, *self.groups.values())}

    def format_of(self, group: str) -> Format:
        return self.groups.get(group, self.head if group == "head" else self.body)


def recipe_for(
    weights: str,
    *,
    block: int = 32,
    symmetric: bool = True,
    algorithm: str = "rtn",
    head_bits: int | None = None,
    balanced: bool = True,
) -> Recipe:
    """The recipe behind `--weights int4|int8`; the head gets 8 bits unless told otherwise."""
    if weights not in ("int4", "int8"):
        raise UserError(f"unknown weights {weights!r}: use {', '.join(WEIGHTS)}")
    body = Format(4 if weights == "int4" else 8, block, symmetric, algorithm)
    # GPTQ has no inputs to calibrate an embedding on, and no lookup reads HQQ's float zero points: the head
    # is rounded to nearest.
    head_algorithm = "rtn" if algorithm in ("gptq", "hqq") else algorithm
    head = replace(body, bits=head_bits or 8, algorithm=head_algorithm)
    return Recipe(body=body, head=head, balanced=balanced)
