"""The run: a model writes a summary under a device's limits, guards judge it, something fit to read comes
out.

The one place where set-up, writer, fallbacks and output folder meet. The fallbacks are in `course`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from seatrial.simulate.clock import VirtualClock
from seatrial.simulate.course import Course
from seatrial.simulate.job import Hooks, RunJob, RunResult, Silent
from seatrial.simulate.output import PARTIAL, RESULT, SOURCE, SUMMARY, TRACE, prepare_output, write_atomically
from seatrial.simulate.result import build_result
from seatrial.simulate.setup import Setup, resolve_out, set_up
from seatrial.simulate.trace import TraceWriter
from seatrial.simulate.writer import Settings, Writer


def run(job: RunJob, hooks: Hooks | None = None) -> RunResult:
    """Carries out `job` and leaves summary, result and trace in its output folder.

    Raises `UserError` for what cannot be used. On an interrupt the partial summary is saved, the child
    ended and the ceiling removed before `KeyboardInterrupt` (or `SystemExit`) goes on.
    """
    hooks = hooks or Silent()
    job = replace(job, out=resolve_out(job.out))
    setup = set_up(job, hooks)
    prepare_output(job.out, job.inputs)
    clock = VirtualClock()
    with TraceWriter(job.out / TRACE) as trace:
        writer = Writer(
            setup.ways,
            _settings(setup),
            setup.basis.tokenizer,
            clock,
            trace,
            hooks,
            first_way=setup.first_way,
        )
        with writer:
            course = Course(setup, writer, clock, hooks)
            try:
                delivered = course.deliver()
            except (KeyboardInterrupt, SystemExit):
                _save_partial(job, course, hooks)
                raise
    result = build_result(setup, writer, course, delivered, trace)
    return _save(job, result, setup.basis.transcript.text)


def _settings(setup: Setup) -> Settings:
    return Settings(
        ceiling_bytes=setup.basis.ceiling_bytes,
        capacity=setup.capacity,
        strict=setup.job.strict,
        threads=setup.job.threads,
        patience_s=setup.job.patience_s,
        real_pace=setup.job.pace == "real",
        thresholds=setup.basis.thresholds.breakdown,
    )


def _save(job: RunJob, result: RunResult, source: str) -> RunResult:
    """Summary and result in the output folder; what could not be written is said in the result."""
    name = PARTIAL if result.status == "partial" else SUMMARY
    unsaved = [_try_to_write(job.out / name, result.summary + "\n")]
    text = json.dumps(result.to_json(), ensure_ascii=False, indent=2, allow_nan=False)
    unsaved.append(_try_to_write(job.out / RESULT, text + "\n"))
    unsaved.append(_try_to_write(job.out / SOURCE, source))
    told = tuple(problem for problem in unsaved if problem)
    return replace(result, notes=(*result.notes, *told), unsaved=told) if told else result


def _try_to_write(path: Path, text: str) -> str | None:
    try:
        write_atomically(path, text)
    except OSError as error:
        return f"could not write {path}: {error.strerror or error}"
    return None


def _save_partial(job: RunJob, course: Course, hooks: Hooks) -> None:
    """On the way out after an interrupt: a full disk must not hide the interrupt."""
    text = course.partial_text()
    if not text:
        return
    problem = _try_to_write(job.out / PARTIAL, text + "\n")
    hooks.stage(problem or f"stopped; what was written so far is in {job.out / PARTIAL}")
