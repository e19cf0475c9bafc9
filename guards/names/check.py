"""The names guard: each name of the summary gets a reason, a severity and the nearest name of the source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from seatrial.guards.names.match_chinese import match_chinese
from seatrial.guards.names.match_english import match_english
from seatrial.guards.names.match_script import across_scripts
from seatrial.guards.names.model import Entity, NameMention
from seatrial.guards.names.policy import SEVERITY, Reason, Severities
from seatrial.guards.names.roles import wrongly_placed
from seatrial.guards.names.source import Source
from seatrial.guards.names.speech import wrongly_given
from seatrial.guards.verdict import Finding, GuardReport, Nearest, Verdict, worst

DETAIL = {
    Reason.EXACT: "the source has this name",
    Reason.SCRIPT: "the same name in the other form of the characters",
    Reason.ORDER: "the same words in another order",
    Reason.SURNAME_ONLY: "a part of one name of the source",
    Reason.INITIALS: "initials of a name of the source",
    Reason.TITLE_CHANGED: "the source gives this person another title",
    Reason.AMBIGUOUS: "more than one person of the source has this surname",
    Reason.HOMOPHONE: "the source has a name that sounds the same",
    Reason.NEAR_SPELLING: "the source spells it otherwise",
    Reason.CUT: "only a part of the name in the source",
    Reason.OTHER_PERSON: "the source has another person with this surname",
    Reason.NOT_FOUND: "the source does not have this name",
    Reason.OTHER_SPEAKER: "the source has this said by somebody else",
    Reason.OTHER_ROLE: "the source says this of another name",
    Reason.TRANSLITERATED: "the same name in the other script, by its sound",
    Reason.NOT_CHECKED: "the source writes names in another script; transliteration was not asked for",
}


_CONTEXT = 24  # characters around a Chinese name that can belong to it, where the tagger cut it short
Span = tuple[int, int]
Judged = tuple[NameMention, Reason, Nearest | None, str]  # the last is the sentence for people


def find_names(text: str, *, known: Iterable[str] = ()) -> list[NameMention]:
    """Every name in `text`, in order: people, organisations, places, other proper nouns.

    `known` are names of people to be found even where nothing marks them (lower-case speech recognition).
    """
    return Source(text, known).mentions


def check_names(
    summary: str,
    source: str,
    *,
    policy: Mapping[str, Verdict | str] | None = None,
    known: Iterable[str] = (),
    transliterate: bool = False,
) -> GuardReport:
    """Judge every name of `summary` by `source`.

    `policy` maps a reason, or `kind.reason`, to a severity (see `policy.Severities`). `known` are people who
    may be named though the source does not (an attendance list). With `transliterate` a name that the source
    writes in the other script is compared by its sound. Raises `UserError` for a policy that names no reason.
    """
    chosen = Severities(policy)
    told, heard = Source(summary, labelled=False), Source(source, known)
    told.known_from(heard)
    heard.only_for(told.mentions)
    judged = _merged(_looked_up(told, heard, transliterate), _misplaced(told, heard))
    findings = tuple(_finding(judged[span], chosen) for span in sorted(judged))
    return GuardReport("names", worst(f.verdict for f in findings), findings)


def _looked_up(told: Source, heard: Source, transliterate: bool) -> dict[Span, Judged]:
    """Every name by itself; one that comes back is looked up once."""
    outcomes: dict[tuple[NameMention, str], tuple[Reason, Nearest | None]] = {}
    judged: dict[Span, Judged] = {}
    for mention in told.mentions:
        around = told.text[max(0, mention.span[0] - _CONTEXT) : mention.span[1] + _CONTEXT]
        key = replace(mention, span=(0, 0)), around if mention.script == "han" else ""
        if key not in outcomes:
            outcomes[key] = _outcome(mention, told, heard, transliterate)
        reason, near = outcomes[key]
        judged[mention.span] = (mention, reason, near, DETAIL[reason])
    return judged


def _merged(judged: dict[Span, Judged], misplaced: dict[Span, Judged]) -> dict[Span, Judged]:
    """A name that is wrong by itself is not judged by its place; one that is right gives way to its place."""
    for span, found in misplaced.items():
        under = [other for other in judged if other[0] < span[1] and span[0] < other[1]]
        if all(SEVERITY[judged[other][1]] is Verdict.OK for other in under):
            for other in under:
                del judged[other]
            judged[span] = found
    return judged


def _misplaced(told: Source, heard: Source) -> dict[Span, Judged]:
    """Names that the source has, and that stand where the source has another one."""
    found: dict[Span, Judged] = {}
    for mention, near in wrongly_placed(told, heard):
        found[mention.span] = (mention, Reason.OTHER_ROLE, near, DETAIL[Reason.OTHER_ROLE])
    for statement, speaker, near in wrongly_given(told, heard):
        mention = NameMention(told.text[slice(*statement.named)], statement.named, statement.script)
        detail = f"{DETAIL[Reason.OTHER_SPEAKER]}: {speaker}"
        found[statement.named] = (mention, Reason.OTHER_SPEAKER, near, detail)
    return found


def _outcome(
    mention: NameMention, told: Source, heard: Source, transliterate: bool
) -> tuple[Reason, Nearest | None]:
    if mention.script == "han":
        outcome = match_chinese(mention, heard, told.text)
    else:
        outcome = match_english(mention, heard)
    if SEVERITY[outcome[0]] is not Verdict.OK and heard.knows(mention):
        return Reason.EXACT, None
    return across_scripts(outcome, mention, told, heard, asked=transliterate)


def _finding(judged: Judged, chosen: Severities) -> Finding:
    mention, reason, nearest, detail = judged
    return Finding(
        guard="names",
        text=mention.text,
        span=mention.span,
        kind=mention.kind,
        verdict=chosen.of(reason, mention),
        reason=str(reason),
        value=mention.bare,
        nearest=None if reason is Reason.EXACT and nearest and nearest.text == mention.text else nearest,
        detail=detail,
    )


def tag_entities(text: str) -> list[Entity]:
    """People, organisations and places of `text`, in order, without overlaps."""
    return [
        Entity(m.text, m.span, m.kind)
        for m in find_names(text)
        if m.kind == "person" or m.kind == "organisation" or m.kind == "place"
    ]
