"""Subtitles as a source: times and numbers of cues say nothing, and what is found points into the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.cli import run_command
from seatrial.guards.check import check
from seatrial.guards.transcript import parse_transcript
from seatrial.guards.verdict import Verdict

SRT = """17
00:12:34,000 --> 00:12:38,500
Ada Lovett: We have 3.5 <i>million</i>
dollars &amp; <b>forty</b>

18
00:12:39,000 --> 00:12:41,000
five people.

19
00:13:00,000 --> 00:13:07,000
- Ben Okoro: The room is 208.
"""
VTT = """WEBVTT

00:01.000 --> 00:02.000 align:start
<v Ada Lovett>预算是三十

00:02.000 --> 00:03.000
<v Ada Lovett>七万五千元。
"""


@pytest.mark.parametrize("figure", ["12:34", "17 people", "13 minutes", "$38,500", "19", "4,000 dollars"])
def test_times_and_numbers_of_cues_are_no_source(figure: str) -> None:
    assert check(f"It was {figure}.", SRT).verdict is Verdict.FAIL


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_what_is_found_points_into_the_file(end: str, mark: str) -> None:
    source = mark + SRT.replace("\n", end)
    found = check("Ada Lovett has $3.5 million, forty-five people and room 208; so says Ben Okoro.", source)
    assert found.verdict is Verdict.OK
    near = {
        finding.text: source[slice(*finding.nearest.span)] for finding in found.findings if finding.nearest
    }
    assert near["208"] == "208"
    assert near["$3.5 million"] == f"3.5 <i>million</i>{end}dollars"
    figure = near["forty-five"]  # over two cues: the file has a time between its words
    assert figure.startswith("forty") and figure.endswith("five") and "00:12:39,000" in figure
    wrong = check("Ada Lovet and Ben Okora met.", source)
    near = {
        finding.text: source[slice(*finding.nearest.span)] for finding in wrong.findings if finding.nearest
    }
    assert near == {"Ada Lovet": "Ada Lovett", "Ben Okora": "Ben Okoro"}


def test_a_figure_cut_between_two_chinese_cues_is_one() -> None:
    found = check("Ada Lovett：预算是375000元。", VTT)
    assert found.verdict is Verdict.OK
    (amount,) = [finding for finding in found.findings if finding.guard == "numbers"]
    assert amount.nearest is not None
    start, end = amount.nearest.span
    assert (VTT[start : start + 2], VTT[end - 5 : end]) == ("三十", "七万五千元")


WORDS = st.sampled_from(
    ["so", "7", "&lt;", "<i>12</i>", "Ada:", "三十", "&amp", "<c.loud>x</c>", "&#49;5", "50%"]
)
CUES = st.lists(st.lists(WORDS, min_size=1, max_size=4), min_size=1, max_size=5)


@given(CUES, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "<v Ben>"]))
@settings(max_examples=80, deadline=None)
def test_every_character_of_the_speech_has_its_place(cues: list[list[str]], end: str, voice: str) -> None:
    raw = "".join(
        f"{n}{end}00:00:{n:02d},000 --> 00:00:{n:02d},900{end}{voice}word {' '.join(words)}{end}{end}"
        for n, words in enumerate(cues, start=1)
    )
    clean = raw.replace("\r\n", "\n")
    spoken = parse_transcript(raw)
    assert spoken.places is not None and len(spoken.places) == len(spoken.text) + 1
    for turn in spoken.turns:
        for at in range(*turn.span):
            place, character = spoken.places[at], spoken.text[at]
            assert clean[place] in (character, "\n", "&", "#", "a", "l", "4") or character == " ", (
                place,
                character,
            )
        assert [spoken.places[at] for at in range(*turn.span)] == sorted(spoken.places[slice(*turn.span)])


def test_the_command_takes_subtitles(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (tmp_path / "meeting.srt").write_text(SRT, encoding="utf-8")
    (tmp_path / "summary.txt").write_text("They have 3.5 million dollars, said at 12:34.", encoding="utf-8")
    paths = [str(tmp_path / "summary.txt"), str(tmp_path / "meeting.srt")]
    assert run_command(["check", *paths, "--json"]) == 1
    findings = json.loads(capsysbinary.readouterr().out)["findings"]
    by_text = {finding["text"]: finding for finding in findings}
    assert by_text["12:34"]["verdict"] == "fail" and by_text["12:34"]["nearest"] is None
    start, end = by_text["3.5 million dollars"]["nearest"]["span"]
    assert SRT[start:end] == "3.5 <i>million</i>\ndollars"
