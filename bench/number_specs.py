"""Agreement of the extractor with published test cases for numbers (`number_specs.jsonl`), by kind and
language.

A case agrees when our figures, written as the cases write values, are the expected ones, in order. Some cases
follow a policy that is not ours; they are set aside by the rules of `set_aside`, which look only at the
expected values and the text, never at our answer.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from guard_scores import rows_of

from seatrial.guards.numbers import Quantity, extract_quantities
from seatrial.guards.numbers.normalize import fold
from seatrial.guards.numbers.numerals import find_numerals
from seatrial.guards.numbers.pairs import read_mixed, read_pair
from seatrial.guards.numbers.resolve import resolve, shifted_day
from seatrial.guards.numbers.single import read_sign, read_single
from seatrial.guards.numbers.units import BY_NAME


@dataclass
class Tally:
    """Cases of one language and kind."""

    agree: int = 0
    differ: int = 0
    aside: int = 0
    misses: list[dict[str, Any]] = field(default_factory=list)

    @property
    def share(self) -> float:
        judged = self.agree + self.differ
        return self.agree / judged if judged else 0.0


def evaluate(folder: Path) -> dict[tuple[str, str], Tally]:
    """(language, kind) -> tally."""
    tallies: dict[tuple[str, str], Tally] = defaultdict(Tally)
    for row in rows_of(folder, "number_specs.jsonl"):
        tally = tallies[row["lang"], row["kind"]]
        if set_aside(row) is not None:
            tally.aside += 1
        elif agrees(row):
            tally.agree += 1
        else:
            tally.differ += 1
            tally.misses.append(row)
    return dict(sorted(tallies.items()))


_LONE = re.compile(r"[零〇一二两兩三四五六七八九十]")
_RUNS = re.compile(r"[\d零〇一二两兩三四五六七八九十百千万亿壹貳贰叁肆伍陆柒捌玖拾佰仟萬億點点]+")


def lines(folder: Path) -> Iterator[str]:
    """A table of the tallies, with the share of all cases of a kind that a rule sets aside."""
    tallies = evaluate(folder)
    if not tallies:
        return
    yield f"{'language':9} {'kind':12} {'agree':>6} {'differ':>6} {'aside':>6} {'share':>6}"
    for (language, kind), tally in tallies.items():
        counts = f"{tally.agree:6} {tally.differ:6} {tally.aside:6} {tally.share:6.3f}"
        yield f"{language:9} {kind:12} {counts}"
    for kind in dict.fromkeys(kind for _, kind in tallies):
        both = [tally for (_, other), tally in tallies.items() if other == kind]
        agree, aside = sum(t.agree for t in both), sum(t.aside for t in both)
        judged = agree + sum(t.differ for t in both)
        share, left = agree / judged if judged else 0.0, aside / (judged + aside)
        counts = f"{agree:6} {judged - agree:6} {aside:6} {share:6.3f}"
        yield f"{'both':9} {kind:12} {counts}   set aside {left:.1%}"


def set_aside(row: dict[str, Any]) -> str | None:
    """The rule by which a case is not judged, or None.

    1. "unit alone": the cases give a result without a number (celsius, 人民币); a unit is no figure to us.
    2. "lone character": a single Chinese numeral between other words is a number to them; to us it needs a
       measure word or a quotation, since 一 and 两 begin too many words.
    3. "frequency": weekly, every other day, 每年. How often is no figure to us.
    4. "no day named": now, recently, the year, the same week: no day can be read from the words.
    5. "address": they read the four numbers of an internet address; to us it is one string.
    """
    results = row["results"]
    valued = row["kind"] not in ("phone", "range", "datetime", "ordinal")
    if valued and any(_number(r.get("value")) is None for r in results):
        return "unit alone"
    if row["kind"] == "datetime":
        return next(filter(None, map(_calendar_rule, results)), None)
    if row["kind"] == "number":
        runs = _RUNS.findall(row["text"])
        lone = any(_LONE.fullmatch(r["text"]) for r in results) or (
            runs and not results and all(map(_LONE.fullmatch, runs))
        )
        if row["lang"] == "zh" and lone and len(row["text"]) > 2:
            return "lone character"
        if re.search(r"\d+\.\d+\.\d+\.\d+", row["text"]):
            return "address"
    return None


_VAGUE = re.compile(r"(?:(?:the|that|same) (?:day|week|weekend|month|year|hour)|(?:the )?remaining.*)")


def _calendar_rule(result: dict[str, Any]) -> str | None:
    timexes = [value["timex"] for value in result["values"]]
    if result["type"].endswith(".set") and not any(re.search(r"WXX-\d|^T\d", timex) for timex in timexes):
        return "frequency"
    if any("_REF" in timex for timex in timexes) or _VAGUE.fullmatch(result["text"]):
        return "no day named"
    return None


def agrees(row: dict[str, Any]) -> bool:
    """Whether the expected values are ours."""
    judge = _JUDGES[row["kind"]]
    return judge(extract_quantities(row["text"]), row)


def _number(text: str | None) -> Decimal | None:
    try:
        return Decimal((text or "").rstrip("%"))
    except InvalidOperation:
        return None


def _same(left: Decimal | None, right: Decimal | None) -> bool:
    """Equal to the 12 digits that the cases show."""
    if left is None or right is None:
        return left is right
    return abs(left - right) <= max(abs(left), abs(right)) * Decimal("1e-12")


def _values(figures: list[Quantity], kinds: set[str]) -> list[Decimal | None]:
    return [q.value for q in figures if q.kind in kinds]


def _judge_number(_: list[Quantity], row: dict[str, Any]) -> bool:
    expected = [_number(r["value"]) for r in row["results"]]
    ours = list(_plain_numbers(row["text"]))
    return len(ours) == len(expected) and all(_same(a, b) for a, b in zip(ours, expected, strict=True))


def _plain_numbers(text: str) -> Iterator[Decimal]:
    """The numerals of a text before units, dates and counting words are read; 12ml is a measure, not a
    number."""
    folded = fold(text)
    numerals = find_numerals(folded, text, bytearray(len(folded)))
    index = 0
    while index < len(numerals):
        numeral = numerals[index]
        following = numerals[index + 1] if index + 1 < len(numerals) else None
        after = numerals[index + 2] if index + 2 < len(numerals) else None
        fraction = None if following is None or after is None else read_pair(folded, following, after)
        mixed = None if fraction is None else read_mixed(folded, numeral, fraction)
        if mixed is not None:
            index += 3
            yield mixed.value
            continue
        pair = None if following is None else read_pair(folded, numeral, following)
        if pair is not None and pair.unit != ":":
            index += 2
            yield pair.value * _PER.get(numeral.string, Decimal(1))
            continue
        index += 1
        start, negative = read_sign(folded, numeral.start)
        attached = folded[numeral.end : numeral.end + 1]
        if numeral.form == "ordinal" or attached == "%" or (attached.isascii() and attached.isalpha()):
            continue
        if read_single(folded, numeral) is None or folded[start - 1 : start] == "第":
            continue
        yield -numeral.value if negative else numeral.value


# 百分之三 is the number 3 to the cases, 一百分之三 is 0.03.
_PER = {"百": Decimal(1)}


def _judge_percent(figures: list[Quantity], row: dict[str, Any]) -> bool:
    expected = [_number(r["value"]) for r in row["results"]]
    # Of a range the cases keep the end that carries the sign.
    ours = [
        q.value if q.high is None else q.high for q in figures if q.kind in ("percent", "percentage_point")
    ]
    return len(ours) == len(expected) and all(_same(a, b) for a, b in zip(ours, expected, strict=True))


_ISO = {"Dollar": "USD", "Pound": "GBP", "Pence": "GBP", "Cent": "USD", "Euro": "EUR"}


def _judge_currency(figures: list[Quantity], row: dict[str, Any]) -> bool:
    expected = []
    for r in row["results"]:
        value = _number(r["value"])
        if value is not None and r.get("unit") in ("Pence", "Cent"):
            value = value / 100
        expected.append((value, r.get("isoCurrency") or _ISO.get(r.get("unit", ""))))
    ours = [(q.value, q.unit) for q in figures if q.kind == "amount"]
    return len(ours) == len(expected) and all(
        _same(a[0], b[0]) and (b[1] is None or a[1] == b[1]) for a, b in zip(ours, expected, strict=True)
    )


_UNIT_NAMES = {
    "Metric ton": "t", "Ton": "t", "Mile": "mi", "Square meter": "m2", "Milliliter": "ml", "Kilometer": "km",
    "Meter": "m", "Inch": "in", "Foot": "ft", "Kilometer per hour": "km/h", "Kilowatt": "kW", "Kilobyte": "kB",  # noqa: E501
    "Centimeter": "cm", "Microgram": "ug", "Millimeter": "mm", "Pound": "lb", "Gallon": "gal", "Barrel": "bbl",  # noqa: E501
    "Cubic foot": "ft3", "Kilocalorie": "kcal", "Megabyte": "MB", "Degree": "degree", "Teaspoon": "tsp", "Gram": "g", "Kilogram": "kg", "Liang": "liang", "Jin": "jin",  # noqa: E501
}  # fmt: skip


def _judge_dimension(figures: list[Quantity], row: dict[str, Any]) -> bool:
    expected = [(_number(r["value"]), _UNIT_NAMES.get(r["unit"])) for r in row["results"]]
    ours = [q for q in figures if q.kind == "measure" and q.unit not in ("C", "F")]
    return len(ours) == len(expected) and all(
        _same_measure(q, *b) for q, b in zip(ours, expected, strict=True)
    )


def _same_measure(figure: Quantity, value: Decimal | None, unit: str | None) -> bool:
    """Equal in base units; of a range the cases keep the end that carries the unit."""
    ours = figure.value if figure.high is None else figure.high
    if unit is None or ours is None or value is None:
        return _same(ours, value)
    left, right = BY_NAME[figure.unit or ""], BY_NAME[unit]
    same = _same(ours * left.factor, value * right.factor)
    return left.dimension == right.dimension and (
        same or abs(ours * left.factor - value * right.factor) < Decimal("1e-9")
    )


def _judge_temperature(figures: list[Quantity], row: dict[str, Any]) -> bool:
    expected = [
        (_number(r.get("value")), r["unit"].replace("Degree", "degree"))
        for r in row["results"]
        if r.get("value")
    ]
    ours = [(q.value, q.unit) for q in figures if q.unit in ("degree", "C", "F")]
    return len(ours) == len(expected) and all(
        _same(a[0], b[0]) and a[1] == b[1] for a, b in zip(ours, expected, strict=True)
    )


def _judge_ordinal(figures: list[Quantity], row: dict[str, Any]) -> bool:
    expected = [_number(r["value"]) for r in row["results"] if r["type"] == "ordinal"]
    ours = _values(figures, {"ordinal"})
    return len(ours) == len(expected) and all(_same(a, b) for a, b in zip(ours, expected, strict=True))


def _judge_phone(figures: list[Quantity], row: dict[str, Any]) -> bool:
    """Every expected number is one of our strings; what else is a string to us (a card, a code) is not
    theirs."""
    expected = [re.sub(r"\D", "", r["value"]) for r in row["results"]]
    ours = [re.sub(r"\D", "", q.text) for q in figures if q.kind == "identifier"]
    return all(phone in ours for phone in expected)


def _judge_range(figures: list[Quantity], row: dict[str, Any]) -> bool:
    """Ours keep the ends as value and high, or one end with a hedge: the numbers must be the same ones."""
    expected: list[Decimal] = []
    for r in row["results"]:
        expected += [Decimal(n) for n in re.findall(r"-?\d+(?:\.\d+)?(?:[Ee][+-]?\d+)?", r["value"])]
    ours: list[Decimal] = []
    for q in figures:
        ours += [v for v in (q.value, q.high) if v is not None and q.kind not in ("date", "time")]
    return all(any(_same(e, o) for o in ours) for e in expected)


def _judge_datetime(figures: list[Quantity], row: dict[str, Any]) -> bool:
    """Days and clock times are those of the cases, seen from their reference day.

    Each expected result is compared with our figures inside its span: the first day and the last day (or
    the day after it), the first and last clock time. Where the cases give several values, one must agree.
    """
    today = datetime.fromisoformat(row["reference"] or "2016-11-07T00:00:00")
    calendar = [q for q in figures if q.kind in ("date", "time", "weekday", "duration")]
    if not row["results"]:
        return not [q for q in calendar if q.kind != "duration"]
    return all(_agrees_datetime(result, calendar, today) for result in row["results"])


def _agrees_datetime(result: dict[str, Any], figures: list[Quantity], today: datetime) -> bool:
    start, end = result["start"], result["end"] + 1
    inside = [q for q in figures if q.span[0] < end and start < q.span[1]]
    return any(_agrees_value(value, inside, today) for value in result["values"])


def _agrees_value(value: dict[str, Any], figures: list[Quantity], today: datetime) -> bool:
    if value["type"] in ("duration", "set"):
        return _agrees_duration(value, figures)
    wanted = [value[name] for name in ("value", "start", "end") if name in value]
    days = [date.fromisoformat(w[:10]) for w in wanted if re.match(r"\d{4}-\d\d-\d\d", w)]
    clocks = [w[-8:-3] for w in wanted if re.search(r"\d\d:\d\d:\d\d$", w)]
    return (
        bool(wanted)
        and _agrees_days(days, value, figures, today)
        and _agrees_clocks(clocks, value, figures, today)
    )


def _agrees_days(days: list[date], value: dict[str, Any], figures: list[Quantity], today: datetime) -> bool:
    if not days or value["type"] in ("time", "timerange"):
        return True
    periods = [p for q in figures if q.fields for p in _periods(q, today.date())]
    edges = {day for period in periods for day in (*period, period[1] - timedelta(days=1))}
    if not periods:
        edges = {
            (today + timedelta(seconds=sign * seconds)).date()
            for seconds in _seconds(figures)
            for sign in (1, -1)
        }
        edges |= {today.date()} if value["type"].startswith("datetime") and _clock_texts(figures) else set()
    if value["type"] == "daterange":
        edges |= {today.date()} if periods else set()  # "from March to date", "later this week"
    return all(day in edges for day in days)


def _periods(figure: Quantity, today: date) -> list[tuple[date, date]]:
    fields = dict(figure.fields)
    found = resolve(fields, today)
    if "part" in fields:  # the cases keep "the end of 2000" as the whole year with a remark
        found += resolve({name: part for name, part in fields.items() if name != "part"}, today)
    shifted = shifted_day(fields, today)
    if shifted is not None and not fields.keys() - {"D", "W", "F", "Mo", "Q", "Y"}:
        found = [*found, (shifted, shifted + timedelta(days=1))]
        if "D" not in fields:
            found.append((min(shifted, today), max(shifted, today)))
    return found


def _seconds(figures: list[Quantity]) -> list[float]:
    return [
        float(q.value * BY_NAME[q.unit or ""].factor)
        for q in figures
        if q.kind == "duration" and q.value is not None
    ]


def _clock_texts(figures: list[Quantity]) -> set[str]:
    clocks = set()
    for q in figures:
        fields = dict(q.fields)
        if "H" in fields:
            hours = [fields["H"] % 24] if "pm" in fields else [fields["H"] % 24, (fields["H"] + 12) % 24]
            clocks |= {f"{hour:02d}:{fields.get('M', 0):02d}" for hour in hours}
    return clocks


_PARTS_OF_DAY = {"TMO": 1, "TAF": 2, "TEV": 3, "TNI": 4}


def _agrees_clocks(
    clocks: list[str], value: dict[str, Any], figures: list[Quantity], today: datetime
) -> bool:
    part = next((name for name in _PARTS_OF_DAY if name in value["timex"]), None)
    if part is not None:
        return any(
            dict(q.fields).get("dp") in (_PARTS_OF_DAY[part], 3 if part == "TNI" else None) for q in figures
        )
    ours = _clock_texts(figures)
    for seconds in _seconds(figures):
        ours |= {(today + timedelta(seconds=sign * seconds)).strftime("%H:%M") for sign in (1, -1)}
        if value["type"].endswith("range"):
            ours |= {_later(clock, seconds) for clock in set(ours)} | {today.strftime("%H:%M")}
    return all(clock in ours or clock in ("00:00", "23:59") for clock in clocks)


def _later(clock: str, seconds: float) -> str:
    return (datetime.strptime(clock, "%H:%M") + timedelta(seconds=seconds)).strftime("%H:%M")


def _agrees_duration(value: dict[str, Any], figures: list[Quantity]) -> bool:
    """A duration by its seconds; months and years are 30 and 360 days to us, 30 and 365 to the cases."""
    if value["type"] == "set":
        weekday = re.search(r"WXX-(\d)", value["timex"])
        if weekday:
            return any(dict(q.fields).get("wd") == int(weekday[1]) for q in figures)
        clock = re.fullmatch(r"T(\d\d)(?::(\d\d))?", value["timex"])
        return clock is not None and f"{clock[1]}:{clock[2] or '00'}" in _clock_texts(figures)
    expected = float(value["value"])
    ours = _seconds(figures)
    years = [s * 365 / 360 for s in ours]
    return any(abs(expected - s) < 1 for s in ours + years)


_JUDGES = {
    "number": _judge_number,
    "percent": _judge_percent,
    "currency": _judge_currency,
    "dimension": _judge_dimension,
    "temperature": _judge_temperature,
    "ordinal": _judge_ordinal,
    "phone": _judge_phone,
    "range": _judge_range,
    "datetime": _judge_datetime,
}
