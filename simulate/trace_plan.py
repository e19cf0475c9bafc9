"""Which traces a folder of transcripts gives: every transcript with every model, format, length and fault.

A transcript is a `.txt`, `.srt` or `.vtt` file; a person's summary of it has the same stem in another folder.
Reads and lists, and makes the bundles that are asked for; computing is `sweep`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from seatrial.errors import UserError
from seatrial.simulate.plant import IN_WEIGHTS, KINDS, broken_bundle
from seatrial.simulate.trace_job import TraceJob

SUFFIXES = (".txt", ".srt", ".vtt")
# Enough to break the embedded model's text for good, by trial.
SEVERITY = {"noised-weights": 0.5, "flipped-bits": 0.02}
BEGINS = (12, 24, 36, 48)  # tokens at which a fault begins, in turn over the documents

Read = Callable[[Path], str]
Progress = Callable[[str, float | None], None]


@dataclass(frozen=True)
class TracePlan:
    """What `seatrial trace` is asked. Empty `models`: the embedded one."""

    folder: Path
    out: Path
    references: Path | None = None
    models: tuple[str, ...] = ()
    weights: tuple[str | None, ...] = (None,)  # None: int4, and a bundle as it is
    kv: tuple[str, ...] = ("fp32",)
    max_tokens: tuple[int, ...] = (200,)
    prompt_tokens: int | None = None
    prompt: str | None = None
    plants: tuple[str, ...] = ()
    plant_at: int | None = None
    seed: int = 0
    threads: int = 1
    check: bool = True


def plan_traces(plan: TracePlan, read: Read, progress: Progress | None = None) -> list[TraceJob]:
    """All jobs of a plan, those of one model together. `read(path)` gives a file's text.

    Raises `UserError` for a folder without transcripts, an unknown fault, a summary without a transcript.
    """
    unknown = sorted(set(plan.plants) - set(KINDS))
    if unknown:
        raise UserError(f"no planted fault {unknown[0]!r}; known: {', '.join(KINDS)}")
    texts = {path.stem: read(path) for path in _files(plan.folder, "transcripts")}
    summaries = {path.stem: read(path) for path in _files(plan.references, "summaries")}
    strange = sorted(set(summaries) - set(texts))
    if strange:
        raise UserError(f"{plan.references} has a summary {strange[0]!r}, {plan.folder} no such transcript")
    jobs = [
        job for model in plan.models or (None,) for job in _of_model(plan, model, texts, summaries, progress)
    ]
    return sorted(jobs, key=lambda job: (job.model or "", job.weights or "", job.kv))


def _files(folder: Path | None, what: str) -> list[Path]:
    if folder is None:
        return []
    if not folder.is_dir():
        raise UserError(f"no folder {folder}: give a folder of {what} ({', '.join(SUFFIXES)})")
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    if not found:
        raise UserError(f"no {what} in {folder}: files that end in {', '.join(SUFFIXES)} are taken")
    stems = [path.stem for path in found]
    twice = sorted({stem for stem in stems if stems.count(stem) > 1})
    if twice:
        raise UserError(f"{folder} has more than one file of the name {twice[0]!r}: rename one")
    return found


def _of_model(
    plan: TracePlan,
    model: str | None,
    texts: dict[str, str],
    summaries: dict[str, str],
    progress: Progress | None,
) -> Iterator[TraceJob]:
    from seatrial.export.source import resolve

    name = resolve(model, progress=progress).name
    for weights in plan.weights:
        for kv in plan.kv:
            for most in plan.max_tokens:
                for number, (document, text) in enumerate(sorted(texts.items())):
                    plain = TraceJob(
                        document=document,
                        transcript=text,
                        model=model,
                        model_name=name,
                        weights=weights,
                        kv=kv,
                        max_tokens=most,
                        prompt_tokens=plan.prompt_tokens,
                        prompt=plan.prompt,
                        seed=plan.seed,
                        threads=plan.threads,
                        check=plan.check,
                    )
                    yield from _of_document(plan, plain, summaries.get(document), number, progress)


def _of_document(
    plan: TracePlan, plain: TraceJob, summary: str | None, number: int, progress: Progress | None
) -> Iterator[TraceJob]:
    """The model's own text, the person's, and each fault in the person's text where there is one."""
    yield plain
    if summary is not None:
        yield replace(plain, reference=summary)
    at = BEGINS[number % len(BEGINS)] if plan.plant_at is None else plan.plant_at
    for kind in plan.plants:
        if kind in IN_WEIGHTS:
            folder = _broken(plan, plain, kind, progress)
            yield replace(plain, model=str(folder), weights=None, plant=kind, plant_at=0)
        else:
            yield replace(plain, plant=kind, plant_at=at, reference=summary, seed=plan.seed + number)


def _broken(plan: TracePlan, job: TraceJob, kind: str, progress: Progress | None) -> Path:
    """The bundle with broken weights, made beside the traces when it is not there."""
    from seatrial.simulate.prepare import ensure_bundle

    folder = (plan.out / "bundles" / f"{job.model_name}-{job.weights or 'int4'}-{job.kv}-{kind}").absolute()
    if not (folder / "seatrial.json").is_file():
        whole = ensure_bundle(job.model, job.weights, job.kv, progress)
        broken_bundle(whole, folder, kind, severity=SEVERITY[kind], seed=plan.seed)
    return folder
