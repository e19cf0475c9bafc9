"""The thresholds file: read, written, refused, and compared with the run that wants to use it."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import UserError
from seatrial.guards.thresholds import (
    Made,
    Thresholds,
    ThresholdsFile,
    load_thresholds,
    mismatches,
    parse_thresholds,
    to_toml,
)
from seatrial.guards.verdict import Verdict


def test_an_empty_file_is_the_defaults():
    assert parse_thresholds({}) == ThresholdsFile()


@given(
    st.builds(
        ThresholdsFile,
        breakdown=st.builds(
            Thresholds,
            entropy_nats=st.floats(0, 12),
            run_length=st.integers(1, 50),
            smoothed_enter_nats=st.floats(4, 12),
            smoothed_leave_nats=st.floats(0, 4),
            repeat_times=st.integers(2, 9),
            foreign_share=st.floats(0.1, 1.0),
        ),
        numbers=st.dictionaries(st.sampled_from(["rounded", "not_found"]), st.sampled_from(list(Verdict))),
        names=st.dictionaries(st.sampled_from(["homophone", "cut name"]), st.sampled_from(list(Verdict))),
        made=st.builds(Made, date=st.text(), model=st.text(), data=st.text()),
    )
)
def test_what_is_written_reads_back_the_same(file):
    assert parse_thresholds(tomllib.loads(to_toml(file))) == file


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[breakdown]\nentropy_nat = 5", "unknown \\[breakdown\\] key 'entropy_nat'"),
        ("[breakdow]\nentropy_nats = 5", "unknown table 'breakdow'"),
        ("[breakdown]\nentropy_nats = 'high'", "entropy_nats is 'high'"),
        ("[breakdown]\nentropy_nats = nan", "a number of nats"),
        ("[breakdown]\nrun_length = 0", "at least 1"),
        ("[breakdown]\nrun_length = 2.5", "whole number"),
        ("[breakdown]\nrun_length = true", "whole number"),
        ("[breakdown]\nforeign_share = 1.5", "a share above 0"),
        ("[breakdown]\nsmoothed_enter_nats = 2\nsmoothed_leave_nats = 3", "end before it begins"),
        ("[numbers]\nrounded = 'perhaps'", "one of fail, ok, warn"),
        ("breakdown = 3", "must be a table"),
        ("[breakdown", "is not TOML"),
    ],
)
def test_bad_files_are_one_clear_line(tmp_path, text, told):
    path = tmp_path / "thresholds.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=told) as caught:
        load_thresholds(path)
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


def test_a_missing_file_is_one_clear_line(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        load_thresholds(tmp_path / "none.toml")


def test_mismatches_name_what_differs():
    made = Made(model="A", weights="int4", kv="")
    assert mismatches(made, model="A", weights="int4", kv="int8") == []
    told = mismatches(made, model="B", weights="int8", kv="int8")
    assert len(told) == 2 and "model A, this run has B" in told[0] and "weights int4" in told[1]
