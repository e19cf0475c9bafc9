"""Lets the model write: one child after another, each under a ceiling, down the ways that need less memory.

A child that dies for want of memory (or is killed) is replaced by one that runs the next way, once per
way, and the piece of work it died on is begun again. Device time is added for every chunk and token, also
for those of an attempt that died: the device would have spent it. What is asked and how it is judged is
not known here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from seatrial.export.bundle import Bundle
from seatrial.export.tokenizer import Tokenizer
from seatrial.guards.breakdown import Thresholds, Trip
from seatrial.simulate.ceiling import Ceiling, drop_cached_pages, open_ceiling
from seatrial.simulate.clock import VirtualClock
from seatrial.simulate.job import Fallback, Hooks, Phase
from seatrial.simulate.memory_watch import MemoryUse
from seatrial.simulate.timing import CHUNK_TOKENS, Timing
from seatrial.simulate.trace import TraceWriter
from seatrial.simulate.worker import ChildDied, Event, Opened, Worker


@dataclass(frozen=True)
class Found:
    """A bundle, and the files its weights are read from (packed ones lie elsewhere)."""

    bundle: Bundle
    weight_files: tuple[Path, ...]


@dataclass(frozen=True)
class RunWay:
    """One way to run. `action` leads to it ("" for what was asked); `find` makes or finds its bundle."""

    action: str
    kv: str
    mapped: bool
    find: Callable[[], Found]
    timing: Callable[[Bundle], Timing]
    ballast_bytes: int = 0


@dataclass(frozen=True)
class Settings:
    """What is the same for every child of a run."""

    ceiling_bytes: int
    capacity: int
    strict: bool = False
    threads: int | None = None
    patience_s: float = 300.0
    real_pace: bool = False
    thresholds: Thresholds = field(default_factory=Thresholds)


@dataclass
class Written:
    """What came of one generation. `reason`: end | budget | breakdown | deadline."""

    text: str = ""
    ids: list[int] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)
    entropies_nats: list[float] = field(default_factory=list)  # one each; NaN where the logits were broken
    reason: str = "end"
    trip: Trip | None = None


class OutOfWays(Exception):
    """The child died and no way is left. `written` is what it had until then."""

    def __init__(self, death: ChildDied, written: Written) -> None:
        super().__init__(death.detail)
        self.death, self.written = death, written


class Writer:
    """Runs generations. Use as a context manager; `current` is the generation under way, for an interrupt."""

    def __init__(
        self,
        ways: Sequence[RunWay],
        settings: Settings,
        tokenizer: Tokenizer,
        clock: VirtualClock,
        trace: TraceWriter,
        hooks: Hooks,
        *,
        first_way: int = 0,
    ) -> None:
        self._ways, self._settings, self._tokenizer = ways, settings, tokenizer
        self._clock, self._trace, self._hooks = clock, trace, hooks
        self._place = first_way
        self._worker: Worker | None = None
        self._ceiling: Ceiling | None = None
        self._held: list[int] = []  # ids the child's cache holds
        self.opened: Opened | None = None
        self.timing: Timing | None = None
        self.bundle: Bundle | None = None
        self.current = Written()
        self.prefill, self.decode = Phase(), Phase()
        self.first_token: tuple[float, float] | None = None  # (device, host) seconds
        self.peak = MemoryUse()
        self.peak_ceiling_bytes: int | None = None
        self.mechanism = ""
        self.enforced_bytes = settings.ceiling_bytes
        self.notes: list[str] = []
        self.fallbacks: list[Fallback] = []
        self.deaths: list[dict[str, Any]] = []

    @property
    def way(self) -> RunWay:
        return self._ways[self._place]

    def write(self, ids: list[int], max_tokens: int, **row: Any) -> Written:
        """Greedy text after `ids`, at most `max_tokens` tokens. `row` goes into the trace.

        Raises `OutOfWays`, and `UserError` for what the child refuses.
        """
        while True:
            self.current = Written()
            try:
                self._open()
                return self._generate(ids, max_tokens, row)
            except ChildDied as death:
                self._close_child()
                self._record(death)
                if not self._may_retry(death):
                    raise OutOfWays(death, self.current) from death
                self._next_way(death)

    def _may_retry(self, death: ChildDied) -> bool:
        return death.kind in ("memory", "killed") and self._place + 1 < len(self._ways)

    def _record(self, death: ChildDied) -> None:
        entry = {
            "kind": death.kind,
            "detail": death.detail,
            "way": self.way.action or "as asked",
            "at_token": len(self.current.ids) or None,
            "partial": self.current.text,
        }
        self.deaths.append(entry)
        self._trace.row("died", **entry)

    def _next_way(self, death: ChildDied) -> None:
        at_token = len(self.current.ids) or None
        self._place += 1
        detail = f"{death.detail} at {'token ' + str(at_token) if at_token else 'the start'}"
        trigger = "memory" if death.kind == "memory" else "killed"
        self.fallbacks.append(Fallback(trigger, self.way.action, at_token, detail))
        self._hooks.note(f"{detail}: trying again with {self.way.action}")

    def _open(self) -> None:
        if self._worker is not None:
            return
        way, settings = self.way, self._settings
        found = way.find()
        self.bundle = found.bundle
        self.timing = way.timing(self.bundle)
        drop_cached_pages(found.weight_files)
        self._hooks.stage("opening the model")
        self._ceiling = open_ceiling(settings.ceiling_bytes, strict=settings.strict, mapped=way.mapped)
        self.mechanism, self.enforced_bytes = self._ceiling.mechanism, self._ceiling.limit_bytes
        self.notes = list(dict.fromkeys([*self.notes, *self._ceiling.notes]))
        self._worker = Worker(self._ceiling, patience_s=settings.patience_s)
        self.opened = self._worker.open(
            bundle=str(self.bundle.folder),
            capacity=settings.capacity,
            threads=settings.threads,
            weights="mapped" if way.mapped else "heap",
            thresholds=asdict(settings.thresholds),
            eos=sorted(self._tokenizer.eos_ids),
        )
        if way.ballast_bytes:
            self._worker.hold_ballast(way.ballast_bytes)
        self._held = []
        self.decode.host_steps_s.clear()

    def _generate(self, ids: list[int], max_tokens: int, row: dict[str, Any]) -> Written:
        assert self._worker is not None
        assert self.timing is not None
        keep = shared_prefix(self._held, ids)
        chunks = self.timing.prefill_s(len(ids) - keep, keep, self._clock.now_s)
        steps = self.timing.decode_s(len(ids), max_tokens, self._clock.now_s + sum(chunks))
        paced = self._settings.real_pace
        self._held = list(ids)
        stream = self._tokenizer.stream()
        waiting, host_before, read_before = iter(chunks), 0.0, 0
        for event in self._worker.generate(
            keep=keep,
            ids=ids[keep:],
            max_tokens=max_tokens,
            chunk=CHUNK_TOKENS,
            prefill_s=chunks if paced else None,
            decode_s=steps if paced else None,
            source=sorted(set(ids)),
        ):
            if event["event"] == "prefill":
                self._took_chunk(event, next(waiting), event["host_s"] - host_before, read_before, row)
                host_before, read_before = event["host_s"], event["done"]
            elif event["event"] == "token":
                self._took_token(event, steps, stream.push(event["id"]), max_tokens, row)
            else:
                self._finish(event, steps, stream.finish())
        return self.current

    def _took_chunk(
        self, event: Event, device_s: float, host_s: float, read_before: int, row: dict[str, Any]
    ) -> None:
        self._clock.advance(device_s)
        tokens = event["done"] - read_before
        self.prefill.tokens += tokens
        self.prefill.steps += 1
        self.prefill.device_s += device_s
        self.prefill.host_s += host_s
        self.prefill.limited += host_s > device_s
        self._trace.row("prefill", tokens=tokens, device_s=device_s, host_s=host_s, **row)
        self._hooks.prefill(event["done"], event["of"], event["host_s"], self._clock.now_s)

    def _took_token(self, event: Event, steps: list[float], piece: str, of: int, row: dict[str, Any]) -> None:
        index = event["index"]
        # The first token comes with the prompt's last chunk: no pass of its own.
        device_s = steps[index - 1] if index else 0.0
        self._count_token(index, device_s, event["host_s"], event["host_limited"])
        self.current.ids.append(event["id"])
        self.current.pieces.append(piece)
        self.current.entropies_nats.append(math.nan if event["entropy"] is None else event["entropy"])
        self.current.text += piece
        self._held.append(event["id"])
        fields = {key: value for key, value in event.items() if key not in ("event", "host_limited")}
        use = self._worker.watch.latest if self._worker is not None else MemoryUse()
        self._trace.row(
            "token",
            **fields,
            text=piece,
            device_s=device_s,
            clock_s=self._clock.now_s,
            private_bytes=use.private_bytes,
            mapped_bytes=use.mapped_bytes,
            **row,
        )
        self._hooks.token(piece, index + 1, of, event["host_s"], device_s)

    def _count_token(self, index: int, device_s: float, host_s: float, limited: bool) -> None:
        if self.first_token is None:
            self.first_token = (self.prefill.device_s, self.prefill.host_s + host_s)
        self.decode.tokens += 1
        if index == 0:
            return
        self._clock.advance(device_s)
        self.decode.steps += 1
        self.decode.device_s += device_s
        self.decode.host_s += host_s
        self.decode.host_steps_s.append(host_s)
        self.decode.limited += limited or (not self._settings.real_pace and host_s > device_s)

    def _finish(self, event: Event, steps: list[float], rest: str) -> None:
        self.current.reason = event["reason"]
        self.current.trip = None if event["trip"] is None else Trip(**event["trip"])
        if rest and self.current.pieces:
            self.current.pieces[-1] += rest
            self.current.text += rest
        written = len(self.current.ids)
        if event["reason"] == "end" and written:
            self._clock.advance(steps[written - 1])  # the pass that chose the end token
        elif written:
            self._held.pop()  # the last token was chosen but not read: the cache ends before it

    def _close_child(self) -> None:
        if self._worker is not None:
            self.peak = self.peak.peak_with(self._worker.close())
            if self._worker.watch.problem:
                self.notes.append(self._worker.watch.problem)
            self._worker = None
        if self._ceiling is not None:
            peak = self._ceiling.peak_bytes()
            if peak is not None:
                self.peak_ceiling_bytes = max(peak, self.peak_ceiling_bytes or 0)
            self._ceiling.close()
            self._ceiling = None

    def close(self) -> None:
        """Ends the child and removes the ceiling; figures stay."""
        self._close_child()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def shared_prefix(held: Sequence[int], ids: Sequence[int]) -> int:
    """Tokens at the beginning of `ids` that are held already, at most all but one: one must be read anew."""
    same = 0
    for have, want in zip(held, ids[:-1], strict=False):
        if have != want:
            break
        same += 1
    return same


def bundle_bytes(folder: Path) -> int:
    """Bytes of a bundle's model files."""
    return sum(
        file.stat().st_size
        for file in folder.iterdir()
        if file.is_file() and file.name.startswith("model.onnx")
    )
