"""Breakdown while the model writes: uncertain for too long, stuck in a loop, or not finite.

Several rules look at different faults, and none may silence another: an entropy run sees a model that no
longer knows what to write, the smoothed mean sees the same with gaps, the repetition rule sees the
confident loop that entropy never shows, the monotony rule the loop that changes a little each time, the
foreign rule words that are not the source's, and a row with NaN trips at once. Once tripped, a guard stays
tripped: what comes later in that generation is not evidence of health. Steps after an end token are not
part of the text and never count.

It says that the text has broken down, not that a figure is wrong; `entity_starts` marks figures and names
whose first token was uncertain, which is a hint for the number and name guards and never a trip.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from seatrial.errors import UserError
from seatrial.guards.signals import SignalMeter, Signals, signals, signals_of_rows
from seatrial.guards.thresholds import Thresholds, require_can_fire
from seatrial.guards.verdict import Finding, GuardReport, Verdict

__all__ = [
    "BreakdownGuard",
    "BreakdownState",
    "LoopCounter",
    "Signals",
    "Thresholds",
    "Trip",
    "UncertainStart",
    "entity_starts",
    "signals",
    "signals_of_rows",
]


@dataclass(frozen=True)
class Trip:
    """Which rule fired, at which token (from 0), in one plain sentence. `since` is the first token of the
    fault.
    """

    rule: str  # "not_finite" | "entropy_run" | "smoothed_entropy" | "repetition" | "monotony" | "foreign"
    at_token: int
    since: int
    detail: str


@dataclass(frozen=True)
class BreakdownState:
    """Where the guard stands after a token: what a trace keeps."""

    token_index: int
    signals: Signals
    run: int  # steps in a row above the threshold, this one included
    smoothed_nats: float
    alert: bool  # between enter and leave
    repeats: float  # how many times the best-repeating phrase stands in a row
    monotony: float  # share of the last tokens that repeat others among them
    foreign: float  # share of the last tokens that do not stand in the source
    trip: Trip | None
    ended: bool = False


class LoopCounter:
    """For each period p: how long the last tokens have been a repetition of the p tokens before them.

    Only periods that repeat now are kept, found through the places where the new token stood last: in a text
    without loops that is one or two of them, so a token costs a microsecond.
    """

    def __init__(self, longest_phrase: int) -> None:
        self._longest = longest_phrase
        self._index = -1
        self._places: dict[int, deque[int]] = {}  # of each token, within reach, oldest first
        self._same: dict[int, int] = {}  # period -> tokens in a row that equal those a period before

    def push(self, token: int) -> None:
        self._index = now = self._index + 1
        places = self._places.setdefault(token, deque())
        while places and now - places[0] > self._longest:
            places.popleft()
        before = self._same
        self._same = {now - place: before.get(now - place, 0) + 1 for place in places}
        places.append(now)

    def best(self, least_tokens: int) -> tuple[float, int]:
        """(times in a row, period) of the phrase repeated most often over at least `least_tokens`.

        (1.0, 0) when there is none; the shorter period when two stand equally often.
        """
        times, best = 1.0, 0
        for period, same in self._same.items():
            covered = same + period  # tokens, the phrase's first time included
            often = covered / period
            if covered >= least_tokens and (often > times or (often == times and period < best)):
                times, best = often, period
        return times, best


class WindowCounter:
    """Of the last `window` tokens: the share that repeats others among them, the share of foreign ones."""

    def __init__(self, window: int, known: frozenset[int] | None = None) -> None:
        self._last: deque[int] = deque()
        self._counts: Counter[int] = Counter()
        self._window, self._known = window, known
        self._foreign = 0

    def push(self, token: int) -> None:
        self._last.append(token)
        self._counts[token] += 1
        self._foreign += self._is_foreign(token)
        if len(self._last) > self._window:
            old = self._last.popleft()
            self._foreign -= self._is_foreign(old)
            self._counts[old] -= 1
            if not self._counts[old]:
                del self._counts[old]

    def _is_foreign(self, token: int) -> bool:
        return self._known is not None and token not in self._known

    @property
    def monotony(self) -> float:
        """0 until the window is full: a short text repeats little."""
        return 1.0 - len(self._counts) / self._window if len(self._last) == self._window else 0.0

    @property
    def foreign(self) -> float:
        return self._foreign / self._window if len(self._last) == self._window else 0.0


class BreakdownGuard:
    """Watches one generation, one token after another; make a new one for the next.

    `top_k`: the logits are only those of the k best tokens, so their entropy cannot pass ln k.
    `source_ids`: the tokens of the source, for the rule that looks for words that are not its own; without
    them that rule is off. Raises `UserError` for thresholds that cannot fire.
    """

    def __init__(
        self,
        vocabulary_size: int,
        thresholds: Thresholds | None = None,
        *,
        end_ids: Iterable[int] = (),
        source_ids: Iterable[int] | None = None,
        top_k: int | None = None,
    ) -> None:
        self.thresholds = thresholds or Thresholds()
        require_can_fire(self.thresholds, vocabulary_size, top_k)
        self.trip: Trip | None = None
        self._end_ids = frozenset(end_ids)
        self._meter = SignalMeter(vocabulary_size)
        self._loops = LoopCounter(self.thresholds.repeat_ngram)
        self._repeated = WindowCounter(self.thresholds.monotony_window)
        known = None if source_ids is None else frozenset(source_ids)
        self._foreign = WindowCounter(self.thresholds.foreign_window, known)
        self._state = BreakdownState(-1, Signals(0.0, 1.0, 1.0, 0.0, 0.0), 0, 0.0, False, 1.0, 0.0, 0.0, None)
        self._alert_since = 0

    def observe(self, logits: NDArray[np.floating], token: int, *, best: int | None = None) -> BreakdownState:
        """Takes the row (V,) that `token` was chosen from. After an end token nothing changes any more.

        `best` is `logits.argmax()` for a caller that knows it already, as a greedy sampler does.
        """
        if self._state.ended:
            return self._state
        return self.observe_signals(self._meter.measure(logits, token, best=best), token)

    def observe_signals(self, measured: Signals, token: int) -> BreakdownState:
        """The same from signals that were measured elsewhere, as in a trace."""
        before = self._state
        if before.ended:
            return before
        if token in self._end_ids:
            self._state = replace(before, ended=True)
            return self._state
        for counter in (self._loops, self._repeated, self._foreign):
            counter.push(token)
        state, period = self._after(before, measured)
        if self.trip is None:
            self.trip = self._first_rule(state, period)
            if self.trip is not None:
                state = replace(state, trip=self.trip)
        self._state = state
        return state

    def _after(self, before: BreakdownState, measured: Signals) -> tuple[BreakdownState, int]:
        """The state after one more token, and the period of the phrase that repeats most."""
        limits, index = self.thresholds, before.token_index + 1
        smoothed = self._smoothed(before, measured, index)
        alert = smoothed > limits.smoothed_enter_nats or (
            before.alert and smoothed >= limits.smoothed_leave_nats
        )
        if alert and not before.alert:
            self._alert_since = index
        repeats, period = self._loops.best(limits.repeat_tokens)
        state = BreakdownState(
            token_index=index,
            signals=measured,
            run=before.run + 1 if measured.entropy > limits.entropy_nats else 0,
            smoothed_nats=smoothed,
            alert=alert,
            repeats=repeats,
            monotony=self._repeated.monotony,
            foreign=self._foreign.foreign,
            trip=self.trip,
        )
        return state, period

    def report(self, pieces: Sequence[str] | None = None) -> GuardReport:
        """Verdict so far. With `pieces`, the text of each token, the finding has its span in the text."""
        if self.trip is None:
            return GuardReport("breakdown", Verdict.OK)
        span, text = _place(self.trip, pieces)
        finding = Finding(
            guard="breakdown",
            text=text,
            span=span,
            kind=self.trip.rule,
            verdict=Verdict.FAIL,
            reason=self.trip.rule,
            value=str(self.trip.at_token),
            unit="token",
            detail=self.trip.detail,
        )
        return GuardReport("breakdown", Verdict.FAIL, (finding,))

    def _smoothed(self, before: BreakdownState, measured: Signals, index: int) -> float:
        """Exponential mean that starts as the plain mean, so that a first uncertain token does not weigh
        most.
        """
        if not measured.finite:
            return before.smoothed_nats
        share = 1.0 / min(index + 1, self.thresholds.smoothing_tokens)
        return before.smoothed_nats + share * (measured.entropy - before.smoothed_nats)

    def _first_rule(self, state: BreakdownState, period: int) -> Trip | None:
        limits, now = self.thresholds, state.token_index
        if not state.signals.finite:
            return Trip("not_finite", now, now, f"the logits of token {now} are not finite")
        if state.run >= limits.run_length:
            since = now - state.run + 1
            return Trip(
                "entropy_run",
                now,
                since,
                f"{state.run} tokens in a row above {limits.entropy_nats:g} nats, from token {since}",
            )
        if state.alert and now - self._alert_since + 1 >= limits.smoothed_dwell:
            return Trip(
                "smoothed_entropy",
                now,
                self._alert_since,
                f"mean entropy {state.smoothed_nats:.2f} nats, above {limits.smoothed_enter_nats:g} since"
                f" token {self._alert_since}",
            )
        if state.repeats >= limits.repeat_times:
            since = now - int(state.repeats * period) + 1
            detail = f"one phrase of {period} tokens {state.repeats:g} times in a row, from token {since}"
            return Trip("repetition", now, since, detail)
        if state.monotony > limits.monotony_share:
            since = now - limits.monotony_window + 1
            different = round((1.0 - state.monotony) * limits.monotony_window)
            detail = f"only {different} different tokens among the last {limits.monotony_window}"
            return Trip("monotony", now, since, detail)
        if state.foreign > limits.foreign_share:
            since = now - limits.foreign_window + 1
            detail = (
                f"{state.foreign:.0%} of the last {limits.foreign_window} tokens stand nowhere in the source"
            )
            return Trip("foreign", now, since, detail)
        return None


def _place(trip: Trip, pieces: Sequence[str] | None) -> tuple[tuple[int, int], str]:
    if pieces is None:
        return (0, 0), ""
    if len(pieces) <= trip.at_token:
        raise UserError(
            f"{len(pieces)} pieces of text for a trip at token {trip.at_token}: one for each token is needed"
        )
    start = sum(map(len, pieces[: trip.since]))
    text = "".join(pieces[trip.since : trip.at_token + 1])
    return (start, start + len(text)), text


@dataclass(frozen=True)
class UncertainStart:
    """A figure or name whose first token was uncertain: look at it twice."""

    span: tuple[int, int]  # in the text
    at_token: int
    entropy_nats: float


def entity_starts(
    spans: Iterable[tuple[int, int]],
    pieces: Sequence[str],
    entropies_nats: Sequence[float],
    *,
    above_nats: float,
) -> list[UncertainStart]:
    """Which of `spans` (figures and names of the text) begin in a token with an entropy above `above_nats`.

    `pieces` is the text of each token in order, `entropies_nats` the entropy each was chosen at. Only the
    first token tells: two tokens into a name the model merely completes what it began. A character that took
    several tokens of bytes (all but the last are empty pieces) counts with the highest of them. An entropy
    that is not finite is a breakdown, not a mark.
    """
    if len(pieces) != len(entropies_nats):
        raise UserError(
            f"{len(pieces)} pieces and {len(entropies_nats)} entropies: one each per token is needed"
        )
    ends = np.cumsum([len(piece) for piece in pieces])
    found = []
    for start, end in spans:
        last = int(np.searchsorted(ends, start, side="right"))
        if last >= len(pieces):
            raise UserError(f"span [{start}, {end}) begins behind the end of the text of the pieces")
        place = last
        while place and ends[place - 1] == start and not pieces[place - 1]:
            place -= 1
        entropy = max(entropies_nats[place : last + 1])
        if above_nats < entropy < math.inf:
            found.append(UncertainStart((start, end), place, entropy))
    return found
