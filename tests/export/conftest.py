"""Fixtures of the export room: tiny models of every family, exported once per session."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

if TYPE_CHECKING:
    from tiny_exports import Made


@pytest.fixture(scope="session")
def families(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Made]:
    """All families as source folder and bundle."""
    from tiny_exports import make_all

    return make_all(tmp_path_factory.mktemp("families"))


@pytest.fixture(scope="session")
def verify_family(families: dict[str, Made]) -> Callable[..., Any]:
    """A function that verifies a family's graph, or a changed copy of it, against its torch model."""
    from verifying import Verifier

    return Verifier(families)


@pytest.fixture
def llama(families: dict[str, Made]) -> Made:
    """The tiny llama: tied head, biases everywhere."""
    return families["llama"]
