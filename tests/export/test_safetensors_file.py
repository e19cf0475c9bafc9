"""The safetensors writer against the library's own reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from seatrial.export.safetensors_file import write_safetensors

_SHAPES = st.lists(st.lists(st.integers(0, 5), max_size=3), min_size=1, max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shapes=_SHAPES, seed=st.integers(0, 9))
def test_what_is_written_is_read_back(tmp_path: Path, shapes: list[list[int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    tensors = {
        f"layer.{i}.权重": torch.from_numpy(rng.normal(size=s).astype("f")) for i, s in enumerate(shapes)
    }
    write_safetensors(tmp_path / "m.safetensors", tensors)
    found = load_file(tmp_path / "m.safetensors")
    assert set(found) <= set(tensors)
    for name, tensor in found.items():
        assert torch.equal(tensor, tensors[name])
    assert all(name in found or tensor.numel() == 0 for name, tensor in tensors.items())


def test_tied_weights_are_written_once_and_half_precision_widened(tmp_path: Path) -> None:
    table = torch.arange(6, dtype=torch.float16).reshape(2, 3)
    write_safetensors(
        tmp_path / "m.safetensors", {"embedding": table, "head": table, "turned": table.T.clone()}
    )
    found = load_file(tmp_path / "m.safetensors")
    assert set(found) == {"embedding", "turned"} and found["embedding"].dtype == torch.float32
    assert torch.equal(found["turned"], table.T.float())
