"""One part at a time: what a candidate consists of is read from its graph, and each part is made alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from damage_bundle import bigram_bundle

from seatrial.errors import UserError
from seatrial.export.session_graph import load_graph
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.damage.documents import own_documents
from seatrial.quantize.damage.factorial import Parts, build, parts_of, run_factorial, variants
from seatrial.quantize.recipe import Format

FOUR, EIGHT = Format(4), Format(8)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    # A width that blocks of 32 divide.
    return bigram_bundle(tmp_path_factory.mktemp("factorial") / "reference", vocabulary=640)


def levels(bundle):
    nodes = [n for n in load_graph(bundle.model_path).graph.node if n.op_type == "MatMulNBits"]
    return [a.i for node in nodes for a in node.attribute if a.name == "accuracy_level"]


def test_the_parts_of_a_candidate_are_read_from_its_graph(int4_bundle):
    parts = parts_of(int4_bundle)
    assert (parts.body.bits, parts.body.block) == (4, 32)
    assert parts.head.bits == 8
    assert (parts.accuracy_level, parts.kv) == (4, "int8")
    assert [variant.name for variant in variants(parts)] == [
        "weights, exact arithmetic",
        "weights, accuracy level 4",
        "head and embedding",
        "KV cache",
        "all together",
    ]


def test_a_float_bundle_has_no_parts(reference):
    with pytest.raises(UserError, match="no parts"):
        parts_of(reference)


@pytest.mark.parametrize("level", [0, 4])
def test_a_variant_has_its_format_and_level(reference, tmp_path, level):
    found = build(reference, Parts(FOUR, FOUR, level, None), tmp_path / "variant")
    assert levels(found) == [level]
    again = parts_of(found)
    assert (again.head or again.body).bits == 4 and again.accuracy_level == level


def test_fewer_bits_hurt_more_and_a_float_part_hurts_nothing(reference, tmp_path):
    documents = own_documents("en")[:12]
    tokenizer = Tokenizer.load(reference.folder)
    kl = {}
    for name, format_ in (("int4", FOUR), ("int8", EIGHT)):
        candidate = build(reference, Parts(format_, format_, 0, None), tmp_path / name)
        rows = run_factorial(
            reference,
            candidate,
            documents,
            tokenizer,
            tmp_path / f"work-{name}",
            lambda _what, _share: None,
            window=1024,
            draws=200,
            threads=1,
        )
        assert rows[-1]["variant"] == "all together"
        kl[name] = rows[-1]["classes"]["digit"]["kl"]["value"]
        alone = [row for row in rows if row["variant"] != "all together"]
        assert [row["classes"]["digit"]["kl"]["value"] for row in alone] == [kl[name]] * len(alone)
        assert not (tmp_path / f"work-{name}" / "bundle").exists(), "a variant goes when it is measured"
    assert kl["int4"] > 10 * kl["int8"] > 0
