"""What the report shows is exactly the text: segments joined again, whatever the findings claim."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from seatrial.guards.names.model import KINDS as NAME_KINDS
from seatrial.guards.names.policy import Reason
from seatrial.guards.policy import NUMBER_KINDS, NUMBER_REASONS
from seatrial.quantize.damage.classes import CLASSES
from seatrial.quantize.damage.verdicts import Verdict as DamageVerdict
from seatrial.quantize.probes.errors import ERRORS
from seatrial.report.marks import Mark, lines_of, pair_marks
from seatrial.report.words import languages, speaker, terms
from seatrial.simulate.course import EXTRACTIVE, LONGER_SUMMARY, SHORTER
from seatrial.simulate.setup import INT8_KV, MAPPED

TEXTS = st.text(alphabet="ab 预算37.5万\n<&\u202e\u0301", max_size=60)
SPANS = st.tuples(st.integers(-3, 70), st.integers(-3, 70), st.sampled_from(["ok", "warn", "fail"]))


def shown(text: str, marks: list[Mark]) -> str:
    return "\n".join("".join(part.text for part in line) for line in lines_of(text, marks))


@given(TEXTS, st.lists(SPANS, max_size=8))
def test_segments_joined_are_the_text(text: str, spans: list[tuple[int, int, str]]) -> None:
    marks = [Mark(start, end, verdict, str(n), None) for n, (start, end, verdict) in enumerate(spans)]
    assert shown(text, marks) == text


@given(TEXTS, st.lists(SPANS, max_size=8))
def test_marked_segments_are_their_spans(text: str, spans: list[tuple[int, int, str]]) -> None:
    marks = [Mark(start, end, verdict, str(n), None) for n, (start, end, verdict) in enumerate(spans)]
    pieces: dict[str, list[str]] = {}
    for line in lines_of(text, marks):
        for part in line:
            if part.mark:
                pieces.setdefault(part.mark.key, []).append(part.text)
    for key, parts in pieces.items():
        mark = marks[int(key)]
        assert "".join(parts) == text[mark.start : mark.end].replace("\n", "")


def test_the_more_serious_of_two_overlapping_marks_is_kept() -> None:
    marks = [Mark(0, 6, "ok", "mild", None), Mark(4, 9, "fail", "hard", None)]
    (line,) = lines_of("0123456789", marks)
    assert [part.mark.key for part in line if part.mark] == ["hard"]


def finding(span: tuple[int, int], near: tuple[int, int] | None) -> dict[str, Any]:
    nearest = None if near is None else {"text": "x", "span": list(near)}
    return {"span": list(span), "verdict": "ok", "reason": "exact", "kind": "count", "nearest": nearest}


def test_two_figures_with_one_source_share_its_mark() -> None:
    summary, source = pair_marks(
        [finding((0, 1), (5, 7)), finding((2, 3), (5, 7)), finding((4, 5), None)], "r"
    )
    assert [mark.target for mark in summary] == [source[0].key, source[0].key, None]
    assert len(source) == 1 and source[0].target == summary[0].key


def test_languages_have_the_same_words() -> None:
    words = languages()
    assert {"en", "zh"} <= words.keys()
    assert all(set(table) == set(words["en"]) for table in words.values())
    assert all(value for table in words.values() for value in table.values())


def test_what_guards_and_runs_say_is_said_in_chinese_too() -> None:
    said = {
        *NUMBER_REASONS,
        *NUMBER_KINDS,
        *map(str, Reason),
        *NAME_KINDS,
        *CLASSES,
        *map(str, DamageVerdict),
        *ERRORS,
    }
    said |= {EXTRACTIVE, LONGER_SUMMARY, SHORTER, INT8_KV, MAPPED}
    assert said - terms("zh").keys() == set()


def test_a_reason_of_another_version_is_shown_as_it_is() -> None:
    assert speaker("zh").term("struck by lightning") == "struck by lightning"
    assert speaker("en").term("not found") == "not found"
