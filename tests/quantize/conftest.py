"""Fixtures of the quantize room: a tiny decoder as a bundle, plain and quantized."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

if TYPE_CHECKING:
    from seatrial.export.bundle import Bundle


@pytest.fixture(autouse=True, scope="session")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Packed weights of throw-away models do not belong in the user's cache."""
    import os

    os.environ.setdefault("SEATRIAL_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The tiny decoder with a head that shares the embedding."""
    from tiny_decoder import tiny_bundle

    return tiny_bundle(tmp_path_factory.mktemp("tiny") / "fp32")
