"""What people see: every line fits 80 columns, also in Chinese, and nothing that decides is left out."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console
from scripted import write_scripted_bundle

from seatrial.cli.run_progress import Progress
from seatrial.cli.run_report import print_report
from seatrial.simulate.job import RunJob, RunResult
from seatrial.simulate.run import run

ENGLISH = "Anna Lindqvist: Good morning, the budget of the trade fair is $35,000.\nBen Okoro: Fine with me.\n"
CHINESE = (
    "主持人：各位早上好，今天只有一件事，新冷库的预算是三万五千元，大家都同意。\n"
    "王若岚：好的，五月十四号之前签合同，我来负责，李工检查线路，没有别的问题了。\n"
)
WRONG = "The budget of the trade fair is $48,000, and Gregor Halloway pays it."
WRONG_ZH = (
    "新冷库的预算是九十万元，赵德胜负责签合同，供应商八月二号之前必须把所有的设备都送到现场并且调试完毕。"
)


def job(tmp_path: Path, transcript: str, says: str) -> RunJob:
    model = write_scripted_bundle(tmp_path / "model", says)
    return RunJob(
        transcript,
        "thin-laptop-8gb",
        tmp_path / "out",
        model=str(model),
        threads=1,
        max_tokens=80,
        patience_s=60,
    )


def shown(result: RunResult) -> str:
    console = Console(file=io.StringIO(), width=80, highlight=False, color_system=None)
    print_report(result, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("transcript", "says", "offending"),
    [(ENGLISH, WRONG, ["$48,000", "Gregor Halloway"]), (CHINESE, WRONG_ZH, ["九十万元", "赵德胜"])],
    ids=["english", "chinese"],
)
def test_the_report_has_everything_within_80_columns(
    tmp_path: Path, transcript: str, says: str, offending: list[str]
) -> None:
    result = run(job(tmp_path, transcript, says))
    text = shown(result)
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    for part in ("model", "fp32", "KV cache", "ceiling", result.memory.mechanism, "private", "first token"):
        assert part in text
    for guard in ("memory", "breakdown", "numbers", "names"):
        assert re.search(rf"^{guard} +(ok|warn|fail)", text, re.MULTILINE)
    assert all(f"fail {span!r}" in text for span in offending)
    assert "refused: written by the model" in text
    assert "fallback: figures" in text
    assert "summary: sentences of the transcript" in text
    assert "status fallback" in text


def test_a_death_is_told_with_what_would_fit(tmp_path: Path) -> None:
    asked = job(tmp_path, ENGLISH, WRONG)
    text = shown(run(replace(asked, ceiling_bytes=20_000_000, foresee_memory=False)))
    assert "died: as asked: out of memory" in text
    assert "died: mapped weights: " in text
    assert re.search(r"would fit: a ceiling of about [0-9.]+ MB", text)
    assert "status partial" in text


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_shows_the_draft_and_both_clocks_on_stderr(tmp_path: Path, terminal: bool) -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=80, force_terminal=terminal, color_system=None, highlight=False)
    with Progress(console) as progress:
        run(job(tmp_path, CHINESE, WRONG_ZH), progress)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "九十万元" in text
    assert re.search(r"reading +\d+/\d+ tok +\d+ tok/s +host +[0-9.]+ s +device +[0-9.]+ s", text)
    assert re.search(r"writing +\d+/80 tok", text)
