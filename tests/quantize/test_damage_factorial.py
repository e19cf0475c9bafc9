"""One part at a time: which experiments a candidate asks for, and what they say of planted damage."""

from __future__ import annotations

import pytest

from seatrial.errors import UserError
from seatrial.export.bundle import open_bundle
from seatrial.export.session import Session
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.bundle import quantize_bundle
from seatrial.quantize.damage.documents import own_documents
from seatrial.quantize.damage.factorial import TOGETHER, run_factorial, variants
from seatrial.quantize.damage.forced import score_document
from seatrial.quantize.damage.graft import Parts, parts_of
from seatrial.quantize.damage.run import Settings, measure_damage
from seatrial.quantize.damage.store import Store

pytestmark = pytest.mark.usefixtures("own_cache")
DOCUMENTS = own_documents("en")[:12]


def test_every_part_is_taken_alone_and_the_weights_at_both_levels(int4_bundle):
    assert [variant.name for variant in variants(parts_of(int4_bundle))] == [
        "weights, exact arithmetic",
        "weights, accuracy level 4",
        "head and embedding",
        "KV cache",
        TOGETHER,
    ]


def test_what_is_float_in_the_candidate_is_no_experiment():
    body = Parts(body=True, head=False, kv=False, accuracy_level=0)
    assert [variant.name for variant in variants(body)] == ["weights, exact arithmetic", TOGETHER]
    cache = Parts(body=False, head=False, kv=True, accuracy_level=0)
    assert [variant.name for variant in variants(cache)] == ["KV cache", TOGETHER]


@pytest.fixture(scope="module")
def measured(tiny, spare_cache, tmp_path_factory):
    """Rows of the experiment for int4 and int8 weights, and where the work was kept."""
    found = {}
    tokenizer = Tokenizer.load(tiny.folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEATRIAL_CACHE", str(spare_cache))
        for weights in ("int4", "int8"):
            folder = tmp_path_factory.mktemp(weights)
            quantize_bundle(tiny, folder / "candidate", weights=weights, kv="int8", floor=0.5)
            candidate = open_bundle(folder / "candidate")
            store = Store(folder / "together")
            with (
                Session(tiny, capacity=1024, threads=1) as left,
                Session(candidate, capacity=1024, threads=1) as right,
            ):
                for number, document in enumerate(DOCUMENTS):
                    store.write(number, score_document(document, left, right, tokenizer))
            found[weights] = (candidate, folder, experiment(tiny, candidate, folder))
    return found


def experiment(reference, candidate, folder):
    return run_factorial(
        reference,
        candidate,
        DOCUMENTS,
        Tokenizer.load(reference.folder),
        folder,
        lambda _what, _share: None,
        together=Store(folder / "together"),
        window=1024,
        draws=200,
        threads=1,
    )


def kl(rows):
    return {row["variant"]: row["classes"]["other"]["kl"]["value"] for row in rows}


def test_fewer_bits_hurt_more_and_only_where_they_are(measured):
    four, eight = (kl(measured[weights][2]) for weights in ("int4", "int8"))
    for name in ("weights, exact arithmetic", "weights, accuracy level 4"):
        assert four[name] > 10 * eight[name] > 0
    for name in ("head and embedding", "KV cache"):
        assert four[name] == eight[name] > 0, "8 bits in both"
    assert four[TOGETHER] > 0.5 * four["weights, accuracy level 4"]
    assert eight["weights, accuracy level 4"] > eight["weights, exact arithmetic"]


def test_what_cannot_be_taken_apart_is_known_before_anything_is_measured(tiny, tmp_path):
    def never(*_):
        raise AssertionError("something was measured")

    settings = Settings(factorial=True, work=tmp_path)
    with pytest.raises(UserError, match="no parts"):
        measure_damage(tiny, tiny, DOCUMENTS, settings, never)
    optional = Settings(factorial=True, factorial_optional=True, noise=False, work=tmp_path, threads=1)
    report = measure_damage(tiny, tiny, DOCUMENTS[:2], optional)
    assert report.factorial is None and "no parts" in report.warnings[0]


def test_documents_longer_than_the_window_are_warned_of(tiny, tmp_path):
    settings = Settings(window=200, noise=False, work=tmp_path, threads=1)
    report = measure_damage(tiny, tiny, DOCUMENTS[:2], settings)
    assert "2 of 2 documents are longer than the window of 200" in report.warnings[0]


def test_a_finished_experiment_is_read_from_its_rows(measured, tiny):
    candidate, folder, rows = measured["int4"]
    assert not (folder / "bundle").exists(), "a variant goes when it is measured"
    data = candidate.data_files[0]
    data.rename(data.with_suffix(".away"))
    try:
        assert experiment(tiny, candidate, folder) == rows
    finally:
        data.with_suffix(".away").rename(data)
