"""Writes a safetensors file tensor by tensor.

The library's own writer turns every tensor into bytes before it writes the first, which is a second copy of
the whole model in memory. Only fp32 is written here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

_ALIGNMENT = 8  # of the header, as the format asks


def write_safetensors(path: Path, tensors: Mapping[str, Any]) -> None:
    """Torch tensors by name, as fp32; counters and masks are left out, and names whose tensor is another
    one's memory, as tied weights are.
    """
    owners: dict[tuple[Any, ...], str] = {}
    for name, tensor in tensors.items():
        if tensor.is_floating_point():
            owners.setdefault((tensor.data_ptr(), tuple(tensor.shape), tensor.stride()), name)
    kept = {name: tensors[name] for name in owners.values()}
    with path.open("wb") as stream:
        stream.write(_header({name: list(tensor.shape) for name, tensor in kept.items()}))
        for tensor in kept.values():
            stream.write(np.ascontiguousarray(tensor.detach().float().numpy()).data)


def _header(shapes: Mapping[str, list[int]]) -> bytes:
    """Length and JSON header of a file with these fp32 tensors, one behind the other."""
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + 4 * int(np.prod(shape, dtype=np.int64))
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text
