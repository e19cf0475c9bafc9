"""What stopping costs: a missed error against a needless fallback, and what each policy shows in how many
seconds.

Costs are in units of one needless fallback, so only their ratio is a choice. `share_broken` is how many of
all runs are broken where the guard will stand; in a set of planted faults half of them are, which says
nothing about that. Pure arithmetic over runs; which runs are stopped is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seatrial.guards.curves import Bools, Curve, Floats, curve
from seatrial.guards.rules import TracedRun

COST_RATIOS = (1, 2, 5, 10, 20, 50, 100)


def expected_cost(
    caught: Floats | float, false_stops: Floats | float, *, missed_cost: float, share_broken: float
) -> Floats | float:
    """Cost of a run: share_broken x missed x missed_cost + the rest x false stops x 1."""
    return share_broken * (1.0 - caught) * missed_cost + (1.0 - share_broken) * false_stops


@dataclass(frozen=True)
class Cheapest:
    """The threshold of one rule at which a run costs least, for one price of a missed error."""

    missed_cost: float
    threshold: float
    cost: float
    caught: float
    false_stops: float


def cheapest_points(
    scores: Floats, bad: Bools, *, share_broken: float, ratios: Sequence[float] = COST_RATIOS
) -> list[Cheapest]:
    """The cost curve of one rule: its best threshold for each price; of equals the one that stops least."""
    found = curve(scores, bad)
    points = []
    for missed_cost in ratios:
        cost = np.asarray(
            expected_cost(found.caught, found.false_stops, missed_cost=missed_cost, share_broken=share_broken)
        )
        place = int(np.argmin(cost))
        points.append(
            Cheapest(
                float(missed_cost),
                float(found.thresholds[place]),
                float(cost[place]),
                float(found.caught[place]),
                float(found.false_stops[place]),
            )
        )
    return points


def risk_coverage(scores: Floats, bad: Bools, *, share_broken: float) -> list[tuple[float, float]]:
    """(share of runs shown, share of the shown that are broken) for each threshold, at `share_broken`."""
    found: Curve = curve(scores, bad)
    shown_bad = share_broken * (1.0 - found.caught)
    shown = shown_bad + (1.0 - share_broken) * (1.0 - found.false_stops)
    return [(float(s), float(b / s)) for s, b in zip(shown, shown_bad, strict=True) if s > 0]


@dataclass(frozen=True)
class Prices:
    """Seconds: of one token written, of one extract, and of reading the prompt before the first token."""

    token_s: float
    extract_s: float
    prefill_s: float


@dataclass(frozen=True)
class PolicyResult:
    """Per summary: seconds, wrong figures and names shown, broken texts shown, and how often it is
    extractive.
    """

    policy: str
    seconds: float
    wrong_shown: float
    broken_shown: float
    extractive: float


POLICIES = ("show everything", "breakdown guard", "number and name guard", "both guards", "always extractive")


def joint_view(
    runs: Sequence[TracedRun], fired_at: Sequence[int | None], prices: Prices
) -> list[PolicyResult]:
    """What each policy costs and shows over `runs`, all of which must have been checked by the number
    guard.

    `fired_at[i]`: the token at which the breakdown guard stops run i. A text that is refused is replaced by
    an extract, which shows no wrong figure; the number guard judges whole texts, so it saves no token.
    """
    if not runs or any(run.wrong_figures is None for run in runs):
        raise ValueError("the joint view needs runs that were checked")
    return [_policy(name, runs, fired_at, prices) for name in POLICIES]


def _policy(
    name: str, runs: Sequence[TracedRun], fired_at: Sequence[int | None], prices: Prices
) -> PolicyResult:
    seconds, wrong, broken, extractive = 0.0, 0, 0, 0
    for run, fired in zip(runs, fired_at, strict=True):
        stops = fired is not None and name in ("breakdown guard", "both guards")
        refuses = not stops and bool(run.wrong_figures) and name in ("number and name guard", "both guards")
        if name == "always extractive":
            seconds += prices.extract_s
            extractive += 1
            continue
        written = fired + 1 if stops and fired is not None else len(run)
        seconds += prices.prefill_s + written * prices.token_s
        if stops or refuses:
            seconds += prices.extract_s
            extractive += 1
        else:
            wrong += run.wrong_figures or 0
            broken += bool(run.broken)
    count = len(runs)
    return PolicyResult(name, seconds / count, wrong / count, broken / count, extractive / count)
