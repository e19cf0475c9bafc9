"""From figures with intervals to one of four verdicts, and to an exit code for other people's CI.

The rules, in this order:
1. *cannot tell*: fewer documents or tokens of the class than an interval needs.
2. *none*: the class's KL is not above the noise floor, the difference between two runs of one bundle.
3. *concentrates*: more KL than `other` at the same entropy, Holm-adjusted p < .05, and by a quarter at least.
4. *does not concentrate*: the interval rules an excess of a quarter out.
5. *cannot tell*: everything else; the smallest excess that this sample would have shown is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from seatrial.errors import UserError
from seatrial.quantize.damage.classes import known_class
from seatrial.quantize.damage.concentration import MARGIN, SIGNIFICANCE, Concentration
from seatrial.quantize.stats import Interval

# A bootstrap over fewer than a dozen documents gives intervals that are too short.
LEAST_DOCUMENTS: Final = 12
LEAST_TOKENS: Final = 60


class Verdict(StrEnum):
    """What is said of a class."""

    NONE = "none"
    CONCENTRATES = "concentrates"
    DOES_NOT = "does not concentrate"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Evidence:
    """What a verdict on one class is made from. `identical`: not one figure of the whole run differs."""

    tokens: int
    documents: int
    all_documents: int
    identical: bool
    kl: Interval
    floor: float
    compared: Concentration | None  # None for `other` itself
    p_adjusted: float


def decide(evidence: Evidence) -> tuple[Verdict, str]:
    """The verdict and its reason in a few words."""
    if evidence.identical and evidence.tokens and evidence.all_documents >= LEAST_DOCUMENTS:
        return Verdict.NONE, "every figure of both bundles is the same"
    if evidence.documents < LEAST_DOCUMENTS:
        return Verdict.CANNOT_TELL, f"documents: {evidence.documents}, at least {LEAST_DOCUMENTS} are needed"
    if evidence.tokens < LEAST_TOKENS:
        return Verdict.CANNOT_TELL, f"tokens: {evidence.tokens}, at least {LEAST_TOKENS} are needed"
    if evidence.kl.high <= evidence.floor:
        return Verdict.NONE, "not above the noise floor"
    if evidence.compared is None:
        return Verdict.CANNOT_TELL, "the class the others are compared with"
    return _compare(evidence.compared, evidence.p_adjusted)


def _compare(compared: Concentration, p_adjusted: float) -> tuple[Verdict, str]:
    ratio = compared.ratio
    if not np.isfinite([ratio.value, ratio.low, ratio.high]).all():
        return Verdict.CANNOT_TELL, "no other tokens of the same entropy to compare with"
    if p_adjusted < SIGNIFICANCE and ratio.value >= 1 + MARGIN:
        return (
            Verdict.CONCENTRATES,
            f"{ratio.value:.2f} times the damage of other tokens, p = {p_adjusted:.4f}",
        )
    if ratio.high < 1 + MARGIN:
        return Verdict.DOES_NOT, f"at most {ratio.high:.2f} times the damage of other tokens"
    if p_adjusted < SIGNIFICANCE:
        return (
            Verdict.CANNOT_TELL,
            f"more than other tokens, but {ratio.value:.2f} times may be below the margin",
        )
    return (
        Verdict.CANNOT_TELL,
        f"an excess below {compared.detectable:.0%} may be missed with these documents",
    )


@dataclass(frozen=True)
class Limit:
    """`--fail-on digit:0.01`: the class and the highest harm (or other figure) that is accepted."""

    label: str
    figure: str  # "harm", "flips", "kl" or "nll"
    limit: float


FIGURES: Final = ("harm", "flips", "kl", "nll")


def parse_limits(texts: Sequence[str]) -> list[Limit]:
    """Limits from `CLASS:LIMIT` or `CLASS.FIGURE:LIMIT`; raises `UserError` for anything else."""
    return [_parse_limit(text) for text in texts]


def _parse_limit(text: str) -> Limit:
    left, colon, number = text.partition(":")
    label, _, figure = left.strip().partition(".")
    try:
        limit = float(number)
    except ValueError:
        limit = float("nan")
    if not colon or not np.isfinite(limit) or limit < 0 or (figure or "harm") not in FIGURES:
        raise UserError(
            f"--fail-on {text!r} is no limit: write CLASS:LIMIT or CLASS.FIGURE:LIMIT, such as digit:0.01; "
            f"a figure is one of {', '.join(FIGURES)} (harm when left out)"
        )
    return Limit(known_class(label), figure or "harm", limit)


def passes(limit: Limit, found: Interval, enough: bool) -> bool | None:
    """False when the interval lies above the limit, True when below, None when it cannot tell."""
    if not enough or not np.isfinite([found.low, found.high]).all():
        return None
    if found.low > limit.limit:
        return False
    return True if found.high <= limit.limit else None
