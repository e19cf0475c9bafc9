"""One graph out of two: chosen parts of a quantized model in the float model it was made from.

A quantizer replaces the node that makes a tensor and keeps the tensor's name. So for every tensor of the
reference it can be asked who makes it: the reference's node, or the candidate's with the helpers before it.
Taking a part is choosing who makes its tensors. The values are the candidate's own, whatever algorithm, bits
per layer or balancing it was made with, and nothing is quantized again.

Which parts there are, and what they are measured on, is factorial.py's business.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx

from seatrial.errors import UserError
from seatrial.export.bundle import INFO, MODEL, Bundle, open_bundle, write_info
from seatrial.export.session_graph import load_graph
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.kv_cache import KV_BITS
from seatrial.quantize.weights import alive, inner_inputs

EXACT = 0  # accuracy level of matmuls that compute in float
_MATMUL, _LOOKUP, _ATTENTION = "MatMulNBits", "GatherBlockQuantized", "GroupQueryAttention"
# What the candidate's tensors and files are called in a graph that has tensors of both.
_OWN = "candidate/"
_OWN_FILE = "candidate."


@dataclass(frozen=True)
class Parts:
    """What is the candidate's; `head` includes the embedding. `accuracy_level` is that of its matmuls."""

    body: bool
    head: bool
    kv: bool
    accuracy_level: int


def parts_of(candidate: Bundle) -> Parts:
    """The parts of a candidate as its graph has them. Raises `UserError` when nothing is quantized."""
    graph = load_graph(candidate.model_path).graph
    matmuls = [node for node in graph.node if node.op_type == _MATMUL]
    vocabulary = Tokenizer.load(candidate.folder).vocabulary_size
    heads = [node for node in matmuls if _is_head(node, vocabulary)]
    kv = candidate.kv.dtype in KV_BITS
    if not matmuls and not kv:
        raise UserError(
            f"{candidate.folder.name} has no block-quantized weights and no quantized KV cache: "
            "there are no parts to take one at a time"
        )
    looked_up = any(node.op_type == _LOOKUP for node in graph.node)
    levels = {_attribute(node, "accuracy_level", EXACT) for node in matmuls}
    return Parts(len(matmuls) > len(heads), bool(heads) or looked_up, kv, max(levels, default=EXACT))


def graft(
    reference: onnx.ModelProto, candidate: onnx.ModelProto, parts: Parts, vocabulary: int
) -> onnx.ModelProto:
    """The reference's graph with these parts of the candidate's, whose tensors are renamed.

    External data of the candidate is looked for in files whose names begin with "candidate.". Raises
    `UserError` when the candidate's quantized tensors are not the reference's.
    """
    groups = _groups(reference, candidate)
    model = onnx.ModelProto()
    model.CopyFrom(candidate if parts.kv else reference)  # inputs and outputs: the cache has a type
    nodes: dict[str, onnx.NodeProto] = {}  # by the first tensor they make; two groups may share a helper
    for node in reference.graph.node:
        group = groups.get(node.output[0], ())
        if group and _wanted(group, parts, vocabulary):
            _set_level(group, parts.accuracy_level)
            nodes |= {each.output[0]: each for each in group}
        else:
            nodes[node.output[0]] = node
    del model.graph.node[:], model.graph.initializer[:], model.graph.value_info[:]
    model.graph.node.extend(alive(list(nodes.values()), model))
    used = {name for node in model.graph.node for name in (*node.input, *inner_inputs(node))}
    tensors = [*reference.graph.initializer, *map(_renamed, candidate.graph.initializer)]
    model.graph.initializer.extend(tensor for tensor in tensors if tensor.name in used)
    del model.opset_import[:]
    model.opset_import.extend(_opsets(reference, candidate))
    return model


def _groups(reference: onnx.ModelProto, candidate: onnx.ModelProto) -> dict[str, tuple[onnx.NodeProto, ...]]:
    """By tensor of the reference: the candidate's node that makes it, after the helpers only that needs."""
    known = {name for node in reference.graph.node for name in node.output}
    makers = {name: node for node in candidate.graph.node for name in node.output}
    _refuse_another_model(known, candidate)
    own = {tensor.name for tensor in candidate.graph.initializer}

    def group(node: onnx.NodeProto) -> tuple[onnx.NodeProto, ...]:
        before = [makers[name] for name in node.input if name in makers and name not in known]
        return (*(helper for each in before for helper in group(each)), _reading_own(node, own))

    return {name: group(node) for name, node in makers.items() if name in known}


