"""Core commands run where the heavy extra is not installed: they must not even try to import it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CONFIG = str(Path(__file__).with_name("config_3b.json"))
HEAVY = ("torch", "transformers", "optimum", "onnxscript", "accelerate")

# Runs one command line in a fresh interpreter in which the heavy packages cannot be imported at all.
PROGRAM = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {heavy!r}:
            raise ImportError("a core command tried to import " + name)
        return None

sys.meta_path.insert(0, Refuse())
from seatrial.cli import run_command
code = run_command({arguments!r})
loaded = sorted({{name.split(".")[0] for name in sys.modules}} & set({heavy!r}))
print("loaded:", loaded, file=sys.stderr)
sys.exit(code if not loaded else 99)
"""


def run_without(heavy: tuple[str, ...], *arguments: str) -> subprocess.CompletedProcess[str]:
    program = PROGRAM.format(heavy=heavy, arguments=list(arguments))
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture
def texts(tmp_path: Path) -> tuple[str, str]:
    source, summary = tmp_path / "source.txt", tmp_path / "summary.txt"
    source.write_text("Dana Reyes: The budget is 42,000 dollars.\n", encoding="utf-8")
    summary.write_text("Dana Reyes named a budget of $42,000.\n", encoding="utf-8")
    return str(summary), str(source)


def test_help_needs_nothing_heavy() -> None:
    done = run_without((*HEAVY, "onnx", "onnxruntime", "numpy"), "--help")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", [("list",), ("show", "thin-laptop-8gb")])
def test_devices_needs_nothing_heavy(arguments: tuple[str, ...]) -> None:
    done = run_without((*HEAVY, "onnx", "onnxruntime"), "devices", *arguments, "--json")
    assert done.returncode == 0, done.stderr


def test_plan_needs_nothing_heavy() -> None:
    done = run_without(
        (*HEAVY, "onnx", "onnxruntime"), "plan", "--model", CONFIG, "--device", "thin-laptop-8gb", "--json"
    )
    assert done.returncode == 0, done.stderr


def test_check_needs_nothing_heavy(texts: tuple[str, str]) -> None:
    done = run_without((*HEAVY, "onnx", "onnxruntime"), "check", *texts, "--json")
    assert done.returncode == 0, done.stderr


def test_running_a_finished_bundle_needs_nothing_heavy(int4_bundle, tmp_path: Path) -> None:
    transcript = tmp_path / "meeting.txt"
    transcript.write_text("Dana Reyes: The budget is 42,000 dollars.\nTom Hale: Agreed.\n", encoding="utf-8")
    done = run_without(
        HEAVY, "run", str(transcript), "--device", "thin-laptop-8gb", "--model", str(int4_bundle.folder),
        "--max-tokens", "8", "--out", str(tmp_path / "out"), "--json",
    )  # fmt: skip
    assert done.returncode in (0, 1, 3), done.stderr
    assert "a core command tried to import" not in done.stderr
