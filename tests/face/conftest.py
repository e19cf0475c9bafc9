"""What an index would serve, built once from a copy of the checkout: the sdist, and its wheel."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of the files that git knows or would take; a build leaves folders behind, so not in place."""
    folder = tmp_path_factory.mktemp("build")
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    tracked = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for name in filter(None, tracked.split("\0")):
        source, target = ROOT / name, folder / "copy" / name
        if source.is_file() and not source.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    build = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", build, folder],
        cwd=folder / "copy",
        capture_output=True,
        check=True,
        timeout=300,
    )
    (built,) = folder.glob("*.tar.gz")
    return built


@pytest.fixture(scope="session")
def wheel(sdist: Path) -> Path:
    """The wheel, built from the sdist alone: what the sdist forgets is missing here too."""
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "-w", sdist.parent]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, sdist], check=True, timeout=300)
    (built,) = sdist.parent.glob("*.whl")
    return built
