"""A page: real filler with needles at five depths, near-duplicates in between. Seeded, pure."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seatrial.errors import UserError
from seatrial.quantize.probes.needles import Needle, kinds, make_distractor, make_needle, words

DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Room at the end of the context for the question and the answer.
RESERVED_TOKENS = 96
# A page has no more facts than one for so many tokens, near-duplicates included: the rest must be filler.
TOKENS_PER_FACT = 50
# Reading a page costs more than asking about it, so a long one has two needles at a depth.
LONG_TOKENS = 2000


@dataclass(frozen=True)
class PageJob:
    """What page to make. `distractors` is per needle; `number` makes pages of one kind differ."""

    language: str
    context: int
    distractors: int
    number: int
    seed: int = 0

    @property
    def depths(self) -> tuple[float, ...]:
        """Where the needles stand: each depth once or twice, or those whose turn it is where fewer fit.

        Never more needles than kinds, because two of a kind would be distractors of each other.
        """
        facts = self.context // TOKENS_PER_FACT
        most = min(len(DEPTHS) * (2 if self.context >= LONG_TOKENS else 1), len(kinds(self.language)))
        count = min(most, max(1, facts // (1 + self.distractors)))
        return tuple(sorted(DEPTHS[(self.number * count + i) % len(DEPTHS)] for i in range(count)))

    @property
    def name(self) -> str:
        """A key for the page, the same in every run."""
        return f"{self.language}-{self.context}-{self.distractors}-{self.number}-{self.seed}"


@dataclass(frozen=True)
class Page:
    """The text, its needles with their depths, and the distractors."""

    job: PageJob
    text: str
    needles: tuple[tuple[float, Needle], ...]
    distractors: tuple[Needle, ...]


def make_page(job: PageJob, filler: Sequence[str], count: Callable[[str], int]) -> Page:
    """The page of a job from sentences of filler; `count` counts tokens of the model's tokenizer.

    Filler is taken in a shuffled order and again from the start when it runs out. Raises `UserError` when the
    needles alone do not fit the context.
    """
    chance = random.Random(f"page {job.name}")
    needles, distractors = _facts(job, chance)
    stated = [needle.sentence for needle in (*needles, *distractors)]
    room = job.context - RESERVED_TOKENS - sum(count(sentence) + 1 for sentence in stated)
    if room < 0:
        raise UserError(
            f"{len(stated)} needles do not fit a context of {job.context} tokens: use longer contexts"
        )
    lines = _filler(filler, room, count, chance)
    placed = _placed(lines, job.depths, needles, distractors, chance)
    gap = words()[job.language]["forms"]["gap"]
    return Page(job, gap.join(placed), tuple(zip(job.depths, needles, strict=True)), tuple(distractors))


def _facts(job: PageJob, chance: random.Random) -> tuple[list[Needle], list[Needle]]:
    """Needles of rotating kinds, and their near-duplicates, each about a subject of its own."""
    every, count = kinds(job.language), len(job.depths)
    subjects = chance.sample(words()[job.language]["subjects"], count * (1 + job.distractors))
    # A step that shares no factor with the number of kinds, so that every kind comes to every depth.
    step = next(step for step in range(count, 2 * len(every)) if math.gcd(step, len(every)) == 1)
    first = job.number * step
    needles = [
        make_needle(job.language, every[(first + place) % len(every)], subjects.pop(), chance)
        for place in range(count)
    ]
    near = [make_distractor(n, subjects.pop(), chance) for n in needles for _ in range(job.distractors)]
    return needles, near


def _filler(
    sentences: Sequence[str], room: int, count: Callable[[str], int], chance: random.Random
) -> list[str]:
    order = list(sentences)
    chance.shuffle(order)
    lines: list[str] = []
    used = at = 0
    while order:
        sentence = order[at % len(order)]
        used += count(sentence) + 1
        if used > room:
            break
        lines.append(sentence)
        at += 1
    return lines


def _placed(
    lines: list[str],
    depths: Sequence[float],
    needles: Sequence[Needle],
    distractors: Sequence[Needle],
    chance: random.Random,
) -> list[str]:
    """The lines with every needle after its share of them, distractors anywhere.

    The second needle of a depth stands a line further in.
    """
    spots = []
    for place, (depth, needle) in enumerate(zip(depths, needles, strict=True)):
        inwards = depths[:place].count(depth) * (1 if depth < 0.5 else -1)
        spots.append((depth * len(lines) + inwards, needle.sentence))
    spots += [(chance.uniform(0, len(lines)), needle.sentence) for needle in distractors]
    numbered = [(at + 0.5, line) for at, line in enumerate(lines)]
    return [line for _, line in sorted(spots + numbered, key=lambda pair: pair[0])]
