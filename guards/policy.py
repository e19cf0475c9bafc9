"""How serious each reason is: the documented defaults, and a way to make one kind stricter or softer.

A key is a reason ("not found") or a kind and a reason ("ordinal.not found"); the second wins over the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.errors import UserError
from seatrial.guards.thresholds import load_thresholds
from seatrial.guards.verdict import Verdict

NUMBER_SEVERITY: Mapping[str, Verdict] = {
    "exact": Verdict.OK,
    "written otherwise": Verdict.OK,
    "rounded": Verdict.OK,
    "approximate": Verdict.OK,
    "range": Verdict.OK,
    "one end": Verdict.WARN,
    "sum": Verdict.WARN,
    "difference": Verdict.WARN,
    "ratio": Verdict.WARN,
    "ambiguous": Verdict.WARN,
    "wrong role": Verdict.WARN,
    "unread": Verdict.WARN,
    "other unit": Verdict.FAIL,
    "other sign": Verdict.FAIL,
    "not found": Verdict.FAIL,
    # Small counts and ordinals are often the summary's own counting: three people, the second point.
    "small count.not found": Verdict.WARN,
    "small count.other unit": Verdict.WARN,
    # "One" and 一个 are articles more often than counts.
    "one.not found": Verdict.OK,
    "one.other unit": Verdict.OK,
    "one.wrong role": Verdict.OK,
    # Two friends, Steve and Carly: the summary shows what it counts.
    "listed count.not found": Verdict.OK,
    "listed count.other unit": Verdict.OK,
    "small ordinal.not found": Verdict.WARN,
    "small ordinal.other unit": Verdict.WARN,
    # COVID-19 where the source says COVID: a name with a number.
    "named code.not found": Verdict.WARN,
}


NUMBER_REASONS = tuple(key for key in NUMBER_SEVERITY if "." not in key)
NUMBER_KINDS = (
    "count", "small count", "listed count", "one", "amount", "percent", "percentage_point", "basis_point", "ratio", "ordinal", "small ordinal",  # noqa: E501
    "date", "vague date", "time", "duration", "weekday", "measure", "identifier", "named code", "unread",
)  # fmt: skip


@dataclass(frozen=True)
class Policy:
    """Severities that differ from the defaults, for numbers and for names."""

    numbers: Mapping[str, Verdict] = field(default_factory=dict)
    names: Mapping[str, Verdict] = field(default_factory=dict)

    def number(self, kind: str, reason: str) -> Verdict:
        """The severity of `reason` for a figure of `kind`."""
        for table in (self.numbers, NUMBER_SEVERITY):
            for key in (f"{kind}.{reason}", reason):
                if key in table:
                    return table[key]
        raise KeyError(reason)


def make_policy(numbers: Mapping[str, Verdict], names: Mapping[str, Verdict]) -> Policy:
    """A policy with checked keys; raises `UserError` for a reason or kind of figure that does not exist."""
    for key in numbers:
        kind, _, reason = key.rpartition(".")
        if reason not in NUMBER_REASONS or (kind and kind not in NUMBER_KINDS):
            raise UserError(
                f"numbers policy {key!r} is not known; give a reason ({', '.join(NUMBER_REASONS)}), "
                f"or a kind and a reason as in 'ordinal.not found' (kinds: {', '.join(NUMBER_KINDS)})"
            )
    return Policy(numbers, names)


def policy_from_file(path: str | Path) -> Policy:
    """The policy in the `[numbers]` and `[names]` tables of a thresholds file; raises `UserError`."""
    found = load_thresholds(Path(path))
    return make_policy(found.numbers, found.names)


def policy_from_options(options: Iterable[str], base: Policy | None = None) -> Policy:
    """`base` with options such as "numbers.one end=fail" or "names.homophone=ok" over it.

    Raises `UserError` for an option of another form.
    """
    tables: dict[str, dict[str, Verdict]] = {
        "numbers": dict(base.numbers if base else {}),
        "names": dict(base.names if base else {}),
    }
    for option in options:
        table, _, rest = option.partition(".")
        key, _, word = rest.rpartition("=")
        if table not in tables or not key or word.strip() not in tuple(Verdict):
            raise UserError(
                f"severity {option!r} cannot be read; write it as in 'numbers.one end=fail' or 'names.homophone=ok'"  # noqa: E501
            )
        tables[table][key.strip()] = Verdict(word.strip())
    return make_policy(tables["numbers"], tables["names"])
