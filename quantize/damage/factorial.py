"""Which part of a quantization hurts: each part alone, and all together, from one float bundle.

The candidate says what its parts are (bits and blocks of body and head, accuracy level, KV cache); each is
made alone from the reference, everything else left float. The accuracy level cannot stand alone: it is the
difference between the weights computed exactly (level 0) and as the candidate computes them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from seatrial.errors import UserError
from seatrial.export.bundle import DATA, INFO, MODEL, Bundle, open_bundle, write_info
from seatrial.export.session import Session
from seatrial.export.session_graph import load_graph
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.damage.classes import CLASSES
from seatrial.quantize.damage.documents import LANGUAGES, Document
from seatrial.quantize.damage.figures import LEAST_FLOOR, ClassFigures, class_figures, languages_of
from seatrial.quantize.damage.forced import score_document
from seatrial.quantize.damage.store import Store
from seatrial.quantize.damage.tally import tally
from seatrial.quantize.kv_cache import KV_BITS, peaks_of, quantize_cache, scales_from
from seatrial.quantize.recipe import Format, Recipe
from seatrial.quantize.targets import Survey, Target, survey
from seatrial.quantize.tensors import TensorReader
from seatrial.quantize.texts import calibration_text
from seatrial.quantize.weights import quantize_weights, tie_copies

Progress = Callable[[str, float | None], None]
_KV_LENGTHS = (64, 512)
EXACT = 0


@dataclass(frozen=True)
class Parts:
    """What a quantized bundle consists of; None where it is float."""

    body: Format | None
    head: Format | None
    accuracy_level: int
    kv: str | None


@dataclass(frozen=True)
class Variant:
    """One bundle of the experiment."""

    name: str
    parts: Parts


def parts_of(candidate: Bundle) -> Parts:
    """The parts of a candidate as its graph has them. Raises `UserError` when nothing is quantized."""
    nodes = [n for n in load_graph(candidate.model_path).graph.node if n.op_type == "MatMulNBits"]
    vocabulary = Tokenizer.load(candidate.folder).vocabulary_size
    heads = [node for node in nodes if _attribute(node, "N", 0) >= vocabulary]
    body = [node for node in nodes if node not in heads]
    levels = {_attribute(node, "accuracy_level", 0) for node in nodes}
    kv = candidate.kv.dtype if candidate.kv.dtype in KV_BITS else None
    if not nodes and kv is None:
        raise UserError(
            f"{candidate.folder.name} has no block-quantized weights and no quantized KV cache: "
            "there are no parts to take one at a time"
        )
    return Parts(_format(body), _format(heads), max(levels, default=0), kv)


def _format(nodes: Sequence[onnx.NodeProto]) -> Format | None:
    """The coarsest format among some nodes: the one whose damage is asked for."""
    if not nodes:
        return None
    worst = min(nodes, key=lambda node: (_attribute(node, "bits", 8), -_attribute(node, "block_size", 32)))
    symmetric = len(worst.input) < 4 or not worst.input[3]
    return Format(_attribute(worst, "bits", 4), _attribute(worst, "block_size", 32), symmetric)


def _attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((int(a.i) for a in node.attribute if a.name == name), default)


def variants(parts: Parts) -> list[Variant]:
    """The experiment: each part alone, then all of them."""
    nothing = Parts(None, None, EXACT, None)
    found = []
    if parts.body:
        found.append(Variant("weights, exact arithmetic", replace(nothing, body=parts.body)))
        if parts.accuracy_level != EXACT:
            level = replace(nothing, body=parts.body, accuracy_level=parts.accuracy_level)
            found.append(Variant(f"weights, accuracy level {parts.accuracy_level}", level))
    if parts.head:
        head = replace(nothing, head=parts.head, accuracy_level=parts.accuracy_level)
        found.append(Variant("head and embedding", head))
    if parts.kv:
        found.append(Variant("KV cache", replace(nothing, kv=parts.kv)))
    return [*found, Variant("all together", parts)]


def build(bundle: Bundle, parts: Parts, folder: Path) -> Bundle:
    """Write `bundle` with these parts quantized and nothing else into `folder`, and open it."""
    folder.mkdir(parents=True)
    model = load_graph(bundle.model_path)
    found, reader = survey(model), TensorReader(model, bundle.folder)
    tie_copies(found, reader)
    heads = _heads(found, Tokenizer.load(bundle.folder).vocabulary_size)
    quantize_weights(model, _chosen(found, heads, parts), reader, _recipe(heads, parts), folder / DATA)
    for node in model.graph.node:
        if node.op_type == "MatMulNBits":
            _set_level(node, parts.accuracy_level)
    if parts.kv:
        _quantize_cache(bundle, model, parts.kv)
    (folder / MODEL).write_bytes(model.SerializeToString())
    for file in bundle.folder.iterdir():
        if file.is_file() and file.suffix in (".json", ".jinja") and file.name != INFO:
            shutil.copyfile(file, folder / file.name)
    write_info(folder, {"weights": "experiment"})
    return open_bundle(folder, check_hashes=False)


def _heads(found: Survey, vocabulary: int) -> list[Target]:
    """Matmuls with a row for every token: the same rule as for the candidate's nodes."""
    return [target for target in found.targets if target.rows >= vocabulary]


