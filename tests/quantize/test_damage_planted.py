"""Planted damage in a bigram model, and the command: what was hurt is what is reported.

A bigram model knows one token only, so where a digit may come a comma may come as well, and KL is as large at
both: damage to digits is asserted by KL and harm here, by concentration with the embedded model.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from damage_bundle import bigram_bundle

from seatrial.cli import run_command
from seatrial.cli.output import strict
from seatrial.quantize.damage.documents import own_documents, split_documents
from seatrial.quantize.damage.labels import label_text
from seatrial.quantize.damage.run import Settings, measure_damage

DOCUMENTS = own_documents("en") + own_documents("zh")[:14]


def digit_columns(tokenizer):
    return sorted(i for token, i in tokenizer.get_vocab().items() if token.strip("Ġ").isdigit())


def noise_on_digits(table, tokenizer):
    columns = digit_columns(tokenizer)
    table[:, columns] += np.random.default_rng(1).normal(size=(len(table), len(columns))) * 0.8
    return table


def noise_everywhere(table, _tokenizer):
    return table + np.random.default_rng(2).normal(size=table.shape) * 0.3


def name_columns(tokenizer):
    """Tokens that stand in names far more often than elsewhere."""
    inside, every = np.zeros(tokenizer.get_vocab_size()), np.zeros(tokenizer.get_vocab_size())
    for document in DOCUMENTS:
        people = np.zeros(len(document.text), bool)
        for item in label_text(document.text).items:
            if item.label == "person":
                people[item.span[0] : item.span[1]] = True
        encoding = tokenizer.encode(document.text)
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            every[token] += 1
            inside[token] += people[start:end].any()
    return np.flatnonzero((every > 0) & (inside / np.maximum(every, 1) > 0.8))


def swapped_names(table, tokenizer):
    columns = name_columns(tokenizer)
    table[:, columns] = table[:, np.roll(columns, 1)]
    return table


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("planted")


@pytest.fixture(scope="module")
def reference(folder):
    return bigram_bundle(folder / "reference")


def measured(folder, reference, name, damage, documents=DOCUMENTS):
    candidate = bigram_bundle(folder / name, damage)
    settings = Settings(work=folder / "work", draws=2000, threads=1, noise=False)
    return measure_damage(reference, candidate, documents, settings)


@pytest.fixture(scope="module")
def on_digits(folder, reference):
    return measured(folder, reference, "digits", noise_on_digits)


def test_noise_on_the_digits_shows_on_the_digits(on_digits):
    found = on_digits.classes
    assert found["digit"].kinds["harm"].low > 0.01
    for name in ("person", "organisation_place", "other"):
        assert found["digit"].kl.low > found[name].kl.high
        assert found["digit"].kinds["harm"].low > found[name].kinds["harm"].high
    for name in ("person", "organisation_place"):
        assert str(found[name].verdict) != "concentrates"


def test_noise_everywhere_concentrates_nowhere(folder, reference):
    found = measured(folder, reference, "everywhere", noise_everywhere).classes
    assert {str(f.verdict) for f in found.values()} <= {"does not concentrate", "cannot tell"}
    assert found["digit"].kl.low > 0.01
    assert str(found["digit"].verdict) == "does not concentrate"


def test_swapped_names_are_found_as_names(folder, reference):
    found = measured(folder, reference, "names", swapped_names).classes
    ratios = {name: f.compared.ratio.value for name, f in found.items() if f.compared}
    assert str(found["person"].verdict) == "concentrates"
    assert max(ratios, key=ratios.get) == "person"
    assert str(found["digit"].verdict) != "concentrates"


def test_two_equal_bundles_give_zero_and_none_everywhere(folder, reference):
    report = measured(folder, reference, "same", None)
    for classes in (report.classes, *report.languages.values()):
        for figures in classes.values():
            assert str(figures.verdict) == "none"
            for name in ("kl", "harm", "flips", "nll"):
                interval = figures.figure(name)
                assert (interval.value, interval.low, interval.high) == (0, 0, 0)
    assert all(item.harmed == item.repaired == 0 for item in report.items.values())
    assert report.guard["damaged"] == 0


def test_too_few_documents_give_no_verdict(folder, reference):
    report = measured(folder, reference, "few", noise_on_digits, DOCUMENTS[:5])
    assert {str(f.verdict) for f in report.classes.values()} == {"cannot tell"}


def test_the_guard_is_asked_about_every_damaged_figure(on_digits):
    guard = on_digits.guard
    harmed = sum(
        i.harmed for name, i in on_digits.items.items() if name not in ("person", "organisation_place")
    )
    told = guard["damaged"] + guard["same_value"]
    assert told == harmed
    assert guard["caught"] + guard["escaped"] + guard["no_figure"] == guard["damaged"]


def test_languages_add_up(on_digits):
    for name, figures in on_digits.classes.items():
        parts = [classes[name] for classes in on_digits.languages.values()]
        assert sum(part.tokens for part in parts) == figures.tokens
        weighted = sum(part.tokens * part.kl.value for part in parts) / figures.tokens
        assert weighted == pytest.approx(figures.kl.value)


def run(capsys, *arguments):
    code = run_command(["damage", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def texts(tmp_path):
    """One file with fourteen documents."""
    file = tmp_path / "texts.txt"
    file.write_text("\n---\n".join(d.text for d in DOCUMENTS[:14]), encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """A cache folder of the test's own, and a terminal wide enough for the table."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def digits_folder(folder):
    return bigram_bundle(folder / "digits_again", noise_on_digits).folder


