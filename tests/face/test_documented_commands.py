"""Every `seatrial` command of README and docs is run as it stands there, in a folder that has what it names.

Long ones get a short input or fewer tokens; what is changed is in `SHORTER`, and nothing else is. So is the
Python of docs/python.md, block by block.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from made_traces import write_trace

from seatrial.cli import run_command

ROOT = Path(__file__).resolve().parents[2]
CONFIG = Path(__file__).with_name("config_3b.json")
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").glob("*.md") if not page.name.endswith(".template.md")),
    *sorted((ROOT / "docs" / "commands").glob("*.md")),
]


def commands_of(text: str) -> list[str]:
    """Indented command lines, continued ones joined; synopses ([--option], REFERENCE) are no commands."""
    joined = re.sub(r"\\\n +", "", text)
    found = re.findall(r"^    (?:\.venv/bin/)?(seatrial .+)$", joined, flags=re.MULTILINE)
    return [line.partition("  #")[0].strip() for line in found if " [--" not in line]


COMMANDS = list(
    dict.fromkeys(line for page in PAGES for line in commands_of(page.read_text(encoding="utf-8")))
)
PYTHON = re.findall(
    r"^```python\n(.+?)^```", (ROOT / "docs" / "python.md").read_text(encoding="utf-8"), re.M | re.S
)

# Command -> options added, and words exchanged, to keep it short.
SHORTER = {
    "run": ["--max-tokens", "8"],
    "trace": ["--max-tokens", "8", "--prompt-tokens", "300"],
    "tune": ["--draws", "20"],
    "devices measure": ["--no-bundle"],
    "damage": ["--text", "short", "--draws", "200", "--window", "64"],
}
SHORT_WORDS = {
    "run": {"sample:en": "meeting.txt"},
    "trace": {"all": "loop"},
    "plan": {"M": "config.json"},
    "damage": {"meeting.txt": "short"},
}
# What may come out beside 0: a summary of eight tokens, few traces and few texts are refused, with exit 1.
MAY_FAIL = {"run", "damage", "tune", "check"}
# Minutes each, and tested in their rooms; their outputs lie here for the commands behind them.
ONLY_HELP = {"export", "quantize"}

MEETING = "".join(
    f"Dana Reyes: Item {n}: the pilot at site {n} costs {n},000 dollars and starts on {n} March.\n"
    f"Tom Hale: Agreed, I send contract {n} to Mira Okafor by Friday.\n"
    for n in range(3, 15)
)


def bench_log() -> str:
    """llama-bench's JSON of three models, a prompt and a generation each."""
    sizes = (("1B", 1.24e9, 8.1e8), ("3B", 3.2e9, 2e9), ("8B", 8e9, 4.9e9))
    rows = [
        {
            "model_type": f"llama {name} Q4_K", "model_n_params": int(params), "model_size": int(size),
            "n_prompt": 512 - 4 * tokens, "n_gen": tokens, "n_depth": 0,
            "avg_ts": 1 / (size / 230e9 + 1e-3) if tokens else 4e12 / (2 * params),
        }
        for name, params, size in sizes
        for tokens in (128, 0)
    ]  # fmt: skip
    return json.dumps(rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, fp32_bundle, int4_bundle) -> Path:  # type: ignore[no-untyped-def]
    """A folder with every file that the commands name, also those that others of them would make."""
    here = tmp_path_factory.mktemp("documented")
    shutil.copy(CONFIG, here / "config.json")
    (here / "meeting.txt").write_text(MEETING, encoding="utf-8")
    (here / "summary.txt").write_text(
        "Dana Reyes said that the pilot at site 5 costs $5,000.\n", encoding="utf-8"
    )
    # So few traces end in "none will do" and leave no file of their own.
    (here / "thresholds.toml").write_text("[breakdown]\nrun_length = 10\n", encoding="utf-8")
    for name in ("transcripts", "summaries", "short"):
        (here / name).mkdir()
        (here / name / "first.txt").write_text(
            MEETING if name != "short" else MEETING[:240], encoding="utf-8"
        )
    (here / "log.json").write_text(bench_log(), encoding="utf-8")
    shutil.copy(ROOT / "devices" / "thin-laptop-8gb.toml", here / "here.toml")
    shutil.copy(ROOT / "devices" / "runtimes" / "llama-cpp-metal.toml", here / "theirs.toml")
    (here / "traces").mkdir()
    for number in range(12):
        write_trace(here / "traces", number, np.random.default_rng(number))
    (here / "bundles").mkdir()
    (here / "bundles" / "fp32").symlink_to(fp32_bundle.folder)
    (here / "bundles" / "int4").symlink_to(int4_bundle.folder)
    job = ["--device", "thin-laptop-8gb", "--model", str(int4_bundle.folder), "--max-tokens", "8", "--quiet"]
    run_command(["run", str(here / "meeting.txt"), *job, "--out", str(here / "out" / "en")])
    shutil.copytree(here / "out" / "en", here / "out" / "short")
    return here


def shortened(command: str) -> tuple[str, list[str]]:
    words = shlex.split(command)[1:]
    name = "devices measure" if words[:2] == ["devices", "measure"] else words[0]
    words = [SHORT_WORDS.get(name, {}).get(word, word) for word in words]
    return name, [words[0], "--help"] if name in ONLY_HELP else words + SHORTER.get(name, [])


def test_there_are_commands_on_every_page_of_a_command() -> None:
    assert len(COMMANDS) >= 30
    for page in (ROOT / "docs" / "commands").glob("*.md"):
        assert commands_of(page.read_text(encoding="utf-8")), f"{page.name} shows no command"


@pytest.mark.parametrize("command", COMMANDS)
def test_command_works(folder: Path, command: str) -> None:
    name, words = shortened(command)
    settings = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "seatrial", *words], cwd=folder, capture_output=True, text=True, env=settings,
        timeout=900, check=False,
    )  # fmt: skip
    allowed = {0, 1} if name in MAY_FAIL else {0}
    assert done.returncode in allowed, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    assert max(map(len, done.stdout.splitlines()), default=0) <= 400


def test_the_python_of_the_docs_works(folder: Path) -> None:
    """One program of all blocks, where torch cannot be imported."""
    refuse = "import sys\nsys.modules['torch'] = None\n"
    done = subprocess.run(
        [sys.executable, "-c", refuse + "\n".join(PYTHON)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert len(PYTHON) == 5 and done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip().endswith("cannot tell")
