"""Needles and pages: seeded, unique, read by the guards, at the depths and lengths that were asked for."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import UserError
from seatrial.guards.numbers import extract_quantities
from seatrial.quantize.probes.errors import digits_of, judge_answer
from seatrial.quantize.probes.needles import (
    chinese_words,
    english_words,
    kinds,
    make_distractor,
    make_needle,
)
from seatrial.quantize.probes.page import DEPTHS, PageJob, make_page
from seatrial.quantize.probes.run import FULL, QUICK, filler_sentences
from seatrial.quantize.stats import minimum_detectable_pairs

LANGUAGES = ("en", "zh")
EVERY = [(language, kind) for language in LANGUAGES for kind in kinds(language)]


def count(text: str) -> int:
    """A tokenizer of a sort: a token for every three bytes."""
    return -(-len(text.encode()) // 3)


@pytest.mark.parametrize(("language", "kind"), EVERY)
def test_the_right_answer_is_judged_right_and_a_distractor_wrong(language, kind):
    for seed in range(25):
        chance = random.Random(seed)
        needle = make_needle(language, kind, "X", chance)
        near = make_distractor(needle, "Y", chance)
        assert needle.answer in needle.sentence and needle.question.endswith(
            needle.sentence.split(needle.answer)[0].rstrip()
        )
        right = judge_answer(needle, f" {needle.answer}.", [near.answer])
        assert (right.exact, right.normalized, right.distance, right.error) == (True, True, 0, "")
        wrong = judge_answer(needle, f" {near.answer}.", [near.answer])
        assert (wrong.normalized, wrong.error) == (False, "wrong role")
        assert wrong.distance > 0


@pytest.mark.parametrize(("language", "kind"), [e for e in EVERY if not e[1].startswith("name")])
def test_the_number_guard_reads_every_figure(language, kind):
    needle = make_needle(language, kind, "X", random.Random(3))
    start = needle.sentence.index(needle.answer)
    spans = [q.span for q in extract_quantities(needle.sentence)]
    assert any(a < start + len(needle.answer) and b > start for a, b in spans)


@given(st.integers(2, 999))
def test_english_words_are_read_back(number):
    found = extract_quantities(f"There are {english_words(number)} rooms.")
    assert [int(q.value) for q in found if q.value is not None] == [number]


@given(st.integers(1000, 9999))
def test_chinese_words_are_read_back(number):
    found = extract_quantities(f"座位数是{chinese_words(number)}。")
    assert [int(q.value) for q in found if q.value is not None] == [number]


def test_worked_words():
    assert english_words(412) == "four hundred and twelve"
    assert english_words(999) == "nine hundred and ninety-nine"
    assert (chinese_words(3026), chinese_words(4100), chinese_words(1234)) == (
        "三千零二十六",
        "四千一百",
        "一千二百三十四",
    )


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("context", "distractors"), [(512, 0), (512, 4), (2048, 4), (4096, 4)])
def test_a_page_is_seeded_and_has_its_length_and_depths(language, context, distractors):
    filler = filler_sentences(language)
    job = PageJob(language, context, distractors, 1)
    page = make_page(job, filler, count)
    assert page == make_page(job, filler, count)
    assert page != make_page(PageJob(language, context, distractors, 1, seed=1), filler, count)
    assert context * 0.6 < count(page.text) <= context - 90
    assert len(page.distractors) == distractors * len(page.needles)
    assert len({n.subject for _, n in page.needles} | {n.subject for n in page.distractors}) == (
        1 + distractors
    ) * len(page.needles)
    for depth, needle in page.needles:
        assert page.text.count(needle.sentence) == 1
        place = page.text.index(needle.sentence) / len(page.text)
        assert abs(place - depth) < 0.2


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("context", "distractors"), [(512, 0), (512, 4), (2048, 0), (2048, 4)])
def test_every_kind_comes_to_every_depth(language, context, distractors):
    seen = Counter()
    for number in range(5 * len(kinds(language))):
        page = make_page(PageJob(language, context, distractors, number), filler_sentences(language), count)
        seen.update((depth, needle.kind) for depth, needle in page.needles)
    assert set(seen) == {(depth, kind) for depth in DEPTHS for kind in kinds(language)}
    assert max(seen.values()) <= 2 * min(seen.values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_long_pages_ask_more_and_never_two_of_a_kind(language):
    short, long = (
        make_page(PageJob(language, n, 0, 3), filler_sentences(language), count) for n in (512, 4096)
    )
    assert len(short.needles) == 5 < len(long.needles)
    asked = [needle.kind for _, needle in long.needles]
    assert len(set(asked)) == len(asked)
    starts = {long.text.index(needle.sentence): len(needle.sentence) for _, needle in long.needles}
    spans = sorted((start, start + length) for start, length in starts.items())
    assert all(long.text[end:start].strip() for (_, end), (start, _) in pairwise(spans)), "filler in between"


def test_contexts_too_short_for_their_facts_are_refused():
    with pytest.raises(UserError, match="context of 128"):
        make_page(PageJob("zh", 128, 4, 0), filler_sentences("zh"), count)


def test_plans_are_even_at_every_point_and_leave_long_contexts_out():
    for plan in (QUICK, FULL):
        jobs = plan.jobs()
        assert len({job.name for job in jobs}) == len(jobs)
        assert {job.context for job in jobs} == {512, 2048, 4096}
        half = Counter(job.context for job in jobs[: len(jobs) // 2])
        for context, number in Counter(job.context for job in jobs).items():
            assert abs(half[context] / number - 0.5) < 0.2
        assert {job.context for job in plan.jobs(longest=2048)} == {512, 2048}


def test_digits_of_any_script_are_read():
    assert digits_of("４８-2١") == "4821"


@pytest.mark.parametrize(
    ("plan", "pages", "probes", "all_probes", "one_kind"),
    [(QUICK, 36, 182, 0.09, None), (FULL, 568, 2852, 0.02, (0.12, 0.14))],
    ids=["quick", "full"],
)
def test_the_page_says_what_the_presets_can_detect(plan, pages, probes, all_probes, one_kind):
    """The figures of docs/damage.md: one copy in five differs, kinds tested together (Holm's first step)."""
    filler = {language: filler_sentences(language) for language in LANGUAGES}
    made = [make_page(job, filler[job.language], count) for job in plan.jobs()]
    asked = Counter(f"{page.job.language}:{needle.kind}" for page in made for _, needle in page.needles)
    assert (len(made), asked.total()) == (pages, probes)
    assert minimum_detectable_pairs(0.2, probes) == pytest.approx(all_probes, abs=0.005)
    level = 1 - 0.05 / len(asked)
    ends = [minimum_detectable_pairs(0.2, n, level=level) for n in (max(asked.values()), min(asked.values()))]
    if one_kind is None:
        assert np.isnan(ends).all()
    else:
        assert ends == pytest.approx(one_kind, abs=0.005)
