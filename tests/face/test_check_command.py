"""`seatrial check` from the command line: exit codes, JSON, colours of the spans, bad input in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.cli import run_command

SOURCE = "Dana Reyes: The audit costs 45,500 dollars and starts tomorrow.\n"


@pytest.fixture
def source(tmp_path: Path) -> str:
    file = tmp_path / "source.txt"
    file.write_text(SOURCE, encoding="utf-8")
    return str(file)


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "summary.txt"
    file.write_text(text, encoding="utf-8")
    return str(file)


def test_a_true_summary_is_done(tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", written(tmp_path, "The audit costs $45,500."), source]) == 0
    out = capsys.readouterr().out
    assert "verdict: ok" in out and "$45,500" in out and "written otherwise" in out


def test_a_wrong_figure_fails_and_json_is_one_document(
    tmp_path: Path, source: str, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run_command(["check", written(tmp_path, "The audit costs $54,500."), source, "--json"]) == 1
    document = json.loads(capsysbinary.readouterr().out)
    assert document["verdict"] == "fail"
    assert document["findings"][0]["nearest"]["text"] == "45,500 dollars"


def test_quiet_prints_the_verdict_alone(
    tmp_path: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run_command(["check", written(tmp_path, "The audit costs $54,500."), source, "--quiet"])
    assert capsys.readouterr().out.splitlines() == ["verdict: fail (0 ok, 0 warn, 1 fail)"]


def test_options_reach_the_guard(tmp_path: Path, source: str) -> None:
    summary = written(tmp_path, "It starts on 19 March.")
    assert run_command(["check", summary, source, "--meeting-date", "2026-03-18"]) == 0
    assert run_command(["check", summary, source, "--meeting-date", "2026-03-20"]) == 1
    soft = ["--severity", "numbers.not found=warn"]
    assert run_command(["check", summary, source, "--meeting-date", "2026-03-20", *soft]) == 0


@pytest.mark.parametrize(
    "options",
    [["--meeting-date", "18 March"], ["--severity", "one end=fail"], ["--thresholds", "no-such-file.toml"]],
)
def test_bad_options_are_one_line(
    tmp_path: Path, source: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["check", written(tmp_path, "It costs $5."), source, *options]) == 2
    error = capsys.readouterr().err
    assert error.startswith("seatrial: ") and error.count("\n") == 1


def test_a_missing_file_is_one_line(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", "no-such-file.txt", source]) == 2
    assert capsys.readouterr().err.count("\n") == 1
