"""One trace: a model writes (or is made to read a person's) summary, nothing stops it, every step is
measured.

Unlike a run, no guard ends it, so that a sweep of thresholds sees what would have come. The text of a trace
is the same on every worker: greedy, seeded, the same number of threads, no times in it. What the figures
mean is `guards.tune`'s.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from seatrial.errors import UserError
from seatrial.guards.transcript import Transcript, parse_transcript, windows
from seatrial.simulate.plant import IN_WEIGHTS, Fault
from seatrial.simulate.prompt import Prompt, default_prompt, language_of, own_prompt

if TYPE_CHECKING:
    from seatrial.export.bundle import Bundle
    from seatrial.export.session import Session
    from seatrial.export.tokenizer import Tokenizer

FORMAT = 1
_CHUNK = 512
_ROOM_FOR_FAULTS = 64


@dataclass(frozen=True)
class TraceJob:
    """Everything that decides a trace, and nothing else: `key` names its file.

    `reference`: the text of a person, which the model is made to read token by token instead of writing.
    `plant`: a fault of `plant.KINDS` from token `plant_at` on; with a reference, the text is followed until
    then. `prompt_tokens`: at most so many tokens of prompt; the transcript is cut at a turn to fit.
    """

    document: str
    transcript: str
    model: str | None = None
    model_name: str = ""  # what the trace says instead of a path
    weights: str | None = None  # int4, and a bundle as it is
    kv: str = "fp32"
    max_tokens: int = 200
    prompt_tokens: int | None = None
    prompt: str | None = None
    reference: str | None = None
    plant: str | None = None
    plant_at: int = 0
    seed: int = 0
    threads: int = 1
    check: bool = True

    @property
    def key(self) -> str:
        """24 hex digits over every field that decides the trace."""
        fields = {name: value for name, value in asdict(self).items() if name != "model_name"}
        told = json.dumps(fields, ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()[:24]

    @property
    def kind(self) -> str:
        return self.plant or ("reference" if self.reference is not None else "free")


class Engines:
    """Sessions that a worker keeps open: one per bundle, with the state behind the last prompt."""

    def __init__(self) -> None:
        self._name: tuple[Any, ...] | None = None
        self.session: Session | None = None
        self.tokenizer: Tokenizer
        self.bundle: Bundle
        self._prompt: list[int] = []
        self._logits: Any = None

    def open(self, job: TraceJob) -> None:
        """The bundle of this job; the one before is closed when it is another."""
        from seatrial.export.tokenizer import Tokenizer
        from seatrial.simulate.prepare import ensure_bundle

        name = (job.model, job.weights, job.kv, job.threads)
        if self._name == name:
            return
        self.close()
        self.bundle = ensure_bundle(job.model, job.weights, job.kv)
        self.tokenizer = Tokenizer.load(self.bundle.folder)
        self._name = name

    def after(self, prompt: list[int], room: int, threads: int) -> Any:
        """Logits behind `prompt`, with room for more; read anew unless it is the prompt read last, whole.

        A shared beginning is not reused: other pieces give other rounding, and a trace may not depend on
        which worker had it.
        """
        if self.session is None or self.session.capacity < len(prompt) + room:
            self._open_session(len(prompt) + room, threads)
        assert self.session is not None
        if prompt != self._prompt:
            self.session.reset()
            self._logits = self.session.prefill(prompt, chunk=_CHUNK)
            self._prompt = list(prompt)
        self.session.truncate(len(prompt))
        return self._logits

    def _open_session(self, needed: int, threads: int) -> None:
        from seatrial.export.session import Session

        if self.session is not None:
            self.session.close()
        self._prompt = []
        self.session = Session(self.bundle, capacity=-(-needed // 512) * 512, threads=threads)

    def close(self) -> None:
        if self.session is not None:
            self.session.close()
        self.session, self._name, self._prompt = None, None, []


def make_trace(job: TraceJob, engines: Engines) -> str:
    """The trace of `job` as JSON lines: `trace`, `job`, one `token` for each step, `done`.

    Raises `UserError` for a job that cannot be done.
    """
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in _rows(job, engines))


def _rows(job: TraceJob, engines: Engines) -> Iterator[dict[str, Any]]:
    transcript = parse_transcript(job.transcript)
    engines.open(job)
    prompt = _prompt_ids(job, transcript, engines)
    fault = None if job.plant is None or job.plant in IN_WEIGHTS else Fault(job.plant, job.plant_at, job.seed)
    yield {"event": "trace", "format": FORMAT}
    yield _header(job, len(prompt), engines)
    stream = engines.tokenizer.stream()
    text, reason, written = "", "budget", 0
    for step in _steps(job, fault, prompt, engines):
        if step is None:
            reason = "end"
            break
        step["text"] = stream.push(step["id"])
        text += step["text"]
        written += 1
        yield _finite(step)
    text += stream.finish()
    yield {
        "event": "done",
        "reason": reason,
        "tokens": written,
        "text": text,
        **_checked(job, text, transcript),
    }


def _header(job: TraceJob, prompt_tokens: int, engines: Engines) -> dict[str, Any]:
    from seatrial.simulate.prepare import formats_of

    weights, kv = formats_of(engines.bundle)
    return {
        "event": "job",
        "key": job.key,
        "document": job.document,
        "language": language_of(job.transcript),
        "model": job.model_name or job.model or "embedded",
        "weights": weights,
        "kv": kv,
        "kind": job.kind,
        "plant_at": None if job.plant is None else job.plant_at,
        "seed": job.seed,
        "prompt_tokens": prompt_tokens,
        "vocabulary": engines.bundle.config.get("vocab_size"),
        "max_tokens": job.max_tokens,
        "threads": job.threads,
    }


def _prompt_ids(job: TraceJob, transcript: Transcript, engines: Engines) -> list[int]:
    """The conversation, its transcript cut at turns to `prompt_tokens` and to the model's context."""
    tokenizer, prompt = engines.tokenizer, _prompt(job)
    context = engines.bundle.config.get("max_position_embeddings") or engines.bundle.config.get("n_positions")
    most = min(v for v in (context, job.prompt_tokens and job.prompt_tokens + job.max_tokens) if v)
    ids = lambda text: tokenizer.chat(prompt.messages(text, job.max_tokens))
    overhead = len(ids(""))
    room = most - job.max_tokens - _ROOM_FOR_FAULTS - overhead
    if room < 16:
        raise UserError(
            f"{room} tokens are left for the transcript of {job.document} beside the prompt ({overhead}) and "
            f"the summary ({job.max_tokens}): lower --max-tokens or raise --prompt-tokens"
        )
    return ids(windows(transcript, room, tokenizer.count)[0])


