"""The documents that `--json` prints: strict JSON, alone on stdout, with every promised field.

The trees below are the contract that other people's scripts rely on: fields may be added, never renamed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

INTERVAL = {"low", "mid", "high"}
RUN: dict[str, Any] = {
    "status": {}, "summary": {}, "summary_kind": {}, "device": {}, "model": {}, "weights": {}, "kv": {},
    "prefill": {"tokens", "device_s", "host_s"},
    "decode": {
        "tokens", "device_ms_per_token", "host_ms_per_token", "weight_bytes_per_token", "kv_bytes_per_token",
        "host_limited",
    },
    "memory": {"ceiling_bytes", "mechanism", "peak_private_bytes", "peak_mapped_bytes", "mapped_weights"},
    "guards": [{"guard", "verdict", "findings"}], "fallbacks": {}, "trace": {},
}  # fmt: skip
PLAN: dict[str, Any] = {
    "device": {}, "runtime": {}, "model": {}, "job": {"prompt_tokens", "max_tokens"},
    "memory": {
        "weights_bytes", "kv_bytes", "activation_bytes", "runtime_bytes", "peak_bytes",
        "available_bytes", "fits",
    },
    "time": {"prefill_s": INTERVAL, "decode_ms_per_token": INTERVAL, "total_s": INTERVAL},
    "bound": {"prefill", "decode"}, "fallbacks": {}, "notes": {},
}  # fmt: skip
CONFIG = Path(__file__).with_name("config_3b.json")
FINDING = {"guard", "text", "span", "kind", "value", "unit", "verdict", "reason", "nearest"}


def seatrial(*arguments: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "seatrial", *arguments]
    return subprocess.run(command, capture_output=True, input=stdin, timeout=300, check=False)


def strict_json(text: bytes) -> Any:
    """Parses one document; NaN and Infinity are refused, as every other language refuses them."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text.decode("utf-8"), parse_constant=refuse)


def missing(document: Any, tree: Any, path: str = "") -> list[str]:
    """Promised fields that a document lacks."""
    if isinstance(tree, list):
        return [
            gap for index, item in enumerate(document) for gap in missing(item, tree[0], f"{path}[{index}]")
        ]
    names = tree if isinstance(tree, dict) else {name: {} for name in tree}
    gaps = [f"{path}.{name}" for name in names if name not in document]
    for name, below in names.items():
        if below and name in document:
            gaps += missing(document[name], below, f"{path}.{name}")
    return gaps


@pytest.fixture
def meeting(tmp_path: Path) -> Path:
    path = tmp_path / "meeting.txt"
    lines = [
        "Dana Reyes: The pilot costs 42,000 dollars and starts on 3 March.",
        "Tom Hale: We have 118 sites, so about 356 dollars each.",
        "Dana Reyes: Agreed, Tom sends the contract by Friday.",
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_run(int4_bundle, meeting: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = seatrial(
        "run", str(meeting), "--device", "thin-laptop-8gb", "--model", str(int4_bundle.folder),
        "--max-tokens", "24", "--out", str(out), "--json",
    )  # fmt: skip
    document = strict_json(done.stdout)
    assert missing(document, RUN) == []
    assert document["status"] in {"ok", "fallback", "partial", "failed"}
    assert done.returncode == {"ok": 0, "fallback": 0, "partial": 3, "failed": 1}[document["status"]]
    assert document["memory"]["mechanism"] in {"cgroup-v2", "cgroup-v1", "rlimit", "accounting"}
    assert {guard["guard"] for guard in document["guards"]} == {"memory", "breakdown", "numbers", "names"}
    assert Path(document["trace"]).is_file()


@pytest.mark.parametrize("device", ["thin-laptop-8gb", "all"])
def test_plan(device: str) -> None:
    done = seatrial("plan", "--model", str(CONFIG), "--device", device, "--weights", "int4", "--json")
    assert done.returncode == 0, done.stderr.decode()
    document = strict_json(done.stdout)
    plans = document["plans"] if device == "all" else [document]
    assert [gap for plan in plans for gap in missing(plan, PLAN)] == []
    assert len(plans) == 1 or len(plans) >= 6


@pytest.mark.parametrize(
    ("source", "summary", "verdict"),
    [
        ("Dana Reyes: The pilot costs 42,000 dollars.", "Dana Reyes said the pilot costs $42,000.", "ok"),
        ("Dana Reyes: The pilot costs 42,000 dollars.", "Dana Reyes said the pilot costs $24,000.", "fail"),
        ("周敏然：试点预算三十七万五。", "周敏然说试点预算37.5万元。", "ok"),
        ("周敏然：试点预算三十七万五。", "周敏然说试点预算35.7万元。", "fail"),
    ],
)
def test_check(tmp_path: Path, source: str, summary: str, verdict: str) -> None:
    source_path, summary_path = tmp_path / "source.txt", tmp_path / "summary.txt"
    source_path.write_text(source, encoding="utf-8")
    summary_path.write_text(summary, encoding="utf-8")
    done = seatrial("check", str(summary_path), str(source_path), "--json")
    document = strict_json(done.stdout)
    assert document["verdict"] == verdict
    assert missing(document["findings"], [FINDING]) == []
    for finding in document["findings"]:
        start, end = finding["span"]
        assert summary[start:end] == finding["text"]
    assert done.returncode == (1 if verdict == "fail" else 0)
