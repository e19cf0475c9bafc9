"""FLOPs of one ONNX operator from the shapes of its inputs and outputs.

A multiply-add is two FLOPs; every other arithmetic step of an element is one, a transcendental function (exp,
tanh, erf, ...) included, so a fused operator costs what its parts cost. Moving data costs none. Formulas are
pure functions of a `Call`; bytes, order and what binds are the table's matter
(`seatrial.simulate.operator_table`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import attrs

Shape = tuple[int, ...]
Parts = dict[str, float]


def names(text: str) -> frozenset[str]:
    """Operator names written in one line each."""
    return frozenset(text.split())


@attrs.frozen
class Call:
    """An operator with known shapes: None where an optional input is absent."""

    op: str
    inputs: tuple[Shape | None, ...]
    outputs: tuple[Shape, ...]
    attributes: Mapping[str, Any]

    @property
    def out(self) -> int:
        """Elements of the first output."""
        return prod(self.outputs[0])

    def given(self, index: int) -> Shape | None:
        """Shape of an input, None where it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    def needed(self, index: int) -> Shape:
        """Shape of an input that the operator cannot do without."""
        shape = self.given(index)
        if shape is None:
            raise ValueError(f"{self.op}: input {index} is missing")
        return shape


# Steps per output element.
ELEMENTWISE: dict[str, float] = {
    **dict.fromkeys(
        names(
            "Abs Add And Ceil Clip Cos Div Equal Erf Exp Floor Greater GreaterOrEqual Less LessOrEqual Log "
            "Max Min Mod Mul Neg Not Or Reciprocal Relu Round Sign Sin Sqrt Sub Tanh Where Xor"
        ),
        1.0,
    ),
    "Pow": 2.0,
    "LeakyRelu": 2.0,
    "PRelu": 2.0,
    "Sigmoid": 4.0,
    "Softplus": 3.0,
    "Elu": 3.0,
    "HardSigmoid": 4.0,
    "HardSwish": 5.0,
    "Swish": 5.0,
    "Mish": 5.0,
    "QuickGelu": 6.0,
    "FastGelu": 9.0,
    "BiasGelu": 6.0,
    "BatchNormalization": 2.0,
    "DequantizeLinear": 2.0,
    "QuantizeLinear": 3.0,
    "DynamicQuantizeLinear": 5.0,
    "RotaryEmbedding": 3.0,
    "Softmax": 5.0,
    "LogSoftmax": 6.0,
}
# Steps per input element.
REDUCTIONS = {
    **dict.fromkeys(
        names("ReduceSum ReduceMax ReduceMin ReduceMean ReduceProd ArgMax ArgMin CumSum TopK"), 1.0
    ),
    **dict.fromkeys(names("ReduceL2 ReduceSumSquare ReduceL1 GlobalAveragePool"), 2.0),
    "ReduceLogSumExp": 3.0,
    "AveragePool": 1.0,
    "MaxPool": 1.0,
    "LpNormalization": 3.0,
}
# Layer norms: mean, difference, square, mean, scale by the deviation, weight; the RMS form has no mean to
# take away.
NORMS = {
    "LayerNormalization": 6.0,
    "SkipLayerNormalization": 6.0,
    "InstanceNormalization": 7.0,
    "GroupNormalization": 7.0,
    "SimplifiedLayerNormalization": 4.0,
    "SkipSimplifiedLayerNormalization": 4.0,
    "RMSNormalization": 4.0,
}
# No arithmetic, and nothing moves: the output is the input in another shape. Dropout is one at inference.
VIEWS = names("Constant Dropout Flatten Identity Reshape Shape Size Squeeze Unsqueeze")
MOVES = names(
    "Cast CastLike Concat ConstantOfShape DepthToSpace Expand EyeLike Gather GatherBlockQuantized "
    "GatherElements GatherND NonZero OneHot Pad Range Resize ScatterElements ScatterND Slice SpaceToDepth "
    "Split Tile Transpose Trilu"
)


