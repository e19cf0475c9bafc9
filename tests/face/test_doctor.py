"""`seatrial doctor`: real looks at this machine, and the cases it exists for, made by hand."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from seatrial import doctor
from seatrial.errors import UserError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("SEATRIAL_CACHE", str(folder))
    return folder


@pytest.mark.usefixtures("cache")
def test_every_problem_has_a_remedy() -> None:
    lines = doctor.examine()
    assert {line.status for line in lines} <= {"ok", "warn", "fail"}
    assert all(line.remedy for line in lines if line.status != "ok")
    assert {"python", "memory ceiling", "cache", "onnxruntime", "export extra"} <= {
        line.name for line in lines
    }


def test_out_of_range_and_missing_requirements_are_told() -> None:
    assert doctor._requirement_line("numpy>=1") is None
    old = doctor._requirement_line("numpy>=99")
    assert old is not None and old.status == "warn" and "numpy>=99" in old.remedy
    absent = doctor._requirement_line("no-such-package-of-ours>=1")
    assert absent is not None and absent.status == "fail"
    assert doctor._requirement_line('no-such-package-of-ours>=1; extra == "export"') is None


def test_cleaning_empties_the_cache_and_nothing_else(cache: Path, tmp_path: Path) -> None:
    """SEATRIAL_CACHE may name a folder with other things in it, or hold a link to one."""
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "precious.txt").write_text("keep")
    (cache / "thesis.txt").write_text("keep")
    (cache / "bundles" / "one").mkdir(parents=True)
    (cache / "bundles" / "one" / "model.onnx").write_bytes(b"x" * 1000)
    (cache / "prepacked").symlink_to(outside)
    assert doctor.clean_cache() == 1000
    assert [path.name for path in cache.iterdir()] == ["thesis.txt"]
    assert (outside / "precious.txt").read_text() == "keep"


def test_cleaning_knows_every_folder_that_the_rooms_keep() -> None:
    root = Path(__file__).resolve().parents[2]
    rooms = ("export", "quantize", "simulate", "guards", "devices", "src")
    texts = [path.read_text(encoding="utf-8") for room in rooms for path in (root / room).rglob("*.py")]
    kept = {name for text in texts for name in re.findall(r'cache_folder\(\)\)? / "(\w+)"', text)}
    assert kept == set(doctor.CACHED)


def test_a_cache_that_cannot_be_made_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("in the way")
    monkeypatch.setenv("SEATRIAL_CACHE", str(blocker / "cache"))
    assert doctor.cache_line().status == "fail"
    with pytest.raises(UserError, match="cache folder"):
        doctor.clean_cache()


@pytest.mark.usefixtures("cache")
def test_command_prints_strict_json() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "seatrial", "doctor", "--json"], capture_output=True, text=True, check=False
    )
    document = json.loads(done.stdout)
    assert done.returncode == (1 if any(line["status"] == "fail" for line in document["lines"]) else 0)
