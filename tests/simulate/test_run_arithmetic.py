"""Budgets, windows, the memory decision and prompts against plain references; no model runs here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import UserError
from seatrial.guards.memory import MemoryNeed, Way, decide, paged_bytes, would_fit_bytes
from seatrial.guards.transcript import parse_transcript, windows
from seatrial.guards.verdict import Verdict
from seatrial.simulate.judge import whole_sentences
from seatrial.simulate.prompt import default_prompt, language_of, own_prompt
from seatrial.simulate.windows import cut, largest_budget, longer, merge, part_spans, shares
from seatrial.simulate.writer import shared_prefix

sizes = st.lists(st.integers(1, 10_000), min_size=1, max_size=12)


@given(st.integers(0, 5000), sizes)
def test_shares_are_exact_and_in_proportion(total: int, lengths: list[int]) -> None:
    given_ = shares(total, lengths, least=0)
    assert sum(given_) == total
    exact = [total * length / sum(lengths) for length in lengths]
    assert all(abs(have - want) < 1 for have, want in zip(given_, exact, strict=True))


@given(st.integers(0, 5000), sizes, st.integers(1, 50))
def test_no_share_is_below_the_least(total: int, lengths: list[int], least: int) -> None:
    assert min(shares(total, lengths, least)) >= least


@given(st.integers(0, 300), st.integers(0, 300), st.floats(0, 1000))
def test_largest_budget_is_what_a_linear_search_finds(wanted: int, fixed: int, available_s: float) -> None:
    seconds = lambda budget: fixed + 0.7 * budget
    fitting = [budget for budget in range(1, wanted + 1) if seconds(budget) <= available_s]
    assert largest_budget(wanted, seconds, available_s) == max(fitting, default=0)


@given(st.lists(st.text("ab \n", max_size=8), max_size=6))
def test_part_spans_are_where_the_parts_are(texts: list[str]) -> None:
    merged = merge(texts)
    for text, (start, end) in zip(texts, part_spans(texts), strict=True):
        assert merged[start:end] == text.strip()


@pytest.mark.parametrize(
    "line", ["Anna: We agreed on {n} boxes of paper.", "安娜：我们商定了第{n}箱纸，下周送到仓库。"]
)
def test_every_window_fits_with_its_longer_summary(line: str) -> None:
    transcript = parse_transcript("\n".join(line.format(n=n) for n in range(400)))
    count = lambda text: len(text.encode())
    context, overhead, budget = 4096, 300, 400
    parts = cut(
        count("\n".join(turn.labelled() for turn in transcript.turns)),
        context=context,
        overhead=overhead,
        budget=budget,
        count=count,
        into_windows=lambda most: windows(transcript, most, count),
    )
    assert len(parts) > 1
    assert sum(part.budget for part in parts) >= budget
    for part in parts:
        assert overhead + count(part.text) + longer(part.budget) <= context
        assert all(line.split(" ")[0][:2] in row for row in part.text.splitlines())


def test_a_text_that_fits_is_one_window() -> None:
    transcript = parse_transcript("Anna: We agreed on two boxes of paper for the office.")
    parts = cut(
        len(transcript.turns[0].labelled()),
        context=500,
        overhead=100,
        budget=100,
        count=len,
        into_windows=lambda most: windows(transcript, most, len),
    )
    assert [(part.text, part.budget) for part in parts] == [(transcript.turns[0].labelled(), 100)]


def test_a_context_without_room_is_refused() -> None:
    with pytest.raises(UserError, match="--max-tokens"):
        cut(9000, context=512, overhead=200, budget=300, count=len, into_windows=lambda _: [])


def need(weights: float, kv: float = 0, rest: float = 0, mapped: bool = False) -> MemoryNeed:
    return MemoryNeed(weights, kv, rest, 0, mapped)


def test_two_numbers_and_the_cliff_of_mapped_weights() -> None:
    """1.6 GB mapped beside 0.3 GB private under 1.0 GB: all of it is read again for every token."""
    mapped = need(1.6e9, rest=0.3e9, mapped=True)
    assert (mapped.private_bytes, mapped.mapped_bytes) == (0.3e9, 1.6e9)
    assert paged_bytes(mapped, 1.0e9) == 1.6e9
    assert paged_bytes(mapped, 2.0e9) == 0
    decision = decide([Way("", mapped)], 1.0e9)
    assert (decision.report.verdict, decision.paged_bytes) == (Verdict.WARN, 1.6e9)
    assert decision.report.findings[0].reason == "paging"


def test_a_packed_heap_copy_is_not_rescued_by_mapping() -> None:
    """With a packed copy the weights are private after all: 1.9 GB against 1.0 GB."""
    packed = need(1.6e9, rest=0.3e9)
    assert packed.private_bytes == 1.9e9
    decision = decide([Way("", packed)], 1.0e9)
    assert (decision.report.verdict, decision.chosen) == (Verdict.FAIL, 0)


def test_the_first_way_that_fits_is_taken_and_the_others_are_told() -> None:
    ways = [
        Way("", need(150e6, kv=120e6, rest=60e6)),
        Way("int8 KV cache", need(150e6, kv=30e6, rest=60e6)),
        Way("mapped weights", need(150e6, kv=30e6, rest=60e6, mapped=True)),
    ]
    for ceiling, chosen in [(400e6, 0), (330e6, 0), (329e6, 1), (240e6, 1), (239e6, 2), (90e6, 2), (80e6, 2)]:
        decision = decide(ways, ceiling)
        assert decision.chosen == chosen
        assert len([f for f in decision.report.findings if f.reason == "does not fit"]) == (
            3 if ceiling < 90e6 else chosen
        )
    assert would_fit_bytes(ways) == 90e6
    with pytest.raises(ValueError, match="at least one"):
        decide([], 1e9)


@given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_shared_prefix(held: list[int], ids: list[int]) -> None:
    same = shared_prefix(held, ids)
    assert held[:same] == ids[:same]
    assert same < len(ids)
    longer_one = same + 1
    assert longer_one >= len(ids) or held[:longer_one] != ids[:longer_one]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("The budget is $35,000. Anna writes the plan by the 12", "The budget is $35,000."),
        ("The budget is $35,0", "The budget is $35,0"),
        ("预算是三万五千元。安娜在六月十二", "预算是三万五千元。"),
        ("All is said.", "All is said."),
        ("It costs 3.5 million. It ends", "It costs 3.5 million."),
        ("", ""),
    ],
)
def test_a_cut_sentence_is_dropped(text: str, whole: str) -> None:
    assert whole_sentences(text) == whole


def test_prompts_speak_the_transcripts_language() -> None:
    chinese = "主持人：各位好，今天讨论预算，OK。"
    assert (language_of(chinese), language_of("Anna: hello"), language_of("123 ...")) == ("zh", "en", "en")
    (message,) = default_prompt(chinese).messages(chinese, 400, ["李雷：预算三万五。"])
    assert chinese in message["content"]
    assert "李雷：预算三万五。" in message["content"]
    assert re.search(r"大约320字", message["content"])


def test_braces_in_a_transcript_are_text() -> None:
    text = "Anna: write {words} and {transcript} and {facts} on the board"
    (message,) = default_prompt(text).messages(text, 100)
    assert text in message["content"]
    own = own_prompt("{transcript}", text, Path("p.txt"))
    assert own.messages(text, 100)[0]["content"] == text
