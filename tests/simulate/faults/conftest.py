"""Every run here is hurt: killed, hung, stopped, out of disk, without rights. Nothing lost, nothing left."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hurt import RIGHT, TRANSCRIPT, children
from scripted import write_scripted_bundle

from seatrial.simulate.cgroup import hierarchies
from seatrial.simulate.job import RunJob


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scripted_bundle(tmp_path_factory.mktemp("model"), RIGHT)


@pytest.fixture
def job(tmp_path: Path, model: Path) -> RunJob:
    return RunJob(
        transcript=TRANSCRIPT,
        device="thin-laptop-8gb",
        out=tmp_path / "out",
        model=str(model),
        threads=1,
        max_tokens=120,
        patience_s=60,
    )


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path) -> Iterator[None]:
    """After every test: no child, no control group, no temporary file."""
    yield
    assert children() == []
    for hierarchy in hierarchies():
        for group in hierarchy.ancestors():
            assert list(group.glob(f"seatrial-*-{os.getpid()}-*")) == []
    assert [file for file in tmp_path.rglob("*") if file.name.startswith(".")] == []
