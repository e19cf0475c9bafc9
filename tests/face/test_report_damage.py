"""The page of a damage result: its first line says in words what the classes' verdicts are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from seatrial.cli.output import strict
from seatrial.quantize.damage.classes import BIT
from seatrial.quantize.damage.figures import class_figures, guard_figures, item_figures
from seatrial.quantize.damage.forced import ITEM, TOKEN, Scored
from seatrial.quantize.damage.report import BundleHeading, DamageReport
from seatrial.quantize.damage.tally import tally
from seatrial.report import write_document


def report_of(documents: int, factor: float) -> DamageReport:
    """A result of made-up tokens, a quarter of them digits, damaged `factor` times as much as others."""
    random, rows = np.random.default_rng(1), []
    for number in range(documents):
        tokens = np.zeros(150, TOKEN)
        digit = random.random(150) < 0.25
        tokens["language"] = number % 2
        tokens["masks"] = np.where(digit, BIT["digit"], 0)
        tokens["entropy"] = random.gamma(2, 0.5, 150)
        tokens["kl"] = 0.05 * tokens["entropy"] * random.exponential(1, 150) * np.where(digit, factor, 1)
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
