"""Give memory back between the steps of an export: mapped weights are read again when needed, freed heap is
trimmed.

Only advice to the system: contents never change, and where the advice is not known (other systems, older
kernels) nothing happens.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import sys
from typing import Any

_PAGEOUT = 21  # MADV_PAGEOUT of Linux 5.4: clean pages of a file are dropped, nothing is lost


def page_out(model: Any) -> None:
    """Let go of the resident pages of a torch model's weights that are mapped from files."""
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None)
    for parameter in model.parameters():
        start = parameter.data_ptr() // mmap.PAGESIZE * mmap.PAGESIZE
        length = parameter.data_ptr() + parameter.numel() * parameter.element_size() - start
        libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(length), _PAGEOUT)


def trim_heap() -> None:
    """Drop the caches of a finished trace, collect garbage, return free heap to the system."""
    sympy = sys.modules.get("sympy.core.cache")
    if sympy is not None:
        sympy.clear_cache()
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()
    gc.collect()
    return_free_heap()


def return_free_heap() -> None:
    """Give the free pages of the C heap back to the system (glibc keeps them for later)."""
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
