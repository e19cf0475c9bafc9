"""Runs one after another, with every kind of end, leave the process and the machine as they were."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from scripted import write_scripted_bundle
from soak import growth, soak

from seatrial.simulate.job import RunJob, Silent
from seatrial.simulate.run import run

TRANSCRIPT = (
    "Anna Lindqvist: Good morning, the budget of the trade fair is $35,000.\nBen Okoro: Fine with me.\n"
)
RIGHT = "The budget of the trade fair is $35,000 and Ben Okoro is fine with that."


class Killer(Silent):
    """Kills the child at the third token."""

    def token(self, _piece: str, index: int, *_: float) -> None:
        if index == 3:
            for child in psutil.Process().children():
                os.kill(child.pid, signal.SIGKILL)


def test_nothing_grows_over_many_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "cache"))
    right = write_scripted_bundle(tmp_path / "right", RIGHT)
    wrong = write_scripted_bundle(tmp_path / "wrong", "The budget is $99,000 for Gregor Halloway.")
    job = RunJob(
        TRANSCRIPT, "rpi5", tmp_path / "out", model=str(right), threads=1, max_tokens=60, patience_s=60
    )

    def one(number: int) -> None:
        kind = number % 4
        if kind == 0:
            assert run(job).status == "ok"
        elif kind == 1:
            assert run(replace(job, model=str(wrong))).summary_kind == "extractive"
        elif kind == 2:
            assert run(replace(job, pace="real", bandwidth_Bps=60e6), Killer()).deaths
        else:
            assert run(replace(job, mapped=True)).memory.mapped_weights

    found = soak(one, runs=8, warm_up=4)
    grown = growth(found)
    # The allocator keeps a little; a leak of one result per run would show in the others as well.
    assert grown.pop("private_bytes") < 8_000_000
    assert all(amount <= 0 for amount in grown.values()), grown
