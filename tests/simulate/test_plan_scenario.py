"""The worked page of the documentation is what the formulas give today."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_scenario", DOCS / "make_scenario.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_up_to_date() -> None:
    written = (DOCS / "scenario.md").read_text(encoding="utf-8")
    assert written == generator().page(), "run: python docs/make_scenario.py"


def test_the_page_shows_both_models_and_the_envelope() -> None:
    page = generator().page()
    assert len(re.findall(r"^\| (full|grouped) heads \|", page, re.MULTILINE)) == 8
    for figure in ("1.445 GB", "3.15 s", "30 ms", "5.945 GB", "12%"):
        assert figure in page
