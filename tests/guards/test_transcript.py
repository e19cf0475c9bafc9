"""Transcripts in their forms, and windows that lose nothing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.errors import UserError
from seatrial.guards.transcript import Transcript, parse_transcript, windows


def said(transcript: Transcript) -> list[tuple[str | None, str]]:
    for turn in transcript.turns:
        assert transcript.text[slice(*turn.span)] == turn.text
    return [(turn.speaker, turn.text) for turn in transcript.turns]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ada: Hello.\nBen: Hi there.", [("Ada", "Hello."), ("Ben", "Hi there.")]),
        ("王磊：大家好。\r\n陈晓：开始吧。\r\n", [("王磊", "大家好。"), ("陈晓", "开始吧。")]),
        ("\ufeff主持人（王磊）：好", [("主持人（王磊）", "好")]),
        ("Ada: one\ntwo\n\nthree\nBen: four", [("Ada", "one\ntwo\n\nthree"), ("Ben", "four")]),
        ("Ada: two points: rent and staff", [("Ada", "two points: rent and staff")]),
        ("Ada: so\nHe went on: no\nhttp://example.com", [("Ada", "so\nHe went on: no\nhttp://example.com")]),
        ("王磊：好\n他说：“行。”\n于是走了", [("王磊", "好\n他说：“行。”\n于是走了")]),
        ("时间：2026年3月4日\n王磊：好", [(None, "时间：2026年3月4日"), ("王磊", "好")]),
        ("Date: 4 March 2026\nAda: fine", [(None, "Date: 4 March 2026"), ("Ada", "fine")]),
        ("[00:01:02] Ada Byron: yes", [("Ada Byron", "yes")]),
        ("Ada Byron (00:01:02): yes", [("Ada Byron", "yes")]),
        ("Ada Byron  00:01:02\nyes\nBen 01:15\nno", [("Ada Byron", "yes"), ("Ben", "no")]),
        ("发言人1 00:00:05\n我们开始", [("发言人1", "我们开始")]),
        (
            "Speaker 1: yes\nSPEAKER_02: no\nspeaker 3: well",
            [("Speaker 1", "yes"), ("SPEAKER_02", "no"), ("speaker 3", "well")],
        ),
        ("【张总】：三点开会", [("张总", "三点开会")]),
        ("The Chair (Hon. A. Rowe): Order.", [("The Chair (Hon. A. Rowe)", "Order.")]),
        (
            "Meet at 10:30 today.\nBring 3:1 ratios.",
            [(None, "Meet at 10:30 today."), (None, "Bring 3:1 ratios.")],
        ),
        ("no labels here\n\nonly lines", [(None, "no labels here"), (None, "only lines")]),
    ],
)
def test_labelled_text(text, expected):
    assert said(parse_transcript(text)) == expected


SRT = """1
00:00:01,000 --> 00:00:03,000
Ada: We have 3.5

2
00:00:03,000 --> 00:00:05,500
million dollars.

3
00:01:06,250 --> 00:01:07,000
- Ben: <i>Fine</i>
by me.
"""
VTT = """WEBVTT - title

STYLE
::cue { color: red }

NOTE nobody says this

intro
00:01.000 --> 00:02.000 align:start
<v Roger Bing>We <b>are</b> &lt;here&gt; <00:01.500>now

00:02.000 --> 00:03.000
<v.loud Ada>Good</v>
"""


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_srt_has_no_times_in_its_text_and_joins_cues_of_one_speaker(end):
    transcript = parse_transcript(SRT.replace("\n", end))
    assert said(transcript) == [("Ada", "We have 3.5 million dollars."), ("Ben", "Fine by me.")]
    assert [turn.start_s for turn in transcript.turns] == [1.0, 66.25]
    assert transcript.text == "Ada: We have 3.5 million dollars.\nBen: Fine by me."


def test_vtt_voices_tags_and_notes():
    assert said(parse_transcript(VTT)) == [("Roger Bing", "We are <here> now"), ("Ada", "Good")]


def test_chinese_cues_join_without_a_space_and_rolling_lines_are_taken_once():
    text = (
        "1\n00:00:01,000 --> 00:00:02,000\n王磊：预算是三十\n\n"
        "2\n00:00:02,000 --> 00:00:03,000\n王磊：预算是三十\n"
        "七万五千\n\n3\n00:00:03,000 --> 00:00:04,000\n陈晓：好\n"
    )
    assert said(parse_transcript(text)) == [("王磊", "预算是三十七万五千"), ("陈晓", "好")]


@pytest.mark.parametrize(
    "text", ["", "\ufeff", " \n\r\n\t", "Ada:\nBen:", "……。！", "WEBVTT\n\n00:01.000 --> 00:02.000\n\n"]
)
def test_nobody_says_a_word(text):
    with pytest.raises(UserError, match="empty"):
        parse_transcript(text)


words = st.sampled_from(
    ["rent", "budget", "37.5", "1,200", "we", "agreed", "预算", "是", "三百万", "元。", "ok.", "Why?"]
)
turns = st.tuples(
    st.sampled_from(["Ada", "Ben", "王磊"]), st.lists(words, min_size=1, max_size=60).map(" ".join)
)


def count_words(text: str) -> int:
    """Tokens as words and single hanzi, with two more for each line break: joined lines cost extra."""
    return len(re.findall(r"[\u4e00-\u9fff]|[^\s\u4e00-\u9fff]+", text)) + 2 * text.count("\n")


@given(st.lists(turns, min_size=1, max_size=25), st.integers(12, 120))
@settings(max_examples=150, deadline=None)
def test_windows_fit_and_lose_nothing(pairs, size):
    transcript = parse_transcript("\n".join(f"{who}: {what}" for who, what in pairs))
    pieces = windows(transcript, size, count_words)
    assert all(count_words(piece) <= size for piece in pieces)
    without_labels = lambda text: re.sub(
        r"\s", "", re.sub(r"^(Ada|Ben|王磊): ", "", text, flags=re.MULTILINE)
    )
    assert "".join(map(without_labels, pieces)) == without_labels(transcript.text)
    whole_numbers = re.findall(r"37\.5|1,200|三百万", transcript.text)
    assert re.findall(r"37\.5|1,200|三百万", "\n".join(pieces)) == whole_numbers


def test_windows_break_between_turns_where_they_can():
    transcript = parse_transcript("\n".join(f"Ada: {'word ' * 9}end.\nBen: ok then." for _ in range(10)))
    pieces = windows(transcript, 40, count_words)
    assert len(pieces) > 1 and all(re.match(r"(Ada|Ben): ", piece) for piece in pieces)
    assert "\n".join(pieces) == transcript.text


def test_a_long_turn_is_cut_at_sentences_and_keeps_its_label():
    transcript = parse_transcript("Ada: " + " ".join(f"This is sentence {i} of many." for i in range(20)))
    pieces = windows(transcript, 30, count_words)
    assert all(piece.startswith("Ada: This is sentence") and piece.endswith("of many.") for piece in pieces)


def test_windows_are_of_about_one_size():
    transcript = parse_transcript("\n".join(f"Ada: {'word ' * 9}" for _ in range(21)))
    sizes = [count_words(piece) for piece in windows(transcript, 240, count_words)]
    assert len(sizes) == 2 and max(sizes) <= 1.2 * min(sizes)


def test_a_window_too_small_for_a_word_is_refused():
    with pytest.raises(UserError, match="too small"):
        windows(parse_transcript("Ada Byron of Leeds: incomprehensibilities"), 3, count_words)
    with pytest.raises(UserError, match="at least 1"):
        windows(parse_transcript("Ada: hi"), 0, count_words)
