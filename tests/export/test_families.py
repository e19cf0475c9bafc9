"""Every family through the swapped attention: right before and after our rewrites, rewritten where it can."""

from __future__ import annotations

import pytest
from tiny_exports import Made
from tiny_models import FAMILIES

ABSORBED = {
    "llama",
    "qwen2",
    "qwen3",
    "mistral",
    "gemma2",
    "gemma3_text",
    "phi3",
    "phi",
    "granite",
    "olmo2",
    "starcoder2",
}
PACKED = {"llama", "qwen2", "mistral", "gemma2", "phi3", "phi", "gpt2", "granite", "smollm3", "starcoder2"}
WINDOWED = {"mistral", "gemma2", "gemma3_text"}


@pytest.mark.parametrize("family", FAMILIES)
def test_parity_of_the_export(families: dict[str, Made], family: str) -> None:
    failed = [name for name, verdict in families[family].verdicts.items() if verdict != "ok"]
    assert not failed


@pytest.mark.parametrize("family", FAMILIES)
def test_parity_before_the_rewrites(families: dict[str, Made], family: str) -> None:
    assert families[family].fused_worst <= 1.0


@pytest.mark.parametrize("family", FAMILIES)
def test_every_length_and_layer_was_compared(families: dict[str, Made], family: str) -> None:
    names = set(families[family].verdicts)
    cases = {
        "one token",
        "below the example",
        "at the example",
        "whole",
        "in pieces",
        "token by token",
        "right padding",
    }
    cases |= {"beyond the window"} if family in WINDOWED else set()
    assert {f"logits, {case}" for case in cases} | {"residual of layer 0", "residual of layer 1"} == names


@pytest.mark.parametrize("family", FAMILIES)
def test_what_was_rewritten(families: dict[str, Made], family: str) -> None:
    applied = families[family].applied
    assert applied.attention_nodes == 2
    assert applied.rotary_absorbed == (2 if family in ABSORBED else 1 if family == "smollm3" else 0)
    assert applied.projections_packed == (2 if family in PACKED else 0)


def test_limits_are_not_generous(families: dict[str, Made]) -> None:
    """A right graph uses a small part of its limits; otherwise the limits hide nothing but noise."""
    assert max(made.rewritten_worst for made in families.values()) < 0.5
