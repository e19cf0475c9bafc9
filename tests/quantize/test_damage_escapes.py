"""What the number guard says of a damaged figure, put back into its sentence."""

from __future__ import annotations

import pytest

from seatrial.quantize.damage.escapes import Outcome, judge
from seatrial.quantize.damage.labels import label_text

ENGLISH = "The budget of Heron is $48,250. The fine was $31,777 and is due on 14 March 2026."
CHINESE = "鱼鹰项目的预算是37.5万元。罚款是2.4万元。"


def outcome(text: str, figure: str, written: str) -> Outcome:
    labelled = label_text(text)
    item = next(i for i in labelled.items if text[i.span[0] : i.span[1]] == figure)
    return judge(labelled, item, written)


@pytest.mark.parametrize(
    ("text", "figure", "written", "expected"),
    [
        (ENGLISH, "$48,250", " $48,250", Outcome.SAME_VALUE),
        (ENGLISH, "$48,250", "48,250 dollars", Outcome.SAME_VALUE),
        (ENGLISH, "$48,250", "$99,250", Outcome.CAUGHT),
        (ENGLISH, "$48,250", "$482", Outcome.CAUGHT),
        (ENGLISH, "14 March 2026", "15 March 2026", Outcome.CAUGHT),
        (ENGLISH, "$48,250", "the same", Outcome.NO_FIGURE),
        (CHINESE, "37.5万元", "35.7万元", Outcome.CAUGHT),
        (CHINESE, "37.5万元", "375000元", Outcome.SAME_VALUE),
    ],
)
def test_outcomes(text, figure, written, expected):
    assert outcome(text, figure, written) is expected


def test_a_right_value_in_the_wrong_role_is_told_from_a_wrong_value():
    """The value stands in the text, about something else: it is caught as a wrong role, or it escapes."""
    assert outcome(ENGLISH, "$48,250", "$31,777") in (Outcome.CAUGHT, Outcome.ESCAPED)


def test_names_are_not_the_number_guards_business():
    text = "Leona Prattwell pays. Then Leona Prattwell signs."
    item = next(i for i in label_text(text).items if i.label == "person")
    assert judge(label_text(text), item, "Leona Pratt") is Outcome.NONE
