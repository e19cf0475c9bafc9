"""The suite of faults: each is seen, most are named with kind and place, clean graphs raise no alarm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_models import FAMILIES
from verifying import draw

from seatrial.export.faults.mutations.graph import Graph, Placed
from seatrial.export.faults.mutations.suite import SUITE
from seatrial.export.faults.symptoms import KINDS, symptom_of
from seatrial.export.faults.table import DOCUMENT, Row, place_fault, render

SEED = 20


@pytest.mark.parametrize("family", FAMILIES)
def test_no_false_alarm(verify_family: Callable[..., Any], family: str) -> None:
    found = verify_family(family)
    assert found.faults == []
    assert [check for check in found.checks if check.verdict != "ok"] == []
    assert [row for row in found.audit if row.status != "used"] == []


@pytest.fixture(scope="module")
def rows(verify_family: Callable[..., Any]) -> list[Row]:
    """Each fault once, in a family, layer and place drawn by seed."""
    names = list(FAMILIES)
    return [place_fault(verify_family, names, i, draw(entry[0], SEED)) for i, entry in enumerate(SUITE)]


def test_every_fault_is_detected(rows: list[Row]) -> None:
    assert [row.fault for row in rows if not row.detected] == []


def test_most_faults_are_named(rows: list[Row]) -> None:
    named = sum(row.named for row in rows)
    assert named >= 0.85 * len(rows), [row for row in rows if not row.named]


def test_the_table_in_the_documentation_is_fresh(rows: list[Row]) -> None:
    text = (Path(__file__).parents[2] / DOCUMENT).read_text(encoding="utf-8")
    assert text == render(rows), "stale: run `python bench/export_faults.py --write`"


def test_the_suite_covers_what_it_names() -> None:
    assert len(SUITE) >= 20
    assert {kind for _, kinds, _ in SUITE for kind in kinds} <= set(KINDS)
    assert all(symptom_of(kind) for kind in KINDS)


def test_two_faults_in_two_layers_are_both_named(verify_family: Callable[..., Any]) -> None:
    graph = Graph(verify_family.proto("llama"))  # type: ignore[attr-defined]
    for layer, name in ((0, "up_proj"), (1, "down_proj")):
        bias = f"model.layers.{layer}.mlp.{name}.bias"
        graph.set_array(bias, graph.array(bias) * 0)
    found = verify_family("llama", graph.model)
    assert {(fault.kind, fault.place) for fault in found.faults} == {
        ("bias dropped", "layer 0, mlp.up_proj"),
        ("bias dropped", "layer 1, mlp.down_proj"),
    }


def test_places_are_judged_strictly() -> None:
    placed = Placed(1, ("up_proj",))
    assert placed.matches("layer 1, mlp.up_proj")
    assert not placed.matches("layer 0, mlp.up_proj")
    assert not placed.matches("layer 1, mlp.gate_up_proj")
    assert not placed.matches("layer 1, mlp.down_proj")
    assert not placed.matches("layer 1")
    assert not placed.matches("layer 11, mlp.up_proj")
    assert Placed(None, ("head",)).matches("head")
    assert Placed(None, ("final norm",)).matches("head, final norm")
    assert not Placed(None, ("head",)).matches("layer 0, head_proj")
    assert Placed(2).matches("layer 2") and not Placed(2).matches("layer 2, mlp.up_proj")
