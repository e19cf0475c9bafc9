# ruff: noqa: E501 (patterns and tables of names are easier to read in one piece)
"""Strings of digits that are not quantities: phone numbers, versions, codes, addresses, numbers of rooms and orders.

They have no value: two of them agree only when their characters agree. Found first, so that no rule for
quantities ever sees the digits inside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.guards.numbers.blocks import Block, bits

_ALONE = r"(?<![a-z0-9.,])"  # no letter, digit or separator right before
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec"
_NEAR_YEAR = r"(?:end|mid|early|late|pre|post|since|until|circa)-(?:19|20)\d\d\b"  # end-2027 is no code
_CURRENCIES = "us|usd|eur|gbp|rmb|cny|hkd|jpy|aud|cad|sgd|chf|krw|inr|twd|rs|rm"
_NUMBER = (
    r" ?(?P<n>[+(]{0,2}\d[\d ()/.-]{1,22}\d(?: ?(?:x|ext\.?) ?\d{1,6})?|\d{2,}|[零一二三四五六七八九幺]{3,})"
    r"(?!\d|\.\d|%|,\d)"
)
# A look at one character first, where most characters begin nothing.
_CUES = (
    r"(?=[#a-z电手转分热传房会订工编航车密验邮账卡尾门序型单学])(?:\b(?:phone|telephone|tel|mobile|fax|extension|ext|hotline|room|flight|suite|passcode|zip|serial|badge|locker"
    r"|(?:order|invoice|ticket|account|card|case|gate|platform|channel|call|cell|pin)"
    r"(?= (?:number|no\b|code|#|id\b)))"
    r"(?: (?:number|no|code|id|is))*\.?[ :#]{0,3}(?<![a-z](?=\d))"
    r"|#"
    r"|(?:电话|手机号|手机|转?分机|(?<=\d)转|热线|传真|房间|会议室|订单|工单|编号|航班|车牌|密码|验证码|邮编|账号|卡号|尾号|门牌"
    r"|序列号|型号|单号|学号|工号)(?:号码|号)?(?:是|为|:|：| |是:)?)"
)
# "call", "order" and the like are verbs too: they need a number that is long.
_LOOSE_CUES = (
    r"(?=[acdiopt])\b(?:call|dial|cell|order|invoice|ticket|account|card|pin)(?: (?:me|us|him|her|is|at|on))*[ :]{1,2}"
    r"(?=[\d() +-]*\d{4})"
)
# (signs that a stretch must hold, pattern); the group "n" is the string where there is one.
_RULES = [
    (bits(needs.split()), re.compile(pattern))
    for needs, pattern in (
        ("address", r"https?://\S+|www\.\S+|[a-z0-9_.+-]{1,64}@[a-z0-9-]+(?:\.[a-z0-9-]+)+"),
        ("cue digit", _CUES + _NUMBER),
        ("cue digits", _LOOSE_CUES + _NUMBER),
        ("cue digits", r"(?=\d)(?<![\d.])(?P<n>\d{3,5}) ?(?:会议室|房间|号房|室|号楼|航班)"),
        ("grouped", r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"),
        (
            "digit",
            r"(?=[rv版])(?<![a-z0-9])(?:v|version |ver\.? ?|release |版本号? ?)(\d+(?:\.\d+)*)(?![a-z0-9])",
        ),
        # A version of three parts, unless it can be a date.
        (
            "grouped",
            _ALONE + r"(?!\d{1,2}\.\d{1,2}\.(?:19|20)\d\d(?!\d)|(?:19|20)\d\d\.\d{1,2}\.\d{1,2}(?!\d))"
            r"\d+\.\d+(?:\.\d+)+(?![a-z0-9_])",
        ),
        # Phone numbers by shape: +country, an area in brackets, groups, Chinese mobile and service numbers.
        ("grouped", r"(?<![a-z0-9.])(?:\(\+\d{1,3}\)|\+\d)[\d ()./-]{6,20}\d(?!\d)"),
        ("grouped", _ALONE + r"(?:1[ -]?)?\(\d{2,4}\) ?\d{3,5}[ -]?\d{3,5}(?!\d)"),
        ("grouped", _ALONE + r"(?:00\d{8,13}|0\d{8,11})(?![\d.])"),
        ("grouped", r"(?<![a-z0-9.])(?:(?:00)?86[- ])?1[3-9]\d(?:[ -]?\d{4}){2}(?!\d)"),
        ("grouped", _ALONE + r"\d{3}[ )]\d{3}[- ]\d{4}(?!\d)"),
        (
            "grouped",
            _ALONE + r"(?:0\d{2,3}[- ]\d{7,8}|[48]00(?:[- ]\d{3,4}[- ]\d{3,4}|\d{7}))(?![\d万亿千元人])",
        ),
        ("grouped", r"(?<![a-z0-9.])(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-.]\d{4}(?!\d)"),
        ("grouped", r"(?<![a-z0-9.-])\d{3}-\d{4}(?![\d-])"),
        # Codes: letters and digits in one word, with or without a hyphen; no quarter, month or currency.
        (
            "code",
            rf"(?=[a-z])(?<![a-z0-9_])(?=[a-z0-9-]*\d)(?![qh][1-4]\b)(?!(?:{_MONTHS})-?\d)(?!(?:{_CURRENCIES})\d)(?!{_NEAR_YEAR})"
            r"(?:[a-z]{1,6}-?\d[a-z0-9]*(?:-[a-z0-9]+)*)(?![a-z0-9_])",
        ),
        (
            "code",
            r"(?<![a-z0-9.,-])(?!\d+e\d{1,3}(?![a-z0-9_]))(?!\d+[kcm]?m[23](?![a-z0-9_]))"
            r"\d+(?:[a-z]+\d+)+[a-z]*(?![a-z0-9_])",
        ),
        (
            "grouped",
            _ALONE + r"(?!(?:19|20)\d\d-\d{1,2}-\d{1,2}(?![\d-])|\d{1,2}-\d{1,2}-(?:19|20)\d\d(?!\d))"
            r"\d+-\d+-\d+(?:-\d+)*(?![a-z0-9_])",
        ),
        (
            "幺",
            r"(?<![零一二三四五六七八九十百千万亿幺])(?=[零一二三四五六七八九 ]*幺)"
            r"[零一二三四五六七八九幺](?: ?[零一二三四五六七八九幺]){2,}",
        ),
        ("spaced", _ALONE + r"\d(?: \d){3,}(?![a-z0-9_%]|[.,]\d)"),
    )
]


def find_strings(blocks: list[Block], taken: bytearray) -> Iterator[tuple[int, int]]:
    """Spans of digit strings in a folded text; marks them in `taken`."""
    for block in blocks:
        for needs, pattern in _RULES:
            if needs & block.absent:
                continue
            for found in block.matches(needs, pattern):
                group = "n" if "n" in pattern.groupindex else 0
                yield from _claim(found.start(group), found.end(group), block.text, taken)


def _claim(start: int, end: int, text: str, taken: bytearray) -> Iterator[tuple[int, int]]:
    while end > start and text[end - 1] in " .,-(/":
        end -= 1
    if end > start and not any(taken[start:end]):
        taken[start:end] = b"\1" * (end - start)
        yield start, end


_SPELLED = str.maketrans("零一二三四五六七八九幺", "01234567891")
_VERSION_WORD = re.compile(r"^(?:version|ver\.?|v|release|版本号?)\s*(?=\d)")


def canonical(text: str) -> str:
    """The characters that count in a comparison: letters and digits, without spaces and punctuation.

    >>> canonical("400-820 8820"), canonical("v2.3.1")
    ('4008208820', '2.3.1')
    """
    text = _VERSION_WORD.sub("", text.translate(_SPELLED))
    if re.fullmatch(r"\d+(?:\.\d+)+", text):
        return text
    return re.sub(r"[^0-9a-z\u4e00-\u9fff.]|\.(?!\d)", "", text)
