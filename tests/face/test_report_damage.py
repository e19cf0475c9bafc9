"""A damage result on its page and in the terminal: verdicts in words, tables that fit, names as they are."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seatrial.cli import run_command
from seatrial.cli.damage_report import print_report
from seatrial.cli.output import strict
from seatrial.errors import UserError
from seatrial.quantize.damage.classes import BIT, CLASSES
from seatrial.quantize.damage.figures import class_figures
from seatrial.quantize.damage.forced import ITEM, TOKEN, Scored
from seatrial.quantize.damage.item_figures import guard_figures, item_figures
from seatrial.quantize.damage.report import BundleHeading, DamageReport
from seatrial.quantize.damage.tally import tally
from seatrial.quantize.probes.summary import summarize
from seatrial.report import write_document


def report_of(documents: int, factor: float, damage: float = 0.05) -> DamageReport:
    """A result of made-up tokens, a quarter of them digits, damaged `factor` times as much as others."""
    random, rows = np.random.default_rng(1), []
    for number in range(documents):
        tokens = np.zeros(150, TOKEN)
        digit = random.random(150) < 0.25
        tokens["language"] = number % 2
        tokens["masks"] = np.where(digit, BIT["digit"], 0)
        tokens["entropy"] = random.gamma(2, 0.5, 150)
        tokens["kl"] = damage * tokens["entropy"] * random.exponential(1, 150) * np.where(digit, factor, 1)
        rows.append(Scored(tokens, np.zeros(0, ITEM)))
    found = tally(lambda: rows, draws=300, seed=0)
    heading = BundleHeading("one", "int4", "int8", "made from floats")
    return DamageReport(
        reference=heading, candidate=heading, documents={"en": documents}, tokens=150 * documents, noise={},
        floor=1e-6, classes=class_figures(found, 1e-6), languages={}, items=item_figures(found),
        item_languages={}, breakdown=(), guard=guard_figures(found.outcomes.tolist()),
    )  # fmt: skip


def page_of(report: DamageReport, folder: Path, language: str) -> str:
    write_document(strict(report.to_json()), "one", folder / "page.html", language=language)
    return (folder / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("language", "words"), [("en", "concentrates: digit; cannot tell:"), ("zh", "集中: 数字; 无法判断:")]
)
def test_what_concentrates_stands_first_and_is_red(tmp_path: Path, language: str, words: str) -> None:
    page = page_of(report_of(40, 2.5), tmp_path, language)
    assert f'<p class="verdict fail">{words}' in page
    assert page.count("<svg") == 2


def test_one_document_is_told_to_be_too_few(tmp_path: Path) -> None:
    page = page_of(report_of(1, 2.5), tmp_path, "en")
    assert '<p class="verdict warn">cannot tell: digit' in page and "Too few documents" in page
    assert "<svg" not in page, "there is no interval to draw"


NAME = "[int4] x[/b] :100: [red]"


def printed(report: DamageReport, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal of 80 columns shows."""
    monkeypatch.setenv("COLUMNS", "80")
    print_report(report)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    return out


def test_identical_bundles_are_not_told_to_be_too_few(tmp_path, capsys, monkeypatch) -> None:
    same = report_of(40, 0, damage=0)
    assert {str(found.verdict) for found in same.classes.values() if found.tokens} == {"none"}
    out = printed(same, capsys, monkeypatch)
    assert "too few" not in out and "no class differs" in out
    assert "Too few" not in page_of(same, tmp_path, "en")


def test_too_few_documents_are_told_in_the_terminal(capsys, monkeypatch) -> None:
    assert "too few documents" in printed(report_of(1, 2.5), capsys, monkeypatch)


def test_what_people_named_is_printed_as_it_is(capsys, monkeypatch) -> None:
    report = report_of(40, 2.5)
    heading = BundleHeading(NAME, "int4", "int8", f"made from: {NAME}")
    found = replace(report, reference=heading, warnings=(f"mind {NAME}",))
    out = printed(found, capsys, monkeypatch)
    assert f"reference: {NAME} (weights" in out and f"made from: {NAME}" in out and f"mind {NAME}" in out


PARTS = [
    "weights, exact arithmetic",
    "weights, accuracy level 4",
    "head and embedding",
    "KV cache",
    "all together",
]


