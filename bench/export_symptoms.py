"""What a fault does to the embedded model's text: put into torch on purpose, measured on English text.

    python bench/export_symptoms.py [--write]

Per kind of fault: the change in the loss of all and of rare tokens (nats), in the entropy of the next token
(nats), how often the top token stays the same, the mean length of greedy answers to a few questions (tokens;
an answer that does not end counts the limit) and the share of distinct tokens in them. Faults of a layer are
put into the middle layer alone and into every layer.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from symptom_faults import (
    WANTED,
    bias_faults,
    broken,
    capped,
    exchanged,
    means_of,
    unscaled_branches,
    whole_model,
)

from seatrial.export.faults.forced import ForcedModel
from seatrial.export.faults.probe import install_probe
from seatrial.export.load import load_torch
from seatrial.export.quiet import quiet
from seatrial.export.reference import attention, find_layers
from seatrial.export.source import resolve

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "export" / "faults" / "symptoms.json"
TEXT = ROOT / "quantize" / "evaluation_en.txt"
TOKENS, RARE_FROM, LONGEST_ANSWER = 160, 8000, 32
QUESTIONS = (
    "What is the capital of France?",
    "The meeting was moved from Tuesday to Thursday at ten. When is the meeting? Answer in one sentence.",
)
END = 2  # <|im_end|> of the embedded model


class Subject:
    """The model with what it is measured on: ids (1, T) and the questions' ids."""

    def __init__(self, model: Any, layer_count: int, tokenizer: Any) -> None:
        self.model, self.layer_count = model, layer_count
        self.layers = list(find_layers(model, layer_count))
        text = TEXT.read_text(encoding="utf-8")
        self.ids = np.array([tokenizer(text, add_special_tokens=False)["input_ids"][:TOKENS]])
        self.questions = [
            tokenizer.apply_chat_template(
                [{"role": "user", "content": question}], add_generation_prompt=True, return_tensors="pt"
            )
            for question in QUESTIONS
        ]

    def measure(self) -> dict[str, Any]:
        """Per token: loss, entropy and top token; and the greedy answers."""
        with torch.no_grad(), quiet():
            ids = torch.from_numpy(self.ids)
            logits = self.model(input_ids=ids, use_cache=False).logits[0].double()
            logs = torch.log_softmax(logits, -1)
            answers = [self._answer(question) for question in self.questions]
        return {
            "nll": -logs[:-1].gather(1, ids[0, 1:, None])[:, 0].numpy(),
            "entropy": -(logs.exp() * logs).sum(-1)[:-1].numpy(),
            "top": logits[:-1].argmax(-1).numpy(),
            "answers": answers,
        }

    def _answer(self, question: torch.Tensor) -> list[int]:
        found: list[int] = []
        given, past = question, None
        while len(found) < LONGEST_ANSWER:
            out = self.model(input_ids=given, past_key_values=past, use_cache=True)
            past, token = out.past_key_values, int(out.logits[0, -1].argmax())
            if token == END:
                break
            found.append(token)
            given = torch.tensor([[token]])
        return found

    def compare(self, right: dict[str, Any], wrong: dict[str, Any]) -> dict[str, float | None]:
        rare = self.ids[0, 1:] >= RARE_FROM  # a byte-pair vocabulary is ordered by frequency
        figures = {
            "nll_delta": np.mean(wrong["nll"] - right["nll"]),
            "rare_nll_delta": np.mean((wrong["nll"] - right["nll"])[rare]),
            "entropy_delta": np.mean(wrong["entropy"] - right["entropy"]),
            "same_top1": np.mean(wrong["top"] == right["top"]),
            **_answer_figures(wrong["answers"]),
        }
        # A figure that is not finite is none: a layer that overflows gives no probabilities.
        return {name: round(float(v), 3) if np.isfinite(v) else None for name, v in figures.items()}


def _answer_figures(answers: list[list[int]]) -> dict[str, float]:
    shares = [len(set(answer)) / len(answer) for answer in answers if answer]
    return {
        "answer_tokens": float(np.mean([len(answer) for answer in answers])),
        "distinct_share": float(np.mean(shares)) if shares else 0.0,
    }


def faults(subject: Subject, numbers: list[int]) -> Iterator[tuple[str, Any]]:
    """Kinds with a block that breaks the layers `numbers`."""
    model, layers = subject.model, subject.layers
    with ForcedModel(model, subject.layer_count, subject.ids[:, :24]) as forced:
        pass
    for kind in WANTED:
        yield kind, broken(kind, numbers, forced)
    ids = torch.from_numpy(subject.ids)
    with torch.no_grad(), quiet():
        means = means_of(layers, lambda: model(input_ids=ids, use_cache=False))
    yield from bias_faults(layers, means, numbers).items()
    yield "layers swapped", exchanged(layers, numbers)
    yield "residual scale missing", unscaled_branches(layers, numbers)


def run(subject: Subject) -> dict[str, Any]:
    """The whole table, printed as it grows."""
    kinds: dict[str, dict[str, dict[str, float | None]]] = {}
    middle, every = subject.layer_count // 2, list(range(subject.layer_count))
    with attention(subject.model, install_probe()):
        right = subject.measure()

    def note(kind: str, label: str, block: Any, base: dict[str, Any] = right) -> None:
        with attention(subject.model, install_probe()), block:
            kinds.setdefault(kind, {})[label] = subject.compare(base, subject.measure())
        print(kind, label, kinds[kind][label], flush=True)

    for label, numbers in (("one layer", [middle]), ("every layer", every)):
        for kind, block in faults(subject, numbers):
            note(kind, label, block)
    for kind, block in whole_model(subject.model).items():
        note(kind, "every layer", block)
    with attention(subject.model, install_probe()), capped():
        with_cap = subject.measure()
    note("soft cap dropped", "every layer", contextlib.nullcontext(), with_cap)
    return {
        "text_tokens": int(subject.ids.shape[1]),
        "right": {name: round(value, 3) for name, value in _answer_figures(right["answers"]).items()},
        "kinds": kinds,
    }


def main() -> None:
    """Measure every kind, print, and write the table when asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write the table that the documentation shows")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        source = resolve(None)
        loaded = load_torch(source, Path(work))
        with quiet():
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(source.path.parent, gguf_file=source.path.name)
        found = run(Subject(loaded.model, loaded.layers, tokenizer))
    if asked.write:
        TABLE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
