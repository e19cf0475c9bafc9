"""Which part of a quantization hurts: each part alone, and all together, in the float model.

The candidate's graph says what its parts are (body, head and embedding, accuracy level, KV cache); each is
put alone into the reference's, everything else left float. The accuracy level cannot stand alone: it is the
difference between the weights computed exactly (level 0) and as the candidate computes them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seatrial.export.bundle import Bundle
from seatrial.export.session import Session
from seatrial.export.session_graph import load_graph
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.damage.classes import CLASSES
from seatrial.quantize.damage.documents import LANGUAGES, Document
from seatrial.quantize.damage.figures import LEAST_FLOOR, ClassFigures, class_figures, languages_of
from seatrial.quantize.damage.forced import score_document
from seatrial.quantize.damage.graft import EXACT, Parts, build, graft, parts_of, refuse_another_type
from seatrial.quantize.damage.store import Store
from seatrial.quantize.damage.tally import tally

Progress = Callable[[str, float | None], None]
TOGETHER = "all together"


@dataclass(frozen=True)
class Variant:
    """One bundle of the experiment."""

    name: str
    parts: Parts


def variants(parts: Parts) -> list[Variant]:
    """The experiment: each part alone, then all of them."""
    nothing = Parts(body=False, head=False, kv=False, accuracy_level=parts.accuracy_level)
    found = []
    if parts.body:
        alone = replace(nothing, body=True)
        found.append(Variant("weights, exact arithmetic", replace(alone, accuracy_level=EXACT)))
        if parts.accuracy_level != EXACT:
            found.append(Variant(f"weights, accuracy level {parts.accuracy_level}", alone))
    if parts.head:
        found.append(Variant("head and embedding", replace(nothing, head=True)))
    if parts.kv:
        found.append(Variant("KV cache", replace(nothing, kv=True)))
    return [*found, Variant(TOGETHER, parts)]


@contextmanager
def _built(reference: Bundle, candidate: Bundle, parts: Parts, folder: Path) -> Iterator[Bundle]:
    """A variant's bundle for as long as it is measured."""
    if folder.exists():
        shutil.rmtree(folder)  # half made by an interrupted run
    try:
        yield build(reference, candidate, parts, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def check_experiment(reference: Bundle, candidate: Bundle) -> None:
    """Raises `UserError` where the experiment cannot be made, before anything is measured."""
    experiment = variants(parts_of(candidate))
    left, right = load_graph(reference.model_path), load_graph(candidate.model_path)
    refuse_another_type(left, right)
    vocabulary = Tokenizer.load(candidate.folder).vocabulary_size
    for variant in experiment:
        graft(left, right, variant.parts, vocabulary)


def run_factorial(
    reference: Bundle,
    candidate: Bundle,
    documents: Sequence[Document],
    tokenizer: Tokenizer,
    work: Path,
    progress: Progress,
    *,
    together: Store,
    window: int,
    draws: int,
    seed: int = 0,
    threads: int | None = None,
) -> list[dict[str, Any]]:
    """KL, harm and concentration of every variant, by class and language; resumable by document.

    All parts together are the candidate itself: `together` has its rows of the same documents.
    """
    rows = []
    experiment = variants(parts_of(candidate))
    for number, variant in enumerate(experiment):
        store = together if variant.name == TOGETHER else Store(work / f"grafted-{number}")
        progress("one part at a time", number / len(experiment))
        if not all(store.has(place) for place in range(len(documents))):
            with _built(reference, candidate, variant.parts, work / "bundle") as bundle:
                _score(reference, bundle, documents, tokenizer, store, window, threads)
        found = tally(lambda store=store: store.documents(len(documents)), draws=draws, seed=seed)  # type: ignore[misc]
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