def flops(call: Call) -> Parts | None:
    """FLOPs by part, an empty table for data movement, None for an operator that is not known here."""
    special = SPECIAL.get(call.op)
    if special is not None:
        return special(call)
    if call.op in ELEMENTWISE:
        return {"elements": ELEMENTWISE[call.op] * call.out}
    if call.op in REDUCTIONS:
        return {"elements": REDUCTIONS[call.op] * prod(call.needed(0))}
    if call.op in NORMS:
        return _norm(call)
    return {} if call.op in VIEWS or call.op in MOVES else None


def matmul(call: Call) -> Parts:
    """2 M N K for every pair of matrices; the result's elements times twice the inner dimension."""
    left = call.needed(0)
    inner = left[-2] if call.attributes.get("transA") and len(left) > 1 else left[-1]
    return {"products": 2.0 * call.out * inner}


def gemm(call: Call) -> Parts:
    """`alpha A B + beta C`: products, and one addition per element where C is given."""
    bias = {"bias": float(call.out)} if call.given(2) is not None else {}
    return {**matmul(call), **bias}


def matmul_nbits(call: Call) -> Parts:
    """A product with block-quantized weights: N and K are attributes, the weights are packed."""
    bias = {"bias": float(call.out)} if call.given(5) is not None else {}
    return {"products": 2.0 * call.out * call.attributes["K"], **bias}


def convolution(call: Call) -> Parts:
    """By im2col: rows = batch x output positions, columns = input channels of a group x kernel size."""
    weight = call.needed(1)
    bias = {"bias": float(call.out)} if call.given(2) is not None else {}
    return {"products": 2.0 * call.out * prod(weight[1:]), **bias}


def transposed_convolution(call: Call) -> Parts:
    """Every input element meets every weight of its channel once."""
    data, weight = call.needed(0), call.needed(1)
    return {"products": 2.0 * prod(data) * prod(weight[1:])}


def im2col(call: Call) -> tuple[int, int]:
    """Rows and columns of the matrix that a convolution multiplies (for all groups)."""
    output, weight = call.outputs[0], call.needed(1)
    return output[0] * prod(output[2:]), prod(weight[1:])


def gelu(call: Call) -> Parts:
    """x Phi(x): five steps with erf, nine in the tanh form."""
    return {"elements": (9.0 if call.attributes.get("approximate") == "tanh" else 5.0) * call.out}


