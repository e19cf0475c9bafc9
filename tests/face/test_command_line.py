"""Bad usage: one clear line on stderr, exit 2, no traceback, whatever the locale."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = str(Path(__file__).with_name("config_3b.json"))


def seatrial(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "seatrial", *arguments]
    settings = {**os.environ, **environment}
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=settings, timeout=120, check=False
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], ["nonsense"]),
        (["plan"], ["--model"]),
        (["plan", "--model", "/no/such/place", "--device", "thin-laptop-8gb"], ["/no/such/place"]),
        (["plan", "--model", CONFIG, "--device", "thin-laptop-9gb"], ["thin-laptop-8gb"]),
        (["plan", "--model", CONFIG, "--device", "thin-laptop-8gb", "--ceiling", "8 G"], ["8 G", "GiB"]),
        (["devices", "show", "thin-lptop"], ["thin-laptop-8gb"]),
        (["check", "/no/such/summary", "/no/such/source"], ["/no/such/summary"]),
        (["run", "/no/such/transcript", "--device", "thin-laptop-8gb"], ["/no/such/transcript"]),
        (["export", "/no/such/model", "/no/such/out"], ["/no/such/model"]),
        (["quantize", "/no/such/bundle", "/no/such/out"], ["/no/such/bundle"]),
    ],
)
def test_bad_usage_is_one_line(arguments: list[str], words: list[str]) -> None:
    done = seatrial(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("seatrial: ")
    for word in words:
        assert word in lines[0]


def test_no_arguments_shows_help() -> None:
    done = seatrial()
    assert done.returncode == 0
    assert "run" in done.stdout and "plan" in done.stdout


def test_version() -> None:
    from seatrial import __version__

    assert seatrial("--version").stdout.split() == ["seatrial", __version__]


def test_chinese_output_does_not_depend_on_the_locale(tmp_path: Path) -> None:
    source, summary = tmp_path / "源.txt", tmp_path / "摘要.txt"
    source.write_text("周敏然：预算三十七万五。", encoding="utf-8")
    summary.write_text("周敏然说预算35.7万元。", encoding="utf-8")
    done = seatrial("check", str(summary), str(source), LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr


def test_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m seatrial devices list | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
