"""The thresholds file: when to stop, and how serious each reason is; with the data it was made from.

    [breakdown]   entropy_nats, run_length, smoothed_enter_nats, smoothed_leave_nats, repeat_ngram, ...
    [numbers]     reason = "ok" | "warn" | "fail"
    [names]       reason = "ok" | "warn" | "fail"
    [made]        date, model, weights, kv, data, ...

Everything is optional and has a default; an unknown key is an error, since a mistyped threshold would
otherwise be a guard that is silently off. What a good value is, is not known here: `seatrial tune` finds
that out.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from seatrial.errors import UserError
from seatrial.guards.verdict import Verdict

NEVER_REPEATS = 10**6  # repeat_times that no text reaches: the rule is off


@dataclass(frozen=True)
class Thresholds:
    """When a generation counts as broken. Entropies in nats over the full vocabulary, lengths in tokens.

    - Run: `run_length` steps in a row above `entropy_nats`.
    - Smoothed: the exponential mean of the entropy (time constant `smoothing_tokens`) rises above
      `smoothed_enter_nats` and stays `smoothed_dwell` steps before it falls below `smoothed_leave_nats`.
    - Repetition: a phrase of at most `repeat_ngram` tokens stands `repeat_times` times in a row, over at
      least `repeat_tokens` tokens in all (so that "1,000,000" is not a loop).
    - Monotony: of the last `monotony_window` tokens a share above `monotony_share` repeats others among them,
      which sees the loop that changes a little each time; 1 never fires.
    - Foreign: of the last `foreign_window` tokens a share above `foreign_share` stands nowhere in the source,
      which sees word salad; it needs the source's tokens, and 1 never fires.
    """

    # The defaults lie above what summaries by people reach when a small model reads them: runs of ten 4.5,
    # smoothed 5.0 nats, monotony 0.5 (`bench/breakdown.py`); tune them for another model.
    entropy_nats: float = 5.0
    run_length: int = 10
    smoothed_enter_nats: float = 5.5
    smoothed_leave_nats: float = 4.5
    smoothing_tokens: int = 16
    smoothed_dwell: int = 8
    repeat_ngram: int = 64
    repeat_times: int = 4
    repeat_tokens: int = 20
    monotony_window: int = 48
    monotony_share: float = 0.75
    foreign_window: int = 48
    foreign_share: float = 1.0  # off: a summary in another language than its source is foreign and good
    entity_start_nats: float = 2.0

    def __post_init__(self) -> None:
        for name in ("entropy_nats", "smoothed_enter_nats", "smoothed_leave_nats", "entity_start_nats"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise UserError(f"threshold {name} is {value!r}: a number of nats, 0 or more, is needed")
        for name in ("monotony_share", "foreign_share"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
                raise UserError(f"threshold {name} is {value!r}: a share above 0, at most 1, is needed")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise UserError(
                    f"threshold {name} is {value!r}: a whole number of at least {least} is needed"
                )
        if self.smoothed_leave_nats > self.smoothed_enter_nats:
            raise UserError(
                f"threshold smoothed_leave_nats ({self.smoothed_leave_nats}) is above smoothed_enter_nats"
                f" ({self.smoothed_enter_nats}): the alarm would end before it begins"
            )


_LEAST = {
    "run_length": 1,
    "smoothing_tokens": 1,
    "smoothed_dwell": 1,
    "repeat_ngram": 1,
    "repeat_times": 2,
    "repeat_tokens": 2,
    "monotony_window": 2,
    "foreign_window": 2,
}


def require_can_fire(thresholds: Thresholds, vocabulary_size: int, top_k: int | None = None) -> None:
    """Raises `UserError` for an entropy threshold that no row of logits can pass.

    The entropy of V choices is at most ln V; of a stream that shows only the k best, at most ln k.
    """
    choices = vocabulary_size if top_k is None else min(vocabulary_size, top_k)
    if choices < 2:
        raise UserError(
            f"an entropy over {choices} choice is always 0: no threshold can fire, at least 2 are needed"
        )
    most = math.log(choices)
    seen = f"a vocabulary of {choices}" if top_k is None else f"a stream of the {choices} best tokens"
    for name in ("entropy_nats", "smoothed_enter_nats", "entity_start_nats"):
        value = getattr(thresholds, name)
        if value >= most:
            raise UserError(
                f"threshold {name} = {value} can never fire: the entropy of {seen} is at most"
                f" ln {choices} = {most:.3f} nats; give less than that"
            )


@dataclass(frozen=True)
class Made:
    """What a thresholds file was made from; empty where it does not say."""

    date: str = ""
    model: str = ""
    weights: str = ""
    kv: str = ""
    data: str = ""
    note: str = ""


@dataclass(frozen=True)
class ThresholdsFile:
    """All of thresholds.toml. `numbers` and `names`: reason -> verdict, only the reasons that the file
    names.
    """

    breakdown: Thresholds = field(default_factory=Thresholds)
    numbers: Mapping[str, Verdict] = field(default_factory=dict)
    names: Mapping[str, Verdict] = field(default_factory=dict)
    made: Made = field(default_factory=Made)


def load_thresholds(path: Path) -> ThresholdsFile:
    """Reads thresholds.toml; `UserError` names the key that is unknown or of the wrong kind."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"thresholds file {path} cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"thresholds file {path} is not TOML: {error}") from error
    try:
        return parse_thresholds(document)
    except UserError as error:
        raise UserError(f"thresholds file {path}: {error}") from error


