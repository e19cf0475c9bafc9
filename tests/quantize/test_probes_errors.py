"""Every kind of error a copy can have, in both languages, and rates of pairs with a known truth."""

from __future__ import annotations

import math
import random
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.quantize.probes.errors import ERRORS, edit_error, first_statement, judge_answer
from seatrial.quantize.probes.needles import Needle, kinds, make_needle
from seatrial.quantize.probes.run import guard_says
from seatrial.quantize.probes.summary import _detectable_by_test, summarize


def needle(answer: str, kind: str = "amount", language: str = "en") -> Needle:
    return Needle(language, kind, "X", answer, f"The budget of X is {answer}.", "The budget of X is")


@pytest.mark.parametrize(
    ("wanted", "kind", "language", "written", "error"),
    [
        ("$48,250", "amount", "en", "$48,250", ""),
        ("$48,250", "amount", "en", "48,250 dollars", ""),
        ("$48,250.00", "amount", "en", "$48,250 in total", ""),
        ("$48,250", "amount", "en", "$48,205", "swapped"),
        ("$48,250", "amount", "en", "$43,250", "substituted"),
        ("$48,250", "amount", "en", "$4,250", "dropped"),
        ("$48,250", "amount", "en", "$482,250", "inserted"),
        ("$48,250", "amount", "en", "$4,825", "magnitude"),
        ("$48,250", "amount", "en", "€48,250", "unit"),
        ("$48,250", "amount", "en", "$31,777", "wrong role"),
        ("$48,250", "amount", "en", "not known.", "no answer"),
        ("14 March 2026", "date", "en", "14 March 2026", ""),
        ("14 March 2026", "date", "en", "March 14, 2026", ""),
        ("14 March 2026", "date", "en", "14 March 2025", "date field"),
        ("14 March 2026", "date", "en", "4 March 2026", "date field"),
        ("0555 014 7720", "phone", "en", "0555-014-7720", ""),
        ("0555 014 7720", "phone", "en", "0555 014 7702", "swapped"),
        ("0555 014 7720", "phone", "en", "0555 014 772", "dropped"),
        ("3.7 million", "million", "en", "3,700,000", ""),
        ("3.7 million", "million", "en", "3.7 billion", "magnitude"),
        ("four hundred and twelve", "words", "en", "412", ""),
        ("four hundred and twelve", "words", "en", "four hundred and twelve rooms", ""),
        ("4 8 2 1 3", "spaced", "en", "48213", ""),
        ("4 8 2 1 3", "spaced", "en", "4 8 2 3 1", "swapped"),
        ("Leona Prattwell", "name", "en", "Leona Prattwell, who", ""),
        ("Leona Prattwell", "name", "en", "Leona Pratwell", "dropped"),
        ("Leona Prattwell", "name", "en", "Leena Prattwell", "name character"),
        ("Leona Prattwell", "name", "en", "Hugo Vanebury", "other"),
        ("37.5万元", "wan", "zh", "37.5万元", ""),
        ("37.5万元", "wan", "zh", "375,000元", ""),
        ("37.5万元", "wan", "zh", "37.5亿元", "magnitude"),
        ("37.5万元", "wan", "zh", "35.7万元", "swapped"),
        ("37.5万元", "wan", "zh", "37.5万吨", "unit"),
        ("2026年3月14日", "date", "zh", "2026年3月15日", "date field"),
        ("三千零二十六", "words", "zh", "3026", ""),
        ("４８２１３", "full_width", "zh", "48213", ""),
        ("４８２１３", "full_width", "zh", "４８１２３", "swapped"),
        ("周敏然", "name_3", "zh", "周敏然", ""),
        ("周敏然", "name_3", "zh", "周敏", "dropped"),
        ("周敏然", "name_3", "zh", "周敏燃", "name character"),
        ("欧阳静思", "name_4", "zh", "欧阳静思。", ""),
    ],
)
def test_kinds_of_errors(wanted, kind, language, written, error):
    found = judge_answer(needle(wanted, kind, language), written, ["$31,777"])
    assert found.error == error
    assert found.normalized == (error == "")
    assert (found.distance == 0) == (error in ("", "magnitude", "unit") and not found.distance)


