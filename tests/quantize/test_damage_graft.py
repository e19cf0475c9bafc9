"""Parts of a quantized model in its float model: none is the one, all are the other, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_decoder import TIES, tiny_bundle

from seatrial.errors import UserError
from seatrial.export.bundle import open_bundle
from seatrial.export.session import Session
from seatrial.export.session_graph import load_graph
from seatrial.quantize.bundle import quantize_bundle
from seatrial.quantize.damage.graft import Parts, build, parts_of
from seatrial.quantize.recipe import Format, Recipe, recipe_for

pytestmark = pytest.mark.usefixtures("own_cache")
IDS = [5, 17, 300, 41, 41, 9, 250, 77, 600, 3, 12, 500]
NOTHING = Parts(body=False, head=False, kv=False, accuracy_level=4)
RECIPES = {
    "evened out": recipe_for("int4"),
    "not evened out": recipe_for("int4", balanced=False),
    "8 bits": recipe_for("int8"),
    "hqq": recipe_for("int4", symmetric=False, algorithm="hqq"),
    "bits by layer": Recipe(Format(4), Format(8), {"layers.0.mlp": Format(8)}),
}


def logits(bundle):
    with Session(bundle, capacity=16, threads=1) as session:
        return session.score(IDS)


def quantized(reference, folder, recipe, kv="int8"):
    assert not quantize_bundle(reference, folder, kv=kv, recipe=recipe, floor=0.5).failed
    return open_bundle(folder)


@pytest.mark.parametrize("name", RECIPES)
def test_all_parts_are_the_candidate_and_none_the_reference(tiny, tmp_path, name):
    candidate = quantized(tiny, tmp_path / "candidate", RECIPES[name])
    parts = parts_of(candidate)
    assert parts == Parts(body=True, head=True, kv=True, accuracy_level=4)
    whole = build(tiny, candidate, parts, tmp_path / "all")
    assert np.array_equal(logits(whole), logits(candidate))
    assert np.array_equal(logits(build(tiny, candidate, NOTHING, tmp_path / "none")), logits(tiny))


@pytest.mark.parametrize("tie", TIES)
def test_each_part_alone_is_that_part_and_the_rest_is_float(tmp_path, tie):
    reference = tiny_bundle(tmp_path / "fp32", tie=tie)
    candidate = quantized(reference, tmp_path / "candidate", recipe_for("int4"))
    plain = logits(reference)
    apart = {}
    for part in ("body", "head", "kv"):
        alone = Parts(**{**NOTHING.__dict__, part: True})
        found = build(reference, candidate, alone, tmp_path / part)
        assert parts_of(found) == Parts(**{**alone.__dict__, "accuracy_level": 0 if part == "kv" else 4})
        apart[part] = float(np.abs(logits(found) - plain).max())
    assert min(apart.values()) > 0, "each part disturbs"
    assert apart["body"] > 3 * apart["head"], "4 bits in every layer against 8 in one"


def test_the_body_alone_is_near_the_reference_in_eight_bits_and_exact_arithmetic(tmp_path):
    """Norms that hold the other half of an evened-out matrix go with it: without them all would be off."""
    reference = tiny_bundle(tmp_path / "fp32", tie="untied")
    candidate = quantized(reference, tmp_path / "both", recipe_for("int8"), kv="fp32")
    alone = Parts(body=True, head=False, kv=False, accuracy_level=0)
    found = build(reference, candidate, alone, tmp_path / "body")
    weights = {t.name: t for t in load_graph(found.model_path).graph.initializer}
    body = [n for n in load_graph(found.model_path).graph.node if n.op_type == "MatMulNBits"]
    assert {next(a.i for a in node.attribute if a.name == "accuracy_level") for node in body} == {0}
    assert all(node.input[1].startswith("candidate/") and node.input[1] in weights for node in body)
    assert np.abs(logits(found) - logits(reference)).max() < 0.02 * np.abs(logits(reference)).max()


def test_data_files_are_shared_and_unused_ones_left_out(tiny, tmp_path):
    candidate = quantized(tiny, tmp_path / "candidate", recipe_for("int4"))
    found = build(tiny, candidate, parts_of(candidate), tmp_path / "all")
    assert [file.name for file in found.data_files] == ["candidate.model.onnx.data"]
    assert found.data_files[0].stat().st_ino == candidate.data_files[0].stat().st_ino


def test_the_quantization_of_another_model_is_refused(tmp_path, tiny, int4_bundle):
    with pytest.raises(UserError, match="quantized from"):
        build(tiny, int4_bundle, parts_of(int4_bundle), tmp_path / "mixed")


def test_a_float_bundle_has_no_parts(tiny):
    with pytest.raises(UserError, match="no parts"):
        parts_of(tiny)
