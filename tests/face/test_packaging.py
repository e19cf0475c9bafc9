"""What sdist and wheel hold: every module and data file of every room; the wheel nothing else.

A nested folder missing from `packages` passes every editable test and is absent from the wheel.
"""

from __future__ import annotations

import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FOLDERS: dict[str, str] = PROJECT["tool"]["setuptools"]["package-dir"]
ROOMS = ("src/seatrial", "devices", "export", "guards", "quantize", "simulate")


@pytest.fixture(scope="module")
def wheel_names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def _files(folder: Path) -> list[Path]:
    """Everything in a room but compiled files: a data file with a new suffix is expected too."""
    return [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]


def expected_names() -> set[str]:
    rooms = {package: ROOT / folder for package, folder in FOLDERS.items() if package.count(".") < 2}
    return {
        f"{package.replace('.', '/')}/{path.relative_to(folder).as_posix()}"
        for package, folder in rooms.items()
        for path in _files(folder)
    }


def test_wheel_holds_exactly_the_rooms(wheel_names: set[str]) -> None:
    expected = expected_names()
    assert wheel_names - expected == set(), "files that no room has"
    assert expected - wheel_names == set(), (
        "files missing from the wheel: list the folder or suffix in pyproject.toml"
    )


def test_sdist_holds_the_rooms_and_what_a_build_needs(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    rooms = {path for folder in ROOMS for path in _files(ROOT / folder)}
    assert {path.relative_to(ROOT).as_posix() for path in rooms} - names == set()
    assert {"LICENSE", "README.md", "pyproject.toml"} <= names


def test_every_package_is_listed() -> None:
    on_disk = {path.parent for folder in ROOMS for path in (ROOT / folder).rglob("__init__.py")}
    listed = {
        ROOT / FOLDERS.get(name, "src/" + name.replace(".", "/"))
        for name in PROJECT["tool"]["setuptools"]["packages"]
    }
    assert on_disk == listed


def test_type_links_reach_everything() -> None:
    """The type checker sees the installed layout through links; a module without one would go unchecked."""
    face = {path.name: path for path in (ROOT / "src" / "seatrial").iterdir() if path.name != "__pycache__"}
    rooms = {room: ROOT / room for room in ROOMS[1:]}
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
