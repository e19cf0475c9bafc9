"""A page: real filler with needles at up to five depths, near-duplicates in between. Seeded, pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seatrial.errors import UserError
from seatrial.quantize.probes.needles import Needle, kinds, make_distractor, make_needle, words

DEPTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Room at the end of the context for the question and the answer.
RESERVED_TOKENS = 96
# A page has no more facts than one for so many tokens: the rest must be filler.
TOKENS_PER_FACT = 50


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
        """Where the needles stand: all five depths, or those whose turn it is where five do not fit."""
        facts = self.context // TOKENS_PER_FACT
        count = min(len(DEPTHS), max(1, facts // (1 + self.distractors)))
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
    # One step more after each full turn, so that every kind comes to every depth.
    first = job.number * count + job.number // len(every)
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
    """The lines with every needle after its share of them, distractors anywhere."""
    spots = [(depth * len(lines), needle.sentence) for depth, needle in zip(depths, needles, strict=True)]
    spots += [(chance.uniform(0, len(lines)), needle.sentence) for needle in distractors]
    numbered = [(at + 0.5, line) for at, line in enumerate(lines)]
    return [line for _, line in sorted(spots + numbered, key=lambda pair: pair[0])]
