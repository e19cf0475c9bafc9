"""Whether a value is said of the same thing: direction, the noun that is counted, words of the sentence."""

from __future__ import annotations

from decimal import Decimal

from seatrial.guards.numbers.context import counted_nouns, direction, words_around
from seatrial.guards.numbers.quantity import COUNT, Quantity
from seatrial.guards.numbers.source import Match, Source, family


def in_role(
    quantity: Quantity, reason: str, candidates: list[Quantity], summary: str, source: Source
) -> Match:
    """Checks direction, counted noun and sentence of every candidate: one that does not contradict is
    enough."""
    up = direction(summary, *quantity.span)
    if up:
        agreeing = [q for q in candidates if direction(source.folded, *q.span) != -up]
        if not agreeing:
            return Match("other sign", candidates[0], "the source says the opposite direction")
        candidates = agreeing
    rival = _counted_otherwise(quantity, candidates, summary, source)
    rival = rival or _said_of_other(quantity, candidates, summary, source)
    if rival is not None:
        return Match("wrong role", rival, f"the source has this value, but says {rival.text!r} here")
    return Match(reason, candidates[0])


def _counted_otherwise(
    quantity: Quantity, candidates: list[Quantity], summary: str, source: Source
) -> Quantity | None:
    """A count of the same noun with another value, where no candidate counts that noun: 12 bugs in 3
    features."""
    if quantity.kind != COUNT:
        return None
    wanted = counted_nouns(summary, quantity.span[1])
    if not wanted:
        return None
    for candidate in candidates:
        found = counted_nouns(source.folded, candidate.span[1])
        if candidate.kind != COUNT or not found or found & wanted:
            return None
    return rival_count(quantity, wanted, source)


def rival_count(quantity: Quantity, nouns: frozenset[str], source: Source) -> Quantity | None:
    """A figure of the source that counts one of `nouns`, when all that do have another value."""
    rivals = [q for noun in sorted(nouns) for q in source.nouns().get(noun, [])]
    return rivals[0] if rivals and not any(_admits(q, quantity.value) for q in rivals) else None


def _admits(candidate: Quantity, value: Decimal | None) -> bool:
    if candidate.value is None or value is None:
        return True
    return candidate.value <= value <= (candidate.value if candidate.high is None else candidate.high)


_ROLE_WORDS = 3  # shared words that make another figure's sentence the one that the summary speaks of


def _said_of_other(
    quantity: Quantity, candidates: list[Quantity], summary: str, source: Source
) -> Quantity | None:
    """A figure of the same family whose sentence shares words with the summary's where no candidate's
    does."""
    wanted = words_around(summary, *quantity.span)
    if len(wanted) < _ROLE_WORDS or quantity.kind == COUNT:
        return None
    if any(wanted & source.words(q) for q in candidates):
        return None
    best, shared = None, _ROLE_WORDS - 1
    for _, rival in source.sorted_values(family(quantity)):
        common = len(wanted & source.words(rival))
        if common > shared and rival.value != quantity.value:
            best, shared = rival, common
    return best
