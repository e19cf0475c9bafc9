"""Which rotation do the graph's keys have? Read off the keys themselves.

Keys before the rotation are known from torch, keys after it are the graph's `present.N.key`: the angle
between them, per channel pair and position, is the rotation that the graph really makes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seatrial.export.faults.hypotheses import Hypothesis
from seatrial.export.faults.probe import AttentionChange, Rotary, Seen


def rotary_hypotheses(before: np.ndarray, graph_key: np.ndarray, right: Seen) -> Iterator[Hypothesis]:
    """`before`: keys not rotated; `graph_key`: the graph's keys, (B, KV, T, D) both; `right`: torch's own."""
    own = right.key.numpy()
    width = _rotated_width(before, own)
    if width < 2:
        return
    frequencies, factor = _frequencies(before, own, width, "halves")
    layout = "halves"
    other_frequencies, other_factor = _frequencies(before, own, width, "neighbours")
    if _misfit(before, own, other_frequencies, other_factor, "neighbours") < _misfit(
        before, own, frequencies, factor, "halves"
    ):
        frequencies, factor, layout = other_frequencies, other_factor, "neighbours"
    yield _hypothesis(
        "rotary missing", "positions are not rotated at all", [0.0] * len(frequencies), layout, factor
    )
    swapped = "neighbours" if layout == "halves" else "halves"
    yield _hypothesis(
        "rotary layout wrong", f"channels are paired as {swapped}, not {layout}", frequencies, swapped, factor
    )
    base = _base(frequencies)
    yield from _other_widths(before, graph_key, width, base, layout, factor)
    for found_layout in (layout, swapped):
        seen, seen_factor = _frequencies(before, graph_key, width, found_layout)
        kind = "rotary base wrong" if found_layout == layout else "rotary layout wrong"
        detail = f"frequencies of base {_base(seen):.4g} instead of {base:.4g}"
        yield _hypothesis(kind, detail, seen, found_layout, seen_factor)
        yield _hypothesis(kind, detail, _of_base(_base(seen), len(seen)), found_layout, factor)
    for value in (
        1e4,
        1e5,
        5e5,
        1e6,
        1e3,
        2.5e5,
        base / 2,
        base * 2,
        base * 10,
        base / 10,
        base * 100,
        base / 100,
    ):
        detail = f"base {value:g} instead of {base:.4g}"
        yield _hypothesis("rotary base wrong", detail, _of_base(value, len(frequencies)), layout, factor)
    for shift in (1, -1, 2, 5, 8):
        detail = f"positions are shifted by {shift}"
        yield _hypothesis("rotary base wrong", detail, frequencies, layout, factor, shift)


def _other_widths(
    before: np.ndarray, graph_key: np.ndarray, width: int, base: float, layout: str, factor: float
) -> Iterator[Hypothesis]:
    """Another share of the channels is rotated: as many as the graph's keys show, and the usual shares."""
    head = before.shape[-1]
    shares = [
        _rotated_width(before, graph_key),
        *(int(head * part) // 2 * 2 for part in (1, 3 / 4, 1 / 2, 1 / 4)),
    ]
    for other in dict.fromkeys(shares):
        if other >= 2 and other != width:
            detail = f"{other} of {head} channels are rotated instead of {width}"
            powers = _of_base(base, other // 2)
            yield _hypothesis("rotary width wrong", detail, powers, layout, factor)
            seen, seen_factor = _frequencies(before, graph_key, other, layout)
            yield _hypothesis("rotary width wrong", detail, seen, layout, seen_factor)


def _hypothesis(
    kind: str, detail: str, frequencies: list[float], layout: str, factor: float, shift: int = 0
) -> Hypothesis:
    rotary = Rotary(tuple(frequencies), layout, shift, factor)  # type: ignore[arg-type]
    return Hypothesis(kind, "rotary", detail, attention=AttentionChange(rotary=rotary), no_rotary=True)


def _rotated_width(before: np.ndarray, after: np.ndarray) -> int:
    """How many leading channels the rotation touches."""
    moved = np.abs(after - before).max(axis=(0, 1, 2)) > 1e-6 * np.abs(before).max()
    touched = np.flatnonzero(moved)
    return 0 if not touched.size else int(touched[-1]) + 1 + (int(touched[-1]) + 1) % 2


def _pairs(x: np.ndarray, width: int, layout: str) -> np.ndarray:
    """Channel pairs as complex numbers, (B, KV, T, width / 2)."""
    x = x[..., :width].astype(np.float64)
    if layout == "halves":
        return x[..., : width // 2] + 1j * x[..., width // 2 :]
    return x[..., 0::2] + 1j * x[..., 1::2]


def _frequencies(before: np.ndarray, after: np.ndarray, width: int, layout: str) -> tuple[list[float], float]:
    """Angle per position of each pair, from positions one apart; and the common factor of the lengths."""
    a, b = _pairs(before, width, layout), _pairs(after, width, layout)
    turn = b * np.conj(a)
    step = (turn[:, :, 1:] * np.conj(turn[:, :, :-1])).sum(axis=(0, 1, 2))
    length = float(np.sqrt((np.abs(b) ** 2).sum() / (np.abs(a) ** 2).sum()))
    return [float(angle) for angle in np.angle(step)], length


def _misfit(
    before: np.ndarray, after: np.ndarray, frequencies: list[float], factor: float, layout: str
) -> float:
    a = _pairs(before, 2 * len(frequencies), layout)
    b = _pairs(after, 2 * len(frequencies), layout)
    angles = np.arange(a.shape[2])[:, None] * np.array(frequencies)
    return float(np.abs(b - a * factor * np.exp(1j * angles)).max())


def _base(frequencies: list[float]) -> float:
    """The base whose powers the frequencies are: inv_freq_i = base ** (-i / n), by least squares in the
    logarithm.
    """
    share = np.arange(len(frequencies)) / len(frequencies)
    positive = np.array(frequencies) > 1e-9
    if positive.sum() < 2:
        return float("nan")
    slope = (share[positive] * -np.log(np.array(frequencies)[positive])).sum() / (share[positive] ** 2).sum()
    return float(np.exp(slope))


def _of_base(base: float, count: int) -> list[float]:
    return [float(base ** (-i / count)) for i in range(count)]
