"""Many traces: each job once, in parallel, a file each; killed at any point, the next start goes on.

A trace lies in `OUT/traces/KEY.jsonl`, KEY being a digest of everything that decides it, and appears whole
or not at all. What is there is not computed again. Workers only compute; one process writes, so it does not
matter whether the workers are processes here or an existing Dask cluster. `OUT/index.jsonl` lists what
belongs to the sweep, in the order of the keys: the same jobs give the same files wherever they ran.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from seatrial.errors import UserError
from seatrial.simulate.output import write_atomically

TRACES, INDEX = "traces", "index.jsonl"


class Job(Protocol):
    """What a sweep asks of a job: a name for its file that tells everything that decides the trace."""

    @property
    def key(self) -> str: ...


SomeJob = TypeVar("SomeJob", bound=Job)
Work = Callable[[SomeJob], str]  # picklable; the text of a trace
Pairs = Iterator[tuple[SomeJob, str]]
Runner = Callable[[Work, Sequence[SomeJob]], Pairs]


@dataclass(frozen=True)
class SweepResult:
    """What a sweep did. `failed`: key and reason of the jobs that could not be done."""

    found: int
    made: int
    failed: tuple[tuple[str, str], ...]
    index: Path


def run_sweep(
    jobs: Sequence[SomeJob],
    work: Work,
    out: Path,
    runner: Runner,
    *,
    on_done: Callable[[int, int], None] | None = None,
) -> SweepResult:
    """Computes what is missing in `out` and writes the index. `on_done(done, of)` after each trace.

    A job that raises `UserError` does not end the sweep; it is told in the result and tried again next time.
    """
    by_key = {job.key: job for job in jobs}
    folder = out / TRACES
    _make(folder)
    missing = [job for key, job in by_key.items() if not (folder / f"{key}.jsonl").is_file()]
    failed: list[tuple[str, str]] = []
    made = 0
    for job, text in runner(_Careful(work), missing):
        if text.startswith(_FAILED):
            failed.append((job.key, text.removeprefix(_FAILED)))
        else:
            write_atomically(folder / f"{job.key}.jsonl", text)
            made += 1
        if on_done is not None:
            on_done(len(by_key) - len(missing) + made + len(failed), len(by_key))
    index = out / INDEX
    write_atomically(index, "".join(_index_rows(sorted(by_key), folder)))
    return SweepResult(len(by_key) - len(missing), made, tuple(sorted(failed)), index)


_FAILED = "\x00"


class _Careful:
    """The work, with a job's own `UserError` as a value: one bad transcript does not end two hundred."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def __call__(self, job: Any) -> str:
        try:
            return self.work(job)
        except UserError as error:
            return f"{_FAILED}{error}"


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"cannot make {folder}: {error.strerror or error}; give another with --out") from None
    for leftover in folder.glob(".*.part"):  # of a sweep that was killed between write and rename
        leftover.unlink(missing_ok=True)


def _index_rows(keys: Iterable[str], folder: Path) -> Iterator[str]:
    for key in keys:
        path = folder / f"{key}.jsonl"
        if path.is_file():
            with path.open(encoding="utf-8") as lines:
                rows = [json.loads(line) for line in (lines.readline(), lines.readline())]
            told = next((row for row in rows if row.get("event") == "job"), {"key": key})
            yield json.dumps({**told, "file": f"{TRACES}/{key}.jsonl"}, ensure_ascii=False) + "\n"


# ---- where the work is done
# ----------------------------------------------------------------------------------------


def one_after_another(work: Work, jobs: Sequence[SomeJob]) -> Pairs:
    """In this process."""
    for job in jobs:
        yield job, work(job)


def process_pool(workers: int) -> Runner:
    """In `workers` processes of this machine, which end when this one does, however it does."""

    def run(work: Work, jobs: Sequence[SomeJob]) -> Pairs:
        if not jobs:
            return
        context = multiprocessing.get_context("spawn")  # a forked onnxruntime hangs
        with ProcessPoolExecutor(workers, context, _die_with_parent, (os.getpid(),)) as pool:
            yield from _as_they_come(lambda job: pool.submit(work, job), jobs, 2 * workers)

    return run


def dask_cluster(address: str, *, patience_s: float = 20.0) -> Runner:
    """On an existing Dask cluster, whose workers have this package and can reach the models.

    Needs the extra `seatrial[dask]`; `UserError` without it or when the scheduler does not answer.
    """

    def run(work: Work, jobs: Sequence[SomeJob]) -> Pairs:
        if not jobs:
            return
        client = _client(address, patience_s)
        try:
            from distributed import as_completed

            of_future = {client.submit(work, job, key=f"seatrial-{job.key}", pure=False): job for job in jobs}
            for future in as_completed(of_future):
                yield of_future[future], future.result()
        finally:
            client.close()

    return run


def _client(address: str, patience_s: float) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise UserError("--dask needs Dask: install seatrial[dask], or leave --dask out") from None
    try:
        return Client(address, timeout=patience_s)
    except (OSError, ValueError, TimeoutError) as error:
        raise UserError(f"no Dask scheduler answers at {address}: {error or 'time out'}") from None


def _as_they_come(submit: Callable[[Any], Future[str]], jobs: Sequence[SomeJob], ahead: int) -> Pairs:
    """Results as they are done, never more than `ahead` jobs handed out: an interrupt loses little."""
    waiting = iter(jobs)
    running: dict[Future[str], SomeJob] = {}
    try:
        while True:
            for job in waiting:
                running[submit(job)] = job
                if len(running) >= ahead:
                    break
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield running.pop(future), future.result()
    finally:
        for future in running:
            future.cancel()


def _die_with_parent(parent: int) -> None:
    """Linux: ends this worker when the sweep ends, also by SIGKILL. Elsewhere the closed pipe does it."""
    if sys.platform != "linux":
        return
    import ctypes

    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
    if os.getppid() != parent:
        os._exit(1)


# ---- the work itself
# -----------------------------------------------------------------------------------------------

_ENGINES: Any = None  # of a worker process: opening a model for each trace would cost more than the trace


def trace_work(job: Any) -> str:
    """The trace of a `trace_job.TraceJob`, with the models this process has open already."""
    from seatrial.simulate.trace_job import Engines, make_trace

    global _ENGINES
    if _ENGINES is None:
        _ENGINES = Engines()
    return make_trace(job, _ENGINES)
