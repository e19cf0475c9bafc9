"""How serious each reason is. The defaults can be made stricter or softer reason by reason."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from seatrial.errors import UserError
from seatrial.guards.verdict import Verdict


class Reason(StrEnum):
    """What the source has to say about a name of the summary."""

    EXACT = "exact"
    SCRIPT = "simplified/traditional"
    ORDER = "order"
    SURNAME_ONLY = "surname only"  # or the given name alone: a part of one name of the source
    INITIALS = "initials"
    TITLE_CHANGED = "title changed"
    AMBIGUOUS = "several with that surname"
    HOMOPHONE = "homophone"
    NEAR_SPELLING = "near spelling"
    CUT = "cut name"
    OTHER_PERSON = "other person with that surname"
    NOT_FOUND = "not found"
    OTHER_SPEAKER = "other speaker"
    OTHER_ROLE = "other name there"
    TRANSLITERATED = "transliterated"
    NOT_CHECKED = "not checked"


SEVERITY: Mapping[Reason, Verdict] = {
    Reason.EXACT: Verdict.OK,
    Reason.SCRIPT: Verdict.OK,
    Reason.ORDER: Verdict.OK,
    Reason.SURNAME_ONLY: Verdict.OK,
    Reason.INITIALS: Verdict.OK,
    Reason.TRANSLITERATED: Verdict.OK,
    Reason.TITLE_CHANGED: Verdict.WARN,
    Reason.AMBIGUOUS: Verdict.WARN,
    Reason.HOMOPHONE: Verdict.WARN,
    Reason.OTHER_SPEAKER: Verdict.WARN,
    Reason.OTHER_ROLE: Verdict.WARN,
    Reason.NOT_CHECKED: Verdict.WARN,
    Reason.NEAR_SPELLING: Verdict.FAIL,
    Reason.CUT: Verdict.FAIL,
    Reason.OTHER_PERSON: Verdict.FAIL,
    Reason.NOT_FOUND: Verdict.FAIL,
}


def severities(policy: Mapping[str, Verdict | str] | None = None) -> dict[Reason, Verdict]:
    """The defaults with `policy` (reason -> "ok" | "warn" | "fail") over them.

    Raises `UserError` for a reason or a severity that does not exist.
    """
    chosen = dict(SEVERITY)
    for name, verdict in (policy or {}).items():
        try:
            chosen[Reason(name)] = Verdict(verdict)
        except ValueError as error:
            raise UserError(
                f"names policy {name!r} = {str(verdict)!r} is not known; give one of "
                f"{', '.join(map(repr, map(str, Reason)))} the severity 'ok', 'warn' or 'fail'"
            ) from error
    return chosen
