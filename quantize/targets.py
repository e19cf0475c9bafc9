"""Which matmuls of a graph carry weights, which of them can be quantized, and where in the model they
stand.

Works on the graph without its data. A weight is a constant with two dimensions that a matmul reads,
directly or through a Cast or Transpose; a weight that arrives as a graph input is counted, not quantized.
The lookup of the embedding is found so that table and head can share one storage.

It does not choose bits and does not read values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx

from seatrial.errors import UserError

# Below this a matrix is arithmetic (rotary frequencies, masks), not a weight worth a kernel.
MINIMUM_ELEMENTS = 1024
MATMULS = ("MatMul", "Gemm", "FusedMatMul")
_ATTENTION = {"GroupQueryAttention", "MultiHeadAttention", "Attention", "Softmax"}
_FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16}
_SEE_THROUGH = {"Cast", "Transpose", "Identity"}


@dataclass
class Target:
    """A matmul with a constant weight. `rows` x `width` is N x K as the packed form has it."""

    node: onnx.NodeProto
    weight: str  # initializer
    rows: int
    width: int
    transposed: bool  # stored as (N, K), like an embedding, and not (K, N)
    float_type: int  # of the activations: TensorProto.FLOAT or FLOAT16
    group: str  # "layers.3.mlp", "layers.3.attention", "head", "matmul"

    @property
    def elements(self) -> int:
        return self.rows * self.width


@dataclass(frozen=True)
class Table:
    """A lookup of rows by token id: the embedding, `rows` x `width` = V x H."""

    node: onnx.NodeProto
    weight: str
    rows: int
    width: int
    transposed: bool = True  # stored as (V, H), as `Target` counts it, and not as a head's (H, V)


@dataclass
class Survey:
    """All matmuls with weights: those that can be quantized, and the others with the reason."""

    targets: list[Target] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # node name or output -> reason
    weight_elements: int = 0

    @property
    def of(self) -> int:
        return len(self.targets) + len(self.refused)


def survey(model: onnx.ModelProto, operators: Iterable[str] = MATMULS) -> Survey:
    """Find the weights of `model` that matmuls of the kinds in `operators` read.

    Raises `UserError` for an operator name that is no matmul here ("Matmul" for "MatMul" would match
    nothing).
    """
    wanted = _checked(operators)
    graph = _Graph(model)
    found = Survey()
    for node in model.graph.node:
        if node.op_type not in MATMULS:
            continue
        source, flips, float_type = graph.trace(node.input[1])
        computed = graph.computed.get(source, 0)
        if computed >= MINIMUM_ELEMENTS:
            found.refused[node.name or node.output[0]] = "its weight is computed in the graph"
            found.weight_elements += computed
            continue
        if source not in graph.constants and source not in graph.inputs:
            continue  # activations on both sides
        reason = graph.reason_against(node, source, wanted)
        if reason == "":
            continue
        if reason is not None:
            found.refused[node.name or node.output[0]] = reason
            continue
        found.targets.append(graph.target(node, source, flips, float_type))
    found.tables = graph.tables(model)
    found.weight_elements += _weight_elements(graph, found)
    return found


def _checked(operators: Iterable[str]) -> set[str]:
    unknown = sorted(set(operators) - set(MATMULS))
    if unknown:
        raise UserError(f"unknown operator {unknown[0]!r}: weights can be quantized in {', '.join(MATMULS)}")
    return set(operators)


class _Graph:
    """Look-ups over one graph."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.constants = {tensor.name: tensor for tensor in model.graph.initializer}
        self.inputs = {v.name: v for v in model.graph.input if v.name not in self.constants}
        self.makers = {name: node for node in model.graph.node for name in node.output}
        self.readers: dict[str, list[onnx.NodeProto]] = {}
        for node in model.graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        self.computed = self._computed(model)
        self.depths = self._attention_depths(model)
        self.layers = max(self.depths.values(), default=0)

    def trace(self, name: str) -> tuple[str, bool, int]:
        """Constant or input behind `name`, whether what stands between transposes it, and the type it ends
        in.
        """
        flips, ends_in = False, 0
        while (maker := self.makers.get(name)) is not None and maker.op_type in _SEE_THROUGH:
            flips ^= maker.op_type == "Transpose"
            if maker.op_type == "Cast" and not ends_in:
                ends_in = int(_number(maker, "to", 0))
            name = maker.input[0]
        if not ends_in and name in self.constants:
            ends_in = self.constants[name].data_type
        return name, flips, ends_in

    def reason_against(self, node: onnx.NodeProto, source: str, wanted: set[str]) -> str | None:
        """Why this matmul cannot be quantized; "" when it is none with a weight, None when it can."""
        if source in self.inputs:
            shape = self.inputs[source].type.tensor_type.shape.dim
            # A 3-d input is an activation (or a cache), a 2-d one is taken for a weight.
            return "its weight is an input of the graph" if len(shape) == 2 else ""
        dims = self.constants[source].dims
        if len(dims) < 2 or _product(dims) < MINIMUM_ELEMENTS:
            return ""
        if len(dims) != 2:
            return f"its weight has {len(dims)} dimensions"
        if node.op_type not in wanted:
            return f"{node.op_type} was not asked for"
        if _flag(node, "transA") or _flag(node, "transBatchA") or _flag(node, "transBatchB"):
            return "its first input is transposed"
        if node.op_type == "Gemm" and _number(node, "beta", 1.0) != 1.0:
            return "its bias is scaled"
        return None

    def target(self, node: onnx.NodeProto, source: str, flips: bool, float_type: int) -> Target:
        transposed = bool(_flag(node, "transB")) ^ flips
        first, second = self.constants[source].dims
        rows, width = (first, second) if transposed else (second, first)
        return Target(node, source, rows, width, transposed, float_type, self.group(node))

    def tables(self, model: onnx.ModelProto) -> list[Table]:
        """The Gathers that look rows up by token id; others (rotary caches, masks) are left alone."""
        found = []
        for node in model.graph.node:
            if node.op_type != "Gather" or _number(node, "axis", 0):
                continue
            source, flips, _ = self.trace(node.input[0])
            tensor = self.constants.get(source)
            if tensor is None or len(tensor.dims) != 2 or tensor.data_type not in _FLOATS:
                continue
            if self.trace(node.input[1])[0] == "input_ids":
                rows, width = reversed(tensor.dims) if flips else tensor.dims
                found.append(Table(node, source, rows, width, not flips))
        return found

    def group(self, node: onnx.NodeProto) -> str:
        """Layer and part, from the number of attention nodes before and right behind this matmul."""
        if self.layers == 0:
            return "matmul"
        depth = self.depths[node.output[0]]
        if self._feeds_attention(node):
            return f"layers.{depth}.attention"
        if self._makes_logits(node):
            return "head"
        part = "attention" if self._behind_attention(node) else "mlp"
        return f"layers.{depth - 1}.{part}"

    def _computed(self, model: onnx.ModelProto) -> dict[str, int]:
        """Tensors made by nodes from constants alone, with the size of the largest constant behind them."""
        sizes = {name: _product(tensor.dims) for name, tensor in self.constants.items()}
        computed: dict[str, int] = {}
        for node in model.graph.node:
            behind = [sizes.get(name) for name in node.input if name]
            if all(size is not None for size in behind):
                largest = max((size for size in behind if size is not None), default=0)
                sizes |= dict.fromkeys(node.output, largest)
                computed |= dict.fromkeys(node.output, largest)
        return computed

    def _attention_depths(self, model: onnx.ModelProto) -> dict[str, int]:
        """Attention nodes on the way from the inputs to each tensor."""
        depths: dict[str, int] = {}
        for node in model.graph.node:
            before = max((depths.get(name, 0) for name in node.input), default=0)
            for name in node.output:
                depths[name] = before + (node.op_type in _ATTENTION)
        return depths

    def _feeds_attention(self, node: onnx.NodeProto) -> bool:
        return self._reaches(node, forward=True)

    def _behind_attention(self, node: onnx.NodeProto) -> bool:
        return self._reaches(node, forward=False)

    def _reaches(self, node: onnx.NodeProto, *, forward: bool) -> bool:
        """Whether an attention node is reached from `node` without passing another matmul with a weight."""
        pending = list(node.output) if forward else [node.input[0]]
        seen: set[str] = set()
        while pending:
            name = pending.pop()
            if name in seen:
                continue
            seen.add(name)
            nodes = self.readers.get(name, []) if forward else [n for n in [self.makers.get(name)] if n]
            for other in nodes:
                if other.op_type in _ATTENTION:
                    return True
                if self._ends_a_part(other):
                    continue
                pending += list(other.output if forward else other.input)
        return False

    def _ends_a_part(self, node: onnx.NodeProto) -> bool:
        """A residual sum, a norm or another matmul with a weight; adding a bias does not end anything."""
        if node.op_type == "Add":
            return not set(node.input) & set(self.constants)
        return node.op_type in _NORMS or (
            node.op_type in MATMULS and self.trace(node.input[1])[0] in self.constants
        )

    def _makes_logits(self, node: onnx.NodeProto) -> bool:
        name = node.output[0]
        while name != "logits":
            following = self.readers.get(name, [])
            if len(following) != 1 or following[0].op_type not in {
                "Mul",
                "Div",
                "Tanh",
                "Add",
                "Cast",
                "Identity",
            }:
                return False
            name = following[0].output[0]
        return True