def test_the_command_prints_strict_json_and_fails_on_a_limit(capsys, digits_folder, texts, reference):
    page = texts.with_name("page.html")
    arguments = (reference.folder, digits_folder, "--text", texts, "--quiet", "--json", "--draws", 400)
    code, out, err = run(capsys, *arguments, "--fail-on", "digit:0.01", "--html", page)
    assert code == 1 and "digit.harm" in err
    document = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    assert document["classes"]["digit"]["flips"]["harm"]["low"] > 0.01
    assert document["documents"] == {"en": 14}
    assert document["reference"]["provenance"] and document["noise_floor"]["reference"]
    text = page.read_text(encoding="utf-8")
    assert "organisation_place" in text and "times other tokens" in text
    assert run(capsys, *arguments, "--fail-on", "digit:0.9")[0] == 0


def test_a_limit_that_cannot_be_judged_is_a_warning(capsys, digits_folder, tmp_path, reference):
    file = tmp_path / "one.txt"
    file.write_text(DOCUMENTS[0].text, encoding="utf-8")
    code, out, err = run(
        capsys,
        reference.folder,
        digits_folder,
        "--text",
        file,
        "--quiet",
        "--draws",
        200,
        "--fail-on",
        "digit:0.01",
    )
    assert code == 0 and "warning" in err and "cannot be told" in err
    assert "cannot tell" in out


def test_other_tokenizers_are_one_clear_error(capsys, folder, reference):
    other = bigram_bundle(folder / "other_tokenizer", vocabulary=500)
    code, _, err = run(capsys, reference.folder, other.folder, "--quiet")
    assert code == 2 and err.count("\n") == 1
    assert "different tokenizers" in err and "NLL per digit" in err


@pytest.mark.parametrize(
    "arguments",
    [("--quick", "--full"), ("--fail-on", "digit=1"), ("--text", "nowhere.txt"), ("--draws", "5")],
)
def test_bad_usage_ends_with_two(capsys, digits_folder, reference, arguments):
    code, _, err = run(capsys, reference.folder, digits_folder, *arguments, "--quiet")
    assert code == 2 and err.count("\n") == 1


def test_an_interrupted_run_goes_on_where_it_was(reference, digits_folder, tmp_path):
    from seatrial.export.bundle import open_bundle

    candidate = open_bundle(digits_folder)
    whole = measure_damage(
        reference, candidate, DOCUMENTS[:14], Settings(work=tmp_path / "a", draws=300, noise=False, threads=1)
    )
    seen: list[float] = []

    def stop_half_way(what, share):
        if what == "reading documents":
            seen.append(share)
            if share >= 0.5 and len(seen) < 10:
                raise KeyboardInterrupt

    settings = Settings(work=tmp_path / "b", draws=300, noise=False, threads=1)
    with pytest.raises(KeyboardInterrupt):
        measure_damage(reference, candidate, DOCUMENTS[:14], settings, stop_half_way)
    kept = sorted(file.name for file in (tmp_path / "b").rglob("*.npz"))
    assert len(kept) == 7
    again = measure_damage(reference, candidate, DOCUMENTS[:14], settings)
    assert not list((tmp_path / "b").rglob("*.npz")), "nothing is left when the report is made"
    first, second = strict(whole.to_json()), strict(again.to_json())
    for document in (first, second):
        document.pop("seconds")
    assert first == second


def test_windows_of_a_long_document_score_every_token_but_their_first(reference, digits_folder):
    from seatrial.export.bundle import open_bundle
    from seatrial.export.session import Session
    from seatrial.export.tokenizer import Tokenizer
    from seatrial.quantize.damage.forced import score_document

    tokenizer = Tokenizer.load(reference.folder)
    document = DOCUMENTS[0]
    tokens = tokenizer.count(document.text)
    with (
        Session(reference, capacity=2000, threads=1) as left,
        Session(open_bundle(digits_folder), capacity=2000, threads=1) as right,
    ):
        whole = score_document(document, left, right, tokenizer).tokens
        pieces = score_document(document, left, right, tokenizer, window=50).tokens
    assert len(whole) == tokens - 1
    assert len(pieces) == tokens - -(-tokens // 50)
    # A bigram sees one token back, so what both score is the same.
    kept = np.delete(whole, np.arange(49, tokens - 1, 50))
    assert (pieces["kl"] == kept["kl"]).all() and (pieces["masks"] == kept["masks"]).all()


def test_a_window_shorter_than_the_noise_measurement_is_enough(capsys, digits_folder, texts, reference):
    folders = (reference.folder, digits_folder)
    code, out, _ = run(capsys, *folders, "--text", texts, "--window", 32, "--draws", 200, "--json", "--quiet")
    assert code == 0
    assert {noise["tokens"] for noise in json.loads(out)["noise_floor"]["reference"]} == {32}


def test_documents_are_parted_by_dashes_and_told_apart_by_script():
    found = split_documents("x", "Two words.\n---\n\n------\n今年收入37万元。\n--- \nMore - here\n")
    assert [(d.name, d.language) for d in found] == [("x#1", "en"), ("x#2", "zh"), ("x#3", "en")]
