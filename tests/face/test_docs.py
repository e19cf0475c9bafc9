"""The documentation under test: generated pages are fresh, links lead somewhere, scripts exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if not page.name.endswith(".template.md")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_scripts_that_the_docs_name_exist() -> None:
    for page in PAGES:
        for script in re.findall(r"`python ((?:bench|docs)/[\w./]+\.py)", page.read_text(encoding="utf-8")):
            assert (ROOT / script).is_file(), f"{page.name} names {script}"


def test_the_pages_of_commands_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "commands.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_command_has_a_page_and_an_example_in_its_help() -> None:
    helps = {
        line: block
        for page in (ROOT / "docs" / "commands").glob("*.md")
        for block in re.findall(r"^```text\n(.+?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
        for line in re.findall(r"Usage: (seatrial [a-z]+(?: [a-z]+)?)", block)
    }
    assert len(helps) >= 17
    assert [line for line, block in helps.items() if "Example: seatrial" not in block] == ["seatrial devices"]