def parse_thresholds(document: Mapping[str, Any]) -> ThresholdsFile:
    """The parsed TOML as checked values."""
    tables = {name: _table(document, name) for name in ("breakdown", "numbers", "names", "made")}
    _refuse_unknown("table", document, tables)
    _refuse_unknown("[breakdown] key", tables["breakdown"], {f.name for f in fields(Thresholds)})
    made_names = {f.name for f in fields(Made)}
    return ThresholdsFile(
        breakdown=replace(Thresholds(), **tables["breakdown"]),
        numbers=_severities(tables["numbers"], "numbers"),
        names=_severities(tables["names"], "names"),
        made=Made(**{key: str(value) for key, value in tables["made"].items() if key in made_names}),
    )


def to_toml(file: ThresholdsFile) -> str:
    """The text of thresholds.toml; `parse_thresholds` reads it back to the same."""
    tables: dict[str, dict[str, Any]] = {
        "breakdown": {f.name: getattr(file.breakdown, f.name) for f in fields(Thresholds)},
        "numbers": {reason: str(verdict) for reason, verdict in file.numbers.items()},
        "names": {reason: str(verdict) for reason, verdict in file.names.items()},
        "made": {f.name: getattr(file.made, f.name) for f in fields(Made) if getattr(file.made, f.name)},
    }
    parts = [
        "\n".join([f"[{name}]", *(f"{_bare(key)} = {_value(value)}" for key, value in table.items())])
        for name, table in tables.items()
        if table
    ]
    return "\n\n".join(parts) + "\n"


def _bare(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _value(key)


def _value(value: Any) -> str:
    """A TOML value: JSON's strings and numbers are TOML's as well, but for DEL, which must be escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def mismatches(made: Made, *, model: str, weights: str, kv: str) -> list[str]:
    """One sentence for each way in which a run differs from what the thresholds were made on."""
    told = {"model": (made.model, model), "weights": (made.weights, weights), "kv": (made.kv, kv)}
    return [
        f"the thresholds were made for {name} {was}, this run has {now}: entropies may lie elsewhere"
        for name, (was, now) in told.items()
        if was and was != now
    ]


def _table(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise UserError(f"{name} must be a table ([{name}]), not {table!r}")
    return table


def _refuse_unknown(what: str, given: Mapping[str, Any], known: Any) -> None:
    for key in given:
        if key not in known:
            raise UserError(f"unknown {what} {key!r}; known: {', '.join(sorted(known))}")


def _severities(table: Mapping[str, Any], name: str) -> dict[str, Verdict]:
    allowed = {str(v) for v in Verdict}
    for reason, severity in table.items():
        if severity not in allowed:
            raise UserError(
                f"[{name}] {reason} = {severity!r}: one of {', '.join(sorted(allowed))} is needed"
            )
    return {reason: Verdict(severity) for reason, severity in table.items()}
