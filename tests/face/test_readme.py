"""Every `seatrial` command of the README is run as it stands there, in a folder that has what it names.

Long ones get a short input or fewer tokens; what is changed is in `SHORTER`, and nothing else is.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (?:\.venv/bin/)?(seatrial .+)$", README, flags=re.MULTILINE)
CONFIG = Path(__file__).with_name("config_3b.json")

# Command -> options added, and words exchanged, to keep it short.
SHORTER = {
    "run": ["--max-tokens", "8"],
    "trace": ["--max-tokens", "8", "--prompt-tokens", "300"],
    "tune": ["--draws", "20"],
    "devices measure": ["--no-bundle"],
    "damage": ["--text", "short", "--draws", "200"],
}
SHORT_WORDS = {"run": {"sample:en": "meeting.txt"}, "trace": {"all": "loop"}}
# What may come out beside 0: a summary of eight tokens, few traces and few texts are refused, with exit 1.
MAY_FAIL = {"run", "damage", "tune", "quantize"}

MEETING = "".join(
    f"Dana Reyes: Item {n}: the pilot at site {n} costs {n},000 dollars and starts on {n} March.\n"
    f"Tom Hale: Agreed, I send contract {n} to Mira Okafor by Friday.\n"
    for n in range(3, 15)
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, fp32_bundle, int4_bundle) -> Path:  # type: ignore[no-untyped-def]
    """A folder with every file that the README's commands name; they run in the README's order."""
    here = tmp_path_factory.mktemp("readme")
    shutil.copy(CONFIG, here / "config.json")
    (here / "meeting.txt").write_text(MEETING, encoding="utf-8")
    (here / "summary.txt").write_text(
        "Dana Reyes said that the pilot at site 5 costs $5,000.\n", encoding="utf-8"
    )
    # So few traces end in "none will do" and leave no file of their own.
    (here / "thresholds.toml").write_text("[breakdown]\nrun_length = 10\n", encoding="utf-8")
    for name in ("transcripts", "summaries", "short"):
        (here / name).mkdir()
        (here / name / "first.txt").write_text(MEETING, encoding="utf-8")
    (here / "bundles").mkdir()
    (here / "bundles" / "fp32").symlink_to(fp32_bundle.folder)
    (here / "bundles" / "int4").symlink_to(int4_bundle.folder)
    return here


def shortened(command: str) -> tuple[str, list[str]]:
    words = shlex.split(command)[1:]
    name = "devices measure" if words[:2] == ["devices", "measure"] else words[0]
    words = [SHORT_WORDS.get(name, {}).get(word, word) for word in words]
    return name, words + SHORTER.get(name, [])


def test_the_readme_has_commands() -> None:
    assert len(COMMANDS) >= 12


@pytest.mark.parametrize("command", COMMANDS)
def test_command_works(folder: Path, command: str) -> None:
    name, words = shortened(command)
    if name in ("export", "quantize"):
        # Minutes each, and tested in their rooms; their outputs lie here for the commands behind them.
        words = [*words[:1], "--help"]
    settings = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "seatrial", *words], cwd=folder, capture_output=True, text=True, env=settings,
        timeout=400, check=False,
    )  # fmt: skip
    allowed = {0, 1} if name in MAY_FAIL else {0}
    assert done.returncode in allowed, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert max(map(len, done.stdout.splitlines()), default=0) <= 400
