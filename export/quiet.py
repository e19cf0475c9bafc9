"""Keep libraries from talking while they work: what matters is raised, and our own lines say the rest."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator

_TALKERS = (
    "transformers",
    "torch",
    "torch.onnx",
    "torch.export",
    "onnxscript",
    "onnx_ir",
    "optimum",
    "huggingface_hub",
)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence progress bars, warnings and log lines of the libraries inside the block; exceptions pass."""
    loggers = [logging.getLogger(name) for name in _TALKERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            with contextlib.redirect_stdout(io.StringIO()):
                yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
