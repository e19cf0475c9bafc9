"""Calendar parts as days seen from a given day, and dates of a summary against those of its source."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.guards.numbers import check_numbers, extract_quantities
from seatrial.guards.numbers.resolve import resolve, shifted_day
from seatrial.guards.verdict import Verdict

TODAY = date(2026, 3, 18)  # a Wednesday


def period(text: str) -> tuple[date, date]:
    (quantity,) = extract_quantities(text)
    return resolve(dict(quantity.fields), TODAY)[-1]


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("tomorrow", (2026, 3, 19), (2026, 3, 20)),
        ("大后天", (2026, 3, 21), (2026, 3, 22)),
        ("next Friday", (2026, 3, 27), (2026, 3, 28)),
        ("下周三", (2026, 3, 25), (2026, 3, 26)),
        ("last month", (2026, 2, 1), (2026, 3, 1)),
        ("去年三季度", (2025, 7, 1), (2025, 10, 1)),
        ("2024年上半年", (2024, 1, 1), (2024, 7, 1)),
        ("the next three days", (2026, 3, 19), (2026, 3, 22)),
        ("the past two quarters", (2025, 7, 1), (2026, 1, 1)),
        ("week 3 of 2027", (2027, 1, 18), (2027, 1, 25)),
        ("first week of 2015", (2014, 12, 29), (2015, 1, 5)),
        ("the 18th century", (1700, 1, 1), (1800, 1, 1)),
        ("20世纪80年代", (1980, 1, 1), (1990, 1, 1)),
        ("next weekend", (2026, 3, 28), (2026, 3, 30)),
        ("early 2024", (2024, 1, 1), (2024, 5, 2)),
    ],
)
def test_periods(text: str, first: tuple[int, int, int], end: tuple[int, int, int]) -> None:
    assert period(text) == (date(*first), date(*end))


def test_an_open_year_gives_the_nearest_day_before_and_after() -> None:
    assert resolve({"m": 6, "d": 3}, TODAY) == [
        (date(2025, 6, 3), date(2025, 6, 4)),
        (date(2026, 6, 3), date(2026, 6, 4)),
    ]
    assert resolve({"m": 2, "d": 30}, TODAY) == []
    assert resolve({"H": 5, "M": 0}, TODAY) == []


FIELDS = st.dictionaries(
    st.sampled_from("y m d q h part dec cent wk wd we D W F Mo Q Y Dec nD nW nMo nQ nY".split()),
    st.integers(-3000, 3000),
    max_size=4,
)


@given(FIELDS, st.dates())
def test_no_parts_make_it_raise_and_periods_run_forward(fields: dict[str, int], today: date) -> None:
    sane = {
        name: max(1, abs(v) % 12) if name in "m d q h part wk wd we".split() else v
        for name, v in fields.items()
    }
    for first, end in resolve(sane, today):
        assert first <= end
    shifted_day(sane, today)


@given(st.integers(-300, 300))
def test_days_are_counted(days: int) -> None:
    assert resolve({"D": days}, TODAY) == [(TODAY + timedelta(days=days), TODAY + timedelta(days=days + 1))]


@pytest.mark.parametrize(
    ("summary", "source", "verdict"),
    [
        ("3月19日上线", "明天上线", Verdict.OK),
        ("3月20日上线", "明天上线", Verdict.FAIL),
        ("Launch on 27 March", "We launch next Friday.", Verdict.OK),
        ("Launch on 20 March", "We launch next Friday.", Verdict.FAIL),
        ("The review is in two weeks", "The review is on April 1st.", Verdict.OK),
        ("下周三评审", "3月25日评审", Verdict.OK),
        ("in May 2026", "on May 5th", Verdict.OK),
        ("on May 5th 2026", "in May 2026", Verdict.FAIL),
    ],
)
def test_with_the_meetings_day(summary: str, source: str, verdict: Verdict) -> None:
    assert check_numbers(summary, source, meeting_date=TODAY).verdict == verdict


def test_without_the_meetings_day_a_calendar_day_for_a_relative_word_is_ambiguous() -> None:
    (finding,) = check_numbers("Launch on 27 March", "We launch next Friday.").findings
    assert (finding.reason, finding.verdict) == ("ambiguous", Verdict.WARN)


@pytest.mark.parametrize(
    ("summary", "source", "verdict"),
    [
        ("in June", "on June 26th", Verdict.OK),
        ("on June 27th", "on June 26th", Verdict.FAIL),
        ("26 June 2024", "2024 was hard. The review is on June 26th.", Verdict.OK),
        ("at 14:30", "下午两点半", Verdict.OK),
        ("at 6:55 am", "at 6:55 pm", Verdict.FAIL),
        ("at 6:55", "at 6:55 pm", Verdict.OK),
        ("第三季度", "三季度", Verdict.OK),
        ("Q2", "third quarter", Verdict.FAIL),
        ("从4月9日到17日", "April 9th through 17th", Verdict.OK),
        ("从4月9日到18日", "April 9th through 17th", Verdict.FAIL),
        ("on Monday", "next Monday", Verdict.OK),
        ("next Tuesday", "next Monday", Verdict.FAIL),
    ],
)
def test_parts_are_compared(summary: str, source: str, verdict: Verdict) -> None:
    assert check_numbers(summary, source).verdict == verdict


@pytest.mark.parametrize(
    ("source", "summary", "verdict"),
    [
        ("She starts on Monday the sixteenth.", "She starts on Monday, 16 March.", "warn"),
        ("She starts on Monday the sixteenth.", "She starts on Tuesday, 16 March.", "fail"),
        ("She starts on Monday the sixteenth.", "She starts on Monday, 17 March.", "fail"),
        ("她十六号开始。", "她3月16日开始。", "warn"),
        ("她十六号开始。", "她3月17日开始。", "fail"),
    ],
)
def test_a_month_that_the_source_leaves_out_is_open(source: str, summary: str, verdict: str) -> None:
    (finding,) = check_numbers(summary, source).findings
    assert str(finding.verdict) == verdict
