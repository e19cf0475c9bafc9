"""The name guard on labelled sets, beside the trivial rule and the rule that flags everything; and its speed.

`evaluate` is called by `guards.py`; alone: `python bench/guard_names.py [--data DIR] [--speed]`.
Names are found by the tool in the whole text, none is given. A row is flagged when a name of it (for
mention-level sets: one that overlaps the mention) has a verdict other than `ok`; "guard, fail only" leaves
warnings out. The trivial rule: a capitalised word that opens no sentence (Chinese: the given person) does not
occur in the source.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from guard_scores import Scores, rows_of, score, table_lines

from seatrial.guards.names import check_names, find_names
from seatrial.guards.verdict import Finding, Verdict

_CAPITAL = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][\w'’-]*")


def evaluate(folder: Path) -> Iterator[tuple[str, int, int, str, Scores]]:
    """(set, n, wrong, rule, scores) for every name set that the folder has."""
    for name, rows, wrong in _sets(folder):
        verdicts = [{finding.verdict for finding in findings_of(row)} for row in rows]
        rules = {
            "guard": [bool(v & {Verdict.FAIL, Verdict.WARN}) for v in verdicts],
            "guard, fail only": [Verdict.FAIL in v for v in verdicts],
            "trivial": [_trivial(row) for row in rows],
            "flag all": [True] * len(rows),
        }
        for rule, flagged in rules.items():
            yield name, len(rows), sum(wrong), rule, score(zip(flagged, wrong, strict=True))


def _sets(folder: Path) -> Iterator[tuple[str, list[dict[str, Any]], list[bool]]]:
    rows = rows_of(folder, "uhgeval_name_mentions.jsonl")
    if rows:
        yield "UHGEval names", rows, [bool(row["wrong"]) for row in rows]
    for part in ("sales_call", "samsum", "qmsumm", "ectsum"):
        rows = [r for r in rows_of(folder, f"summedits_{part}.jsonl") if not r["wrong"] or r["name_wrong"]]
        if any(row["name_wrong"] for row in rows):
            yield f"SummEdits {part} names", rows, [bool(row["name_wrong"]) for row in rows]
    rows = rows_of(folder, "diasumfact_qmsum.jsonl")
    if rows:
        yield "DiaSumFact names", rows, [bool(row["name_wrong"]) for row in rows]
        counted = [row for row in rows if not row["wrong"] or row["name_wrong"]]
        yield "DiaSumFact, right or name", counted, [bool(row["name_wrong"]) for row in counted]


def findings_of(row: dict[str, Any]) -> list[Finding]:
    """The findings that a row is judged by."""
    found = check_names(row["summary"], row["source"]).findings
    if "mention" not in row:
        return list(found)
    spans = [(m.start(), m.end()) for m in re.finditer(re.escape(row["mention"]), row["summary"])]
    return [f for f in found if any(f.span[0] < end and start < f.span[1] for start, end in spans)]


def _trivial(row: dict[str, Any]) -> bool:
    if "persons" in row:
        return any(person not in row["source"] for person in row["persons"])
    known = {_bare(word) for word in re.findall(r"[\w'’-]+", row["source"])}
    return any(_bare(word) not in known for word in _CAPITAL.findall(row["summary"].strip()))


def _bare(word: str) -> str:
    return re.sub(r"['’]s$", "", word).lower()


# ---- speed

_PEOPLE = ["陈思远", "林若曦", "欧阳靖", "王经理", "张工", "老李", "赵一鸣", "单婉仪", "周敏然", "何总"]
_SAYINGS = [
    "{}觉得这个季度的预算还要再看一看。",
    "我们先把测试环境搭起来，{}下周负责上线。",
    "客户那边的反馈比较集中，主要是响应太慢。",
    "{}说合同的条款法务已经确认过了。",
    "那这部分先这样，后面再补充一下文档。",
    "大家对排期还有没有别的意见？",
    "嗯，我这边没有问题，可以继续往下走。",
    "仓库那边的同事反映，周末的人手不太够。",
    "{}建议把发布会放到月底，留出缓冲的时间。",
]


def transcript(characters: int, seed: int = 7) -> str:
    """An invented meeting in Chinese of that many characters, three people speaking.

    Every sentence carries a number of its own, so that none has been tagged before.
    """
    choose = random.Random(seed)
    lines: list[str] = []
    length = 0
    while length < characters:
        said = (
            choose.choice(_SAYINGS).replace("{}", choose.choice(_PEOPLE)) for _ in range(choose.randint(2, 5))
        )
        numbered = "".join(
            f"{sentence[:-1]}，编号{choose.randrange(10**9)}{sentence[-1]}" for sentence in said
        )
        lines.append(f"{choose.choice(_PEOPLE[:3])}：{numbered}")
        length += len(lines[-1]) + 1
    return "\n".join(lines)[:characters]


SUMMARY = (
    "会议讨论了本季度的预算和上线安排。陈思远认为预算需要再核对，林若曦负责下周上线。王经理建议把发布会放到月底，"
    "欧阳靖表示合同条款已经由法务确认。单婉仪反映仓库周末人手不足，周敏说测试环境由张总搭建，李工负责补充文档。"
) * 5


def speed() -> Iterator[str]:
    """Loading, then one check, then the curve over the length; medians of five, wall clock and processor."""
    yield f"tagger loaded and first name found in {_line(lambda: find_names('周敏然说下周上线。'), 1)}"
    summary, seeds = SUMMARY[:600], iter(range(100, 200))
    texts = {seed: transcript(6000, seed) for seed in range(100, 112)}
    check = lambda: check_names(summary, texts[next(seeds)])
    yield f"6,000 + {len(summary)} characters, first check    {_line(check, 1)}"
    yield f"6,000 + {len(summary)} characters, fresh texts    {_line(check)}"
    yield f"6,000 characters, every name found {_line(lambda: find_names(texts[next(seeds)]))}"
    for length in (10_000, 30_000, 100_000, 300_000, 1_000_000):
        text = transcript(length)
        yield f"{length:>9,} characters {_line(lambda t=text: check_names(summary, t), 1)}"


def _line(call: Callable[[], object], rounds: int = 5) -> str:
    wall, used = [], []
    for _ in range(rounds):
        start, start_used = time.perf_counter(), time.process_time()
        call()
        wall.append(time.perf_counter() - start)
        used.append(time.process_time() - start_used)
    return f"{statistics.median(wall) * 1e3:8.0f} ms, processor {statistics.median(used) * 1e3:8.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="a folder with the labelled .jsonl files")
    parser.add_argument("--speed", action="store_true", help="time the guard on an invented meeting")
    arguments = parser.parse_args()
    if arguments.speed:  # first, since the evaluation loads the tagger
        for line in speed():
            print(line, flush=True)
    if arguments.data:
        for line in table_lines(evaluate(arguments.data)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
