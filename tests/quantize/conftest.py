"""Fixtures of the quantize room: a tiny decoder as a bundle, plain and quantized."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

if TYPE_CHECKING:
    from seatrial.export.bundle import Bundle


@pytest.fixture(scope="session")
def spare_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder that goes away with the tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def own_cache(spare_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Packed weights of throw-away models do not belong in the user's cache."""
    monkeypatch.setenv("SEATRIAL_CACHE", str(spare_cache))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """The tiny decoder with a head that shares the embedding."""
    from tiny_decoder import tiny_bundle

    return tiny_bundle(tmp_path_factory.mktemp("tiny") / "fp32")
