"""Every family through the swapped attention: right before and after our rewrites, rewritten where it can."""

from __future__ import annotations

import pytest
from tiny_exports import Made
from tiny_models import FAMILIES

from seatrial.export.parity import make_cases, not_run

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


@pytest.mark.parametrize("window", [7, 30, 5000])
def test_some_case_is_longer_than_the_window(window: int) -> None:
    cases = make_cases(1024, window, 8192)
    longest = max(case.ids.shape[1] for case in cases)
    assert (longest > window) == (not not_run(window, 8192, None))


def test_lengths_beyond_a_switch_of_the_rotary() -> None:
    cases = {case.name: case.ids.shape[1] for case in make_cases(1024, None, 256, switch=64)}
    assert cases["beyond the rotary's switch"] == 73
    assert [check.verdict for check in not_run(None, 131072, 4096)] == ["note"]
