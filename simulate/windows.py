"""Budgets of a summary: what fits a context, how windows share a budget, what a deadline leaves of it.

A transcript longer than the context is read in windows cut at speaker turns; each window's summary gets a
share of the budget in proportion to its length, and the parts are joined in order. Pure arithmetic over
token counts; the cutting itself is `guards.transcript.windows`, and nothing here knows a model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seatrial.errors import UserError

LONGER = 1.5
LEAST_TOKENS = 24
HINT_TOKENS = 256


@dataclass(frozen=True)
class Part:
    """One window of the transcript and its share of the summary's tokens."""

    text: str
    budget: int


def shares(total: int, sizes: Sequence[int], least: int = LEAST_TOKENS) -> list[int]:
    """`total` split in proportion to `sizes` by largest remainders; each at least `least`.

    Raises ValueError without sizes or with one that is not positive.
    """
    if not sizes or min(sizes) <= 0:
        raise ValueError("shares need positive sizes")
    whole = sum(sizes)
    exact = [total * size / whole for size in sizes]
    given = [int(value) for value in exact]
    by_remainder = sorted(range(len(sizes)), key=lambda place: given[place] - exact[place])
    for place in by_remainder[: total - sum(given)]:
        given[place] += 1
    return [max(least, value) for value in given]


def room(context: int, overhead: int, budget: int) -> int:
    """Tokens left for the transcript beside the prompt's own words and the summary."""
    return context - overhead - budget


def longer(budget: int) -> int:
    """The budget of the one longer summary."""
    return int(budget * LONGER)


def cut(
    whole_tokens: int,
    *,
    context: int,
    overhead: int,
    budget: int,
    count: Callable[[str], int],
    into_windows: Callable[[int], list[str]],
) -> list[Part]:
    """The transcript as parts that fit `context`, with their shares of `budget`.

    `into_windows(max_tokens)` cuts the text; a window leaves room for its share of a longer summary with
    hints, so that the retry fits as well. Raises `UserError` when the context holds no useful window.
    """
    if whole_tokens <= room(context, overhead, budget):
        return [Part(text, budget) for text in into_windows(whole_tokens)]
    largest = room(context, overhead, longer(budget) + HINT_TOKENS)
    if largest < 4 * LEAST_TOKENS:
        raise UserError(
            f"a context of {context} tokens leaves {max(0, largest)} for the transcript beside the prompt "
            f"({overhead}) and the summary ({budget}): lower --max-tokens or take a model with more context"
        )
    texts = into_windows(largest)
    return [
        Part(text, tokens)
        for text, tokens in zip(texts, shares(budget, [count(text) for text in texts]), strict=True)
    ]


def largest_budget(wanted: int, seconds: Callable[[int], float], available_s: float) -> int:
    """The largest budget up to `wanted` that takes at most `available_s`; 0 when not even one token does.

    `seconds(budget)` must not fall as the budget grows.
    """
    low, high = 0, wanted
    while low < high:
        middle = (low + high + 1) // 2
        if seconds(middle) <= available_s:
            low = middle
        else:
            high = middle - 1
    return low


def merge(texts: Sequence[str]) -> str:
    """The parts of a summary in order, as paragraphs; empty parts are left out."""
    return "\n\n".join(text.strip() for text in texts if text.strip())


def part_spans(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Where each part lies in `merge(texts)`, `[start, end)` in characters; an empty part: nowhere."""
    spans, at = [], 0
    for text in texts:
        size = len(text.strip())
        if size and at:
            at += 2
        spans.append((at, at + size))
        at += size
    return spans
