"""The extractive fallback beside lead, random and the summarizers of sumy, on meetings with human summaries.

    python bench/extract.py DATA [--json OUT] [--draws 2000] [--slow]

DATA holds `vcsum_*.jsonl` (Chinese, one summary for each segment; scored by characters, 125 of them) and
`qmsum_*.jsonl` (English, one summary for each meeting; scored by words without stemming, 112 of them). Every
method gets the same sentences and the same room, and its text is cut at the room before it is scored.
Differences are taken in pairs and their intervals by drawing meetings with replacement. Times are per
document, one thread.

Needs `pip install sumy jieba`; sumy gets our sentences and, for Chinese, jieba's words.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from rouge import rouge

from seatrial.guards.extract import extract
from seatrial.guards.sentences import split_sentences
from seatrial.guards.transcript import Transcript, parse_transcript

ROOM = {"zh": 125, "en": 112}
RANDOM_SEEDS = 20
MEASURES = ("R1", "R2", "RL")


@dataclass(frozen=True)
class Document:
    language: str
    meeting: str
    transcript: Transcript
    sentences: tuple[str, ...]
    reference: str


def documents(folder: Path) -> list[Document]:
    """All segments of Chinese meetings and all whole English meetings in the folder."""
    found: list[Document] = []
    for path in sorted(folder.glob("vcsum_*.jsonl")):
        found.extend(_chinese(path))
    for path in sorted(folder.glob("qmsum_*.jsonl")):
        found.extend(_english(path))
    if not found:
        raise SystemExit(f"no vcsum_*.jsonl or qmsum_*.jsonl in {folder}")
    return found


def _chinese(path: Path) -> Iterator[Document]:
    for meeting in _rows(path):
        for segment in meeting["segments"]:
            turns = zip(segment["speaker"], segment["context"], strict=True)
            text = "\n".join(f"发言人{who}：{''.join(said)}" for who, said in turns)
            yield _document("zh", f"zh{meeting['id']}", text, segment["discussion"])


def _english(path: Path) -> Iterator[Document]:
    for number, meeting in enumerate(_rows(path)):
        turns = meeting["meeting_transcripts"]
        said = [(turn["speaker"], " ".join(turn["content"].split())) for turn in turns]
        text = "\n".join(f"{who.replace(':', ' ')}: {what}" for who, what in said if what)
        for query in meeting["general_query_list"]:
            if re.match(r"summari[sz]e the (whole )?meeting", query["query"].lower()):
                yield _document("en", f"en{path.stem}{number}", text, query["answer"])
                break


def _rows(path: Path) -> Iterator[dict]:
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def _document(language: str, meeting: str, text: str, reference: str) -> Document:
    transcript = parse_transcript(text)
    sentences = tuple(s.text for turn in transcript.turns for s in split_sentences(turn.text))
    return Document(language, meeting, transcript, sentences, reference)


# ---- methods: each gives sentences, which are cut at the room
# ------------------------------------------------------


def size(text: str, language: str) -> int:
    return len(text) if language == "zh" else len(text.split())


def cut(text: str, language: str) -> str:
    return text[: ROOM["zh"]] if language == "zh" else " ".join(text.split()[: ROOM["en"]])


def ours(document: Document) -> str:
    count = lambda text: size(text, document.language)
    return extract(document.transcript, budget=ROOM[document.language], count=count).text


def lead(document: Document) -> str:
    return _fill(document, range(len(document.sentences)))


def lead_long(document: Document) -> str:
    """Lead without short sentences: the best simple method on English meetings."""
    least = 12 if document.language == "zh" else 8
    long = [i for i, s in enumerate(document.sentences) if size(s, document.language) >= least]
    return _fill(document, long or range(len(document.sentences)))


def random_text(document: Document, seed: int) -> str:
    order = list(range(len(document.sentences)))
    random.Random(f"{seed} {document.meeting} {document.reference[:20]}").shuffle(order)
    return _fill(document, order)


def _fill(document: Document, order) -> str:
    """Sentences in the given order of preference until the room is full, then in the order of the source."""
    taken, filled = [], 0
    for place in order:
        if filled >= ROOM[document.language]:
            break
        taken.append(place)
        filled += size(document.sentences[place], document.language) + 1
    return "\n".join(document.sentences[i] for i in sorted(taken))


class OurWords:
    """What sumy asks of a tokenizer, so that it works on the same sentences."""

    def __init__(self, language: str) -> None:
        self.language = language

    def to_sentences(self, paragraph: str) -> tuple[str, ...]:
        return tuple(s.text for s in split_sentences(paragraph))

    def to_words(self, sentence: str) -> tuple[str, ...]:
        if self.language == "zh":
            import jieba

            return tuple(word for word in jieba.cut(sentence) if re.search(r"\w", word))
        return tuple(re.findall(r"[^\W\d_]+", sentence))


def sumy_methods(slow: bool) -> dict[str, Callable[[Document], str]]:
    from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
    from sumy.nlp.stemmers import Stemmer, null_stemmer
    from sumy.summarizers.kl import KLSummarizer
    from sumy.summarizers.lex_rank import LexRankSummarizer
    from sumy.summarizers.lsa import LsaSummarizer
    from sumy.summarizers.luhn import LuhnSummarizer
    from sumy.summarizers.reduction import ReductionSummarizer
    from sumy.summarizers.sum_basic import SumBasicSummarizer
    from sumy.summarizers.text_rank import TextRankSummarizer
    from sumy.utils import get_stop_words

    kinds = {
        "sumy TextRank": TextRankSummarizer,
        "sumy LexRank": LexRankSummarizer,
        "sumy LSA": LsaSummarizer,
        "sumy Luhn": LuhnSummarizer,
        "sumy Reduction": ReductionSummarizer,
        "sumy SumBasic": SumBasicSummarizer,
        **({"sumy KL": KLSummarizer} if slow else {}),
    }

    def method(kind) -> Callable[[Document], str]:
        return lambda document: _by_sumy(document, kind)

    def _by_sumy(document: Document, kind) -> str:
        words = OurWords(document.language)
        lines = [Sentence(s, words) for s in document.sentences if words.to_words(s)]
        language = "chinese" if document.language == "zh" else "english"
        summarizer = kind(null_stemmer if language == "chinese" else Stemmer(language))
        if hasattr(kind, "stop_words"):
            summarizer.stop_words = get_stop_words(language)
        picked = summarizer(ObjectDocumentModel([Paragraph(lines)]), _until_full(document.language))
        return "\n".join(str(s) for s in picked)

    return {name: method(kind) for name, kind in kinds.items()}


def _until_full(language: str) -> Callable:
    """For sumy: the best sentences, until the room is full; it puts them into the order of the source
    itself.
    """

    def take(ranked):
        taken, filled = [], 0
        for info in ranked:
            if filled >= ROOM[language]:
                break
            taken.append(info)
            filled += size(str(info.sentence), language) + 1
        return taken

    return take


# ---- scores
# --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scores:
    """Of one method over the documents of a language: (documents, 3) F1, and seconds per document."""

    f1: np.ndarray
    seconds: list[float]


def score(method: Callable[[Document], str], documents: list[Document]) -> Scores:
    rows, seconds = [], []
    for document in documents:
        began = time.perf_counter()
        text = method(document)
        seconds.append(time.perf_counter() - began)
        rows.append(rouge(cut(text, document.language), document.reference, document.language))
    return Scores(np.array(rows), seconds)


def score_random(documents: list[Document]) -> Scores:
    """The mean over many seeds: one draw of sentences is luck."""
    runs = [score(lambda d, seed=seed: random_text(d, seed), documents) for seed in range(RANDOM_SEEDS)]
    return Scores(np.mean([run.f1 for run in runs], axis=0), runs[0].seconds)


def paired_interval(difference: np.ndarray, meetings: list[str], draws: int) -> tuple[float, float]:
    """95 % interval of the mean of `difference` (documents,), meetings drawn with replacement."""
    names = sorted(set(meetings))
    groups = [np.flatnonzero([m == name for m in meetings]) for name in names]
    sums = np.array([difference[g].sum() for g in groups])
    sizes = np.array([len(g) for g in groups])
    picks = np.random.default_rng(0).integers(0, len(names), (draws, len(names)))
    means = sums[picks].sum(axis=1) / sizes[picks].sum(axis=1)
    return float(np.percentile(means, 2.5)), float(np.percentile(means, 97.5))


def compare(documents: list[Document], draws: int, *, slow: bool) -> list[dict]:
    """One row for each method of one language."""
    methods = {"seatrial": ours, "lead": lead, "lead, long sentences": lead_long, **sumy_methods(slow)}
    scores = {name: score(method, documents) for name, method in methods.items()}
    scores["random"] = score_random(documents)
    meetings = [d.meeting for d in documents]
    return [_row(name, scores, meetings, draws) for name in scores]


def _row(name: str, scores: dict[str, Scores], meetings: list[str], draws: int) -> dict:
    mean = scores[name].f1.mean(axis=0)
    row = {"method": name, **{m: round(float(v), 2) for m, v in zip(MEASURES, mean, strict=True)}}
    row["ms"] = round(1000 * statistics.median(scores[name].seconds), 1)
    row["ms_most"] = round(1000 * max(scores[name].seconds), 1)
    if name != "seatrial":
        for place, measure in enumerate(MEASURES):
            gap = scores["seatrial"].f1[:, place] - scores[name].f1[:, place]
            low, high = paired_interval(gap, meetings, draws)
            row[f"ours_minus_{measure}"] = [round(float(gap.mean()), 2), round(low, 2), round(high, 2)]
    return row


def show(language: str, rows: list[dict], documents: list[Document]) -> None:
    meetings = len({d.meeting for d in documents})
    print(f"\n{language}: {len(documents)} documents of {meetings} meetings, {ROOM[language]} units each")
    print(f"{'method':22}{'R1':>7}{'R2':>7}{'RL':>7}{'ms':>9}{'most':>9}   ours minus it, R1 [95 %]")
    for row in rows:
        gap = row.get("ours_minus_R1")
        told = "" if gap is None else f"{gap[0]:+6.2f} [{gap[1]:+.2f}, {gap[2]:+.2f}]"
        print(
            f"{row['method']:22}{row['R1']:7.2f}{row['R2']:7.2f}{row['RL']:7.2f}"
            f"{row['ms']:9.1f}{row['ms_most']:9.1f}   {told}"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--slow", action="store_true", help="sumy's KL too: minutes for one long meeting")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)  # of jieba and of sumy's LSA
    found = documents(options.data)
    result = {}
    for language in ("zh", "en"):
        chosen = [d for d in found if d.language == language]
        if chosen:
            result[language] = compare(chosen, options.draws, slow=options.slow)
            show(language, result[language], chosen)
    if options.json:
        options.json.write_text(json.dumps(result, ensure_ascii=False, indent=1), encoding="utf-8")
    beaten = all(row["ours_minus_R1"][1] > 0 for rows in result.values() for row in rows[1:])
    print(f"\nabove every other method with its interval: {'yes' if beaten else 'no'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