def _refuse_another_model(known: set[str], candidate: onnx.ModelProto) -> None:
    for node in candidate.graph.node:
        if node.op_type == _MATMUL and node.output[0] not in known:
            raise UserError(
                f"the reference has no tensor {node.output[0]}, which a quantized matmul of the candidate "
                "gives: one part at a time needs the bundle that the candidate was quantized from"
            )


def refuse_another_type(reference: onnx.ModelProto, candidate: onnx.ModelProto) -> None:
    """Raises `UserError` when the two compute in different types: their nodes would not fit together."""
    types = [
        next(o.type.tensor_type.elem_type for o in model.graph.output if o.name == "logits")
        for model in (reference, candidate)
    ]
    if types[0] != types[1]:
        names = [onnx.TensorProto.DataType.Name(kind).lower() for kind in types]
        raise UserError(
            f"the reference computes in {names[0]} and the candidate in {names[1]}: one part at a time needs "
            "the bundle that the candidate was quantized from"
        )


def _reading_own(node: onnx.NodeProto, own: Iterable[str]) -> onnx.NodeProto:
    """A copy whose initializers are those of the candidate."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.input[:] = [f"{_OWN}{name}" if name in own else name for name in node.input]
    return copy


def _renamed(tensor: onnx.TensorProto) -> onnx.TensorProto:
    copy = onnx.TensorProto()
    copy.CopyFrom(tensor)
    copy.name = f"{_OWN}{tensor.name}"
    for entry in copy.external_data:
        if entry.key == "location":
            entry.value = f"{_OWN_FILE}{entry.value}"
    return copy


def _wanted(group: Sequence[onnx.NodeProto], parts: Parts, vocabulary: int) -> bool:
    """Whether a tensor's maker is the candidate's; norms go with the body, their gains may hold factors."""
    kinds = {node.op_type for node in group}
    if _ATTENTION in kinds:
        return parts.kv
    if _LOOKUP in kinds or any(_is_head(node, vocabulary) for node in group):
        return parts.head
    return parts.body


def _is_head(node: onnx.NodeProto, vocabulary: int) -> bool:
    """A quantized matmul with a row for every token."""
    return node.op_type == _MATMUL and _attribute(node, "N", 0) >= vocabulary


def _attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((int(a.i) for a in node.attribute if a.name == name), default)


def _set_level(nodes: Iterable[onnx.NodeProto], level: int) -> None:
    for node in nodes:
        if node.op_type == _MATMUL:
            kept = [attribute for attribute in node.attribute if attribute.name != "accuracy_level"]
            del node.attribute[:]
            node.attribute.extend([*kept, onnx.helper.make_attribute("accuracy_level", level)])


def _opsets(*models: onnx.ModelProto) -> list[onnx.OperatorSetIdProto]:
    versions: dict[str, int] = {}
    for entry in (entry for model in models for entry in model.opset_import):
        versions[entry.domain] = max(entry.version, versions.get(entry.domain, 0))
    return [onnx.helper.make_opsetid(domain, version) for domain, version in versions.items()]


def build(reference: Bundle, candidate: Bundle, parts: Parts, folder: Path) -> Bundle:
    """Write the reference with these parts of the candidate into `folder`, and open it.

    Data files are linked where the file system can, so a variant takes hardly any room.
    """
    folder.mkdir(parents=True)
    vocabulary = Tokenizer.load(candidate.folder).vocabulary_size
    model = graft(load_graph(reference.model_path), load_graph(candidate.model_path), parts, vocabulary)
    (folder / MODEL).write_bytes(model.SerializeToString())
    used = {e.value for t in model.graph.initializer for e in t.external_data if e.key == "location"}
    for prefix, bundle in (("", reference), (_OWN_FILE, candidate)):
        for file in bundle.data_files:
            if f"{prefix}{file.name}" in used:
                _link(file, folder / f"{prefix}{file.name}")
    for file in reference.folder.iterdir():
        if file.is_file() and file.suffix in (".json", ".jinja") and file.name != INFO:
            shutil.copyfile(file, folder / file.name)
    write_info(folder, {"weights": "experiment"})
    return open_bundle(folder, check_hashes=False)


def _link(source: Path, place: Path) -> None:
    """A second name for a file; its bytes again where names cannot be shared."""
    try:
        os.link(source.resolve(), place)
    except OSError:
        shutil.copyfile(source, place)
