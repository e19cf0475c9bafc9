"""torch -> an ONNX graph in memory, with KV cache inputs and outputs under their conventional names.

One tracing wrapper around any causal model whose attention has been swapped (`attention.py`). Lengths and
positions come from the attention mask inside the graph, so a KV buffer larger than what is filled (past and
present bound once) changes nothing. It deliberately does not optimize and does not write files.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch

from seatrial.export.attention import CacheTensors, tracing
from seatrial.export.parity import EXAMPLE_TOKENS

OPSET = 20
EXAMPLE_BATCH, EXAMPLE_PAST = 2, 3


class CausalWithCache(torch.nn.Module):
    """`forward(input_ids (B, T), attention_mask (B, S), past...)` -> logits (B, T, V), present...

    `past` is a flat list key, value per layer, each (B, KV, P, D). Right padding only: positions count the
    mask's ones from the left.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, past: list[torch.Tensor]
    ) -> list[torch.Tensor]:
        lengths = attention_mask.sum(1)
        caches = CacheTensors(
            past=list(zip(past[::2], past[1::2], strict=True)),
            seqlens_k=(lengths - 1).to(torch.int32),
            total_length=torch.scalar_tensor(attention_mask.shape[1], dtype=torch.int32),
        )
        tokens = torch.arange(input_ids.shape[1])
        positions = (lengths - input_ids.shape[1]).clamp(min=0)[:, None] + tokens
        with tracing(caches):
            out = self.model(
                input_ids=input_ids,
                position_ids=positions,
                cache_position=tokens,
                use_cache=False,
                return_dict=True,
            )
        if len(caches.present) != len(caches.past):
            raise NotImplementedError("its attention is not called through the interface")
        present = [tensor for layer in range(len(caches.past)) for tensor in caches.present[layer]]
        return [out.logits, *present]


def trace(model: Any, layers: int, kv_heads: int, head_dim: int) -> ir.Model:
    """The model as an `onnx_ir.Model` of opset 20; weights stay the torch tensors (no copy)."""
    past = [torch.zeros(EXAMPLE_BATCH, kv_heads, EXAMPLE_PAST, head_dim) for _ in range(2 * layers)]
    auto = torch.export.Dim.AUTO
    columns = EXAMPLE_PAST + EXAMPLE_TOKENS
    with torch.no_grad():
        program = torch.onnx.export(
            CausalWithCache(model),
            (
                torch.ones(EXAMPLE_BATCH, EXAMPLE_TOKENS, dtype=torch.int64),
                torch.ones(EXAMPLE_BATCH, columns, dtype=torch.int64),
                past,
            ),
            dynamo=True,
            dynamic_shapes=({0: auto, 1: auto}, {0: auto, 1: auto}, [{0: auto, 2: auto}] * len(past)),
            opset_version=OPSET,
            optimize=False,
            verbose=False,
        )
    if program is None:
        raise RuntimeError("torch.onnx.export returned nothing")
    _name_ends(program.model, layers, kv_heads, head_dim)
    for value in list(program.model.graph.initializers.values()):
        # Weights carry the source's names, not the wrapper's.
        value.name = (value.name or "").removeprefix("model.")
    return program.model


def _name_ends(model: ir.Model, layers: int, kv_heads: int, head_dim: int) -> None:
    """Conventional names and symbolic shapes for inputs and outputs."""
    graph = model.graph
    ids, mask, *past = graph.inputs
    logits, *present = graph.outputs
    _rename(ids, "input_ids", "batch_size", "sequence_length")
    _rename(mask, "attention_mask", "batch_size", "total_sequence_length")
    _rename(logits, "logits", "batch_size", "sequence_length", logits.shape[2] if logits.shape else "vocab")
    for layer in range(layers):
        for side, (before, after) in enumerate(
            zip(past[2 * layer : 2 * layer + 2], present[2 * layer : 2 * layer + 2], strict=True)
        ):
            which = ("key", "value")[side]
            _rename(
                before,
                f"past_key_values.{layer}.{which}",
                "batch_size",
                kv_heads,
                "past_sequence_length",
                head_dim,
            )
            _rename(
                after, f"present.{layer}.{which}", "batch_size", kv_heads, "total_sequence_length", head_dim
            )


def _rename(value: ir.Value, name: str, *shape: int | str) -> None:
    value.name = name
    value.shape = ir.Shape(list(shape))
