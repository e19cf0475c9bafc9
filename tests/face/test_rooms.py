"""Who imports whom is what CONTRIBUTING says: the table is read from there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("devices", "export", "guards", "quantize", "simulate")
LEAVES = {"errors"}  # may be imported by every room
HEAVY = {"torch", "transformers", "optimum", "onnxscript", "accelerate"}
ASKED_FOR = {"quantize/rounding.py"}  # torch inside the one function that needs it: --algorithm hqq


def imported_rooms(file: Path) -> set[str]:
    """The rooms of `seatrial` that a module imports, also inside functions and for types only."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [
                f"{node.module}.{alias.name}" if node.module == "seatrial" else node.module
                for alias in node.names
            ]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found |= {name.split(".")[1] for name in names if name.startswith("seatrial.")}
    return found


def allowed_rooms() -> dict[str, set[str]]:
    """Room -> what it may import, from the table in CONTRIBUTING."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| `(\w+)/` \|.*\| ([^|]+) \|$", text, flags=re.MULTILINE)
    return {room: set(re.findall(r"`(\w+)`", may)) for room, may in table}


def test_rooms_import_only_what_they_may() -> None:
    allowed = allowed_rooms()
    assert allowed.keys() == set(ROOMS)
    for room in ROOMS:
        for file in (ROOT / room).rglob("*.py"):
            beyond = imported_rooms(file) - allowed[room] - LEAVES - {room}
            assert not beyond, f"{file.relative_to(ROOT)} imports {', '.join(sorted(beyond))}"


def imported_packages(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_heavy_packages_are_imported_in_export_only() -> None:
    files = [
        file for room in (*ROOMS[:1], *ROOMS[2:], "src/seatrial") for file in (ROOT / room).rglob("*.py")
    ]
    importing = {file.relative_to(ROOT).as_posix() for file in files if imported_packages(file) & HEAVY}
    assert importing == ASKED_FOR
