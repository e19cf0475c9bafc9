"""The wheel in an environment of its own, without the checkout and without any extra.

The environment sees the wheel and the distributions that its base requirements name, theirs included, and no
other: an import of something that is not required fails here. They are links to the ones that the tests run
with, so nothing is fetched and the whole takes seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CONFIG = str(Path(__file__).with_name("config_3b.json"))

EXTRAS = (
    "torch",
    "transformers",
    "optimum",
    "onnxscript",
    "accelerate",
    "vl_convert",
    "distributed",
    "pytest",
)


def required(name: str, found: dict[str, Distribution], extras: tuple[str, ...] = ("",)) -> None:
    """Adds to `found` what a distribution requires here, and what that requires; not itself."""
    for line in distribution(name).requires or ():
        need = Requirement(line)
        wanted = need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras)
        if wanted and canonicalize_name(need.name) not in found:
            found[canonicalize_name(need.name)] = distribution(need.name)
            required(need.name, found, ("", *need.extras))


def top_entries(one: Distribution) -> Iterator[Path]:
    """Where a distribution's modules and metadata lie; its scripts are left out."""
    for name in {file.parts[0] for file in one.files or () if file.parts[0] not in ("..", "__pycache__")}:
        yield Path(str(one.locate_file(name)))


@pytest.fixture(scope="module")
def scripts(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the environment's `python` and `seatrial`."""
    folder = tmp_path_factory.mktemp("empty") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    paths = sysconfig.get_paths("venv", vars={"base": str(folder), "platbase": str(folder)})
    found: dict[str, Distribution] = {}
    required("seatrial", found)
    for entry in {entry for one in found.values() for entry in top_entries(one)}:
        (Path(paths["purelib"]) / entry.name).symlink_to(entry)
    python = Path(paths["scripts"]) / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", wheel], check=True, timeout=120)
    subprocess.run([*pip, "check"], check=True, timeout=120)
    return python.parent


def run(scripts: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The installed command, away from the checkout."""
    done = subprocess.run(
        [scripts / "seatrial", *arguments], cwd=scripts, capture_output=True, encoding="utf-8", timeout=900,
        check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done


def test_it_is_the_wheel_that_runs_and_no_extra_is_there(scripts: Path) -> None:
    program = (
        "import importlib.util as u, seatrial, seatrial.guards as g; print(seatrial.__file__, g.__file__); "
        f"print([name for name in {EXTRAS!r} if u.find_spec(name)])"
    )
    done = subprocess.run(
        [scripts / "python", "-c", program], cwd=scripts, capture_output=True, text=True, check=True
    )
    places, extras = done.stdout.splitlines()
    assert all(str(scripts.parent) in place for place in places.split())
    assert extras == "[]"


def test_plan(scripts: Path) -> None:
    done = run(scripts, "plan", "--model", CONFIG, "--device", "all", "--weights", "int4", "--json")
    assert {plan["device"] for plan in json.loads(done.stdout)["plans"]} >= {"thin-laptop-8gb", "rpi5"}


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        (
            "Dana Reyes: The pilot costs 42,000 dollars.",
            "Dana Reyes said $42,000.",
            "Dana Reyes said $24,000.",
        ),
        ("周敏然：试点预算三十七万五。", "周敏然说预算37.5万元。", "周敏说预算37.5万元。"),
    ],
    ids=["en", "zh"],
)
def test_check(scripts: Path, tmp_path: Path, source: str, right: str, wrong: str) -> None:
    """The Chinese tagger's model comes with a requirement, not with the checkout."""
    given = tmp_path / "source.txt"
    given.write_text(source, encoding="utf-8")
    for code, text in enumerate((right, wrong)):
        summary = tmp_path / f"summary{code}.txt"
        summary.write_text(text, encoding="utf-8")
        done = run(scripts, "check", str(summary), str(given), "--json", code=code)
        assert json.loads(done.stdout)["findings"], "no figure and no name was found"


def test_a_finished_bundle_runs(scripts: Path, tmp_path: Path, int4_bundle) -> None:  # type: ignore[no-untyped-def]
    meeting, out = tmp_path / "meeting.txt", tmp_path / "out"
    meeting.write_text("Dana Reyes: The pilot costs 42,000 dollars.\nTom Hale: Agreed.\n", encoding="utf-8")
    run(
        scripts, "run", str(meeting), "--device", "thin-laptop-8gb", "--model", str(int4_bundle.folder),
        "--max-tokens", "4", "--out", str(out), "--quiet",
    )  # fmt: skip
    result = json.loads((out / "result.json").read_text(encoding="utf-8"))
    assert result["decode"]["tokens"] > 0 and result["summary"]


def test_a_report_names_the_extra_that_it_needs(scripts: Path, tmp_path: Path) -> None:
    out = tmp_path / "plan.html"
    done = run(scripts, "plan", "--model", CONFIG, "--html", str(out), code=2)
    assert done.stderr.strip() == 'seatrial: a report needs its extra: pip install "seatrial[report]"'
    assert not out.exists()