def _chosen(found: Survey, heads: Sequence[Target], parts: Parts) -> Survey:
    """Only the targets that are to be quantized. A table goes with its head."""
    targets = [target for target in found.targets if (parts.head if target in heads else parts.body)]
    tables = found.tables if parts.head else []
    return replace(found, targets=targets, tables=tables)


def _recipe(heads: Sequence[Target], parts: Parts) -> Recipe:
    """Formats of the targets that are chosen; the placeholder is for those that are not."""
    placeholder = Format(8)
    head = parts.head or placeholder
    groups = {target.group: head for target in heads}
    return Recipe(body=parts.body or placeholder, head=head, groups=groups)


def _set_level(node: onnx.NodeProto, level: int) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name != "accuracy_level"]
    del node.attribute[:]
    node.attribute.extend([*kept, onnx.helper.make_attribute("accuracy_level", level)])


def _quantize_cache(bundle: Bundle, model: onnx.ModelProto, kv: str) -> None:
    tokenizer = Tokenizer.load(bundle.folder)
    texts = [tokenizer.encode(calibration_text(language)) for language in LANGUAGES]
    with Session(bundle, capacity=max(_KV_LENGTHS), weights="mapped") as session:
        quantize_cache(model, scales_from(peaks_of(session, texts, _KV_LENGTHS), bits=KV_BITS[kv]))


@contextmanager
def _built(bundle: Bundle, parts: Parts, folder: Path) -> Iterator[Bundle]:
    """A variant's bundle for as long as it is measured: six of them would fill a disk."""
    if folder.exists():
        shutil.rmtree(folder)  # half made by an interrupted run
    try:
        yield build(bundle, parts, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_factorial(
    reference: Bundle,
    candidate: Bundle,
    documents: Sequence[Document],
    tokenizer: Tokenizer,
    work: Path,
    progress: Progress,
    *,
    window: int,
    draws: int,
    threads: int | None = None,
) -> list[dict[str, Any]]:
    """KL, harm and concentration of every variant, by class and language; resumable by document."""
    rows = []
    experiment = variants(parts_of(candidate))
    for number, variant in enumerate(experiment):
        store = Store(work / f"variant-{number}")
        progress("one part at a time", number / len(experiment))
        if not all(store.has(place) for place in range(len(documents))):
            with _built(reference, variant.parts, work / "bundle") as bundle:
                _score(reference, bundle, documents, tokenizer, store, window, threads)
        found = tally(lambda store=store: store.documents(len(documents)), draws=draws)  # type: ignore[misc]
        rows.append(
            {
                "variant": variant.name,
                "classes": _brief(class_figures(found, LEAST_FLOOR)),
                "languages": {
                    LANGUAGES[place]: _brief(class_figures(found, LEAST_FLOOR, place))
                    for place in languages_of(found)
                },
            }
        )
    progress("one part at a time", 1.0)
    return rows


def _score(
    reference: Bundle,
    bundle: Bundle,
    documents: Sequence[Document],
    tokenizer: Tokenizer,
    store: Store,
    window: int,
    threads: int | None,
) -> None:
    longest = max(tokenizer.count(document.text) for document in documents)
    capacity = len(tokenizer.prefix_ids()) + min(window, longest)
    with (
        Session(reference, capacity=capacity, threads=threads) as left,
        Session(bundle, capacity=capacity, threads=threads) as right,
    ):
        for number, document in enumerate(documents):
            if not store.has(number):
                store.write(number, score_document(document, left, right, tokenizer, window=window))


def _brief(classes: Mapping[str, ClassFigures]) -> dict[str, Any]:
    brief = {}
    for name in CLASSES:
        figures = classes[name]
        ratio = None if figures.compared is None else figures.compared.ratio.to_json()
        brief[name] = {
            "n": figures.tokens,
            "kl": figures.kl.to_json(),
            "harm": figures.kinds["harm"].to_json(),
            "ratio": ratio,
        }
    return brief
