"""What a reader of the answers would notice, per kind of fault, with the measure behind it.

The figures are in `symptoms.json`, from putting each fault into the embedded model; they are made again by
`bench/export_symptoms.py`: loss of rare tokens, entropy, top-1 agreement, share of distinct tokens in an
answer.
"""

from __future__ import annotations

_SYMPTOMS = {
    "bias dropped": "answers become more templated: rare words lose probability, common phrases win",
    "bias moved": "answers drift to a few favourite phrases; rare words lose probability",
    "bias truncated": "slightly more templated answers; part of the vocabulary loses probability",
    "activation differs": "almost the same text, a little over- or under-sure; long answers drift",
    "activation after the product": "over-sure answers: low entropy, the same openings again and again",
    "activation before the projection": "over-sure answers that soon stop making sense",
    "scale wrong": "over-sure or flat answers, by its direction; hidden where a norm follows",
    "half of a sum missing": "fluent text beside the point: grammar holds, content is lost",
    "projections swapped": "fluent at first, then word salad",
    "weight transposed": "word salad from the first word",
    "projection missing": "fluent text beside the point",
    "rotary base wrong": "right for short prompts, beside the point for long ones",
    "rotary layout wrong": "word salad that keeps to the topic's vocabulary",
    "rotary missing": "words of the prompt in any order: the model is blind to positions",
    "head grouping wrong": "fluent text beside the point; copies from the prompt fail first",
    "window wrong": "right up to the window's length, then loss of what was said earlier or repetition",
    "soft cap dropped": "over-sure answers: low entropy",
    "epsilon wrong": "nothing to be seen in most texts; the first tokens of a text change slightly",
    "attention scale wrong": "too small: answers mix up who said what; too large: they copy one sentence",
    "embedding scale missing": "short, flat answers in a few frequent words",
    "embedding wrong": "word salad from the first word",
    "frozen length": "right at one length only: longer prompts are cut or answered beside the point",
    "cache wrong": "right for the first token, beside the point as the answer grows",
    "layer skipped": "fluent but shallow: facts and instructions are missed",
    "tied embedding stored twice": "the same text from a file that is larger than it needs to be",
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
