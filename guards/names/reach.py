"""Which sentences of a source can matter for the names of a summary.

Tagging is the dear part of the guard, and a name is compared only with names that share its characters, its
sound, its surname or its title. Sentences without any of these cannot change a reason and are not tagged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from seatrial.guards.names.lac_files import traditional_to_simplified
from seatrial.guards.names.lexicon import chinese
from seatrial.guards.names.model import NameMention
from seatrial.guards.names.sound import alike

_DOTS = "·・•‧．"
_HAN = "\u3400-\u9fff"


def sentences_that_matter(names: Iterable[tuple[str, NameMention]], text: str) -> re.Pattern[str]:
    """Searched in a sentence of `text` (simplified): does it hold anything that one of the names needs?

    `names` are mentions with what they are compared by, in simplified characters.
    """
    parts: set[str] = set()
    for key, mention in names:
        parts.update(re.escape(part) for part in _parts(key))
        parts.update(_family(mention))
        if key in text:
            continue
        parts.update(_absent(key, mention, text))
    return re.compile("|".join(sorted(parts)) if parts else r"(?!)")


def _parts(key: str) -> Iterator[str]:
    """The name, and of a long foreign one its parts and pairs, by which a misspelling shows."""
    yield key
    yield from (part for part in re.split(f"[{_DOTS}-]", key) if len(part) > 1)
    if len(key) >= 4:
        yield from (key[i : i + 2] for i in range(len(key) - 1))


def _family(mention: NameMention) -> Iterator[str]:
    """Anybody with that surname: 王小明, 王总, 老王."""
    if mention.surname:
        surname = re.escape(mention.surname.translate(traditional_to_simplified()))
        yield f"{surname}[{_HAN}]"
        yield f"[{''.join(chinese().nicknames)}]{surname}"


def _absent(key: str, mention: NameMention, text: str) -> Iterator[str]:
    """What the nearest name may look like: the same sound, or the same title behind another surname."""
    if pattern := alike(key, text):
        yield pattern
    if mention.title:
        yield (
            f"[{''.join(sorted(chinese().surnames))}]{re.escape(mention.title)}"
            if len(mention.title) == 1
            else re.escape(mention.title)
        )
