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
from pathlib import Path
from typing import Any

from guard_scores import rows_of
from number_spec_dates import judge_datetime
from number_spec_values import (
    judge_currency,
    judge_dimension,
    judge_number,
    judge_ordinal,
    judge_percent,
    judge_phone,
    judge_range,
    judge_temperature,
    number_of,
)

from seatrial.guards.numbers import extract_quantities


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
    if valued and any(number_of(r.get("value")) is None for r in results):
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


_JUDGES = {
    "number": judge_number,
    "percent": judge_percent,
    "currency": judge_currency,
    "dimension": judge_dimension,
    "temperature": judge_temperature,
    "ordinal": judge_ordinal,
    "phone": judge_phone,
    "range": judge_range,
    "datetime": judge_datetime,
}
