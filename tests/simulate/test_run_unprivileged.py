"""The fault suite once more without rights: no group can be made, the output folder is somebody else's.

Run by root, the tests go through a user who may read everything (the interpreter may lie in root's home)
and write nothing but a folder of its own. Run by anybody else, the fault suite itself is this test.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOBODY = 65534
_DAC_READ_SEARCH = 2
LEAST_CASES = 30


def drop_rights() -> None:
    """In the child, before exec: becomes nobody and keeps only the right to read (an ambient capability)."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS: the permitted set survives the change of user
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    mask = 1 << _DAC_READ_SEARCH
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    data = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)
    if libc.capset(header, data) or libc.prctl(47, 2, _DAC_READ_SEARCH, 0, 0):  # PR_CAP_AMBIENT_RAISE
        raise OSError(ctypes.get_errno(), "capabilities could not be dropped")


def as_nobody(argv: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    """Runs `argv` without rights; as it is when there are none to drop."""
    environment = {
        **os.environ,
        "HOME": str(home),
        "SEATRIAL_CACHE": str(home / "cache"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.run(
        argv,
        cwd=home,
        env=environment,
        preexec_fn=drop_rights if os.geteuid() == 0 else None,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of nobody's, below folders that nobody may pass."""
    folder = tmp_path_factory.mktemp("nobody")
    for parent in [folder, *folder.parents][:3]:
        parent.chmod(parent.stat().st_mode | 0o055)
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    return folder


def test_the_fault_suite_holds_without_rights(home: Path) -> None:
    done = as_nobody(
        [
            *(sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)),
            *("-p", "no:cacheprovider", f"--basetemp={home / 'tests'}", "--color=no"),
            str(Path(__file__).with_name("faults")),
        ],
        home,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= LEAST_CASES


def test_a_read_only_output_folder_is_one_clear_line(home: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    transcript = home / "meeting.txt"
    transcript.write_text("Anna Lindqvist: Good morning, the budget is $35,000 for this year.\n")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from scripted import write_scripted_bundle as w; "
        "from pathlib import Path; w(Path(sys.argv[2]), 'The budget is $35,000.')"
    )
    assert (
        as_nobody([sys.executable, "-c", script, str(Path(__file__).parent), "model"], home).returncode == 0
    )
    done = as_nobody(
        [
            *(sys.executable, "-m", "seatrial", "run", str(transcript), "--device", "rpi5"),
            *("--model", str(home / "model"), "--out", str(tmp_path / "out")),
        ],
        home,
    )
    assert done.returncode == 2, done.stderr
    assert "cannot write to the output folder" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
