"""What the wheel holds: every module and data file of every room, and nothing else.

A nested folder missing from `packages` passes every editable test and is absent from the wheel.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS: dict[str, str] = PROJECT["tool"]["setuptools"]["package-dir"]
DATA_SUFFIXES = {".py", ".toml", ".txt", ".json", ".typed", ".html", ".css", ".js", ".jinja"}


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Files of a wheel built from a copy of the checkout (a build leaves folders behind)."""
    folder = tmp_path_factory.mktemp("wheel")
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    for name in filter(None, tracked.split("\0")):
        source = ROOT / name
        if source.is_file() and not source.is_symlink():
            target = folder / "copy" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            folder,
            folder / "copy",
        ],
        check=True,
        timeout=300,
    )
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def expected_names() -> set[str]:
    rooms = {package: ROOT / folder for package, folder in FOLDERS.items() if package.count(".") < 2}
    names = set()
    for package, folder in rooms.items():
        for path in folder.rglob("*"):
            if path.is_file() and path.suffix in DATA_SUFFIXES and "__pycache__" not in path.parts:
                names.add(f"{package.replace('.', '/')}/{path.relative_to(folder).as_posix()}")
    return names


def test_wheel_holds_exactly_the_rooms(wheel_names: set[str]) -> None:
    expected = expected_names()
    assert wheel_names - expected == set(), "files that no room has"
    assert expected - wheel_names == set(), (
        "files missing from the wheel: list the folder or suffix in pyproject.toml"
    )


def test_every_package_is_listed() -> None:
    folders = ("src/seatrial", "devices", "export", "guards", "quantize", "simulate")
    on_disk = {path.parent for folder in folders for path in (ROOT / folder).rglob("__init__.py")}
    listed = {
        ROOT / FOLDERS.get(name, "src/" + name.replace(".", "/"))
        for name in PROJECT["tool"]["setuptools"]["packages"]
    }
    assert on_disk == listed


def test_type_links_reach_everything() -> None:
    """The type checker sees the installed layout through links; a module without one would go unchecked."""
    face = {path.name: path for path in (ROOT / "src" / "seatrial").iterdir() if path.name != "__pycache__"}
    rooms = {room: ROOT / room for room in ("devices", "export", "guards", "quantize", "simulate")}
    links = {path.name: path.resolve() for path in (ROOT / ".types" / "seatrial").iterdir()}
    assert links == {**face, **rooms}


def test_constraints_pin_every_requirement_within_its_range() -> None:
    """Each dependency has one tried version, and that version lies in the declared range."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    versions = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in pins}
    project = PROJECT["project"]
    groups = [
        project["dependencies"],
        project["optional-dependencies"]["export"],
        PROJECT["dependency-groups"]["dev"],
    ]
    for text in (text for group in groups for text in group):
        requirement = Requirement(text)
        pinned = versions.get(canonicalize_name(requirement.name))
        assert pinned is not None, f"{requirement.name} is not pinned in constraints.txt"
        assert requirement.specifier.contains(pinned), (
            f"{requirement.name} {pinned} is outside {requirement.specifier}"
        )
