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
    "bias dropped": "answers more templated and shorter: common phrases win over rare words",
    "bias moved": "answers drift to a few favourite phrases; rare words lose probability",
    "bias added twice": "answers more templated: the phrases that the bias favours win more often",
    "bias truncated": "slightly more templated answers; part of the words loses probability",
    "activation differs": "in one layer hardly to be seen; in every layer flat, unsure answers that drift",
    "activation after the product": "in one layer other words, rare ones first; in every layer word salad",
    "activation before the projection": "in one layer rare words lose probability; in every layer word salad",
    "scale wrong": "in one layer hardly to be seen; in every layer one word again and again",
    "half of a sum missing": "in one layer fluent but beside the point; in every layer over-sure repetition",
    "projections swapped": "in one layer other words, rare ones first; in every layer word salad",
    "weight transposed": "fluent but beside the point from one layer, word salad from all",
    "projection missing": "fluent text beside the point",
    "rotary base wrong": "right for short prompts, beside the point for long ones",
    "rotary width wrong": "word order is half understood: right words, confused references",
    "rotary layout wrong": "word salad that keeps to the topic's vocabulary",
    "rotary missing": "words of the prompt in any order: the model is blind to positions",
    "head grouping wrong": "fluent text beside the point; copies from the prompt fail first",
    "window wrong": "right up to the window's length, then what was said earlier is lost",
    "soft cap wrong": "lower: answers less sure; higher: over-sure",
    "soft cap dropped": "over-sure answers: low entropy",
    "epsilon wrong": "nothing to be seen in most texts",
    "attention scale wrong": "too small: answers mix up who said what; too large: they copy one sentence",
    "embedding scale missing": "flat answers in a few frequent words",
    "positions wrong": "word order is half understood; the first words of the prompt are misread",
    "embedding wrong": "word salad from the first word",
    "frozen length": "right at one length only: longer prompts are cut or answered beside the point",
    "cache wrong": "right for the first token, beside the point as the answer grows",
    "residual scale missing": "in one layer hardly to be seen; in every layer word salad",
    "layers swapped": "fluent but beside the point; less the nearer the two layers are",
    "layer skipped": "fluent but shallow: facts and instructions are missed",
    "tied embedding stored twice": "the same text from a file that is larger than it needs to be",
    "norm skipped": "in one layer the wrong words in the right places; in every layer word salad",
    "norm wrong": "answers collapse to a few frequent words",
    "not causal": "good scores on text that is given, word salad when it writes itself",
    "head wrong": "the wrong words in the right places",
    "not finite": "no text at all, or the same token for ever",
    "unexplained": "cannot be told from the kind",
}

KINDS = tuple(_SYMPTOMS)


def symptom_of(kind: str) -> str:
    """The symptom of a kind of fault."""
    return _SYMPTOMS[kind]


def measure_of(kind: str) -> dict[str, dict[str, float]] | None:
    """Figures of the embedded model with this fault in one layer and in every layer; None if not taken."""
    found: dict[str, dict[str, float]] | None = _figures()["kinds"].get(kind)
    return found


def right_answers() -> dict[str, float]:
    """Length and share of distinct tokens of the answers without a fault."""
    found: dict[str, float] = _figures()["right"]
    return found


@cache
def _figures() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("symptoms.json").read_text(encoding="utf-8"))
    return found
