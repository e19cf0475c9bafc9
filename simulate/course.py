"""A run's way through the fallbacks: write, judge, and what is done about a bad verdict.

The order is the whole point and stands in `deliver`: memory (in `writer`), breakdown -> extractive, wrong
figures or names -> one longer summary with the transcript's own sentences in the prompt -> extractive. It
knows neither processes nor files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from seatrial.guards.extract import extract
from seatrial.guards.verdict import Finding, GuardReport, Verdict
from seatrial.simulate.clock import VirtualClock
from seatrial.simulate.job import Attempt, Fallback, Hooks, Kind, refusal
from seatrial.simulate.judge import facts_for, judge, whole_sentences, wrong_findings
from seatrial.simulate.setup import Setup
from seatrial.simulate.uncertain import Tokens, mark_uncertain
from seatrial.simulate.windows import LEAST_TOKENS, Part, largest_budget, longer, merge, part_spans, shares
from seatrial.simulate.writer import OutOfWays, Writer, Written

EXTRACTIVE, LONGER_SUMMARY, SHORTER = "extractive summary", "longer summary", "shorter budget"


@dataclass(frozen=True)
class Delivered:
    """The text that is handed over, and how it was judged."""

    kind: Kind
    text: str
    reports: tuple[GuardReport, ...]


class Course:
    """One run's way through the fallbacks. Keeps what happened: attempts, fallbacks, guard reports."""

    def __init__(self, setup: Setup, writer: Writer, clock: VirtualClock, hooks: Hooks) -> None:
        self._setup, self._basis = setup, setup.basis
        self._writer, self._clock, self._hooks = writer, clock, hooks
        self.parts = list(setup.parts)
        self.texts: list[str] = [""] * len(setup.parts)
        self._tokens: list[Tokens | None] = [None] * len(setup.parts)  # that the texts were cut from
        self.attempts: list[Attempt] = []
        self._own_fallbacks: list[Fallback] = []
        self.breakdown = GuardReport("breakdown", Verdict.OK)
        self.tokens = 0
        self.stopped = False
        self.read: set[int] = set()  # windows that the model has read

    @property
    def fallbacks(self) -> list[Fallback]:
        return [*self._first_fallbacks(), *self._writer.fallbacks, *self._own_fallbacks]

    def _first_fallbacks(self) -> list[Fallback]:
        """What the memory guard decided before the first token."""
        setup = self._setup
        if not setup.job.foresee_memory or setup.memory.chosen == 0:
            return []
        return [
            Fallback("memory", way.action, None, finding.detail)
            for way, finding in zip(
                setup.ways[1 : setup.memory.chosen + 1], setup.memory.report.findings, strict=False
            )
        ]

    def deliver(self) -> Delivered:
        """The first text that may be shown, down the fallbacks; a partial text when the model died."""
        if not self._fit_deadline():
            return self._extractive("deadline", None)
        try:
            if not self._write_parts(range(len(self.parts))):
                return self._after_breakdown()
            first = self._judged("model")
            if refusal(first.reports) is None:
                return first
            self._refuse(first)
            return self._longer(first)
        except OutOfWays as death:
            return self._partial(death)

    # ---- budgets

    def _device_seconds(self, budget: int) -> float:
        """Device time of the whole summary with `budget` tokens, from now on."""
        timing = self._setup.ways[self._setup.first_way].timing(self._basis.bundle)
        sizes = [self._basis.tokenizer.count(part.text) for part in self.parts]
        now_s = self._clock.now_s
        start_s = now_s
        for part, tokens in zip(self.parts, shares(budget, sizes, least=1), strict=True):
            prompt = len(self._basis.ids(part.text, tokens))
            now_s += sum(timing.prefill_s(prompt, 0, now_s))
            now_s += sum(timing.decode_s(prompt, tokens, now_s))
        return now_s - start_s

    def _left_s(self) -> float | None:
        deadline_s = self._setup.job.deadline_s
        return None if deadline_s is None else deadline_s - self._clock.now_s

    def _fit_deadline(self) -> bool:
        """Cuts the budget to the deadline; False when not even a sentence's worth of tokens fits."""
        wanted, left_s = self._setup.job.max_tokens, self._left_s()
        if left_s is None:
            return True
        budget = largest_budget(wanted, self._device_seconds, left_s)
        if budget == wanted:
            return True
        if budget < min(wanted, LEAST_TOKENS * len(self.parts)):
            return False
        sizes = [self._basis.tokenizer.count(part.text) for part in self.parts]
        given = shares(budget, sizes, least=1)
        self.parts = [replace(part, budget=tokens) for part, tokens in zip(self.parts, given, strict=True)]
        detail = f"{budget} tokens instead of {wanted}, to end within {self._setup.job.deadline_s:g} s"
        self._own_fallbacks.append(Fallback("deadline", SHORTER, None, detail))
        return True

    # ---- writing

    def _write_parts(self, places: Sequence[int], facts: Sequence[Sequence[str]] | None = None) -> bool:
        """Lets the model write these parts; False when the breakdown guard stopped one."""
        for place in places:
            hints = tuple(facts[place]) if facts else ()
            written = self._write_part(place, hints)
            self.texts[place] = self._kept(written)
            self._tokens[place] = Tokens(written.pieces, written.entropies_nats)
            if written.trip is not None:
                self.breakdown = _breakdown_report(written)
                self.tokens = len(written.ids)
                return False
        return True

    def _write_part(self, place: int, hints: tuple[str, ...]) -> Written:
        part = self.parts[place]
        ids = self._basis.ids(part.text, part.budget, hints)
        budget = min(part.budget, self._setup.capacity - len(ids))
        if len(self.parts) > 1:
            self._hooks.stage(f"window {place + 1} of {len(self.parts)}")
        self.read.add(place)
        written = self._writer.write(ids, budget, part=place, attempt=len(self.attempts) + 1)
        self.tokens = len(written.ids)
        return written

    def _kept(self, written: Written) -> str:
        return whole_sentences(written.text) if written.reason == "budget" else written.text.strip()

    def _judge(self, text: str) -> tuple[GuardReport, ...]:
        return judge(text, self._basis.transcript, self._basis.policy)

    def _judge_written(
        self, texts: Sequence[str], tokens: Sequence[Tokens | None]
    ) -> tuple[GuardReport, ...]:
        """The same of what the model wrote, with the figures and names marked that it began uncertainly."""
        above_nats = self._basis.thresholds.breakdown.entity_start_nats
        return mark_uncertain(self._judge(merge(texts)), texts, tokens, above_nats=above_nats)

    def _judged(self, kind: Kind) -> Delivered:
        text = merge(self.texts)
        self._hooks.stage("checking figures and names")
        reports = self._judge_written(self.texts, self._tokens) if text else (_empty_report(),)
        return Delivered(kind, text, reports)

    def _refuse(self, delivered: Delivered) -> None:
        self.attempts.append(
            Attempt(
                delivered.kind,
                delivered.text,
                self.tokens,
                (*delivered.reports, self.breakdown),
                refusal((self.breakdown, *delivered.reports)),
            )
        )

    # ---- fallbacks

    def _after_breakdown(self) -> Delivered:
        text = merge(self.texts)
        reports = self._judge_written(self.texts, self._tokens) if text else ()
        self._refuse(Delivered("model" if not self.attempts else "long", text, reports))
        return self._extractive("breakdown", self.tokens)

    def _longer(self, first: Delivered) -> Delivered:
        """One longer summary of the parts with wrong facts, else the extract."""
        wrong = wrong_findings(first.reports)
        places = self._flagged_parts(wrong)
        trigger = "figures" if any(finding.guard == "numbers" for finding in wrong) else "names"
        if not first.text:
            return self._extractive("empty", 0)
        facts = [
            facts_for(self._findings_of(place, wrong), self._basis.transcript)
            for place in range(len(self.texts))
        ]
        if not self._lengthen(places, facts):
            return self._extractive(trigger, self.tokens)
        self._own_fallbacks.append(
            Fallback(trigger, LONGER_SUMMARY, self.tokens, refusal(first.reports) or "")
        )
        if not self._write_parts(places, facts):
            return self._after_breakdown()
        second = self._judged("long")
        if refusal(second.reports) is None:
            return second
        self._refuse(second)
        still_wrong = wrong_findings(second.reports)
        trigger = "figures" if any(finding.guard == "numbers" for finding in still_wrong) else "names"
        return self._extractive(trigger, self.tokens)

    def _flagged_parts(self, wrong: Sequence[Finding]) -> list[int]:
        spans = part_spans(self.texts)
        return [
            place
            for place, (start, end) in enumerate(spans)
            if any(start <= finding.span[0] < end for finding in wrong)
        ]

    def _findings_of(self, place: int, wrong: Sequence[Finding]) -> list[Finding]:
        start, end = part_spans(self.texts)[place]
        return [finding for finding in wrong if start <= finding.span[0] < end]

    def _lengthen(self, places: Sequence[int], facts: Sequence[Sequence[str]]) -> bool:
        """1.5 times the budget of these parts, within context and deadline; False when there is no room."""
        if not places:
            return False
        for place in places:
            part = self.parts[place]
            prompt = len(self._basis.ids(part.text, longer(part.budget), tuple(facts[place])))
            budget = min(longer(part.budget), self._setup.capacity - prompt)
            if budget <= part.budget:
                return False
            self.parts[place] = Part(part.text, budget)
        left_s = self._left_s()
        return left_s is None or self._seconds_of(places, facts) <= left_s

    def _seconds_of(self, places: Sequence[int], facts: Sequence[Sequence[str]]) -> float:
        timing = self._writer.timing
        assert timing is not None
        now_s = self._clock.now_s
        for place in places:
            part = self.parts[place]
            prompt = len(self._basis.ids(part.text, part.budget, tuple(facts[place])))
            now_s += sum(timing.prefill_s(prompt, 0, now_s)) + sum(
                timing.decode_s(prompt, part.budget, now_s)
            )
        return now_s - self._clock.now_s

    def _extractive(self, trigger: str, at_token: int | None) -> Delivered:
        """Sentences of the transcript, which cannot hold an invented figure; judged all the same."""
        self._hooks.stage("taking sentences of the transcript")
        detail = self.attempts[-1].refused or "" if self.attempts else ""
        self._own_fallbacks.append(Fallback(trigger, EXTRACTIVE, at_token, detail))
        basis = self._basis
        chosen = extract(
            basis.transcript,
            budget=basis.job.max_tokens,
            count=basis.tokenizer.count,
            prefer=("decisions", "figures"),
        )
        return Delivered("extractive", chosen.text, self._judge(chosen.text))

    def _partial(self, death: OutOfWays) -> Delivered:
        """The model died and nothing that needs less is left."""
        self.stopped = True
        self.tokens = len(death.written.ids)
        last = death.written
        texts = [*self.texts, last.text]
        tokens = [*self._tokens, Tokens(last.pieces, last.entropies_nats)]
        text = merge(texts)
        if not text:
            return self._extractive("memory" if death.death.kind == "memory" else death.death.kind, None)
        return Delivered("partial", text, self._judge_written(texts, tokens))

    def partial_text(self) -> str:
        """What was written so far, for an interrupt."""
        return merge([*[text for text in self.texts if text], self._writer.current.text])


def _breakdown_report(written: Written) -> GuardReport:
    trip = written.trip
    assert trip is not None
    start = sum(map(len, written.pieces[: trip.since]))
    text = "".join(written.pieces[trip.since :])
    finding = Finding(
        "breakdown",
        text,
        (start, start + len(text)),
        trip.rule,
        Verdict.FAIL,
        trip.rule,
        str(trip.at_token),
        "token",
        None,
        trip.detail,
    )
    return GuardReport("breakdown", Verdict.FAIL, (finding,))


def _empty_report() -> GuardReport:
    finding = Finding(
        "breakdown", "", (0, 0), "empty", Verdict.FAIL, "empty", None, None, None, "the model wrote nothing"
    )
    return GuardReport("breakdown", Verdict.FAIL, (finding,))