@pytest.mark.parametrize(
    ("wanted", "kind", "language", "written", "error"),
    [
        ("周敏", "name_2", "zh", "周敏然", "inserted"),
        ("周敏", "name_2", "zh", "周敏然是负责人", "inserted"),
        ("周敏然", "name_3", "zh", "周敏然·李", "inserted"),
        ("周敏然", "name_3", "zh", "周敏燃是负责人", "name character"),
        ("三千零二十", "words", "zh", "三千零二十六", "inserted"),
        ("三千零二十六", "words", "zh", "三千零二十六万", "magnitude"),
        ("三千零二十六", "words", "zh", "三千零二十六元", "unit"),
        ("三千零二十六", "words", "zh", "三千零二十六至四千", "inserted"),
        ("37.5万", "wan", "zh", "37.5万亿", "magnitude"),
        ("37.5万元", "wan", "zh", "37.5万亿元", "magnitude"),
        ("12345.50元", "amount", "zh", "12345.50元五", "inserted"),
        ("0555-014-7720", "phone", "zh", "0555-014-7720-01", "inserted"),
        ("4 1 7 2 9 3", "spaced", "zh", "4 1 7 2 9 3万", "magnitude"),
        ("４８２１３", "full_width", "zh", "４８２１３７", "inserted"),
        ("four hundred and twenty", "words", "en", "four hundred and twenty-one", "inserted"),
        ("four hundred and twelve", "words", "en", "four hundred and twelve thousand", "magnitude"),
        ("3.7 million", "million", "en", "3.7 million tonnes", "unit"),
        ("3.7 million", "million", "en", "3.7 million to 4 million", "inserted"),
        ("$12,345.50", "amount", "en", "$12,345.50 million", "magnitude"),
        ("$12,345.50", "amount", "en", "$12,345.50k", "magnitude"),
        ("$12,345.50", "amount", "en", "$12,345.50 20", "inserted"),
        ("0555 014 7720", "phone", "en", "0555 014 7720 0", "inserted"),
        ("4 1 7 2 9 3", "spaced", "en", "4 1 7 2 9 3 5", "inserted"),
        ("4 1 7 2 9 3", "spaced", "en", "4 1 7 2 9 3 million", "magnitude"),
        ("12 February 2026", "date", "en", "12 February 20261", "date field"),
        ("Leona Prattwell", "name", "en", "Leona Prattwell-Jones", "inserted"),
        ("Leona Prattwell", "name", "en", "Leona Prattwell Ångström is", "inserted"),
    ],
)
def test_a_right_beginning_that_goes_on_is_another_value(wanted, kind, language, written, error):
    found = judge_answer(needle(wanted, kind, language), written)
    assert (found.exact, found.normalized, found.error) == (False, False, error)


@pytest.mark.parametrize(
    ("wanted", "kind", "language", "written"),
    [
        ("周敏然", "name_3", "zh", "周敏然。"),
        ("周敏然", "name_3", "zh", "周敏然是负责人"),
        ("周敏然", "name_3", "zh", "周敏然女士"),
        ("周敏然", "name_3", "zh", "周敏然（主管）"),
        ("李永和", "name_3", "zh", "李永和说"),  # the last hanzi is the name's here
        ("37.5万元", "wan", "zh", "37.5万元。另外"),
        ("37.5万元", "wan", "zh", "37.5万元，其中20万元"),
        ("37.5万元", "wan", "zh", "37.5万元人民币"),
        ("三千零二十六", "words", "zh", "三千零二十六个座位"),
        ("2026年3月14日", "date", "zh", "2026年3月14日，星期六"),
        ("4 1 7 2 9 3", "spaced", "zh", "4 1 7 2 9 3号"),
        ("４８２１３", "full_width", "zh", "４８２１３号档案"),
        ("Leona Prattwell", "name", "en", "Leona Prattwell is the manager"),
        ("Leona Prattwell", "name", "en", "Leona Prattwell's team"),
        ("Leona Prattwell", "name", "en", "Leona Prattwell - the manager"),
        ("$48,250.50", "amount", "en", "$48,250.50. The rest"),
        ("$48,250.50", "amount", "en", "$48,250.50, 20 of which"),
        ("3.7 million", "million", "en", "3.7 million a year"),
        ("four hundred and twelve", "words", "en", "four hundred and twelve rooms"),
        ("12 February 2026", "date", "en", "12 February 2026, as agreed"),
        ("12 February 2026", "date", "en", "12 February 2026 at 14:00"),
        ("4 1 7 2 9 3", "spaced", "en", "4 1 7 2 9 3. Please"),
        ("0555 014 7720", "phone", "en", "0555 014 7720 from 9 am"),
    ],
)
def test_a_sentence_may_go_on_after_a_right_answer(wanted, kind, language, written):
    found = judge_answer(needle(wanted, kind, language), written)
    assert (found.exact, found.normalized, found.error, found.distance) == (True, True, "", 0)


@given(st.integers(0, 9999), st.sampled_from([(la, kind) for la in ("en", "zh") for kind in kinds(la)]))
def test_every_kind_of_answer_is_right_as_planted_and_wrong_when_extended(seed, what):
    language, kind = what
    wanted = make_needle(language, kind, "X", random.Random(seed))
    for after in ("", "\n", wanted.sentence[-1] + " " + wanted.sentence):
        assert judge_answer(wanted, wanted.answer + after).exact
    # After 日 or 元 a digit starts another figure or a time; elsewhere it makes the figure longer.
    longer = {"name": "-Jones" if language == "en" else "然"}.get(kind.split("_")[0], "7")
    if kind != "date" or language == "en":
        assert not judge_answer(wanted, wanted.answer + longer).normalized


