"""The same arithmetic by other kernels: what fp32 itself leaves open between two right computations.

Inside the block every linear product is summed in another order, and square roots, SiLU and softmax are
made of other primitives. The weights are the same and not copied. The distance between a run inside and one
outside is the noise floor that parity measures with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode


class OtherKernels(TorchFunctionMode):
    """Functions of torch replaced by equal ones that round differently; `share` is where sums are cut in
    two.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def __torch_function__(
        self, function: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if function is F.linear:
            return _linear(self.share, *args, **(kwargs or {}))
        if function is torch.addmm:
            return _linear(self.share, args[1], args[2].T, args[0])
        other = _OTHER.get(function)
        if other is not None and torch.is_tensor(args[0]) and args[0].is_floating_point():
            return other(*args, **(kwargs or {}))
        return function(*args, **(kwargs or {}))


def _linear(
    share: float, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """x @ weight.T + bias, the second part of the sum first."""
    cut = int(x.shape[-1] * share)
    total = torch.matmul(x[..., cut:], weight[:, cut:].T)
    total = total + torch.matmul(x[..., :cut], weight[:, :cut].T)
    return total if bias is None else bias + total


def _rsqrt(x: torch.Tensor) -> torch.Tensor:
    return 1.0 / torch.sqrt(x)


def _silu(x: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return x / (1.0 + torch.exp(-x))


def _softmax(x: torch.Tensor, dim: int = -1, *_: Any, **__: Any) -> torch.Tensor:
    shifted = torch.exp(x - x.amax(dim, keepdim=True))
    return shifted * (1.0 / shifted.sum(dim, keepdim=True))


def _mean(x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    return torch.mean(x.double(), *args, **kwargs).to(x.dtype)


_OTHER: dict[Any, Callable[..., Any]] = {
    torch.rsqrt: _rsqrt,
    F.silu: _silu,
    F.softmax: _softmax,
    torch.softmax: _softmax,
    torch.Tensor.mean: _mean,
}
