"""The guard: every figure of a summary with its verdict, reason and nearest source figure."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

from seatrial.guards.numbers.calendar import is_vague
from seatrial.guards.numbers.compare import compare, is_named_code
from seatrial.guards.numbers.extract import extract_folded
from seatrial.guards.numbers.normalize import fold
from seatrial.guards.numbers.quantity import COUNT, IDENTIFIER, ORDINAL, Quantity
from seatrial.guards.numbers.source import Match, Source
from seatrial.guards.policy import Policy
from seatrial.guards.verdict import Finding, GuardReport, Nearest, worst

_SMALL = Decimal(10)


def check_numbers(
    summary: str,
    source: str,
    *,
    meeting_date: date | None = None,
    locale: str | None = None,
    policy: Policy | None = None,
) -> GuardReport:
    """Compares each figure of `summary` with `source`; pure, never raises on any text.

    `meeting_date` turns relative words (tomorrow, 下周三) of both sides into calendar days; `locale` is
    that of `extract_quantities`; `policy` changes severities.
    """
    rules = policy or Policy()
    folded_source, folded = fold(source), fold(summary)
    known = Source(folded_source, extract_folded(source, folded_source, locale), meeting_date)
    findings = tuple(
        _finding(
            quantity,
            compare(quantity, folded, known),
            rules,
            quoted=_quoted(folded, *quantity.span),
            listed=_listed(summary, quantity),
        )
        for quantity in extract_folded(summary, folded, locale)
    )
    return GuardReport("numbers", worst(f.verdict for f in findings), findings)


def _finding(quantity: Quantity, match: Match, policy: Policy, *, quoted: bool, listed: bool) -> Finding:
    near = None if match.nearest is None else Nearest(match.nearest.text, match.nearest.span)
    kind = "listed count" if listed else severity_kind(quantity, claimed=match.conflict or quoted)
    return Finding(
        guard="numbers",
        text=quantity.text,
        span=quantity.span,
        kind=quantity.kind,
        verdict=policy.number(kind, match.reason),
        reason=match.reason,
        value=plain_value(quantity),
        unit=quantity.unit,
        nearest=near,
        detail=match.detail or _sentence(match),
    )


_QUOTES = "\"'“”‘’「」『』"


def _quoted(text: str, start: int, end: int) -> bool:
    return text[start - 1 : start] in tuple(_QUOTES) and text[end : end + 1] in tuple(_QUOTES) and start > 0


_NAME = r"[A-Z][\w'’-]+(?: [A-Z][\w'’-]+)?"
_LIST = re.compile(rf"(?: [a-z]+){{1,3}}[,:]? ({_NAME}(?:(?:, (?:and )?| and ){_NAME})*)(?![\w])")


def _listed(summary: str, quantity: Quantity) -> bool:
    """Two friends, Steve and Carly: the summary names as many as it counts."""
    if quantity.kind != COUNT or quantity.value is None:
        return False
    names = _LIST.match(summary, quantity.span[1])
    return names is not None and len(re.split(r", (?:and )?| and ", names[1])) == quantity.value


def severity_kind(quantity: Quantity, *, claimed: bool = False) -> str:
    """The kind under which severities are looked up: small counts and ordinals and named codes are softer.

    A count is small up to ten when it is written in words: summaries count on their own (three people, two
    options). In digits, in quotation marks, or where the source counts the same thing otherwise, it is a
    claim.
    """
    if quantity.kind == IDENTIFIER and is_named_code(quantity.text) and not claimed:
        return "named code"
    if quantity.fields and is_vague(quantity):
        return "vague date"
    if quantity.kind not in (COUNT, ORDINAL) or claimed or quantity.value is None:
        return quantity.kind
    if quantity.words and quantity.value == 1 and quantity.kind == COUNT:
        return "one"
    small = abs(quantity.value) <= _SMALL and quantity.value == quantity.value.to_integral_value()
    if not small or (quantity.kind == COUNT and not quantity.words):
        return quantity.kind
    return f"small {quantity.kind}"


def plain_value(quantity: Quantity) -> str | None:
    """The value as a decimal string, an ISO-like date with X for unknown parts, a clock time, or the
    digits."""
    if quantity.fields:
        return _calendar_value(dict(quantity.fields))
    if quantity.value is None:
        return quantity.string or None
    low = _decimal(quantity.value)
    return low if quantity.high is None else f"{low}..{_decimal(quantity.high)}"


def _decimal(value: Decimal) -> str:
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _calendar_value(fields: dict[str, int]) -> str:
    if "H" in fields:
        seconds = f":{fields['S']:02d}" if "S" in fields else ""
        return f"{fields['H'] % 24:02d}:{fields.get('M', 0):02d}{seconds}"
    if fields.keys() & {"y", "m", "d"} and not fields.keys() - {"y", "m", "d", "wd"}:
        year = f"{fields['y']:04d}" if "y" in fields else "XXXX"
        month = f"-{fields['m']:02d}" if "m" in fields else "-XX" if "d" in fields else ""
        return year + month + (f"-{fields['d']:02d}" if "d" in fields else "")
    return " ".join(f"{name}={part}" for name, part in sorted(fields.items()))


def _sentence(match: Match) -> str:
    if match.nearest is None:
        return f"{match.reason}: nothing like it in the source"
    return f"{match.reason}: the source has {match.nearest.text!r}"