def parts_of_one() -> list[dict[str, Any]]:
    kl = {"value": 0.000412, "low": 0.000398, "high": 0.0011}
    return [{"variant": name, "classes": {label: {"kl": kl} for label in CLASSES}} for name in PARTS]


def test_parts_are_columns_with_figures_that_can_be_compared(tmp_path, capsys, monkeypatch) -> None:
    report = replace(report_of(40, 2.5), factorial=parts_of_one())
    lines = printed(report, capsys, monkeypatch).splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("one part at a time"))
    assert "--json" in lines[head], "where the intervals are"
    assert lines[head + 1].split() == ["class", "weights", "level", "4", "head", "KV", "all"]
    assert [line.split() for line in lines[head + 2 : head + 2 + len(CLASSES)]] == [
        [label, *["0.00041"] * len(PARTS)] for label in CLASSES
    ]
    page = page_of(report, tmp_path, "en").replace("\N{WORD JOINER}", "")
    assert page.count("0.00041 (0.00040–0.0011)") == len(CLASSES) * len(PARTS)


def pages_of_probes(wrong: int) -> list[dict[str, Any]]:
    """Forty pages of ten probes, all right in the reference, `wrong` of ten wrong in every other page."""
    good = {"exact": True, "normalized": True, "distance": 0.0, "error": ""}
    bad = {"exact": False, "normalized": False, "distance": 1.0, "error": "other figure of the page"}
    return [
        {
            "page": f"p{number}", "language": "zh", "context": 1024, "distractors": 12,
            "probes": [
                {"kind": "full_width", "depth": 0.5, "reference": good, "guard": "",
                 "candidate": bad if place < wrong * (number % 2) else good}
                for place in range(10)
            ],
        }
        for number in range(40)
    ]  # fmt: skip


def test_probes_have_the_difference_with_its_interval(capsys, monkeypatch) -> None:
    probes = {**summarize(pages_of_probes(4), "quick"), "contexts_left_out": []}
    lines = printed(replace(report_of(40, 2.5), probes=probes), capsys, monkeypatch).splitlines()
    place = next(place for place, line in enumerate(lines) if re.search(r"^all +400 .* -20\.0 ", line))
    assert re.fullmatch(r" +\[-2\d\.\d,-1\d\.\d\] *", lines[place + 1])
    kind = next(line for line in lines if line.startswith("kind zh:full_width "))
    assert kind.split()[-1] == "harmed", "neither a name nor a verdict is broken"
    nothing = {"value": None, "low": None, "high": None}
    probes["all"] = {**probes["all"], "difference": nothing}
    lines = printed(replace(report_of(40, 2.5), probes=probes), capsys, monkeypatch).splitlines()
    assert any(re.search(r"^all +400 +100 +80 +- ", line) for line in lines)


def test_echo_needs_texts(capsys) -> None:
    assert run_command(["damage", "nowhere", "nowhere", "--echo"]) == 2
    err = capsys.readouterr().err
    assert "--echo needs --text" in err and err.count("\n") == 1


@pytest.fixture
def done(monkeypatch) -> None:
    """A command whose measurement is done at once."""
    monkeypatch.setattr("seatrial.export.bundle.open_bundle", lambda folder: folder)
    monkeypatch.setattr("seatrial.quantize.damage.run.measure_damage", lambda *_: report_of(40, 2.5))


@pytest.mark.usefixtures("done")
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_page_that_cannot_be_written_takes_nothing_along(tmp_path, capfdbinary, form) -> None:
    (tmp_path / "file").write_text("")
    page = tmp_path / "file" / "page.html"
    assert run_command(["damage", "a", "b", "--quiet", "--html", str(page), *form]) == 2
    found = capfdbinary.readouterr()
    assert b"organisation_place" in found.out and b"cannot write" in found.err


@pytest.mark.usefixtures("done")
def test_a_print_that_fails_does_not_take_the_page_along(tmp_path, monkeypatch) -> None:
    def fail(_report: DamageReport) -> None:
        raise UserError("no terminal")

    monkeypatch.setattr("seatrial.cli.damage_report.print_report", fail)
    page = tmp_path / "page.html"
    assert run_command(["damage", "a", "b", "--quiet", "--html", str(page)]) == 2
    assert page.is_file()
