"""Rows of tokens and items -> sums per document, and from them every figure with its interval.

Two passes over stored rows: the first finds the deciles of the reference's entropy, the second sums and
resamples. Memory is that of the cells, whatever the number of documents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from seatrial.quantize.damage.classes import CLASSES, COPIES, LENGTHS, POSITIONS, class_matrix
from seatrial.quantize.damage.divergence import HARM, OTHER_FLIP, REPAIR
from seatrial.quantize.damage.documents import LANGUAGES
from seatrial.quantize.damage.escapes import Outcome
from seatrial.quantize.damage.forced import Scored
from seatrial.quantize.stats import DRAWS, ClusterBootstrap

DECILES = 10
METRICS = ("n", "kl", "delta", "harm", "repair", "other", "nll")
ITEM_METRICS = ("n", "right", "harmed", "repaired", "size", "nll", "delta")
# Finer than any printed digit: an entropy bin is 0.004 nats, a KL bin 1 % wide.
_ENTROPY_BINS = np.linspace(0, 16, 4001)
_KL_BINS = np.concatenate([[0.0], np.geomspace(1e-12, 1e3, 3473)])
# Kinds of breakdown, each a column of the token rows and the names of its values ("outside" is left out).
BREAKDOWN = {"position": POSITIONS, "length": LENGTHS, "copy": COPIES}
_WIDTHS = {name: len(values) - 1 for name, values in BREAKDOWN.items()}

Rows = Callable[[], Iterable[Scored]]  # gives the documents again for every pass


@dataclass
class Tally:
    """Sums over all documents and their resamples.

    `tokens`: (languages, deciles, classes, metrics); `breakdown`: (cells, classes, metrics); `items`:
    (languages, classes, item metrics). `documents`: documents that have a class, (languages, classes).
    """

    tokens: ClusterBootstrap
    breakdown: ClusterBootstrap
    items: ClusterBootstrap
    edges: NDArray[np.float64]
    sizes: tuple[int, ...]
    documents: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros((len(LANGUAGES), len(CLASSES)), np.int64)
    )
    kl_counts: NDArray[np.int64] = field(
        default_factory=lambda: np.zeros((len(CLASSES), len(_KL_BINS) + 1), np.int64)
    )
    kl_max: NDArray[np.float64] = field(default_factory=lambda: np.zeros(len(CLASSES)))
    outcomes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(Outcome), np.int64))
    scored: int = 0
    identical: bool = True

    def kl_quantile(self, place: int, share: float) -> float:
        """A quantile of KL in a class, right within 1 %; NaN for a class without tokens."""
        counts = self.kl_counts[place]
        if not counts.sum():
            return float("nan")
        bin_ = int(np.searchsorted(np.cumsum(counts), share * counts.sum()))
        return 0.0 if bin_ <= 1 else float(min(_KL_BINS[min(bin_, len(_KL_BINS)) - 1], self.kl_max[place]))


def tally(rows: Rows, *, draws: int = DRAWS, seed: int = 0) -> Tally:
    """Sum everything up. `rows` is called twice; each pass must give the same documents."""
    edges, sizes = _deciles(rows())
    shape = (len(LANGUAGES), DECILES, len(CLASSES), len(METRICS))
    # One seed for the three: a document counts equally often in all figures of a draw.
    found = Tally(
        ClusterBootstrap(sizes, shape, draws=draws, seed=seed),
        ClusterBootstrap(sizes, (sum(_WIDTHS.values()), len(CLASSES), 4), draws=draws, seed=seed),
        ClusterBootstrap(sizes, (len(LANGUAGES), len(CLASSES), len(ITEM_METRICS)), draws=draws, seed=seed),
        edges,
        tuple(sizes),
    )
    for scored in rows():
        _add(found, scored)
    return found


def _deciles(documents: Iterable[Scored]) -> tuple[NDArray[np.float64], list[int]]:
    """Inner edges of the entropy deciles per language, (languages, 9), and documents per language."""
    counts = np.zeros((len(LANGUAGES), len(_ENTROPY_BINS) + 1), np.int64)
    sizes = [0] * len(LANGUAGES)
    for scored in documents:
        if not len(scored.tokens):
            continue
        language = int(scored.tokens["language"][0])
        sizes[language] += 1
        places = np.searchsorted(_ENTROPY_BINS, scored.tokens["entropy"])
        counts[language] += np.bincount(places, minlength=counts.shape[1])
    shares = np.arange(1, DECILES) / DECILES
    edges = np.zeros((len(LANGUAGES), DECILES - 1))
    for language, row in enumerate(counts):
        places = np.searchsorted(np.cumsum(row), shares * row.sum())
        edges[language] = _ENTROPY_BINS[np.minimum(places, len(_ENTROPY_BINS) - 1)]
    return edges, sizes


def _add(found: Tally, scored: Scored) -> None:
    tokens = scored.tokens
    if not len(tokens):
        return
    language = int(tokens["language"][0])
    inside = class_matrix(tokens["masks"])
    measures = _measures(tokens)
    strata = np.searchsorted(found.edges[language], tokens["entropy"])
    sums = np.zeros(found.tokens.totals.shape)
    sums[language] = _grouped(strata, DECILES, inside, measures)
    found.tokens.add(sums, language)
    found.breakdown.add(_breakdown(tokens, inside, measures[:, :4]), language)
    found.items.add(_item_sums(scored.items, language), language)
    found.scored += len(tokens)
    found.documents[language] += inside.any(axis=0)
    found.outcomes += np.bincount(scored.items["outcome"], minlength=len(Outcome))
    found.identical &= not (tokens["kl"].any() or tokens["delta"].any() or tokens["flip"].any())
    for place in range(len(CLASSES)):
        mine = np.abs(tokens["kl"][inside[:, place]])
        bins = np.searchsorted(_KL_BINS, mine, side="right")
        found.kl_counts[place] += np.bincount(bins, minlength=found.kl_counts.shape[1])
        found.kl_max[place] = max(found.kl_max[place], mine.max(initial=0.0))


def _measures(tokens: NDArray) -> NDArray[np.float64]:
    """The METRICS of each token, (T, metrics)."""
    flip = tokens["flip"]
    columns = [np.ones(len(tokens)), tokens["kl"], tokens["delta"]]
    columns += [flip == HARM, flip == REPAIR, flip == OTHER_FLIP, tokens["nll"]]
    return np.stack([np.asarray(column, np.float64) for column in columns], axis=1)


def _grouped(
    group: NDArray, groups: int, inside: NDArray[np.bool_], measures: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sums of the measures per group and class, (groups, classes, metrics)."""
    one_hot = (group[:, None] == np.arange(groups)).astype(np.float64)
    return np.einsum("tg,tc,tm->gcm", one_hot, inside.astype(np.float64), measures, optimize=True)


def _breakdown(
    tokens: NDArray, inside: NDArray[np.bool_], measures: NDArray[np.float64]
) -> NDArray[np.float64]:
    parts = []
    for name, width in _WIDTHS.items():
        group = tokens[name].astype(np.int64) - 1  # "outside" becomes -1, which is no group
        parts.append(_grouped(group, width, inside, measures))
    return np.concatenate(parts)


def _item_sums(items: NDArray, language: int) -> NDArray[np.float64]:
    sums = np.zeros((len(LANGUAGES), len(CLASSES), len(ITEM_METRICS)))
    for place in range(len(CLASSES)):
        mine = items[items["label"] == place]
        if len(mine):
            sums[language, place] = [
                len(mine),
                *(mine[name].astype(np.float64).sum() for name in ITEM_METRICS[1:]),
            ]
    return sums


def breakdown_cells() -> list[tuple[str, str]]:
    """(kind, value) of each cell of the breakdown, in order."""
    return [(kind, value) for kind, values in BREAKDOWN.items() for value in values[1:]]
