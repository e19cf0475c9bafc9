"""Which sentences of a source can matter for the names of a summary.

Tagging is the dear part of the guard, and a name is compared only with names that share its characters, its
sound, its surname or its title. Sentences without any of these cannot change a reason and are not tagged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from seatrial.guards.names.lexicon import chinese
from seatrial.guards.names.model import NameMention
from seatrial.guards.names.sound import like_sounding

_DOTS = "·・•‧．"
_HAN = "\u3400-\u9fff"


def sentences_that_matter(names: Iterable[tuple[str, NameMention]], text: str) -> re.Pattern[str]:
    """Searched in a sentence of `text` (simplified): does it hold anything that one of the names needs?

    `names` are mentions with what they are compared by, in simplified characters.
    """
    parts: set[str] = set()
    characters: frozenset[str] | None = None
    for key, mention in names:
        parts.update(re.escape(part) for part in _parts(key))
        if key in text:
            continue
        if characters is None:
            characters = frozenset(text)
        parts.update(_absent(key, mention, characters))
    parts.update(f"{re.escape(s)}[{_HAN}]" for _, m in names if m.surname for s in [m.surname])
    return re.compile("|".join(sorted(parts)) if parts else r"(?!)")


def _parts(key: str) -> Iterator[str]:
    """The name, and of a long foreign one its parts and pairs, by which a misspelling shows."""
    yield key
    yield from (part for part in re.split(f"[{_DOTS}-]", key) if len(part) > 1)
    if len(key) >= 4:
        yield from (key[i : i + 2] for i in range(len(key) - 1))


def _absent(key: str, mention: NameMention, characters: frozenset[str]) -> Iterator[str]:
    """What the nearest name may look like: the same sound, or the same title behind another surname."""
    classes = [like_sounding(c, characters) for c in key if "\u3400" <= c <= "\u9fff"]
    if classes and all(classes):
        yield "".join(f"[{''.join(sorted(same))}]" for same in classes)
    if mention.title:
        yield (
            f"[{''.join(sorted(chinese().surnames))}]{re.escape(mention.title)}"
            if len(mention.title) == 1
            else re.escape(mention.title)
        )
