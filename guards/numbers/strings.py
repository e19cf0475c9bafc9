"""Strings of digits that are not quantities: phone numbers, versions, codes, addresses, numbers of rooms and orders.

They have no value: two of them agree only when their characters agree. Found first, so that no rule for
quantities ever sees the digits inside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PATTERNS = [
    re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"),
    re.compile(r"(?<![a-z0-9])(?:v|version |ver\.? ?|release |版本号? ?)(\d+(?:\.\d+)*)(?![a-z0-9])"),
    re.compile(r"(?<![a-z0-9.,])(?!\d{1,2}\.\d{1,2}\.(?:19|20)\d\d(?!\d)|(?:19|20)\d\d\.\d{1,2}\.\d{1,2}(?!\d))\d+\.\d+(?:\.\d+)+(?![a-z0-9_])"),
    # Phone numbers by shape: +country, grouped by hyphens, Chinese mobile and service numbers.
    re.compile(r"(?<![a-z0-9.])(?:\(\+\d{1,3}\)|\+\d)[\d ()./-]{6,20}\d(?!\d)"),
    re.compile(r"(?<![a-z0-9.,])(?:1[ -]?)?\(\d{2,4}\) ?\d{3,5}[ -]?\d{3,5}(?!\d)"),
    re.compile(r"(?<![a-z0-9.,])00\d{8,13}(?![\d.])|(?<![a-z0-9.,])0\d{8,11}(?![\d.])"),
    re.compile(r"(?<![a-z0-9.])(?:(?:00)?86[- ])?1[3-9]\d(?:[ -]?\d{4}){2}(?!\d)"),
    re.compile(r"(?<![a-z0-9.,])\d{3}[ )]\d{3}[- ]\d{4}(?!\d)"),
    re.compile(r"(?<![a-z0-9.,])(?:0\d{2,3}[- ]\d{7,8}|[48]00[- ]\d{3,4}[- ]\d{3,4})(?!\d)"),
    re.compile(r"(?<![a-z0-9.])(?:\(\d{3}\) ?|\d{3}[-.])\d{3}[-.]\d{4}(?!\d)"),
    re.compile(r"(?<![a-z0-9.-])\d{3}-\d{4}(?![\d-])"),
    # Codes: letters and digits in one word, with or without a hyphen.
    re.compile(r"(?<![a-z0-9_])(?=[a-z0-9-]*\d)(?![qh][1-4]\b)(?!(?:jan|feb|mar|apr|may|jun|jul|aug|sept?|oct|nov|dec)-?\d)(?!(?:us|usd|eur|gbp|rmb|cny|hkd|jpy|aud|cad|sgd|chf|krw|inr|twd|rs|rm)\d)(?:[a-z]{1,6}-?\d[a-z0-9]*(?:-[a-z0-9]+)*)(?![a-z0-9_])"),
    re.compile(r"(?<![a-z0-9.,-])(?!\d+e\d{1,3}(?![a-z0-9_]))(?!\d+[kcm]?m[23](?![a-z0-9_]))\d+(?:[a-z]+\d+)+[a-z]*(?![a-z0-9_])"),
    re.compile(r"(?<![a-z0-9.,])(?!(?:19|20)\d\d-\d{1,2}-\d{1,2}(?![\d-])|\d{1,2}-\d{1,2}-(?:19|20)\d\d(?!\d))\d+-\d+-\d+(?:-\d+)*(?![a-z0-9_])"),
]
_ADDRESS = re.compile(r"(?P<n>https?://\S+|www\.\S+|[a-z0-9_.+-]{1,64}@[a-z0-9-]+(?:\.[a-z0-9-]+)+)")
_NUMBER = r"(?P<n>[+(]{0,2}\d[\d ()/.-]{1,22}\d(?: ?(?:x|ext\.?) ?\d{1,6})?|\d{2,}|[零一二三四五六七八九幺]{3,})(?!\d|\.\d|%|,\d)"
_CUE = re.compile(
    r"(?:\b(?:phone|telephone|tel|mobile|fax|extension|ext|hotline|room|flight|suite|passcode|zip|serial|badge|locker"
    r"|(?:order|invoice|ticket|account|card|case|gate|platform|channel|call|cell|pin)(?= (?:number|no\b|code|#|id\b)))"
    r"(?: (?:number|no|code|id|is))*\.?[ :#]{0,3}(?<![a-z](?=\d))"
    r"|#"
    r"|(?:电话|手机号|手机|分机|热线|传真|房间|会议室|订单|工单|编号|航班|车牌|密码|验证码|邮编|账号|卡号|尾号|门牌|序列号|型号"
    r"|单号|学号|工号)(?:号码|号)?(?:是|为|:|：| |是:)?)"
    r" ?" + _NUMBER
)
# "call", "order" and the like are verbs too: they need a number that is long.
_LOOSE_CUE = re.compile(
    r"\b(?:call|dial|cell|order|invoice|ticket|account|card|pin)(?: (?:me|us|him|her|is|at|on))*[ :]{1,2}(?=[\d() +-]*\d{4})" + _NUMBER
)
_ROOM_AFTER = re.compile(r"(?<![\d.])(?P<n>\d{3,5}) ?(?:会议室|房间|号房|室|号楼|航班)")
_SPELLED_ZH = re.compile(
    r"(?<![零一二三四五六七八九十百千万亿幺])(?=[零一二三四五六七八九 ]*幺)[零一二三四五六七八九幺](?: ?[零一二三四五六七八九幺]){2,}"
)
_SPACED = re.compile(r"(?<![a-z0-9.,])\d(?: \d){3,}(?![\w.,%])")


def find_strings(text: str, taken: bytearray) -> Iterator[tuple[int, int]]:
    """Spans of digit strings in a folded text; marks them in `taken`."""
    for pattern in (_ADDRESS, _CUE, _LOOSE_CUE, _ROOM_AFTER):
        for found in pattern.finditer(text):
            yield from _claim(found.start("n"), found.end("n"), text, taken)
    for pattern in _PATTERNS:
        for found in pattern.finditer(text):
            yield from _claim(found.start(), found.end(), text, taken)
    for pattern in (_SPELLED_ZH, _SPACED):
        for found in pattern.finditer(text):
            yield from _claim(found.start(), found.end(), text, taken)


def _claim(start: int, end: int, text: str, taken: bytearray) -> Iterator[tuple[int, int]]:
    while end > start and text[end - 1] in " .,-(/":
        end -= 1
    if end > start and not any(taken[start:end]):
        taken[start:end] = b"\1" * (end - start)
        yield start, end


_SPELLED = str.maketrans("零一二三四五六七八九幺", "01234567891")


def canonical(text: str) -> str:
    """The characters that count in a comparison: letters and digits, without spaces and punctuation.

    >>> canonical("400-820 8820"), canonical("v2.3.1")
    ('4008208820', '2.3.1')
    """
    text = re.sub(r"^(?:version|ver\.?|v|release|版本号?)\s*(?=\d)", "", text.translate(_SPELLED))
    if re.fullmatch(r"\d+(?:\.\d+)+", text):
        return text
    return re.sub(r"[^0-9a-z\u4e00-\u9fff.]|\.(?!\d)", "", text)
