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
    *sorted(page for page in (ROOT / "docs").glob("*.md") if not page.name.endswith(".template.md")),
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


def test_the_page_of_commands_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "commands.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_every_command_has_an_example() -> None:
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    lacking = [part.splitlines()[0] for part in sections if "Example: seatrial" not in part]
    assert lacking == ["seatrial devices"]
