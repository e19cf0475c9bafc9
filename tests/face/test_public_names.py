"""The public surface, on purpose: what `seatrial` exports, documented and loaded lazily."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import seatrial

NAMES = [
    "Architecture",
    "Bundle",
    "CheckResult",
    "DamageReport",
    "DamageSettings",
    "Device",
    "Document",
    "Extract",
    "Finding",
    "Job",
    "Plan",
    "RunJob",
    "RunResult",
    "Runtime",
    "UserError",
    "Verdict",
    "check",
    "damage",
    "extract",
    "load_device",
    "load_runtime",
    "open_bundle",
    "plan",
    "read_architecture",
    "run",
]


def test_the_list_is_what_we_mean_it_to_be() -> None:
    assert sorted(seatrial.__all__) == NAMES == sorted(seatrial._HOMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_documented(name: str) -> None:
    thing = getattr(seatrial, name)
    assert inspect.getdoc(thing), f"seatrial.{name} has no docstring"
    if inspect.isfunction(thing):
        assert all(hint is not inspect.Parameter.empty for hint in thing.__annotations__.values())
        assert "return" in thing.__annotations__


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        seatrial.nonsense  # noqa: B018


def test_importing_loads_no_room() -> None:
    program = "import seatrial, sys; print([n for n in sys.modules if n.startswith('seatrial.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_example_of_the_docstring_works() -> None:
    device = seatrial.load_device("thin-laptop-8gb")
    assert device.memory_bytes == 8_000_000_000
    assert seatrial.check("The budget is $42,000.", "Dana: The budget is 42,000 dollars.").verdict == "ok"
