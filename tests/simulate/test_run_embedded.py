"""The embedded model in a run: it writes, is judged, is killed at a real ceiling and comes back mapped."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from seatrial.errors import UserError
from seatrial.export.bundle import Bundle
from seatrial.guards.verdict import Verdict
from seatrial.simulate.job import RunJob
from seatrial.simulate.run import run

ENGLISH = """Marta Quillfeather: Good morning. The budget of the new freezer room is $48,500, we decided.
Ravi Okonjo: Fine. The supplier from Tarrowby wants twenty percent in advance, so about 9,700 dollars.
Marta Quillfeather: Ravi signs the order by the 14th of May, and Dr. Lindholm checks the wiring on the 20th.
Ravi Okonjo: Agreed. The room has to be cold by the first of June, the fish comes on the third.
"""
CHINESE = """主持人：各位早上好，今天只有一件事，新冷库的预算是四十八万五千元，已经定了。
王若岚：供应商要百分之二十的预付款，大概九万七千元，五月十四号之前签合同。
主持人：好，若岚负责签合同，李工五月二十号检查线路，六月一号必须降温。
"""


def job(tmp_path: Path, transcript: str) -> RunJob:
    return RunJob(
        transcript,
        "thin-laptop-8gb",
        tmp_path / "out",
        weights="int4",
        kv="int8",
        max_tokens=64,
        patience_s=300,
    )


@pytest.mark.parametrize("transcript", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_something_fit_to_read_comes_out_and_the_way_there_is_told(
    tmp_path: Path, int4_bundle: Bundle, transcript: str
) -> None:
    result = run(job(tmp_path, transcript))
    assert (result.exit_code, result.status in ("ok", "fallback")) == (0, True)
    assert result.summary
    verdicts = {report.guard: report.verdict for report in result.guards}
    assert verdicts["numbers"] is not Verdict.FAIL
    assert verdicts["names"] is not Verdict.FAIL
    if result.summary_kind == "extractive":
        assert result.attempts[0].refused
        assert all(line in transcript for line in result.summary.splitlines())
    assert result.sizes["fp32_bytes"] > 4 * result.sizes["bundle_bytes"]
    assert result.weight_bytes_per_token == pytest.approx(int4_bundle.weight_bytes, rel=0.05)
    assert result.kv_allocated_bytes == int4_bundle.kv.bytes_per_token() * (
        result.kv_allocated_bytes // int4_bundle.kv.bytes_per_token()
    )


def test_a_heap_that_does_not_fit_is_killed_and_comes_back_mapped(
    tmp_path: Path, int8_bundle: Bundle
) -> None:
    """int8 weights are 154 MB: on the heap they do not fit 160 MB beside the engine, mapped they do."""
    asked = replace(
        job(tmp_path, ENGLISH), weights="int8", ceiling_bytes=160_000_000, foresee_memory=False, max_tokens=8
    )
    result = run(asked)
    assert int8_bundle.weight_bytes > 140_000_000
    assert [(fallback.trigger, fallback.action) for fallback in result.fallbacks][:1] == [
        ("memory", "mapped weights")
    ]
    assert result.deaths[0]["kind"] == "memory"
    assert result.memory.mapped_weights
    assert result.decode.tokens > 0
    assert result.exit_code == 0


def test_a_bundle_is_run_in_its_own_formats(tmp_path: Path, int4_bundle: Bundle) -> None:
    asked = replace(
        job(tmp_path, ENGLISH), model=str(int4_bundle.folder), weights=None, kv=None, max_tokens=4
    )
    result = run(asked)
    assert (result.weights, result.kv) == ("int4", "int8")
    assert result.kv_allocated_bytes % int4_bundle.kv.bytes_per_token() == 0
    with pytest.raises(UserError, match="quantized already"):
        run(replace(asked, weights="int8"))
