"""How serious each reason is. The defaults can be made stricter or softer reason by reason."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from seatrial.errors import UserError
from seatrial.guards.names.model import KINDS, NameMention
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


class Severities:
    """The defaults, softened where the name itself is in doubt, and what was asked for over both.

    A key is a reason ("not found") or a kind and a reason ("place.not found"); the second wins.
    Raises `UserError` for a reason, a kind or a severity that does not exist.
    """

    def __init__(self, policy: Mapping[str, Verdict | str] | None = None) -> None:
        self._asked: dict[str, Verdict] = {}
        for key, verdict in (policy or {}).items():
            kind, _, reason = key.rpartition(".")
            if reason not in list(Reason) or (kind and kind not in KINDS) or verdict not in list(Verdict):
                raise UserError(
                    f"names policy {key!r} = {str(verdict)!r} is not known; give a reason "
                    f"({', '.join(Reason)}), or a kind and a reason as in 'place.not found' (kinds: "
                    f"{', '.join(KINDS)}), the severity 'ok', 'warn' or 'fail'"
                )
            self._asked[key] = Verdict(verdict)

    def of(self, reason: Reason, mention: NameMention) -> Verdict:
        """How serious `reason` is for this mention."""
        for key in (f"{mention.kind}.{reason}", str(reason)):
            if key in self._asked:
                return self._asked[key]
        verdict = SEVERITY[reason]
        doubtful = _doubtful(mention) or (reason is Reason.CUT and mention.script == "latin")
        return Verdict.WARN if verdict is Verdict.FAIL and doubtful else verdict


def _doubtful(mention: NameMention) -> bool:
    """Days are dates too; Chinese places and organisations are shortened and put together freely."""
    thing = mention.kind in ("place", "organisation") and mention.script == "han"
    return thing or mention.kind == "calendar" or not mention.certain
