"""Breakdown guard on planted breakdowns of the embedded model: AUROC of each rule, and one setting.

    python bench/breakdown.py DATA --out DIR [--documents 14] [--summaries 56] [--workers 1]

DATA holds `vcsum_*.jsonl` and `qmsum_*.jsonl`. For each of so many documents of each language the int4
bundle writes (English) or follows a person's summary (Chinese, which this model does not speak) up to a token
where a fault of `simulate.plant` begins. Not broken are the summaries of people, read token by token, and the
model's own texts that it ended itself. Two bundles with broken weights are made beside the traces. The sweep
goes on where it was stopped. Rules are compared at 5 % false stops; the recommended setting is judged by
folds of documents.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from seatrial.guards.rules import TracedRun
from seatrial.guards.tune import TuneResult, Wish, label_runs, tune
from seatrial.simulate.plant import IN_WEIGHTS, KINDS, broken_bundle
from seatrial.simulate.prepare import ensure_bundle
from seatrial.simulate.sweep import one_after_another, process_pool, run_sweep, trace_work
from seatrial.simulate.trace_files import read_traces
from seatrial.simulate.trace_job import TraceJob

SEVERITY = {"noised-weights": 0.5, "flipped-bits": 0.02}
BEGINS = (12, 24, 36, 48)
MAX_TOKENS, PROMPT_TOKENS = 128, 500


def documents(folder: Path, wanted: int) -> list[tuple[str, str, str]]:
    """(name, transcript, summary of a person), so many of each language, spread over the meetings."""
    return [*_spread(list(_chinese(folder)), wanted), *_spread(list(_english(folder)), wanted)]


def _spread(found: list[tuple[str, str, str]], wanted: int) -> list[tuple[str, str, str]]:
    places = np.linspace(0, len(found) - 1, min(wanted, len(found))).round().astype(int)
    return [found[i] for i in dict.fromkeys(places.tolist())]


def _chinese(folder: Path) -> Iterator[tuple[str, str, str]]:
    for meeting in _rows(folder, "vcsum_*.jsonl"):
        for segment in meeting["segments"]:
            turns = zip(segment["speaker"], segment["context"], strict=True)
            text = "\n".join(f"发言人{who}：{''.join(said)}" for who, said in turns)
            yield f"zh {meeting['id']} {segment['id']}", text, segment["discussion"]


def _english(folder: Path) -> Iterator[tuple[str, str, str]]:
    for number, meeting in enumerate(_rows(folder, "qmsum_*.jsonl")):
        said = meeting["meeting_transcripts"]
        turns = [(t["speaker"].replace(":", " "), " ".join(t["content"].split())) for t in said]
        for place, query in enumerate(meeting["specific_query_list"]):
            part = [t for low, high in query["relevant_text_span"] for t in turns[int(low) : int(high) + 1]]
            text = "\n".join(f"{who}: {what}" for who, what in part if what)
            if len(text.split()) > 150:
                yield f"en {number} {place}", text, query["answer"]


def _rows(folder: Path, pattern: str) -> Iterator[dict]:
    for path in sorted(folder.glob(pattern)):
        with path.open(encoding="utf-8") as lines:
            yield from (json.loads(line) for line in lines if line.strip())


def jobs(
    found: list[tuple[str, str, str]], models: dict[str, Path], spoiled: frozenset[str]
) -> Iterator[TraceJob]:
    """A person's summary for each document; for those in `spoiled` the model's own text and every fault."""
    for number, (name, transcript, summary) in enumerate(found):
        plain = TraceJob(
            document=name,
            transcript=transcript,
            model=str(models["whole"]),
            weights=None,
            max_tokens=MAX_TOKENS,
            prompt_tokens=PROMPT_TOKENS,
            check=False,
        )
        yield replace(plain, reference=summary)
        if name not in spoiled:
            continue
        yield plain
        followed = summary if name.startswith("zh") else None
        for kind in KINDS:
            at = 0 if kind in IN_WEIGHTS else BEGINS[number % len(BEGINS)]
            yield replace(
                plain,
                model=str(models.get(kind, models["whole"])),
                plant=kind,
                plant_at=at,
                reference=followed,
                seed=number,
            )


def models(out: Path) -> dict[str, Path]:
    """The int4 bundle of the embedded model, and copies with broken weights beside the traces."""
    whole = ensure_bundle(None, weights="int4", kv="fp32")
    found = {"whole": whole.folder}
    for kind in IN_WEIGHTS:
        found[kind] = out / "bundles" / kind
        if not (found[kind] / "seatrial.json").is_file():
            broken_bundle(whole, found[kind], kind, severity=SEVERITY[kind])
    return found


# ---- what is shown --------------------------------------------------------------------------------


def show(result: TuneResult, runs: list[TracedRun]) -> None:
    print(f"{result.bad_runs} broken and {result.good_runs} good runs of {result.documents} documents")
    print(f"\n{'rule':38}{'AUROC':>7}  {'95 %':15}{'en':>6}{'zh':>6}{'above':>9}{'caught':>8}{'false':>7}")
    for row in [*result.rules, *result.baselines]:
        area, by = row.auroc, row.auroc_by_language
        each = "".join(f"{by.get(language, math.nan):6.2f}" for language in ("en", "zh"))
        span = f"[{area.low:.3f}, {area.high:.3f}]"
        rates = f"{row.threshold:9.3f}{row.caught:8.1%}{row.false_stops:7.1%}"
        print(f"{row.rule:38}{area.value:7.3f}  {span:15}{each}{rates}")
    plain = result.plain
    print(f"\nten in a row alone: caught {told(plain.caught)}, false {told(plain.false_stops)}")
    best = result.recommended
    print(f"\nrecommended: {'yes' if best.meets else 'CANNOT'}: {best.why}")
    if best.setting is not None and best.fitted is not None:
        print(f"  {best.setting}")
        print(f"  on all runs: caught {told(best.fitted.caught)}, false {told(best.fitted.false_stops)}")
    for group in result.groups:
        label = "broken" if group.is_bad else "good"
        print(f"  {group.group:40}{label:8}{group.runs:5}  stopped {group.stopped:6.1%}")
    if result.fired:
        delays = [f.delay for f in result.fired if f.delay is not None]
        spent = [f.share_of_budget for f in result.fired]
        middle, late = np.quantile(delays, [0.5, 0.9])
        print(f"  fires {middle:.0f} tokens after the fault (median; 90 %: {late:.0f})")
        print(f"  with {np.median(spent):.0%} of the budget spent (median)")
    unknown = [run for run in runs if run.broken is None]
    print(f"  not labelled: {len(unknown)} of the model's own texts, which filled the budget")


def told(interval) -> str:
    return f"{interval.value:.1%} [{interval.low:.1%}, {interval.high:.1%}]"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=14, help="of each language with every fault")
    parser.add_argument("--summaries", type=int, default=56, help="of each language, by people")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    found = documents(options.data, options.summaries)
    by_language = [[d for d in found if d[0].startswith(code)] for code in ("zh", "en")]
    spoiled = frozenset(d[0] for group in by_language for d in _spread(group, options.documents))
    every = jobs(found, models(options.out), spoiled)
    wanted = sorted(every, key=lambda job: str(job.model))  # by model, so that each is opened once
    runner = one_after_another if options.workers == 1 else process_pool(options.workers)
    done = lambda n, of: print(f"\r{n} of {of} traces", end="", file=sys.stderr, flush=True)
    swept = run_sweep(wanted, trace_work, options.out, runner, on_done=done)
    print(f"\n{swept.found} traces found, {swept.made} made, {len(swept.failed)} failed", file=sys.stderr)
    for key, why in swept.failed[:5]:
        print(f"  {key}: {why}", file=sys.stderr)
    runs = read_traces(options.out)
    wish = Wish(max_false_stops=0.05, min_caught=0.95, draws=options.draws)
    show(tune(label_runs(runs, "planted"), wish, vocabulary_size=49152), runs)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