@given(st.text(max_size=60), st.integers(0, 999))
def test_any_answer_is_judged_with_a_known_error(written, seed):
    chance = random.Random(seed)
    language = chance.choice(("en", "zh"))
    wanted = make_needle(language, chance.choice(kinds(language)), "X", chance)
    found = judge_answer(wanted, written, ["12"])
    assert found.error in (*ERRORS, "")
    assert found.normalized == (found.error == "")
    assert found.normalized or not found.exact


@given(st.text("0123456789", min_size=2, max_size=8), st.data())
def test_edits_get_their_name(digits, data):
    place = data.draw(st.integers(0, len(digits) - 1))
    dropped = digits[:place] + digits[place + 1 :]
    inserted = digits[:place] + "5" + digits[place:]
    assert edit_error(digits, dropped) == "dropped"
    assert edit_error(digits, inserted) == "inserted"
    other = str((int(digits[place]) + 1) % 10)
    assert edit_error(digits, digits[:place] + other + digits[place + 1 :]) == "substituted"
    if place and digits[place] != digits[place - 1]:
        swapped = digits[: place - 1] + digits[place] + digits[place - 1] + digits[place + 1 :]
        assert edit_error(digits, swapped) == "swapped"


def test_an_answer_ends_with_its_sentence_but_not_inside_a_figure():
    assert first_statement(" $48,250.50. The rest") == "$48,250.50"
    assert first_statement("37.5万元。另外") == "37.5万元"
    assert first_statement("no end here") == "no end here"


def test_the_guard_is_asked_about_wrong_figures_only():
    page = "The budget of X is $48,250. The fine was $31,777."
    wanted = needle("$48,250")
    assert guard_says(wanted, judge_answer(wanted, "$48,250"), page) == ""
    assert guard_says(wanted, judge_answer(wanted, "$99,250"), page) == "caught"
    assert guard_says(wanted, judge_answer(wanted, "unknown"), page) == "no figure"
    name = needle("Leona Prattwell", "name")
    assert guard_says(name, judge_answer(name, "Hugo"), page) == ""


def pages(
    outcomes: list[tuple[bool, bool]], per_page: int = 5, language: str = "en", guard: str = "caught"
) -> list[dict]:
    """Pages of probes with (reference right, candidate right); `guard` is of wrong candidates."""

    def answer(right: bool) -> dict:
        error = "" if right else "swapped"
        return {"exact": right, "normalized": right, "distance": 0 if right else 2, "error": error}

    rows = []
    for start in range(0, len(outcomes), per_page):
        probes = [
            {
                "kind": "amount",
                "depth": 0.5,
                "answer": "1",
                "reference": answer(r),
                "candidate": answer(c),
                "guard": "" if c else guard,
            }
            for r, c in outcomes[start : start + per_page]
        ]
        rows.append(
            {
                "page": f"{language}{start}",
                "language": language,
                "context": 512,
                "distractors": 0,
                "probes": probes,
            }
        )
    return rows


def test_copies_that_got_worse_are_harm():
    found = summarize(pages([(True, True)] * 60 + [(True, False)] * 20), "test")
    assert found["all"]["verdict"] == "harmed"
    assert (found["all"]["harms"], found["all"]["repairs"]) == (20, 0)
    assert found["all"]["difference"]["value"] == pytest.approx(-0.25)
    assert found["all"]["difference"]["high"] < 0
    assert found["kind"]["en:amount"]["candidate"]["errors"] == {"swapped": 20}
    assert found["guard"]["caught"] == 20 and found["guard"]["caught_share"]["value"] == 1


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [
        ([(True, True)] * 60, "none"),
        ([(True, True)] * 20, "cannot tell"),  # too few pairs
        ([(False, False)] * 55 + [(True, True)] * 5, "cannot tell"),  # a reference that cannot copy
        ([(True, True)] * 57 + [(True, False)] * 3, "cannot tell"),  # three harms prove nothing
        ([(True, True)] * 40 + [(False, True)] * 20, "repaired"),
        ([(True, True)] * 40 + [(True, False), (False, True)] * 10, "cannot tell"),
    ],
)
def test_verdicts_on_copies(outcomes, verdict):
    found = summarize(pages(outcomes), "test")
    assert found["all"]["verdict"] == verdict
    assert found["context"]["512"]["verdict"] == verdict


