"""Free-running copies: both bundles read a page once and answer its questions from there. Resumable.

A page costs most of the time, so its keys and values are kept and every question starts again at its end.
Each finished page is a line in the work folder; an interrupted run goes on with the next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seatrial.errors import UserError
from seatrial.export.bundle import Bundle
from seatrial.export.session import Session
from seatrial.export.tokenizer import Tokenizer
from seatrial.guards.numbers import check_numbers
from seatrial.guards.sentences import split_sentences
from seatrial.guards.verdict import Verdict
from seatrial.quantize.damage.documents import LANGUAGES, own_documents
from seatrial.quantize.probes.errors import Answer, judge_answer
from seatrial.quantize.probes.needles import Needle
from seatrial.quantize.probes.page import Page, PageJob, make_page
from seatrial.quantize.probes.summary import summarize
from seatrial.quantize.stats import DRAWS
from seatrial.quantize.texts import evaluation_text

Progress = Callable[[str, float | None], None]
ANSWER_TOKENS = 28
FILE = "probes-3.jsonl"  # another number where pages of one name are made or judged differently


@dataclass(frozen=True)
class ProbePlan:
    """Pages per language and number of distractors at each context; up to ten probes a page."""

    name: str
    pages: tuple[tuple[int, int], ...]  # (context in tokens, pages)
    distractors: tuple[int, ...] = (0, 4)
    languages: tuple[str, ...] = LANGUAGES
    seed: int = 0

    def jobs(self, longest: int | None = None) -> list[PageJob]:
        """All pages, contexts above `longest` left out, in an order that is even at every point."""
        every = [
            PageJob(language, context, distractors, number, self.seed)
            for context, pages in self.pages
            if longest is None or context <= longest
            for number in range(pages)
            for distractors in self.distractors
            for language in self.languages
        ]
        share = dict(self.pages)
        return sorted(every, key=lambda job: (job.number + 0.5) / share[job.context])


QUICK = ProbePlan("quick", ((512, 6), (2048, 2), (4096, 1)))
FULL = ProbePlan("full", ((512, 96), (2048, 28), (4096, 18)))


def run_probes(
    reference: Bundle,
    candidate: Bundle,
    tokenizer: Tokenizer,
    plan: ProbePlan,
    folder: Path,
    progress: Progress,
    threads: int | None = None,
    *,
    draws: int = DRAWS,
) -> dict[str, Any]:
    """Run every page of the plan that is not in `folder` yet; the summary of all, from `draws` resamples.

    Raises UserError where every context is longer than the model allows.
    """
    longest = _longest_context(reference, candidate)
    jobs = plan.jobs(longest)
    if not jobs:
        raise UserError(
            f"every context of the probes is longer than the model allows ({longest} tokens): "
            "leave out --quick and --full"
        )
    file = folder / FILE
    done = {row["page"]: row for row in _finished(file)}
    capacity = max(job.context for job in jobs) + len(tokenizer.prefix_ids())
    with (
        Session(reference, capacity=capacity, threads=threads) as left,
        Session(candidate, capacity=capacity, threads=threads) as right,
    ):
        cost = sum(job.context for job in jobs)
        spent = 0
        for job in jobs:
            progress("copy probes", spent / cost)
            if job.name not in done:
                done[job.name] = _run_page(job, left, right, tokenizer)
                _append(file, done[job.name])
            spent += job.context
        progress("copy probes", 1.0)
    found = summarize([done[job.name] for job in jobs], plan.name, seed=plan.seed, draws=draws)
    return {**found, "contexts_left_out": sorted({c for c, _ in plan.pages} - {job.context for job in jobs})}


def _longest_context(*bundles: Bundle) -> int | None:
    known = [bundle.config.get("max_position_embeddings") for bundle in bundles]
    limits = [int(limit) for limit in known if limit]
    return min(limits) if limits else None


def filler_sentences(language: str) -> list[str]:
    """Sentences of the package's own texts; calibration text is left out, the candidate has seen that."""
    texts = [document.text for document in own_documents(language)] + [evaluation_text(language)]
    return [sentence.text for text in texts for sentence in split_sentences(text)]


def _run_page(job: PageJob, left: Session, right: Session, tokenizer: Tokenizer) -> dict[str, Any]:
    """A page's row: every probe with both bundles' answers."""
    page = make_page(job, filler_sentences(job.language), tokenizer.count)
    ids = [*tokenizer.prefix_ids(), *tokenizer.encode(page.text)]
    answers = [_answers(session, ids, page, tokenizer) for session in (left, right)]
    probes = []
    for (depth, needle), reference, candidate in zip(page.needles, *answers, strict=True):
        probes.append(
            {
                "kind": needle.kind,
                "depth": depth,
                "answer": needle.answer,
                "reference": reference.to_json(),
                "candidate": candidate.to_json(),
                "guard": guard_says(needle, candidate, page.text),
            }
        )
    where = {"language": job.language, "context": job.context, "distractors": job.distractors}
    return {"page": job.name, **where, "probes": probes}


def _answers(session: Session, ids: Sequence[int], page: Page, tokenizer: Tokenizer) -> list[Answer]:
    """The page is read once; each question goes back to its end."""
    session.reset()
    session.prefill(ids)
    stated = [n.answer for _, n in page.needles] + [n.answer for n in page.distractors]
    found = []
    for _, needle in page.needles:
        session.truncate(len(ids))
        room = session.capacity - len(ids)
        written = continue_text(session, tokenizer, needle.question, min(ANSWER_TOKENS, room))
        found.append(judge_answer(needle, written, [s for s in stated if s != needle.answer]))
    return found


def continue_text(session: Session, tokenizer: Tokenizer, question: str, tokens: int) -> str:
    """What the model writes after `question`, greedily, to the end of the line or of `tokens`."""
    asked = tokenizer.encode(question)
    logits = session.prefill(asked)
    stream, written = tokenizer.stream(), ""
    room = min(tokens, session.capacity - session.length)
    for _ in range(room):
        token = int(np.argmax(logits))
        if token in tokenizer.eos_ids:
            break
        written += stream.push(token)
        if "\n" in written.strip(" ") or "。" in written:
            break
        logits = session.step(token)
    return written


def guard_says(needle: Needle, answer: Answer, page: str) -> str:
    """Of a wrong figure: "caught", "escaped", or "no figure" to check; "" for right ones and names."""
    if answer.normalized or needle.is_name:
        return ""
    said = needle.sentence.replace(needle.answer, answer.written)
    findings = check_numbers(said, page).findings
    if not findings:
        return "no figure"
    return "caught" if any(f.verdict is not Verdict.OK for f in findings) else "escaped"


def _append(file: Path, row: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(row, ensure_ascii=False) + "\n")
        out.flush()


def _finished(file: Path) -> Iterator[dict[str, Any]]:
    """Pages that were finished; a last line cut off by the interruption is dropped from the file.

    Lines are parted as bytes: an answer may hold U+2028 or U+0085, which end a line for `splitlines` but not
    in this file, and a cut may be inside a character.
    """
    if not file.is_file():
        return
    *whole, cut = file.read_bytes().split(b"\n")
    if cut:
        _replace(file, b"".join(line + b"\n" for line in whole))
    for line in whole:
        yield json.loads(line)


def _replace(file: Path, content: bytes) -> None:
    """Write a file so that an interruption leaves the old one or the new one, never a part."""
    temporary = file.with_name(file.name + ".part")
    temporary.write_bytes(content)
    temporary.replace(file)
