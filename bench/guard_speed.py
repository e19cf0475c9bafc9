"""Time of the number guard: one meeting, and the curve over the length of the source.

The text is made of the packaged sample meetings, repeated with other figures, so that the number of figures
grows with the length. Medians of alternating rounds in one run.
"""

from __future__ import annotations

import random
import re
import statistics
import time
from collections.abc import Iterator

from seatrial.guards.numbers import check_numbers
from seatrial.samples import sample_text, summary_text

LENGTHS = (6_000, 60_000, 250_000, 1_000_000)
_SUMMARY_CHARACTERS = {"en": 1_600, "zh": 600}  # about 400 tokens


def long_text(language: str, characters: int) -> str:
    """The sample meeting over and over, every digit run drawn anew, cut to a length."""
    random.seed(0)
    sample = sample_text(language)
    parts: list[str] = []
    length = 0
    while length < characters:
        part = re.sub(r"\d+", lambda run: str(random.randrange(10 ** len(run[0]))), sample)
        parts.append(part)
        length += len(part)
    return "".join(parts)[:characters]


def seconds(language: str, characters: int, rounds: int = 5) -> float:
    """Median seconds of one check after a first one that loads."""
    source = long_text(language, characters)
    summary = (summary_text(language) * 4)[: _SUMMARY_CHARACTERS[language]]
    check_numbers(summary, source)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        check_numbers(summary, source)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def curve() -> Iterator[tuple[str, int, float]]:
    """(language, characters, median seconds) for each length."""
    for language in ("en", "zh"):
        for characters in LENGTHS:
            yield language, characters, seconds(language, characters, 5 if characters < 100_000 else 3)


def lines() -> Iterator[str]:
    """A printed table of the curve, with microseconds per character."""
    yield f"{'language':9} {'characters':>10} {'ms':>9} {'us/char':>8}"
    for language, characters, taken_s in curve():
        yield f"{language:9} {characters:10} {taken_s * 1e3:9.1f} {taken_s / characters * 1e6:8.2f}"


def main() -> None:
    """Print the table."""
    for line in lines():
        print(line, flush=True)


if __name__ == "__main__":
    main()
