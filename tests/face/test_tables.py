"""Tables in a terminal of 80 columns: a name that cannot be copied whole is no name."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len

from seatrial.devices.device import device_names
from seatrial.devices.runtime import runtime_names

CONFIG = str(Path(__file__).with_name("config_3b.json"))


def on_a_terminal(columns: int, *arguments: str) -> str:
    """What the command writes where stdout is a terminal of so many columns."""
    settings = {**os.environ, "COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb"}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "seatrial", *arguments]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.DEVNULL, env=settings) as process:
        os.close(theirs)
        told = io.BytesIO()
        try:
            while piece := os.read(ours, 65536):
                told.write(piece)
        except OSError:
            pass  # Linux ends a terminal whose writer has gone with an error
        os.close(ours)
        assert process.wait() == 0
    return told.getvalue().decode()


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["devices", "list"], device_names()),
        (["devices", "runtimes"], runtime_names()),
        (["plan", "--model", CONFIG, "--device", "all", "--weights", "int4"], device_names()),
    ],
    ids=["devices", "runtimes", "plans"],
)
def test_names_are_whole_and_lines_fit(arguments: list[str], names: tuple[str, ...]) -> None:
    lines = on_a_terminal(80, *arguments).splitlines()
    assert max(cell_len(line.rstrip()) for line in lines) <= 80
    assert set(names) <= {line.split()[0] for line in lines if line.strip()}
