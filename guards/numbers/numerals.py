"""Every numeral of a text: digits, Chinese runs, English words, in one ordered list.

A numeral has a value, a span and the place of its last digit; what it counts is decided by its neighbours, in
`single.py` and `pairs.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from seatrial.guards.numbers import en, zh
from seatrial.guards.numbers.digits import PLAIN, Numeral, digit_numerals, indian_scale

__all__ = ["Numeral", "find_numerals"]

_D = "零一二两三四五六七八九"  # digits
_F = "壹贰叁肆伍陆柒捌玖参"  # formal digits
_FORMAL = frozenset(_F)
_U = "十百千万亿兆廿卅拾佰仟"  # units
# 千 and 兆 begin the names of units: 千米, 千瓦, 兆赫.
_UNIT = rf"(?:[{_U}](?<![千兆])|[千兆](?![米克瓦卡赫伏焦字比帕]))"
_DIGIT = rf"(?:[{_D}](?<!两)|两(?= ?[百千万亿])|[{_F}](?<!参)|参(?![加与考会观数赛展照见谋差]))"
_RUN = re.compile(
    rf"(?=[\d.好几{_D}{_F}{_U}])"  # most characters begin no run
    rf"(?:(?:{PLAIN}) {{0,2}}[多几余来]?{_UNIT}"
    rf"|(?<![{_D}{_F}\d.])(?:[{_D}{_F}]|{_UNIT})"
    rf"|好?几(?= ?[十百千万亿]))"
    rf"(?:(?<=[{_U}零])(?:{PLAIN})(?= ?[{_U}])"
    rf"| ?{_UNIT}| ?{_DIGIT}"
    rf"| ?点 ?(?=[{_D}])"
    rf"|(?<=[{_U}零])[几多余来](?=[{_U}])|(?<=[{_U}])几)*"
    rf"(?:(?<=[{_U}零])\d+(?![\d.,%:]))?"
    rf"(?:(?<=[{_U}])[多余来](?![自到源回由往]))?"
)
_DOZEN = re.compile(r"打(?![电招算开扫印造包断架击扰工车折官仗破交球牌败动听赢压了])")


def find_numerals(text: str, original: str, taken: bytearray, locale: str | None = None) -> list[Numeral]:
    """Every number of a folded text outside `taken`, in order; marks what it reads."""
    found: list[Numeral] = []
    for numerals in (
        _chinese_numerals(text, taken),
        digit_numerals(text, original, taken, locale),
        _english_numerals(text, taken),
    ):
        for numeral in numerals:
            taken[numeral.start : numeral.end] = b"\1" * (numeral.end - numeral.start)
            found.append(numeral)
    found.sort(key=lambda numeral: numeral.start)
    return list(_sums(text, found))


def _chinese_numerals(text: str, taken: bytearray) -> Iterator[Numeral]:
    if text.isascii():
        return
    for found in _RUN.finditer(text):
        if not any(taken[found.start() : found.end()]):
            yield from _chinese_run(text, *found.span())


def _chinese_run(text: str, start: int, end: int) -> Iterator[Numeral]:
    run = text[start:end].rstrip(" ")
    if " " in run and not any(c in _U + "点" for c in run):
        return  # single digits with spaces: strings.py has the long ones, a list of ones is no number
    number = zh.parse(run)
    if number is None or (_formal(run) and not _formal_counts(text, start, run)):
        return
    form = "spelled" if number.spelled else "zh"
    numeral = Numeral(
        start, start + len(run), number.value, number.quantum, number.high, form, run, number.bound
    )
    dozen = _DOZEN.match(text, numeral.end)
    if dozen is not None and number.high is None:
        numeral = numeral._replace(end=dozen.end(), value=numeral.value * 12, form="zh")
    yield numeral


_OF_FRACTION = re.compile(r"之 ?$"), re.compile(r" ?分 ?之")


def _formal_counts(text: str, start: int, run: str) -> bool:
    """Formal digits are also surnames and words (陆, 伍): alone they count only in a fraction."""
    if len(run) >= 2:
        return any(c in _U for c in run)
    before, after = _OF_FRACTION
    return bool(before.search(text, max(0, start - 2), start) or after.match(text, start + 1))


def _formal(run: str) -> bool:
    return not _FORMAL.isdisjoint(run)


_FORMS = {"cardinal": "en", "digits": "spelled"}


def _free_runs(text: str, taken: bytearray) -> Iterator[re.Match[str]]:
    """Runs of number words; one that begins in a taken place is looked for again behind it."""
    run = en.RUN.search(text)
    while run is not None:
        if taken[run.start()]:
            free = taken.find(0, run.start())
            run = en.RUN.search(text, free) if free >= 0 else None
            continue
        if not any(taken[run.start() : run.end()]):
            yield run
        run = en.RUN.search(text, run.end())


def _english_numerals(text: str, taken: bytearray) -> Iterator[Numeral]:
    for glued in en.glued(text):
        taken[glued.start() : glued.end()] = b"\2" * (glued.end() - glued.start())
    for run in _free_runs(text, taken):
        for number in en.parse_run(run[0]):
            start, end = run.start() + number.start, run.start() + number.end
            form = _FORMS.get(number.form, number.form)
            bound = "about" if number.form == "about" else ""
            numeral = Numeral(
                start, end, number.value, number.quantum, number.high, form, number.string, bound
            )
            yield indian_scale(text, numeral)


_AND = re.compile(r" (?:and )?")
_SCALE_END = re.compile(r"(?:hundred|thousand|million|billion|trillion|lakh|crore)s?$")


def _sums(text: str, numerals: list[Numeral]) -> Iterator[Numeral]:
    """ "4 thousand 3 hundred" and "3 hundred and 21" are one number: the second is smaller than the place."""
    last: Numeral | None = None
    for numeral in numerals:
        if last is not None and _continues(text, last, numeral):
            last = last._replace(end=numeral.end, value=last.value + numeral.value, quantum=numeral.quantum)
            continue
        if last is not None:
            yield last
        last = numeral
    if last is not None:
        yield last


def _continues(text: str, left: Numeral, right: Numeral) -> bool:
    if not 0 < right.start - left.end <= 5 or _AND.fullmatch(text, left.end, right.start) is None:
        return False
    if left.form not in ("digits", "en") or right.form not in ("digits", "en") or left.high is not None:
        return False
    if left.form == right.form == "en" or not 0 < right.value < left.quantum:
        return False
    return _SCALE_END.search(text, max(left.start, left.end - 12), left.end) is not None
