"""Every file operation of quantize, packing and run fails in turn, or the process dies before it; of an
export, some do.

Afterwards the old bundle or the new one is whole, never a mixture; a failure that could tidy up has tidied
up; and the next run works. `bench/faults.py` meets every operation of an export.
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


def rows_of(script: str, *arguments: str) -> list[dict[str, Any]]:
    """The JSON lines of a driver in this folder."""
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, str(here / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "PYTHONPATH": str(here)},
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", ["quantize", "prepack", "run"])
@pytest.mark.parametrize("how", ["fail", "kill", "size"])
def test_after_each_fault_what_is_there_is_whole_and_the_next_run_works(
    tmp_path: Path, how: str, name: str
) -> None:
    *rows, again = rows_of("nth_operation.py", how, name, str(tmp_path / "work"))
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


def test_an_export_that_fails_or_dies_leaves_the_old_bundle_or_the_new_one(tmp_path: Path) -> None:
    """Every third operation: folders, texts, weights, graph, the exchange, tidying up."""
    arguments = ("export", str(tmp_path / "work"), "--every", "3", "--again", "one")
    *rows, undisturbed, again = rows_of("fault_in_fork.py", *arguments)
    assert (undisturbed["how"], undisturbed["code"], undisturbed["found"]) == ("none", 0, "fp32")
    assert (again["how"], again["code"], again["found"], again["left"]) == ("again", 0, "fp32", [])
    assert {row["how"] for row in rows} == {"fail", "kill", "size"}
    assert undisturbed["at"] >= 16
    for row in rows:
        assert row["found"] in ("int8", "fp32"), row
        assert row["code"] == -9 if row["how"] == "kill" else row["code"] in (0, 1), row
        assert row["code"] != 1 or row["left"] == [], row
    assert {row["found"] for row in rows if row["how"] == "kill"} == {"int8", "fp32"}
