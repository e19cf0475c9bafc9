# ruff: noqa: E501 (patterns and tables of names are easier to read in one piece)
"""Hedges around a figure: about, over, under, nearly, in both languages, before or after it."""

from __future__ import annotations

import re

_OVER = (
    " over", " more than", " above", " at least", " no less than", " not less than", " no fewer than", " exceed",
    " exceeds", " exceeded", " exceeding", " upwards of", " upward of", " north of", " greater than", " larger than",
    " higher than", " surpass", " surpasses", " surpassed", " surpassing", " in excess of", " beyond", " a minimum of",
    ">", ">=", "≥", "超过", "超", "逾", "多于", "大于", "不低于", "不少于", "至少", "高于", "突破", "起码", "破",
)  # fmt: skip
_UNDER = (
    " under", " less than", " below", " at most", " no more than", " not more than", " up to", " fewer than",
    " a maximum of", " smaller than", " short of", " south of", " lower than", "<", "<=", "≤", "不到", "不足", "少于", "低于",
    "小于", "不超过", "至多", "最多", "不多于", "不高于", "未满",
)  # fmt: skip
_NEAR = (" nearly", " almost", " close to", " just under", "近", "将近", "接近")
_ABOUT = (
    " about", " around", " approximately", " approx", " approx.", " roughly", " some", " circa", " near", " estimated",
    " in the region of", " more or less", "~", "≈", "约", "大约", "大概", "约为", "约占", "差不多", "估计",
)  # fmt: skip
_ARTICLE = re.compile(r"(?: (?:a|an|the)|(?<=[过到破])了|[为有])$")  # 约了 is an appointment, no hedge
_AFTER = re.compile(
    r" ?(?:(?P<about>左右|上下|许|or so\b|-?ish\b|plus or minus)"
    r"|(?P<over>以上|多(?=[个名家位人次件项元块万亿年天小张份台辆种座所只条])|余(?=[个名家位人次件项元万亿年天种座所])|有余|\+"
    r"|or more\b|plus\b|and above\b|or greater\b)"
    r"|(?P<under>以下|以内|之内|不到|or less\b|or fewer\b|or below\b))"
)

# Most figures have no hedge: one character shows it.
_BEFORE_ENDS = frozenset(word[-1] for word in (*_OVER, *_UNDER, *_NEAR, *_ABOUT))
_ARTICLE_ENDS = frozenset("ane了为有")
_AFTER_BEGINS = frozenset("左上许o-ip以多余有+a之不")


def bound_of(text: str, start: int, end: int) -> str:
    """ "about", "over", "under", "near" (just below), or "" for a figure at [start, end) of a folded text."""
    before = " " + text[max(0, start - 28) : start].rstrip(" ")
    found = _before(before)
    if not found and before[-1] in _ARTICLE_ENDS:
        found = _before(_ARTICLE.sub("", before))
    if found:
        return found
    sign = text[end : end + 1]
    if (text[end + 1 : end + 2] if sign == " " else sign) not in _AFTER_BEGINS:
        return ""
    after = _AFTER.match(text, end)
    return (after.lastgroup or "") if after is not None else ""


def _before(text: str) -> str:
    if text[-1:] not in _BEFORE_ENDS:
        return ""
    # "under" first: 不超过 ends in 超过, and "just under" is near.
    if text.endswith(_NEAR):
        return "near"
    if text.endswith(_UNDER):
        return "under"
    if text.endswith(_OVER):
        return "over"
    return "about" if text.endswith(_ABOUT) else ""
