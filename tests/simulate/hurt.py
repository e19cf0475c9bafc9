"""What the fault suite shares: a meeting, ways to hurt a run, and the command in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil

from seatrial.simulate.job import RunJob, RunResult, Silent

TRANSCRIPT = """Anna Lindqvist: Good morning. The budget of the trade fair is $35,000, we decided that in May.
Ben Okoro: Fine with me, thirty-five thousand dollars and not a dollar more than that.
Anna Lindqvist: Then I will write the plan by the 12th of June and send it to everybody here.
"""
RIGHT = "The budget of the trade fair is $35,000. Anna Lindqvist writes the plan by the 12th of June."
AT = 6  # the token at which things go wrong


def children() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children():
        try:
            if "seatrial.simulate.child" in " ".join(child.cmdline()):
                found.append(child)
        except psutil.NoSuchProcess:
            continue
    return found


class Meddler(Silent):
    """Does something to the child when the model has written token `at`, the first `times` times."""

    def __init__(self, act: Callable[[int], object], at: int = AT, times: int = 99) -> None:
        self.act, self.at, self.times = act, at, times

    def token(self, _piece: str, index: int, *_: float) -> None:
        if index == self.at and self.times > 0:
            self.times -= 1
            (child,) = children()
            self.act(child.pid)
            # A stopped or dying child has more events in its pipe; they would be read as if nothing had been.
            time.sleep(0.05)


def send(number: int) -> Callable[[int], None]:
    return lambda pid: os.kill(pid, number)


def slow(job: RunJob) -> RunJob:
    """Real pace, so that the child is between two tokens when something is done to it: 10 ms each."""
    return replace(job, pace="real", bandwidth_Bps=80e6)


def actions(result: RunResult) -> list[tuple[str, str]]:
    return [(fallback.trigger, fallback.action) for fallback in result.fallbacks]


def command(job: RunJob, *more: str) -> list[str]:
    return [
        *(sys.executable, "-m", "seatrial", "run", "-", "--device", job.device, "--model", str(job.model)),
        *("--out", str(job.out), "--threads", "1", "--max-tokens", "120", *more),
    ]


def start(job: RunJob, *more: str, cache: Path | None = None) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        command(job, *more),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **({"SEATRIAL_CACHE": str(cache)} if cache else {})},
        # A background job is started with Ctrl-C ignored and would pass that on; a terminal does not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdin is not None
    process.stdin.write(TRANSCRIPT)
    process.stdin.close()
    process.stdin = None
    return process


def wait_for_draft(process: subprocess.Popen[str], out: Path) -> None:
    """Until the child is up: the trace's temporary file appears before it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        busy = [child for child in psutil.Process(process.pid).children(recursive=True) if child.is_running()]
        if busy and list(out.glob(".trace.jsonl*")):
            time.sleep(1.0)
            return
        time.sleep(0.02)