def attention(
    new: int, past: int, heads: int, head_dim: int, value_dim: int, *, batch: int = 1, causal: bool = True
) -> Parts:
    """Scores and mix of `new` tokens after `past` ones, and the softmax between them."""
    pairs = new * past + (new * (new + 1) // 2 if causal else new * new)
    return {
        "products": 2.0 * batch * heads * pairs * (head_dim + value_dim),
        "softmax": 5.0 * batch * heads * pairs,
    }


def grouped_attention(call: Call) -> Parts:
    """GroupQueryAttention: grouping changes the bytes of K and V, not FLOPs; a window caps them."""
    query, heads = call.needed(0), int(call.attributes["num_heads"])
    kv_heads = int(call.attributes["kv_num_heads"])
    head_dim = call.outputs[0][2] // heads
    past = call.given(3)
    before = past[2] if past else 0
    window = int(call.attributes.get("local_window_size", -1))
    if window > 0:
        pairs = sum(min(position + 1, window) for position in range(before, before + query[1]))
        parts = {
            "products": 4.0 * query[0] * heads * pairs * head_dim,
            "softmax": 5.0 * query[0] * heads * pairs,
        }
    else:
        parts = attention(query[1], before, heads, head_dim, head_dim, batch=query[0])
    if call.attributes.get("do_rotary"):
        parts["rotary"] = 3.0 * query[0] * query[1] * (heads + kv_heads) * head_dim
    return parts


def multi_head_attention(call: Call) -> Parts:
    """MultiHeadAttention and the standard Attention on [B, S, width]: full unless marked causal."""
    query, key = call.needed(0), call.given(1) or call.needed(0)
    heads = int(call.attributes.get("num_heads", call.attributes.get("q_num_heads", 0))) or query[1]
    if len(query) == 4:
        batch, heads, new, head_dim = query
        seen, value_dim = key[2], call.outputs[0][-1]
    else:
        batch, new, head_dim = query[0], query[1], query[2] // heads
        seen, value_dim = key[1], call.outputs[0][-1] // heads
    causal = bool(call.attributes.get("unidirectional") or call.attributes.get("is_causal"))
    if causal:
        return attention(new, seen - new, heads, head_dim, value_dim, batch=batch)
    pairs = float(new * seen)
    return {
        "products": 2.0 * batch * heads * pairs * (head_dim + value_dim),
        "softmax": 5.0 * batch * heads * pairs,
    }


def packed_attention(call: Call) -> Parts:
    """`com.microsoft::Attention`: the projection to Q, K and V, then attention."""
    data, weight = call.needed(0), call.needed(1)
    heads, width = int(call.attributes["num_heads"]), weight[1] // 3
    causal = bool(call.attributes.get("unidirectional"))
    inner = attention(data[1], 0, heads, width // heads, width // heads, batch=data[0], causal=causal)
    return {"projection": 2.0 * prod(data) * weight[1], **inner}


def recurrent(call: Call) -> Parts:
    """GRU, LSTM, RNN: every step multiplies the input and the state with all gates, in each direction."""
    data, weight, state = call.needed(0), call.needed(1), call.needed(2)
    steps = data[0] * data[1] * weight[0]
    gates = weight[1]
    return {
        "products": 2.0 * steps * gates * (weight[2] + state[2]),
        # A sum of both products, a bias and a squashing function per gate.
        "elements": 6.0 * steps * gates,
    }


def einsum(call: Call) -> Parts:
    """Twice the product of all index sizes (two operands), or one step per element of one operand."""
    terms = str(call.attributes["equation"]).replace(" ", "").partition("->")[0].split(",")
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, call.inputs, strict=False):
        sizes.update(zip(term, shape or (), strict=False))
    return {"products": (2.0 if len(terms) > 1 else 1.0) * prod(sizes.values())}


def _norm(call: Call) -> Parts:
    """Steps per element, one more for a bias and one for each added skip."""
    steps = NORMS[call.op]
    if call.op == "LayerNormalization" and call.given(2) is not None:
        steps += 1
    if call.op == "SkipLayerNormalization":
        steps += 1 + (call.given(3) is not None) + (call.given(4) is not None)
    if call.op == "SkipSimplifiedLayerNormalization":
        steps += 1 + (call.given(3) is not None)
    return {"elements": steps * call.out}


def _sum(call: Call) -> Parts:
    return {"elements": float(call.out) * (len(call.inputs) - 1)}


SPECIAL: dict[str, Callable[[Call], Parts]] = {
    "Attention": lambda call: (
        multi_head_attention(call) if "num_heads" not in call.attributes else packed_attention(call)
    ),
    "Conv": convolution,
    "ConvInteger": convolution,
    "ConvTranspose": transposed_convolution,
    "DynamicQuantizeMatMul": matmul,
    "Einsum": einsum,
    "FusedConv": convolution,
    "FusedMatMul": matmul,
    "GRU": recurrent,
    "Gelu": gelu,
    "Gemm": gemm,
    "GroupQueryAttention": grouped_attention,
    "LSTM": recurrent,
    "MatMul": matmul,
    "MatMulInteger": matmul,
    "MatMulIntegerToFloat": matmul,
    "MatMulNBits": matmul_nbits,
    "Mean": _sum,
    "MultiHeadAttention": multi_head_attention,
    "QLinearConv": convolution,
    "QLinearMatMul": matmul,
    "RNN": recurrent,
    "Sum": _sum,
    "TransposeMatMul": matmul,
}
