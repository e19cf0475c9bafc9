"""The noise floor: how far one bundle is from itself, before anything is called damage.

The same session twice, other kernels and packing (mapped weights) or another split of the work (threads),
and prefill against one token at a time. What a difference between two bundles does not exceed, is not damage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seatrial.export.bundle import Bundle
from seatrial.export.session import Session
from seatrial.quantize.damage.divergence import diverge

TOKENS = 192


@dataclass(frozen=True)
class Noise:
    """KL in nats (mean, largest) and share of changed top tokens between two runs of one bundle."""

    kind: str
    tokens: int
    kl: float
    kl_max: float
    flips: float

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "tokens": self.tokens,
            "kl": self.kl,
            "kl_max": self.kl_max,
            "flips": self.flips,
        }


def noise_between(
    kind: str, one: NDArray[np.float32], other: NDArray[np.float32], ids: Sequence[int]
) -> Noise:
    """The difference of two runs over the same `ids`, both (T, V)."""
    targets = np.asarray([*ids[1:], ids[0]], np.int64)
    found = diverge(one, other, targets)
    kl = np.abs(found.kl)
    changed = found.top_reference != found.top_candidate
    return Noise(kind, len(ids), float(kl.mean()), float(kl.max()), float(changed.mean()))


def measure_noise(bundle: Bundle, session: Session, texts: Sequence[Sequence[int]]) -> list[Noise]:
    """All three kinds of noise of a bundle over the first TOKENS of each of `texts`: the worst text's.

    Give a text of every language: the floor is for all of them.
    """
    found = [_noise_of(bundle, session, list(ids[:TOKENS])) for ids in texts]
    return [max(kind, key=lambda noise: noise.kl) for kind in zip(*found, strict=True)]


def _noise_of(bundle: Bundle, session: Session, ids: list[int]) -> list[Noise]:
    first = session.score(ids)
    found = [noise_between("same session twice", first, session.score(ids), ids)]
    stepped = _stepped(session, ids)
    found.append(noise_between("prefill against step by step", first, stepped, ids))
    del stepped
    kind, open_other = _other_session(bundle, session)
    with open_other() as other:
        found.append(noise_between(kind, first, other.score(ids), ids))
    return found


def _stepped(session: Session, ids: Sequence[int]) -> NDArray[np.float32]:
    session.reset()
    return np.stack([session.step(token) for token in ids])


def _other_session(bundle: Bundle, session: Session) -> tuple[str, Callable[[], Session]]:
    """Float weights run unpacked from their mapped file; packed ones keep their kernels, so other threads."""
    if bundle.kv.dtype == "float32" and not bundle.info.get("quantized"):
        return "other packing", lambda: Session(bundle, capacity=session.capacity, weights="mapped")
    threads = 1 if session.threads > 1 else 2
    kind = "one thread" if threads == 1 else "two threads"
    return kind, lambda: Session(bundle, capacity=session.capacity, threads=threads)


def floor_of(noise: Sequence[Noise]) -> float:
    """The largest mean KL among some kinds of noise, in nats."""
    return max((found.kl for found in noise), default=0.0)
