"""`tune --html`: the page says what `--json` says, in both languages, with its tables and curves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from made_traces import PROMPT, TOKENS, write_trace

from seatrial.cli import run_command
from seatrial.devices.device import load_device
from seatrial.devices.runtime import load_runtime
from seatrial.export.architecture import read_architecture
from seatrial.simulate.plan import Job, plan

CONFIG = Path(__file__).with_name("config_3b.json")


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("traces"), np.random.default_rng(1)
    for number in range(48):
        write_trace(folder, number, rng)
    return folder


@pytest.mark.parametrize(
    ("language", "words"), [("en", "documents left out of the fit"), ("zh", "未参与拟合的文档")]
)
def test_the_page_shows_tables_and_curves(
    traces: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes], language: str, words: str
) -> None:
    out, page = tmp_path / "thresholds.toml", tmp_path / "tune.html"
    arguments = ["tune", str(traces), "--out", str(out), "--model", str(CONFIG), "--draws", "30", "--json"]
    run_command([*arguments, "--html", str(page), "--lang", language, "--quiet"])
    told = json.loads(capsysbinary.readouterr().out)
    text = page.read_text(encoding="utf-8")
    assert text.count("<svg") == 4 and words in text
    for rule in told["rules"]:
        assert f"{rule['auroc']['value']:.3g}" in text and rule["rule"] in text
    for row in told["policies"]["rows"]:
        assert row["policy"] in text and f"{row['seconds']:.2f}" in text


def test_policies_cost_what_the_plan_says(traces: Path, tmp_path: Path, capsysbinary) -> None:  # type: ignore[no-untyped-def]
    """Showing everything is reading the prompt and writing all tokens, on the device."""
    out = str(tmp_path / "thresholds.toml")
    run_command(
        ["tune", str(traces), "--out", out, "--model", str(CONFIG), "--draws", "30", "--json", "--quiet"]
    )
    told = json.loads(capsysbinary.readouterr().out)["policies"]
    device = load_device(told["device"])
    job = Job(prompt_tokens=PROMPT, max_tokens=TOKENS, weights="int4", kv="int8")
    planned = plan(read_architecture(CONFIG), device, load_runtime(device.runtime), job)
    everything = next(row for row in told["rows"] if row["policy"] == "show everything")
    assert everything["seconds"] == pytest.approx(planned.total_s.mid, rel=1e-6)


def test_no_good_run_is_told_without_curves(traces: Path, tmp_path: Path) -> None:
    """Only broken runs: there is nothing to tell apart, and the page says so instead of drawing it."""
    some = tmp_path / "traces"
    some.mkdir()
    for number in range(1, 48, 2):
        (some / f"k{number}.jsonl").write_bytes((traces / f"k{number}.jsonl").read_bytes())
    out, page = tmp_path / "thresholds.toml", tmp_path / "tune.html"
    arguments = ["tune", str(some), "--out", str(out), "--model", str(CONFIG), "--draws", "30", "--quiet"]
    assert run_command([*arguments, "--html", str(page)]) == 1
    text = page.read_text(encoding="utf-8")
    assert "nothing was written" in text and "<svg" not in text
    assert not out.exists()
