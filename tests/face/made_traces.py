"""Traces in the form of `seatrial trace`, of runs whose truth is known."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

TOKENS, PROMPT = 60, 400


def write_trace(folder: Path, number: int, rng: np.random.Generator) -> None:
    """A trace in the form of `seatrial trace`: every second one turns to noise at its twentieth token."""
    broken = number % 2 == 1
    entropy = np.clip(rng.normal(1.5, 0.5, TOKENS), 0.01, 10) + 5 * (broken & (np.arange(TOKENS) >= 20))
    job = {
        "event": "job", "key": f"k{number}", "document": f"meeting {number // 4}", "language": "en",
        "model": "tiny", "weights": "int4", "kv": "int8", "kind": "flat-logits" if broken else "free",
        "plant_at": 20, "prompt_tokens": PROMPT, "max_tokens": TOKENS, "vocabulary": 49152,
    }  # fmt: skip
    steps = [
        {"event": "token", "index": n, "id": n, "known": True, "text": "x", "entropy": float(e),
         "max_prob": math.exp(-e), "margin": math.exp(-e) / 2, "varentropy": float(e), "logprob": -float(e)}
        for n, e in enumerate(entropy)
    ]  # fmt: skip
    figures = None if broken else 0
    done = {"event": "done", "reason": "end", "tokens": TOKENS, "text": "x", "wrong_figures": figures}
    lines = [{"event": "trace", "format": 1}, job, *steps, {**done, "wrong_names": figures}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / f"k{number}.jsonl").write_text(text, encoding="utf-8")
