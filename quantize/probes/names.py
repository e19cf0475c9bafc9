"""Which name an answer states, in English and in Chinese: where it begins is easy, where it ends is not."""

from __future__ import annotations

import re
import unicodedata

from seatrial.quantize.probes.needles import Needle

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
# What belongs to the sentence, not to the name: a possessive, or a mark that nothing follows.
_AFTER_NAME_EN = re.compile(r"(?:['’]s|['’-]+)$")
_HAN = "㐀-鿿\U00020000-\U0003ffff"
_NAME_ZH = re.compile(f"[{_HAN}]+(?:[·・•][{_HAN}]+)*")
# Hanzi write no end of a word, so a name ends where a word begins that links it to its sentence: copula,
# particle, preposition, conjunction, adverb, "said", or a form of address. Any other hanzi is read as name.
_AFTER_NAME_ZH = re.compile("[是的在和与也都将说]|先生|女士")


def name_in(answer: str, needle: Needle) -> str:
    """The name an answer begins with: capitalised words, or hanzi up to one more than were asked for."""
    text = unicodedata.normalize("NFKC", answer)
    return _name_en(text) if needle.language == "en" else _name_zh(text, needle.answer)


def _name_en(text: str) -> str:
    """The first capitalised word and those that follow with only spaces between; hyphens join."""
    start = end = None
    for word in _WORD.finditer(text):
        follows = end is None or text[end : word.start()].isspace()
        if word.group()[0].isupper() and follows:
            start = word.start() if start is None else start
            end = word.end()
        elif start is not None:
            break
    return "" if start is None else _AFTER_NAME_EN.sub("", text[start:end])


def _name_zh(text: str, wanted: str) -> str:
    """The first hanzi, up to a word that cannot belong to the name; a hanzi of `wanted` in its place can."""
    found = _NAME_ZH.search(text)
    if not found:
        return ""
    run = found.group()
    # The shortest names have two hanzi.
    ends = (m.start() for m in _AFTER_NAME_ZH.finditer(run) if m.start() >= 2)
    end = next((at for at in ends if wanted[at : at + 1] != run[at]), len(run))
    return run[: min(end, len(wanted) + 1)]
