"""Which bundles are compared: names, formats, where the weights come from, and whether they can be."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from seatrial.errors import UserError
from seatrial.export.bundle import Bundle
from seatrial.export.session_graph import load_graph
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.damage.report import BundleHeading
from seatrial.quantize.provenance import provenance_of
from seatrial.quantize.targets import survey
from seatrial.quantize.tensors import TensorReader

_BLOCK_OPERATORS = {"MatMulNBits": "bits", "GatherBlockQuantized": "bits"}


def describe(bundle: Bundle) -> BundleHeading:
    """Name, formats and provenance; the provenance is read from the weights, whatever the folder says."""
    model = load_graph(bundle.model_path)
    bits = sorted(
        {
            attribute.i
            for node in model.graph.node
            if node.op_type in _BLOCK_OPERATORS
            for attribute in node.attribute
            if attribute.name == "bits"
        }
    )
    told = bundle.info.get("weights")
    weights = str(told) if told and bits else "+".join(f"int{b}" for b in bits) or "float"
    found = survey(model)
    if bits:
        # What was quantized here shows in its operators; what it came from is in its description.
        was = (bundle.info.get("reference") or {}).get("provenance")
        provenance = f"quantized bundle ({'+'.join(map(str, bits))} bit weights)"
        provenance += f"; made from: {was}" if was else "; what it was made from is not known"
    else:
        provenance = provenance_of(found, TensorReader(model, bundle.folder)).text()
    return BundleHeading(bundle.folder.resolve().name, weights, bundle.kv.dtype, provenance)


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
