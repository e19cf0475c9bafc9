"""The one normalization of names: what two spellings of the same name share.

Applied once, to both sides, token by token, so spans stay those of the text as it was written. Accents and
apostrophes fall away (O’Malley, O'Malley and OMalley; Muñez composed, decomposed and Munez), full-width and
lower case agree, a possessive ending is no part of a name. The result is stable: folding it again changes
nothing. Han characters are left as they are; traditional forms have a table of their own (`tagger.py`),
because the change of script is a reason that is reported.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Letters of the scripts that write names with capitals; full-width Latin included.
_LETTER = (
    "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u0370-\u03ff\u0400-\u052f\u1e00-\u1fff"
    "\uff21-\uff3a\uff41-\uff5a"
)
_MARK = "\u0300-\u036f"
APOSTROPHES = "'’‘ʼ＇`´′"
_INSIDE = f"{APOSTROPHES}\\-\u2010\u2011&_"
WORD = re.compile(
    rf"(?:[{_LETTER}]\.(?=[{_LETTER}]\.))+[{_LETTER}]\."  # initials: J.R.R.
    rf"|[{_LETTER}](?:[{_LETTER}{_MARK}0-9_]|[{_INSIDE}](?=[{_LETTER}0-9]))*"
)
_POSSESSIVE = re.compile(rf"[{APOSTROPHES}]s$|(?<=s)[{APOSTROPHES}]$", re.IGNORECASE)
_DROPPED = re.compile(rf"[\W_{APOSTROPHES}]+")  # U+02BC counts as a letter in \w
# Letters that Unicode does not take apart into a base and an accent.
_PLAIN = str.maketrans(
    {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h"}
)


@lru_cache(maxsize=65536)
def fold(token: str) -> str:
    """What `token` is compared by: lower case, no accents, no punctuation, no possessive ending."""
    if token.isascii():
        plain = token.lower()
    else:
        taken_apart = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", token).casefold())
        bare = "".join(c for c in taken_apart if not unicodedata.combining(c))
        plain = unicodedata.normalize("NFKC", bare.translate(_PLAIN))
    return _DROPPED.sub("", _POSSESSIVE.sub("", plain))