def test_harm_on_one_page_of_many_probes_is_no_verdict():
    """Twelve harms look certain when probes are independent; they are one page's."""
    spread = [(True, True)] * 2 + [(True, False)] * 2
    unharmed = [(True, True)] * 132
    found = summarize(pages([*spread * 6, *unharmed][:144], per_page=4), "test")["all"]
    one = summarize(pages([(True, False)] * 12 + unharmed, per_page=12), "test")["all"]
    assert found["harms"] == one["harms"] == 12 and found["mcnemar_p"] == one["mcnemar_p"] < 0.001
    assert (found["verdict"], one["verdict"]) == ("harmed", "cannot tell")
    assert one["minimum_detectable"] > 1.5 * found["minimum_detectable"]


@pytest.mark.parametrize(("number", "verdict"), [(11, "cannot tell"), (12, "harmed")])
def test_a_verdict_needs_twelve_pages(number, verdict):
    found = summarize(pages([(True, True)] * 3 * number + [(True, False)] * 3 * number, 6), "test")["all"]
    assert found["n"] >= 60 and found["difference"]["high"] < 0
    assert found["verdict"] == verdict
    assert (found["minimum_detectable"] is None) == (verdict == "cannot tell")
    same = summarize(pages([(True, True)] * 6 * number, 6), "test")["all"]
    assert same["verdict"] == ("cannot tell" if number < 12 else "none")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_one_page_gives_a_difference_without_ends(language):
    one = pages([(True, True)] * 5 + [(True, False)] * 5, 10, language)
    difference = summarize(one, "test")["language"][language]["difference"]
    assert difference["value"] == -0.5
    assert math.isnan(difference["low"]) and math.isnan(difference["high"])


def test_pages_are_resampled_within_their_language():
    """Where languages differ and pages of one do not, resampling within them leaves nothing to chance."""
    both = pages([(True, False)] * 40, 5, "en") + pages([(True, True)] * 40, 5, "zh")
    difference = summarize(both, "test")["all"]["difference"]
    assert difference == {"value": -0.5, "low": -0.5, "high": -0.5}


def test_seed_and_draws_decide_the_resampling():
    chance = random.Random(3)
    some = pages([(True, chance.random() < 0.7) for _ in range(120)])

    def ends(**how: int) -> dict[str, float]:
        return summarize(some, "test", **how)["all"]["difference"]

    assert ends(seed=1, draws=300) == ends(seed=1, draws=300)
    assert ends(seed=1, draws=300) != ends(seed=2, draws=300)
    assert ends(seed=1, draws=300) != ends(seed=1, draws=301)


def test_few_changes_still_leave_a_smallest_effect():
    """Without changes the effect is what would itself be seen; many changes both ways hide more."""
    found = [
        summarize(pages([(True, True)] * (400 - 2 * n) + [(True, False), (False, True)] * n, 2), "test")
        for n in (0, 1, 60)
    ]
    none, few, many = (f["all"]["minimum_detectable"] for f in found)
    assert 0.01 < none < 0.03 and few == pytest.approx(none)
    assert none == pytest.approx(_least_of(400, 0.95), rel=1e-4)
    assert many > 2 * none


def _least_of(n: int, level: float) -> float:
    """Connor's condition with as many discordant pairs as the change: z + z_power sqrt(1 - e) = sqrt(n e)."""
    z, power = NormalDist().inv_cdf(0.5 + level / 2), NormalDist().inv_cdf(0.8)
    steps = (step / 1e6 for step in range(1, 10**6))
    return next(e for e in steps if z + power * math.sqrt(1 - e) <= math.sqrt(n * e))


def test_cells_of_a_cut_need_what_holm_asks():
    both = pages([(True, True)] * 200, 5, "en") + pages([(True, True)] * 200, 5, "zh")
    found = summarize(both, "test")
    assert found["language"]["en"]["minimum_detectable"] == pytest.approx(_least_of(200, 0.975), rel=1e-4)
    assert found["context"]["512"]["minimum_detectable"] == found["all"]["minimum_detectable"]


def test_no_change_shows_among_a_handful_of_pairs():
    assert _detectable_by_test(0, 0, 0.95) is None
    assert _detectable_by_test(0, 5, 0.95) is None  # five harms of five: p = 0.06
    assert _detectable_by_test(0, 6, 0.95) <= 1


def test_the_guard_without_a_figure_is_not_an_escape():
    outcomes = [(True, False)] * 5
    rows = [row for guard in ("caught", "escaped", "no figure") for row in pages(outcomes, guard=guard)]
    found = summarize([*rows, *pages(outcomes, guard="no figure")], "test")["guard"]
    assert (found["caught_share"]["value"], found["escaped_share"]["value"]) == (0.25, 0.25)
    assert found["no_figure_share"]["value"] == 0.5
