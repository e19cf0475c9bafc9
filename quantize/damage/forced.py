"""Teacher-forced: both bundles read the same document, and every token gets a row of figures.

One document at a time, its logits piece by piece, so memory depends on neither the number nor the length of
the documents. What the rows mean together is `tally` and `verdicts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import UserError
from seatrial.export.session import Session
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.damage.align import TokenLabels, align
from seatrial.quantize.damage.classes import CLASSES, LabelledText
from seatrial.quantize.damage.divergence import Divergence, diverge
from seatrial.quantize.damage.documents import LANGUAGES, Document
from seatrial.quantize.damage.escapes import Outcome, judge
from seatrial.quantize.damage.labels import label_text

# Tokens read in one go from an empty cache, and rows of logits held at once (V floats each, twice).
WINDOW = 1024
ROWS = 128

TOKEN = np.dtype(
    [
        ("language", "u1"),
        ("masks", "u1"),
        ("position", "u1"),
        ("length", "u1"),
        ("copy", "u1"),
        ("flip", "u1"),
        ("entropy", "f4"),
        ("kl", "f8"),
        ("nll", "f4"),
        ("delta", "f8"),
    ]
)
ITEM = np.dtype(
    [
        ("language", "u1"),
        ("label", "u1"),  # place in CLASSES
        ("size", "u4"),  # digits, else characters
        ("copyable", "?"),
        ("right", "?"),  # the reference has every token right
        ("harmed", "?"),  # and the candidate does not
        ("repaired", "?"),
        ("outcome", "u1"),  # of a harmed figure: escapes.Outcome
        ("nll", "f8"),
        ("delta", "f8"),
    ]
)


@dataclass(frozen=True, slots=True)
class Scored:
    """The rows of one document: scored tokens (TOKEN) and whole figures and names (ITEM)."""

    tokens: NDArray[np.void]
    items: NDArray[np.void]


@dataclass(frozen=True, slots=True)
class _Rows:
    """What is known of each scored token of a document, in order; `place` is its number in the document."""

    place: NDArray[np.int64]
    ids: NDArray[np.int64]
    figures: Divergence


class Scorer(Protocol):
    """What is needed of a session: logits of all positions, piece by piece, from an empty cache."""

    def score_chunks(self, ids: Sequence[int], *, chunk: int = ROWS) -> Iterator[NDArray[np.float32]]: ...


class Replayed:
    """A session whose last answer is kept: one reference for several candidates costs its time once.

    Holds the logits of one window, (T, V) floats.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ids: list[int] = []
        self._logits: NDArray[np.float32] | None = None

    def score_chunks(self, ids: Sequence[int], *, chunk: int = ROWS) -> Iterator[NDArray[np.float32]]:
        """The rows of `Session.score_chunks`."""
        if self._logits is None or self._ids != list(ids):
            self._logits, self._ids = self._session.score(ids, chunk=chunk), list(ids)
        for start in range(0, len(self._logits), chunk):
            yield self._logits[start : start + chunk]


def score_document(
    document: Document,
    reference: Scorer,
    candidate: Scorer,
    tokenizer: Tokenizer,
    *,
    window: int = WINDOW,
) -> Scored:
    """Both bundles on one document. The first token of a window is scored only after a begin token.

    Raises `UserError` when either bundle gives figures that are not finite.
    """
    ids, spans = tokenizer.encode_spans(document.text)
    labelled = label_text(document.text)
    labels = align(labelled, spans)
    rows = _score(ids, reference, candidate, tokenizer.prefix_ids(), window)
    _refuse_not_finite(rows.figures, document.name)
    language = LANGUAGES.index(document.language)
    flipped = rows.figures.flips(rows.ids)
    return Scored(
        _token_rows(rows, labels, flipped, language),
        _item_rows(rows, labels, labelled, tokenizer, language),
    )


