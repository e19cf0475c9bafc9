"""Planted damage in the embedded model: its tied embedding and head are changed, row by row, on purpose."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from damage_planted import with_embedding

from seatrial.export.session import Session
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.damage.classes import CLASSES
from seatrial.quantize.damage.documents import own_documents
from seatrial.quantize.damage.figures import LEAST_FLOOR, class_figures
from seatrial.quantize.damage.forced import Replayed, score_document
from seatrial.quantize.damage.heading import describe
from seatrial.quantize.damage.labels import label_text
from seatrial.quantize.damage.noise import floor_of, measure_noise
from seatrial.quantize.damage.tally import tally

DOCUMENTS = own_documents("en")[:13]


def rows_of_digits(tokenizer: Tokenizer) -> np.ndarray:
    return np.array(sorted({token for digit in "0123456789" for token in tokenizer.encode(digit)}))


def rows_of_names(tokenizer: Tokenizer) -> np.ndarray:
    """Tokens that stand in people's names far more often than elsewhere."""
    every, inside = {}, {}
    for document in DOCUMENTS:
        people = np.zeros(len(document.text), bool)
        for item in label_text(document.text).items:
            people[item.span[0] : item.span[1]] |= item.label == "person"
        for token, (start, end) in zip(*tokenizer.encode_spans(document.text), strict=True):
            every[token] = every.get(token, 0) + 1
            inside[token] = inside.get(token, 0) + bool(people[start:end].any())
    return np.array([token for token in every if inside[token] / every[token] > 0.8])


def noisy(table: np.ndarray, rows: np.ndarray, share: float) -> np.ndarray:
    noise = np.random.default_rng(0).normal(size=(len(rows), table.shape[1]))
    table[rows] += share * table.std() * noise
    return table


def swapped(table: np.ndarray, rows: np.ndarray) -> np.ndarray:
    table[rows] = table[np.roll(rows, 1)]
    return table


@pytest.fixture(scope="module")
def reports(fp32_bundle, tmp_path_factory):
    """Class figures of three damaged models against one reading of the reference."""
    folder = tmp_path_factory.mktemp("embedded")
    tokenizer = Tokenizer.load(fp32_bundle.folder)
    digits, names = rows_of_digits(tokenizer), rows_of_names(tokenizer)
    changes = {
        "digits": lambda table: noisy(table, digits, 0.5),
        "everywhere": lambda table: noisy(table, np.arange(len(table)), 0.15),
        "names": lambda table: swapped(table, names),
    }
    found = {}
    kept: dict[str, list] = {name: [] for name in changes}
    with Session(fp32_bundle, capacity=256) as session:
        reference = Replayed(session)
        damaged = {
            name: Session(with_embedding(fp32_bundle, folder / name, change), capacity=256)
            for name, change in changes.items()
        }
        for document in DOCUMENTS:
            for name, candidate in damaged.items():
                kept[name].append(score_document(document, reference, candidate, tokenizer))
    for name, rows in kept.items():
        damaged[name].close()
        found[name] = class_figures(tally(lambda rows=rows: rows), LEAST_FLOOR)
    return found


def test_noise_on_the_digit_rows_concentrates_on_digits(reports):
    found = reports["digits"]
    assert str(found["digit"].verdict) == "concentrates"
    assert found["digit"].p_adjusted < 0.01
    assert str(found["person"].verdict) == "does not concentrate"
    ratios = {name: found[name].compared.ratio.value for name in CLASSES[:-1]}
    assert max(ratios, key=ratios.get) == "digit"


def test_noise_on_all_rows_does_not_concentrate_on_digits(reports):
    found = reports["everywhere"]
    assert found["other"].kl.low > 0.1, "there is damage"
    assert str(found["digit"].verdict) == "does not concentrate"
    assert str(found["amount"].verdict) == "does not concentrate"


def test_swapped_names_are_found_as_names(reports):
    found = reports["names"]
    assert str(found["person"].verdict) == "concentrates"
    ratios = {name: found[name].compared.ratio.value for name in CLASSES[:-1]}
    assert max(ratios, key=ratios.get) == "person"
    assert str(found["digit"].verdict) == "does not concentrate"


def test_noise_of_the_reference_is_far_below_any_damage(fp32_bundle, reports):
    tokenizer = Tokenizer.load(fp32_bundle.folder)
    with Session(fp32_bundle, capacity=64, threads=1) as session:
        noise = measure_noise(fp32_bundle, session, [tokenizer.encode(DOCUMENTS[0].text)[:40]])
    assert [found.kind for found in noise] == [
        "same session twice",
        "prefill against step by step",
        "other packing",
    ]
    assert noise[0].kl == noise[0].flips == 0
    assert floor_of(noise) < 1e-4 * reports["everywhere"]["other"].kl.value


def test_the_heading_says_that_the_reference_was_quantized_before(fp32_bundle):
    assert "4 bits" in describe(fp32_bundle).provenance


def test_a_quantized_bundle_is_described_by_its_operators(int4_bundle):
    heading = describe(int4_bundle)
    assert heading.kv == "int8" and "4+8 bit" in heading.provenance
