"""Hedges around a figure: about, over, under, in both languages, before or after it."""

from __future__ import annotations

import re

_ABOUT_BEFORE = re.compile(
    r"(?:\b(?:about|around|approximately|approx\.?|roughly|some|circa|nearly|almost|close to|near|an? estimated|estimated|in the region of|"
    r"more or less|or so)|~|≈|约|大约|大概|约为|约占|将近|接近|近|左右|差不多|估计)(?: (?:a|an|the))?[ ]?$"
)
_OVER_BEFORE = re.compile(
    r"(?:\b(?:over|more than|above|at least|no less than|not less than|exceed(?:s|ed|ing)?|upwards? of|north of|greater than|larger than|"
    r"surpass(?:es|ed|ing)?|in excess of|just over|beyond|minimum of)|[>≥]=?|超过|超|逾|多于|大于|不低于|不少于|至少|高于|突破|以上|起码|破)(?:了)? ?$"
)
_UNDER_BEFORE = re.compile(
    r"(?:\b(?:under|less than|below|at most|no more than|not more than|up to|fewer than|maximum of|just under|smaller than|short of|south of)"
    r"|[<≤]=?|不到|不足|少于|低于|小于|不超过|至多|最多|不多于|不高于|未满)(?:了)? ?$"
)
_NEARLY = re.compile(r"(?:\b(?:nearly|almost|close to)|近|将近|接近) ?(?:a )?$")
_ABOUT_AFTER = re.compile(r" ?(?:左右|上下|许|or so\b|-?ish\b|plus or minus)")
_OVER_AFTER = re.compile(
    r" ?(?:以上|多(?=[个名家位人次件项元块万亿年天小张份台辆种座所只条])|余(?=[个名家位人次件项元万亿年天种座所])|有余|\+|or more\b|plus\b|and above\b|or greater\b)"
)
_UNDER_AFTER = re.compile(r" ?(?:以下|以内|之内|不到|or less\b|or fewer\b|or below\b)")


def bound_of(text: str, start: int, end: int) -> str:
    """ "about", "over", "under", "near" (just below), or "" for a figure that stands at [start, end) of a folded text."""
    before = text[max(0, start - 28) : start]
    if _OVER_BEFORE.search(before):
        return "over"
    if _UNDER_BEFORE.search(before):
        return "under"
    if _NEARLY.search(before):
        return "near"
    if _ABOUT_BEFORE.search(before) or _ABOUT_AFTER.match(text, end):
        return "about"
    if _OVER_AFTER.match(text, end):
        return "over"
    return "under" if _UNDER_AFTER.match(text, end) else ""