def _score(
    ids: Sequence[int], reference: Scorer, candidate: Scorer, prefix: Sequence[int], window: int
) -> _Rows:
    """The divergence at every scored token, window by window and piece by piece."""
    places, pieces = [], []
    known = np.asarray(ids, np.int64)
    for start in range(0, len(ids), window):
        part = [*prefix, *ids[start : start + window]]
        # Row t of the logits predicts part[t + 1]: the last row predicts nothing that is known.
        targets = np.asarray(part[1:], np.int64)
        skipped = max(0, len(prefix) - 1)
        for at, left, right in _pairs(reference, candidate, part[:-1]):
            first = max(0, skipped - at)
            wanted = targets[at + first : at + len(left)]
            if len(wanted):
                pieces.append(diverge(left[first:], right[first:], wanted))
                places.append(np.arange(at + first, at + len(left)) + 1 - len(prefix) + start)
    if not pieces:
        empty = np.zeros(0, np.int64)
        return _Rows(empty, empty, Divergence(*np.zeros((4, 0)), *np.zeros((2, 0), np.int64)))
    place = np.concatenate(places)
    return _Rows(place, known[place], _joined(pieces))


def _pairs(
    reference: Scorer, candidate: Scorer, part: Sequence[int]
) -> Iterator[tuple[int, NDArray[np.float32], NDArray[np.float32]]]:
    """(first row, reference logits, candidate logits) of the same positions."""
    if not part:
        return
    at = 0
    both = zip(
        reference.score_chunks(part, chunk=ROWS), candidate.score_chunks(part, chunk=ROWS), strict=True
    )
    for left, right in both:
        yield at, left, right
        at += len(left)


def _joined(pieces: Sequence[Divergence]) -> Divergence:
    names = ("entropy", "kl", "nll", "delta", "top_reference", "top_candidate")
    return Divergence(*(np.concatenate([getattr(piece, name) for piece in pieces]) for name in names))


def _refuse_not_finite(figures: Divergence, name: str) -> None:
    for what, values in (("the reference", figures.nll), ("the candidate", figures.kl + figures.delta)):
        if not np.isfinite(values).all():
            where = int(np.flatnonzero(~np.isfinite(values))[0])
            raise UserError(
                f"{what} gives no finite logits at token {where} of {name}: it is broken, not damaged; "
                "run `seatrial export --verify` or quantize again"
            )


def _token_rows(rows: _Rows, labels: TokenLabels, flipped: NDArray[np.uint8], language: int) -> NDArray:
    table = np.zeros(len(rows.place), TOKEN)
    table["language"] = language
    for name in ("masks", "position", "length", "copy"):
        table[name] = getattr(labels, name)[rows.place]
    table["flip"] = flipped
    for name in ("entropy", "kl", "nll", "delta"):
        table[name] = getattr(rows.figures, name)
    return table


def _item_rows(
    rows: _Rows, labels: TokenLabels, labelled: LabelledText, tokenizer: Tokenizer, language: int
) -> NDArray:
    """A row per figure or name whose tokens were all scored."""
    item_of_row = labels.item[rows.place]
    whole = np.bincount(labels.item[labels.item >= 0], minlength=len(labelled.items))
    found = []
    for number, item in enumerate(labelled.items):
        mine = np.flatnonzero(item_of_row == number)
        if not len(mine) or len(mine) < whole[number]:
            continue
        ids, figures = rows.ids[mine], rows.figures
        right = bool((figures.top_reference[mine] == ids).all())
        candidate_right = bool((figures.top_candidate[mine] == ids).all())
        outcome = Outcome.NONE
        if right and not candidate_right:
            outcome = judge(labelled, item, tokenizer.decode(figures.top_candidate[mine].tolist()))
        found.append(
            (
                language,
                CLASSES.index(item.label),
                item.size,
                item.copyable,
                right,
                right and not candidate_right,
                candidate_right and not right,
                outcome,
                figures.nll[mine].sum(),
                figures.delta[mine].sum(),
            )
        )
    return np.array(found, ITEM)