def _prompt(job: TraceJob) -> Prompt:
    from pathlib import Path

    if job.prompt is None:
        return default_prompt(job.transcript)
    return own_prompt(job.prompt, job.transcript, Path("the prompt"))


def _steps(
    job: TraceJob, fault: Fault | None, prompt: list[int], engines: Engines
) -> Iterator[dict[str, Any] | None]:
    """What was seen and chosen at each step; None when the model ended its text by itself."""
    from seatrial.guards.signals import SignalMeter

    logits = engines.after(prompt, job.max_tokens + _ROOM_FOR_FAULTS, job.threads)
    session, ends = engines.session, engines.tokenizer.eos_ids
    assert session is not None
    meter = SignalMeter(len(logits))
    forced = engines.tokenizer.encode(job.reference)[: job.max_tokens] if job.reference is not None else []
    if job.plant is not None:
        forced = forced[: job.plant_at]
    written: list[int] = []
    known = frozenset(prompt)
    for index in range(job.max_tokens):
        if job.reference is not None and job.plant is None and index == len(forced):
            yield None
            return
        for token in fault.scrambled(index, len(logits)) if fault else ():
            logits = session.step(token)
        seen = fault.logits(index, logits) if fault else logits
        token = forced[index] if index < len(forced) else _choice(fault, index, seen, written)
        if token in ends and index >= len(forced):
            yield None
            return
        measured = meter.measure(seen, token)
        written.append(token)
        yield {"event": "token", "index": index, "id": token, "known": token in known, **asdict(measured)}
        if index + 1 < job.max_tokens:
            logits = session.step(token)


def _choice(fault: Fault | None, index: int, seen: Any, written: list[int]) -> int:
    return fault.choose(index, seen, written) if fault else int(np.argmax(seen))


def _finite(row: dict[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}


def _checked(job: TraceJob, text: str, transcript: Transcript) -> dict[str, Any]:
    """How many figures and names of the text the guards refuse; None where that was not asked."""
    if not job.check or job.kind != "free":
        return {"wrong_figures": None, "wrong_names": None}
    from seatrial.guards.check import check
    from seatrial.guards.verdict import Verdict

    wrong = [finding for finding in check(text, transcript.text).findings if finding.verdict is Verdict.FAIL]
    return {
        "wrong_figures": sum(finding.guard == "numbers" for finding in wrong),
        "wrong_names": sum(finding.guard == "names" for finding in wrong),
    }
