"""Inputs of a session as onnxruntime wants them: values over numpy's own memory, and the growing mask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import onnxruntime as ort

if TYPE_CHECKING:
    from numpy.typing import NDArray

_AHEAD = 32


def share(array: NDArray[Any]) -> Any:
    """An OrtValue over the array's own memory, which must be contiguous."""
    return ort.OrtValue.ortvalue_from_numpy(array)


class GrowingMask:
    """Attention masks (1, length) of ones, one value for each length up to `capacity`.

    They are made many lengths at a time: between two tokens the model's weights push everything else out of
    the processor's cache, and making a single value then takes 50 us, making one more of many takes 2.
    """

    def __init__(self, capacity: int) -> None:
        self._ones = np.ones((1, capacity), np.int64)
        self._first = 0
        self._values: list[Any] = []

    def of(self, length: int) -> Any:
        """The mask of `length` positions, as an OrtValue."""
        place = length - self._first
        if not 0 <= place < len(self._values):
            last = min(length + _AHEAD, self._ones.shape[1] + 1)
            self._values = [share(self._ones[:, :end]) for end in range(length, last)]
            self._first, place = length, 0
        return self._values[place]
