"""One normalizer for both sides: every character is replaced by at most one character, so spans stay exact.

Full-width forms and the digits of every script become ASCII, letters become lower case, dashes, quotes and
spaces become their plain forms, and the few traditional characters that occur in figures become simplified.
Superscripts are left alone: in "24703 m²" the 2 is part of a unit, not a digit. The full-width comma is left
alone too: it separates clauses, never thousands. Applying `fold` twice changes nothing.
"""

from __future__ import annotations

import re
import unicodedata

_PLAIN = {
    "\u00a0": " ",
    "\u3000": " ",
    "\t": " ",
    "\u2010": "-",
    "\u2011": "-",
    "\u2012": "-",
    "\u2212": "-",
    "\ufe63": "-",
    "\u2014": "–",
    "\u2015": "–",
    "\u301c": "~",
    "\u223c": "~",
    "\u2018": "'",
    "\u2019": "'",
    "\u02bc": "'",
    "\u2236": ":",
    "\ufe6a": "%",
    "\u066a": "%",
    "\u066b": ".",
    "\u066c": ",",
    "\uff0c": "\uff0c",
    "〇": "零",
    "○": "零",
}
_SIMPLIFIED = dict(
    zip(
        "萬億點個幾餘來數與從間於週號時鐘後內圓塊錢歲雙輛臺萬條張隻頁層棟戶種類項場節屆輪級噸釐釐畝頃華氏攝倍負減增漲跌長龍兩貳參陸佰仟約過"
        "週報單圖組隊員發業務開東樓貨應壹紀",
        "万亿点个几余来数与从间于周号时钟后内圆块钱岁双辆台万条张只页层栋户种类项场节届轮级吨厘厘亩顷华氏摄倍负减增涨跌长龙两贰参陆佰仟约过"
        "周报单图组队员发业务开东楼货应壹纪",
        strict=True,
    )
)


class _Folding(dict[int, int]):
    """Code point -> code point, computed on first sight and kept."""

    def __missing__(self, point: int) -> int:
        folded = _fold_character(chr(point))
        self[point] = ord(folded)
        return self[point]


def _fold_character(character: str) -> str:
    plain = _PLAIN.get(character) or _SIMPLIFIED.get(character)
    if plain is not None:
        return plain
    if 0xFF01 <= ord(character) <= 0xFF5E:
        character = chr(ord(character) - 0xFEE0)
    category = unicodedata.category(character)
    if category == "Nd":
        return str(unicodedata.digit(character))
    if category == "Zs":
        return " "
    lower = character.lower()
    return lower if len(lower) == 1 else character


_TABLE = _Folding()
# Between full-width digits in threes the full-width comma does separate thousands.
_WIDE_THOUSANDS = re.compile(r"(?<=[０-９])，(?=[０-９]{3}(?![０-９]))")


def fold(text: str) -> str:
    """`text` in the plain form that every rule reads, character for character (same length).

    >>> fold("１，２００ ㎡ Ｑ３")
    '1，200 ㎡ q3'
    """
    if text.isascii() and "\t" not in text:
        return text.lower()
    return _WIDE_THOUSANDS.sub(",", text).translate(_TABLE)
