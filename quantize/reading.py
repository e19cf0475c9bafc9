"""What a decoder graph is fed to read a text from nothing, where no session is wanted around it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime as ort

from seatrial.export.session_cache import numpy_type


def empty_inputs(engine: ort.InferenceSession, ids: Sequence[int]) -> dict[str, Any]:
    """Inputs for reading a text from nothing."""
    feeds: dict[str, Any] = {}
    for value in engine.get_inputs():
        if value.name.startswith("past_key_values."):
            shape = [1, value.shape[1], 0, value.shape[3]]
            feeds[value.name] = np.zeros(shape, numpy_type(value.type))
        elif value.name == "input_ids":
            feeds[value.name] = np.array([ids], np.int64)
        elif value.name == "attention_mask":
            feeds[value.name] = np.ones((1, len(ids)), np.int64)
        elif value.name == "position_ids":
            feeds[value.name] = np.arange(len(ids), dtype=np.int64)[None]
    return feeds
