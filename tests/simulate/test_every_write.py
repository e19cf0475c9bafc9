"""Every file operation of quantize, packing and run fails in turn, or the process dies before it.

Afterwards the old bundle or the new one is whole, never a mixture; a failure that could tidy up has
tidied up; and the next run works. Export writes through the same `writing_folder`; `bench/faults.py`
sweeps it too (it needs torch and minutes).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

OLD, NEW = "int8", "int4"
SUMMARY = "The budget of the trade fair is $35,000."
WHOLE = {"quantize": {OLD, NEW}, "prepack": {"nothing", "whole"}, "run": {"nothing", SUMMARY}}
DONE = {"quantize": NEW, "prepack": "whole", "run": SUMMARY}


def sweep(how: str, name: str, work: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The rows of every n, and the row of the undisturbed job after them."""
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, str(here / "nth_operation.py"), how, name, str(work)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(here)},
    )
    assert done.returncode == 0, done.stderr
    *rows, again = [json.loads(line) for line in done.stdout.splitlines()]
    return rows, again


@pytest.mark.parametrize("name", ["quantize", "prepack", "run"])
@pytest.mark.parametrize("how", ["fail", "kill", "size"])
def test_after_each_fault_what_is_there_is_whole_and_the_next_run_works(
    tmp_path: Path, how: str, name: str
) -> None:
    rows, again = sweep(how, name, tmp_path / "work")
    assert len(rows) > 3
    for row in rows:
        assert "surprise" not in row, row
        assert row["found"] in WHOLE[name], row
    assert (again["code"], again["found"], again["left"]) == (0, DONE[name], [])
    failed = [row for row in rows if row["code"] == 1]
    assert all(row["left"] == [] for row in failed)
    if name == "quantize":
        assert all(row["found"] == OLD for row in failed)
        assert {row["found"] for row in rows} == {OLD, NEW}
