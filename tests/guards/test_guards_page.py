"""The page of reasons is what the guards say about the tests' examples."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "docs" / "guards.py"


def test_the_page_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"run `python docs/guards.py`: {done.stderr}"
