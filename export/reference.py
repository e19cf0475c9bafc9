"""The torch side of parity: eager logits and residuals per layer, and how far another kernel lands from
them.

Layers are found as the module list that has as many members as the config has layers; nothing else is
assumed of a model. It runs no ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from seatrial.errors import UserError
from seatrial.export.other_kernels import OtherKernels
from seatrial.export.parity import Case, Reference, token_gaps
from seatrial.export.quiet import quiet

# Where the sums of the other kernels are cut: three, because one sample of noise can be lucky.
_SHARES = (3 / 7, 1 / 2, 5 / 6)


def find_layers(model: Any, count: int) -> torch.nn.ModuleList:
    """The decoder's layers. Raises UserError when no module list has `count` members."""
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and len(module) == count:
            return module
    raise UserError(
        f"{type(model).__name__} has no list of {count} layers; its config and its modules disagree"
    )


def references(model: Any, layers: int, cases: Sequence[Case]) -> list[Reference]:
    """Torch results for every case. The same tokens are run once, however they are cut; a shorter prefix of
    tokens takes its noise floors from the longer run (a causal model does not see what follows)."""
    longest = {case.ids[0, 0].item(): case.ids for case in sorted(cases, key=lambda case: case.ids.shape[1])}
    floors = {first: _floors(model, layers, ids) for first, ids in longest.items()}
    done: dict[tuple[int, ...], tuple[np.ndarray, list[np.ndarray]]] = {}
    found = []
    for case in cases:
        key = (*case.ids.shape, int(case.ids[0, 0]))
        if key not in done:
            done[key] = run_torch(model, layers, case.ids)
        logits, residuals = done[key]
        cut = slice(0, case.ids.shape[1])
        logits_floor, residual_floors = floors[case.ids[0, 0].item()]
        found.append(
            Reference(logits, residuals, logits_floor[:, cut], [floor[:, cut] for floor in residual_floors])
        )
    return found


def _floors(model: Any, layers: int, ids: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Per token (B, T), how far the same weights land through other kernels: the largest of a few, per
    layer.
    """
    logits, residuals = run_torch(model, layers, ids)
    logits_floor = np.zeros(ids.shape)
    residual_floors = [np.zeros(ids.shape) for _ in residuals]
    for share in _SHARES:
        other_logits, other = _another_kernel(model, layers, ids, share)
        np.maximum(logits_floor, token_gaps(other_logits, logits), out=logits_floor)
        for floor, mine, theirs in zip(residual_floors, residuals, other, strict=True):
            np.maximum(floor, token_gaps(theirs, mine), out=floor)
    return logits_floor, residual_floors


def _another_kernel(
    model: Any, layers: int, ids: np.ndarray, share: float
) -> tuple[np.ndarray, list[np.ndarray]]:
    """The same tokens and weights with every sum in another order and a token appended behind."""
    tokens = ids.shape[1]
    longer = np.concatenate([ids, ids[:, :1]], axis=1)
    with attention(model, "sdpa"), OtherKernels(share):
        logits, residuals = run_torch(model, layers, longer)
    return logits[:, :tokens], [residual[:, :tokens] for residual in residuals]


class attention:
    """The model's attention by another name inside a block; eager again after it. Eager where it has no
    other.
    """

    def __init__(self, model: Any, name: str) -> None:
        self.model, self.name = model, name

    def __enter__(self) -> None:
        try:
            with quiet():
                self.model.set_attn_implementation(self.name)
        except (ValueError, ImportError):
            self.model.set_attn_implementation("eager")

    def __exit__(self, *_: object) -> None:
        self.model.set_attn_implementation("eager")


def run_torch(model: Any, layers: int, ids: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Logits (B, T, V) and each layer's output (B, T, hidden) without a cache, in fp32."""
    seen: list[np.ndarray] = []

    def keep(_module: Any, _given: Any, output: Any) -> None:
        seen.append((output[0] if isinstance(output, tuple) else output).detach().numpy().copy())

    hooks = [layer.register_forward_hook(keep) for layer in find_layers(model, layers)]
    try:
        with torch.no_grad(), quiet():
            out = model(input_ids=torch.from_numpy(ids), use_cache=False, return_dict=True)
    finally:
        for hook in hooks:
            hook.remove()
    return out.logits.float().numpy(), seen
