"""What a reader of the answers would notice, per kind of fault, with the measure behind it.

The figures are in `symptoms.json`, from putting each fault into the embedded model: loss of rare tokens,
entropy, top-1 agreement, length of answers. `bench/export_symptoms.py` makes them again.
Kinds without figures say so: their sentence is what is to be expected, not what was measured.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

_SYMPTOMS = {
    "bias dropped": "more templated: common phrases win over rare words; in every layer word salad",
    "bias moved": "in one layer shorter answers that drift from the question",
    "bias added twice": "in one layer shorter answers in other words; in every layer word salad",
    "bias truncated": "in one layer shorter answers, rare words lose a little probability",
    "activation differs": "in one layer hardly to be seen; in every layer flat, unsure answers that drift",
    "activation after the product": "in one layer other words, rare ones first; in every layer word salad",
    "activation before the projection": "in one layer rare words lose probability; in every layer word salad",
    "scale wrong": "in one layer hardly to be seen; in every layer one word again and again",
    "half of a sum missing": "in one layer fluent but beside the point; in every layer over-sure repetition",
    "projections swapped": "in one layer other words, rare ones first; in every layer word salad",
    "weight transposed": "fluent but beside the point from one layer, word salad from all",
    "projection missing": "in one layer fluent but beside the point; in every layer one word again and again",
    "rotary base wrong": "right for short prompts, beside the point for long ones",
    "rotary width wrong": "flat, unsure word choice; answers end at once",
    "rotary layout wrong": "flat, unsure answers that repeat themselves",
    "rotary missing": "flat, unsure word choice; answers end at once",
    "head grouping wrong": "in one layer rare words fail, copies first; in every layer word salad",
    "window wrong": "right up to the window's length, then what was said earlier is lost",
    "soft cap wrong": "lower: answers less sure; higher: over-sure",
    "soft cap dropped": "hardly to be seen at the usual cap; over-sure at a low one",
    "epsilon wrong": "nothing to be seen in most texts",
    "attention scale wrong": "too small: answers mix up who said what; too large: they copy one sentence",
    "embedding scale missing": "one word again and again",
    "positions wrong": "word order is half understood; the first words of the prompt are misread",
    "embedding wrong": "word salad from the first word",
    "frozen length": "right at one length only: behind it the same words again and again",
    "cache wrong": "right for the first token, beside the point as the answer grows",
    "residual scale missing": "from one layer rare words are lost and answers repeat themselves",
    "layers swapped": "from one layer two words in five are others and answers do not end",
    "layer skipped": "from one layer one word in four is another; from all one word again and again",
    "tied embedding stored twice": "the same text from a file that is larger than it needs to be",
    "norm skipped": "one word again and again from one layer; in every layer no numbers at all",
    "norm wrong": "from one layer half of the words are others, then repetition; in every layer word salad",
    "not causal": "good scores on text that is given, other words when it writes itself",
    "head wrong": "the wrong words in the right places",
    "not finite": "no text at all, or the same token for ever",
    "unexplained": "cannot be told from the kind",
}

KINDS = tuple(_SYMPTOMS)


def symptom_of(kind: str) -> str:
    """The symptom of a kind of fault."""
    return _SYMPTOMS[kind]


def measure_of(kind: str) -> dict[str, dict[str, float | None]] | None:
    """Figures of the embedded model with this fault in one layer and in every layer; None if not taken."""
    found: dict[str, dict[str, float | None]] | None = _figures()["kinds"].get(kind)
    return found


def right_answers() -> dict[str, float]:
    """Length and share of distinct tokens of the answers without a fault."""
    found: dict[str, float] = _figures()["right"]
    return found


@cache
def _figures() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("symptoms.json").read_text(encoding="utf-8"))
    return found
