"""What a fault does to the embedded model's text: put into torch on purpose, measured on English text.

    python bench/export_symptoms.py [--write]

Per kind of fault: the change in the loss of all and of rare tokens (nats), in the entropy of the next token
(nats), how often the top token stays the same, and the share of distinct tokens in a greedy answer. Faults of
a layer are put into the middle layer alone and into every layer. The embedded model has no biases, so faults
of biases have no figures.
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

from seatrial.export.faults import changes
from seatrial.export.faults.forced import ForcedModel
from seatrial.export.faults.hypotheses import Hypothesis, hypotheses
from seatrial.export.faults.modules import modules_of
from seatrial.export.faults.probe import AttentionChange, changed, install_probe
from seatrial.export.load import load_torch
from seatrial.export.quiet import quiet
from seatrial.export.reference import attention
from seatrial.export.source import resolve

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "export" / "faults" / "symptoms.json"
TEXT = ROOT / "quantize" / "evaluation_en.txt"
TOKENS, RARE_FROM, ANSWER = 160, 8000, 24
# The hypothesis that stands for a kind: its place and a word of its detail.
WANTED = {
    "activation differs": ("mlp.act_fn", "tanh GELU"),
    "activation after the product": ("mlp.act_fn", ""),
    "activation before the projection": ("mlp.gate_proj", ""),
    "scale wrong": ("mlp.down_proj", "0.5 times"),
    "half of a sum missing": ("mlp.down_proj", "second half of its input"),
    "projections swapped": ("mlp.gate_proj", "weights exchanged with mlp.up_proj"),
    "weight transposed": ("self_attn.o_proj", ""),
    "window wrong": ("attention", "a window of 16"),
    "attention scale wrong": ("attention", "scaled 0.5 times"),
    "head grouping wrong": ("attention", "strided"),
    "epsilon wrong": ("input_layernorm", "0.001"),
    "norm wrong": ("input_layernorm", "weight is taken as 1"),
    "not causal": ("attention", ""),
    "layer skipped": ("layer", ""),
}


def find(kind: str, found: Iterator[Hypothesis]) -> Hypothesis:
    place, word = WANTED[kind]
    return next(h for h in found if h.kind == kind and h.place.endswith(place) and word in h.detail)


@contextlib.contextmanager
def broken(kind: str, layers: list[int], forced: ForcedModel) -> Iterator[None]:
    """The model with one kind of fault in some layers."""
    with contextlib.ExitStack() as stack:
        for number in layers:
            hidden = forced.first_hidden
            parts = modules_of(forced, number, hidden)
            hypothesis = find(kind, hypotheses(parts, forced.seen_in(number, hidden), ()))
            stack.enter_context(skipping(parts.layer) if hypothesis.identity else hypothesis.change)
            if hypothesis.attention is not None:
                stack.enter_context(only_in(parts.layer, hypothesis.attention))
        yield


@contextlib.contextmanager
def skipping(layer: torch.nn.Module) -> Iterator[None]:
    """The layer gives back what it was given."""

    def hook(_module: Any, args: tuple[Any, ...], output: Any) -> Any:
        return (args[0], *output[1:]) if isinstance(output, tuple) else args[0]

    handle = layer.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@contextlib.contextmanager
def only_in(layer: torch.nn.Module, change: AttentionChange) -> Iterator[None]:
    """An attention change that holds while this layer runs."""
    block: list[Any] = []

    def before(*_: Any) -> None:
        block.append(changed(change))
        block[-1].__enter__()

    def after(*_: Any) -> None:
        block.pop().__exit__()

    handles = [layer.register_forward_pre_hook(before), layer.register_forward_hook(after)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def measure(model: Any, ids: np.ndarray) -> dict[str, np.ndarray]:
    """Per token: loss, entropy and top token; and a greedy continuation of the first half."""
    with torch.no_grad(), quiet():
        logits = model(input_ids=torch.from_numpy(ids), use_cache=False).logits[0].double()
        logs = torch.log_softmax(logits, -1)
        row = torch.from_numpy(ids)[0, : ids.shape[1] // 2]
        for _ in range(ANSWER):
            row = torch.cat([row, model(input_ids=row[None], use_cache=False).logits[0, -1].argmax()[None]])
    targets = torch.from_numpy(ids)[0, 1:]
    return {
        "nll": -logs[:-1].gather(1, targets[:, None])[:, 0].numpy(),
        "entropy": -(logs.exp() * logs).sum(-1)[:-1].numpy(),
        "top": logits[:-1].argmax(-1).numpy(),
        "answer": row[-ANSWER:].numpy(),
    }


def compare(ids: np.ndarray, right: dict[str, np.ndarray], wrong: dict[str, np.ndarray]) -> dict[str, float]:
    rare = ids[0, 1:] >= RARE_FROM  # a byte-pair vocabulary is ordered by frequency
    figures = {
        "nll_delta": np.mean(wrong["nll"] - right["nll"]),
        "rare_nll_delta": np.mean((wrong["nll"] - right["nll"])[rare]),
        "entropy_delta": np.mean(wrong["entropy"] - right["entropy"]),
        "same_top1": np.mean(wrong["top"] == right["top"]),
        "distinct_share": len(set(wrong["answer"].tolist())) / ANSWER,
    }
    return {name: round(float(value), 3) for name, value in figures.items()}


def main() -> None:
    """Measure every kind, print, and write the table when asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        source = resolve(None)
        loaded = load_torch(source, Path(work))
        with quiet():
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(source.path.parent, gguf_file=source.path.name)
        text = TEXT.read_text(encoding="utf-8")
        ids = np.array([tokenizer(text, add_special_tokens=False)["input_ids"][:TOKENS]])
        found = run(loaded.model, loaded.layers, ids)
    if asked.write:
        TABLE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def run(model: Any, layer_count: int, ids: np.ndarray) -> dict[str, Any]:
    found: dict[str, Any] = {"text_tokens": int(ids.shape[1]), "kinds": {}}
    with attention(model, install_probe()):
        right = measure(model, ids)
        found["right_distinct_share"] = len(set(right["answer"].tolist())) / ANSWER
        for kind in [*WANTED, *special(model)]:
            rows = {}
            for label, layers in (
                ("one layer", [layer_count // 2]),
                ("every layer", list(range(layer_count))),
            ):
                if kind in special(model):
                    with special(model)[kind]:
                        rows[label] = compare(ids, right, measure(model, ids))
                    break
                with ForcedModel(model, layer_count, ids[:, :12]) as forced:
                    pass
                with attention(model, install_probe()), broken(kind, layers, forced):
                    rows[label] = compare(ids, right, measure(model, ids))
            found["kinds"][kind] = rows
            print(kind, rows, flush=True)
    return found


def special(model: Any) -> dict[str, Any]:
    """Faults outside of layers: rotary base, embedding scale, head."""
    rotary = next(m for m in model.modules() if hasattr(m, "inv_freq"))
    count = len(rotary.inv_freq)
    other = torch.tensor([10000.0 ** (-i / count) for i in range(count)])
    embedding = model.get_input_embeddings()
    return {
        "rotary base wrong": changes.attribute(rotary, "inv_freq", other),
        "embedding scale missing": changes.result(embedding, lambda x: x * 0.25),
    }


if __name__ == "__main__":
    main()
