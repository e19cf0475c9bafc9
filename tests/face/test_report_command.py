"""`seatrial report` and `--html`: one file or one clear line, and no half-written page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seatrial.cli import run_command

CONFIG = str(Path(__file__).with_name("config_3b.json"))
PLAN = ["plan", "--model", CONFIG, "--device", "thin-laptop-8gb", "--weights", "int4"]


@pytest.mark.parametrize("device", ["rpi5", "all"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_plan_becomes_a_page(tmp_path: Path, device: str, language: str) -> None:
    out = tmp_path / "deep" / "plan.html"
    arguments = ["plan", "--model", CONFIG, "--device", device, "--weights", "int4", "--html", str(out)]
    assert run_command([*arguments, "--lang", language, "--json"]) == 0
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>") and "<svg" in text and "var(--ink)" in text
    assert "http://" not in text.replace("http://www.w3.org/", "") and "https://" not in text


def test_two_plans_are_compared(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    files = []
    for device in ("rpi5", "thin-laptop-8gb"):
        assert run_command(["plan", "--model", CONFIG, "--device", device, "--json"]) == 0
        files.append(tmp_path / f"{device}.json")
        files[-1].write_bytes(capsysbinary.readouterr().out)
    out = tmp_path / "both.html"
    assert run_command(["report", *map(str, files), "--html", str(out)]) == 0
    assert "Side by side" in out.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "No such file"), ("nope", "is not JSON"), ("{}", "is no result"), ("[1]", "one JSON object")],
)
def test_what_is_no_result_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None, words: str
) -> None:
    given, out = tmp_path / "given.json", tmp_path / "out.html"
    if content is not None:
        given.write_text(content, encoding="utf-8")
    assert run_command(["report", str(given), "--html", str(out)]) == 2
    told = capsys.readouterr().err
    assert words in told and len(told.splitlines()) == 1
    assert not out.exists()


def test_language_and_input_are_checked_before_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transcript = tmp_path / "meeting.txt"
    transcript.write_text("Dana Reyes: The budget is 42,000 dollars this year.\n", encoding="utf-8")
    arguments = ["run", str(transcript), "--device", "thin-laptop-8gb", "--out", str(tmp_path / "out")]
    assert run_command([*arguments, "--html", str(tmp_path / "r.html"), "--lang", "fr"]) == 2
    assert run_command([*arguments, "--html", str(transcript)]) == 2
    assert "also an input" in capsys.readouterr().err
    assert "42,000" in transcript.read_text(encoding="utf-8")


def test_a_failed_write_leaves_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    assert run_command([*PLAN, "--html", str(blocker / "plan.html")]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert json.dumps([path.name for path in tmp_path.iterdir()]) == '["file"]'