# Whatever is behind a norm of the residual stream belongs to another part of the layer.
_NORMS = {
    "SkipSimplifiedLayerNormalization",
    "SkipLayerNormalization",
    "SimplifiedLayerNormalization",
    "LayerNormalization",
    "RMSNormalization",
}


def _weight_elements(graph: _Graph, found: Survey) -> int:
    """Elements of all weights: what the matmuls read and the tables that are looked up, each once."""
    names = {target.weight for target in found.targets}
    for name, tensor in graph.constants.items():
        kinds = {node.op_type for node in graph.readers.get(name, [])}
        if (
            len(tensor.dims) >= 2
            and _product(tensor.dims) >= MINIMUM_ELEMENTS
            and kinds & {*MATMULS, "Gather"}
        ):
            names.add(name)
    fed = [
        graph.inputs[n] for n in graph.inputs if any(r.op_type in MATMULS for r in graph.readers.get(n, []))
    ]
    inputs = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in fed]
    return sum(_product(graph.constants[n].dims) for n in names) + sum(
        _product(s) for s in inputs if len(s) == 2
    )


def _product(dims: Iterable[int]) -> int:
    total = 1
    for dim in dims:
        total *= dim
    return total


def _number(node: onnx.NodeProto, name: str, default: float) -> float:
    for attribute in node.attribute:
        if attribute.name == name:
            return attribute.i if attribute.type == onnx.AttributeProto.INT else attribute.f
    return default


def _flag(node: onnx.NodeProto, name: str) -> bool:
    return bool(_number(node, name, 0))
