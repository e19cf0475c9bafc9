"""Figures and names that a model began uncertainly: marked at their place in a run, with no verdict moved."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import write_scripted_bundle

from seatrial.guards.check import check
from seatrial.guards.verdict import GuardReport
from seatrial.report import write_report
from seatrial.simulate.job import RunJob
from seatrial.simulate.run import run
from seatrial.simulate.uncertain import Tokens, mark_uncertain
from seatrial.simulate.windows import merge

SOURCE = "Anna Lindqvist: We spend $35,000 on the fair and 1,200 on the train. 张敏：预算是三万五千元。"


def marked(reports: tuple[GuardReport, ...]) -> dict[str, float]:
    return {f.text: f.start_nats for r in reports for f in r.findings if f.start_nats is not None}


def marks(parts: list[tuple[list[str], list[float]]], above_nats: float = 2.0) -> dict[str, float]:
    texts = ["".join(pieces).strip() for pieces, _ in parts]
    reports = check(merge(texts), SOURCE).reports
    tokens = [Tokens(pieces, nats) for pieces, nats in parts]
    found = mark_uncertain(reports, texts, tokens, above_nats=above_nats)
    assert [r.verdict for r in found] == [r.verdict for r in reports]
    assert [[f.verdict for f in r.findings] for r in found] == [
        [f.verdict for f in r.findings] for r in reports
    ]
    return marked(found)


def test_only_the_first_token_of_a_figure_or_name_counts():
    pieces = ["\n ", "Anna", " Lind", "qvist", " spends", " $", "35", ",", "000", "."]
    nats = [9.0, 0.1, 9.0, 9.0, 9.0, 3.5, 9.0, 9.0, 9.0, 9.0]
    assert marks([(pieces, nats)]) == {"$35,000": 3.5}
    assert marks([(pieces, [3.0 if piece == "Anna" else 0.1 for piece in pieces])]) == {"Anna Lindqvist": 3.0}


def test_spans_of_later_parts_are_found_in_their_own_tokens():
    first = (["We", " spend", " $35,000", "."], [0.1, 0.1, 0.1, 0.1])
    empty: tuple[list[str], list[float]] = ([" ", "\n"], [9.0, 9.0])
    second = (["  ", "The train", " is", " 1,200", "."], [9.0, 9.0, 9.0, 2.5, 9.0])
    assert marks([first, empty, second]) == {"1,200": 2.5}


def test_bytes_of_one_character_are_one_beginning():
    pieces = ["预算", "", "", "三", "万", "五千元"]
    assert marks([(pieces, [0.1, 4.0, 0.2, 0.3, 9.0, 9.0])]) == {"三万五千元": 4.0}


@pytest.mark.parametrize("nats", [2.0, math.nan, math.inf])
def test_at_the_threshold_and_broken_steps_mark_nothing(nats):
    assert marks([(["It is", " $35,000", "."], [0.1, nats, 0.1])]) == {}


def test_a_part_that_the_model_did_not_write_has_no_marks():
    reports = check("It is $35,000.", SOURCE).reports
    assert mark_uncertain(reports, ["It is $35,000."], [None], above_nats=0.0) == reports


@given(cuts=st.sets(st.integers(1, 60), max_size=30), lead=st.sampled_from(["", " ", "\n\n"]))
@settings(max_examples=40, deadline=None)
def test_wherever_the_tokens_are_cut_the_mark_is_that_of_the_token_with_the_first_character(cuts, lead):
    text = lead + "The fair costs $35,000 and Anna Lindqvist takes the train for 1,200."
    places = [0, *sorted(cut for cut in cuts if cut < len(text)), len(text)]
    pieces = [text[a:b] for a, b in pairwise(places)]
    nats = [10.0 + n for n in range(len(pieces))]
    starts = {word: text.index(word) for word in ("$35,000", "Anna Lindqvist", "1,200")}
    wanted = {
        word: next(n for n, b in zip(nats, places[1:], strict=True) if at < b) for word, at in starts.items()
    }
    assert marks([(pieces, nats)]) == wanted


def test_a_run_marks_the_figure_its_model_was_unsure_of(tmp_path: Path):
    transcript = (
        "Anna Lindqvist: The budget of the fair is $35,000.\nBen Okoro: And 1,200 for the train, I hope.\n"
    )
    says = "The budget of the fair is $35,000. The train takes 1,200 more."
    bundle = write_scripted_bundle(tmp_path / "model", says, unsure=("$35,000",))
    result = run(
        RunJob(
            transcript=transcript,
            device="thin-laptop-8gb",
            out=tmp_path / "out",
            model=str(bundle),
            threads=1,
            max_tokens=80,
            patience_s=60,
        )
    )
    assert (result.status, result.summary) == ("ok", says)
    told = json.loads((tmp_path / "out/result.json").read_text(encoding="utf-8"))
    (numbers,) = [guard for guard in told["guards"] if guard["guard"] == "numbers"]
    by_text = {finding["text"]: finding for finding in numbers["findings"]}
    assert by_text["$35,000"]["verdict"] == "ok"
    assert by_text["$35,000"]["start_nats"] > 2.0
    assert "begun uncertainly" in by_text["$35,000"]["detail"]
    assert by_text["1,200"]["start_nats"] is None
    write_report([tmp_path / "out"], tmp_path / "report.html", language="en")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    (mark,) = re.findall(r'<span [^>]*class="mark ok unsure [^>]*>([^<]*)</span>', page)
    assert mark == "$35,000"
