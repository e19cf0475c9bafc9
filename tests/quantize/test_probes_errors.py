"""Every kind of error a copy can have, in both languages, and rates of pairs with a known truth."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.quantize.probes.errors import ERRORS, edit_error, first_statement, judge_answer
from seatrial.quantize.probes.needles import Needle, kinds, make_needle
from seatrial.quantize.probes.run import guard_says
from seatrial.quantize.probes.summary import summarize


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


def pages(outcomes: list[tuple[bool, bool]], per_page: int = 5) -> list[dict]:
    """Pages of probes with (reference right, candidate right)."""

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
                "guard": "" if c else "caught",
            }
            for r, c in outcomes[start : start + per_page]
        ]
        rows.append(
            {"page": str(start), "language": "en", "context": 512, "distractors": 0, "probes": probes}
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
    unharmed = [(True, True)] * 48
    spread = [(True, True)] * 2 + [(True, False)] * 2
    found = summarize(pages([*spread * 6, *unharmed][:60], per_page=4), "test")["all"]
    one = summarize(pages([(True, False)] * 12 + unharmed, per_page=12), "test")["all"]
    assert found["harms"] == one["harms"] == 12 and found["mcnemar_p"] == one["mcnemar_p"] < 0.001
    assert (found["verdict"], one["verdict"]) == ("harmed", "cannot tell")
    assert one["minimum_detectable"] > 1.5 * found["minimum_detectable"]
