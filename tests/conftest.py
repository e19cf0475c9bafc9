"""Fixtures shared by all rooms: the embedded model as bundles, made once and kept in the user's cache.

The first run on a machine fetches the model, exports and quantizes it; later runs open what is there. Nothing
here skips: without the network and without a cache the tests that need the model fail and say why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

# A busy machine is no failure: nothing here asserts a time. Derandomized, so that a run can be repeated.
settings.register_profile("seatrial", deadline=None, derandomize=True)
settings.load_profile("seatrial")

if TYPE_CHECKING:
    from seatrial.export.bundle import Bundle


def _bundle(weights: str, kv: str) -> Bundle:
    # Imported here so that the rooms without a model can be tested in a second.
    from seatrial.simulate.prepare import ensure_bundle

    return ensure_bundle(None, weights=weights, kv=kv)


@pytest.fixture(scope="session")
def fp32_bundle() -> Bundle:
    """The embedded model, fp32 weights and fp32 KV cache."""
    return _bundle("fp32", "fp32")


@pytest.fixture(scope="session")
def int4_bundle() -> Bundle:
    """The embedded model, int4 weights and int8 KV cache."""
    return _bundle("int4", "int8")


@pytest.fixture(scope="session")
def int8_bundle() -> Bundle:
    """The embedded model, int8 weights and int8 KV cache."""
    return _bundle("int8", "int8")
