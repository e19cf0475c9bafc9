"""Which bundles are compared: names, formats, where the weights come from, and whether they can be."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import onnx
from onnx import TensorProto

from seatrial.errors import UserError
from seatrial.export.bundle import Bundle
from seatrial.export.cache_shapes import whole_number
from seatrial.export.graph_config import weight_format
from seatrial.export.session_graph import load_graph
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.damage.report import BundleHeading
from seatrial.quantize.provenance import BLOCK, provenance_of
from seatrial.quantize.targets import survey
from seatrial.quantize.tensors import TensorReader

# Operators whose weights are rounded whatever they are stored as; the others are known by what they read.
_BLOCK_OPERATORS = ("MatMulNBits", "GatherBlockQuantized")
_BNB4 = "MatMulBnb4"
_BNB4_CODES = ("fp4", "nf4")  # by its quant_type
_CODE_READERS = (
    "MatMulInteger",
    "MatMulIntegerToFloat",
    "DynamicQuantizeMatMul",
    "QLinearMatMul",
    "QGemm",
    "DequantizeLinear",
)
# Stored codes of a weight, by the type's name (not every onnx has int2); a bias (int32) or a mask is none.
_CODES = {
    **{sign + f"INT{bits}": f"int{bits}" for bits in (2, 4, 8, 16) for sign in ("", "U")},
    **dict.fromkeys(("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"), "fp8"),
    "FLOAT4E2M1": "fp4",
}
_VIEWS = ("Transpose", "Reshape", "Identity", "Cast")


def describe(bundle: Bundle) -> BundleHeading:
    """Name, formats and provenance; the provenance is read from the weights, whatever the folder says."""
    model = load_graph(bundle.model_path)
    rounded = rounded_formats(model)
    if rounded:
        weights = str(bundle.info.get("weights") or "+".join(rounded))
        provenance = _of_rounded(bundle, rounded)
    else:
        weights = weight_format(model)
        provenance = _of_floats(bundle, model, weights)
    return BundleHeading(bundle.folder.resolve().name, weights, bundle.kv.dtype, provenance)


def _of_rounded(bundle: Bundle, formats: Sequence[str]) -> str:
    """What was quantized here shows in its operators; what it came from is in its description."""
    was = (bundle.info.get("reference") or {}).get("provenance")
    bits = "+".join(name.removeprefix("int") for name in formats)
    told = f"{bits} bit" if all(name.startswith("int") for name in formats) else "+".join(formats)
    return f"quantized bundle ({told} weights)" + (
        f"; made from: {was}" if was else "; what it was made from is not known"
    )


def _of_floats(bundle: Bundle, model: onnx.ModelProto, weights: str) -> str:
    """What the values of float weights tell; half precision is not called full."""
    found = survey(model)
    if not any(target.width >= BLOCK for target in found.targets):
        return "not known: the graph has no float matrix whose values could be looked at"
    provenance = provenance_of(found, TensorReader(model, bundle.folder))
    if provenance.bits is None and weights != "fp32":
        return f"{weights} (no sign of an earlier quantization in the weights)"
    return provenance.text()


def rounded_formats(model: onnx.ModelProto) -> list[str]:
    """Formats of the rounded weights in a graph, whoever made it: int4, int8, nf4 ...; none for floats."""
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    makers = {name: node for node in model.graph.node for name in node.output}
    found = set()
    for node in model.graph.node:
        if node.op_type in _BLOCK_OPERATORS:
            found.add(f"int{whole_number(node, 'bits') or 4}")
        elif node.op_type == _BNB4:
            found.add(_BNB4_CODES[whole_number(node, "quant_type") != 0])
        elif node.op_type in _CODE_READERS:
            behind = (tensors.get(_behind(name, makers, (*_VIEWS, "Gather"))) for name in node.input)
            found |= {_code(t.data_type) for t in behind if t is not None and len(t.dims) >= 2}
        elif node.op_type == "QuantizeLinear":
            found |= _rounded_when_loaded(node, tensors, makers)
    return sorted(found - {""})


def _code(data_type: int) -> str:
    """The format of codes of this type; "" of floats and whole numbers that are no codes."""
    return _CODES.get(TensorProto.DataType.Name(data_type), "")


def _rounded_when_loaded(
    node: onnx.NodeProto, tensors: Mapping[str, TensorProto], makers: Mapping[str, onnx.NodeProto]
) -> set[str]:
    """The format of a float weight behind QuantizeLinear; nothing for activations, looked-up rows too."""
    source = tensors.get(_behind(node.input[0], makers, _VIEWS))
    if source is None or len(source.dims) < 2:
        return set()
    zero = tensors.get(node.input[2]) if len(node.input) > 2 else None
    code = zero.data_type if zero is not None else whole_number(node, "output_dtype") or TensorProto.UINT8
    return {_code(code)}


def _behind(name: str, makers: Mapping[str, onnx.NodeProto], through: Sequence[str]) -> str:
    """The value behind nodes that only show it another way."""
    for _ in range(len(makers)):  # a damaged graph may go round in a circle
        if name not in makers or makers[name].op_type not in through:
            break
        name = makers[name].input[0]
    return name


def common_tokenizer(reference: Bundle, candidate: Bundle, texts: Iterable[str]) -> Tokenizer:
    """The tokenizer of both. Raises `UserError` when they differ on any of the texts, or in size."""
    one, other = Tokenizer.load(reference.folder), Tokenizer.load(candidate.folder)
    same = _same_file(reference, candidate) or (
        one.vocabulary_size == other.vocabulary_size
        and all(one.encode(text) == other.encode(text) for text in texts)
    )
    if not same or one.prefix_ids() != other.prefix_ids():
        raise UserError(
            f"{reference.folder.name} and {candidate.folder.name} have different tokenizers, so there are no "
            "common tokens to compare. What can still be compared: run `seatrial damage` on each with a "
            "reference of its own, and set NLL per digit, NLL per character and copy rates side by side"
        )
    return one


def _same_file(one: Bundle, other: Bundle) -> bool:
    paths = [bundle.folder / "tokenizer.json" for bundle in (one, other)]
    return all(path.is_file() for path in paths) and paths[0].read_bytes() == paths[1].read_bytes()


def mark_of(bundle: Bundle) -> str:
    """Changes when a bundle does: names, sizes and times of its files."""
    digest = hashlib.sha256()
    for file in sorted(path for path in Path(bundle.folder).iterdir() if path.is_file()):
        status = file.stat()
        digest.update(f"{file.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
