"""How far two models' predictions are apart at each position: pure functions of two arrays of logits.

Row by row in two scratch rows that stay in the processor's cache, because several whole arrays of (T, V)
floats would cost more than the model itself. Averages and classes are other modules' business.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]
SAME, HARM, REPAIR, OTHER_FLIP = range(4)


@dataclass(frozen=True, slots=True)
class Divergence:
    """One entry per position, (T,); entropies, KL and NLL in nats.

    `kl` is KL(reference || candidate); `nll` the reference's for the true next token, `delta` the
    candidate's minus that. `top_reference` and `top_candidate` are the most likely ids.
    """

    entropy: NDArray[np.float64]
    kl: NDArray[np.float64]
    nll: NDArray[np.float64]
    delta: NDArray[np.float64]
    top_reference: NDArray[np.int64]
    top_candidate: NDArray[np.int64]

    def flips(self, targets: NDArray[np.int64]) -> NDArray[np.uint8]:
        """What became of the top token: same, harm (right before), repair (right now), or other."""
        return flips(self.top_reference, self.top_candidate, targets)


def flips(
    reference: NDArray[np.int64], candidate: NDArray[np.int64], targets: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """SAME, HARM, REPAIR or OTHER_FLIP for each position, (T,)."""
    found = np.full(len(targets), OTHER_FLIP, np.uint8)
    found[reference == candidate] = SAME
    found[(reference == targets) & (candidate != targets)] = HARM
    found[(reference != targets) & (candidate == targets)] = REPAIR
    return found


def diverge(reference: Logits, candidate: Logits, targets: NDArray[np.int64]) -> Divergence:
    """Compare rows of logits, both (T, V), where row t predicts `targets[t]`. Rows of equal logits give 0."""
    rows = len(targets)
    figures = np.empty((4, rows))
    tops = np.empty((2, rows), np.int64)
    p, q = np.empty_like(reference[0]), np.empty_like(reference[0])
    for row in range(rows):
        figures[:, row], tops[:, row] = _row(reference[row], candidate[row], int(targets[row]), p, q)
    return Divergence(*figures, *tops)


def _row(
    reference: Logits, candidate: Logits, target: int, p: Logits, q: Logits
) -> tuple[tuple[float, float, float, float], tuple[int, int]]:
    """Entropy, KL, NLL, NLL difference, and both top ids of one position; `p` and `q` are scratch (V,)."""
    top_p, top_q = int(reference.argmax()), int(candidate.argmax())
    shift_p, shift_q = reference[top_p], candidate[top_q]
    # log p = (r - max r) - log_p; the differences are taken before anything is summed, so that two nearly
    # equal rows lose no digits to their common size.
    np.subtract(reference, shift_p, out=p)
    np.subtract(candidate, shift_q, out=q)
    nll_p, nll_q = -float(p[target]), -float(q[target])
    total_q = float(np.exp(q).sum())
    np.subtract(p, q, out=q)
    weights = np.exp(p)
    total = float(weights.sum())
    log_p, log_q = np.log(total), np.log(total_q)
    entropy = log_p - float(weights @ p) / total
    kl = float(weights @ q) / total - log_p + log_q
    return (entropy, kl, nll_p + log_p, (nll_q - nll_p) + (log_q - log_p)), (top_p, top_q)
