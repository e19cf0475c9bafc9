"""Faults that people met with tools of this kind, each with the right value; stand-in and bandwidth curve."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from scripted import write_scripted_bundle

from seatrial.cli import run_command
from seatrial.devices.device import load_device
from seatrial.devices.runtime import load_runtime
from seatrial.errors import UserError
from seatrial.export.architecture import read_architecture
from seatrial.simulate.cost import model_cost
from seatrial.simulate.job import RunJob
from seatrial.simulate.plan import decode_seconds, prefill_seconds
from seatrial.simulate.run import run

TRANSCRIPT = (
    "Anna Lindqvist: Good morning, the budget of the trade fair is $35,000.\nBen Okoro: Fine with me.\n"
)
RIGHT = "The budget of the trade fair is $35,000."

# A model of about three billion parameters, as one would ship it.
CONFIG = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 28,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": True,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_scripted_bundle(tmp_path_factory.mktemp("model"), RIGHT)


@pytest.fixture(scope="module")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with 48 MB more of weights, so that where they lie shows in the memory."""
    return write_scripted_bundle(tmp_path_factory.mktemp("heavy"), RIGHT, padding_bytes=48_000_000)


@pytest.fixture
def job(tmp_path: Path, model: Path) -> RunJob:
    return RunJob(
        TRANSCRIPT,
        "thin-laptop-8gb",
        tmp_path / "out",
        model=str(model),
        threads=1,
        max_tokens=60,
        patience_s=60,
    )


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    return tmp_path / "config.json"


# ---- C08: the reported device is not the device used


def test_the_report_says_what_ran_and_strict_refuses_another_processor(job: RunJob) -> None:
    result = run(job)
    assert result.execution["providers"] == ["CPUExecutionProvider"]
    assert result.execution["nodes"]["CPUExecutionProvider"] > 5
    assert any("NPU" in note and "not measured" in note for note in result.notes)
    with pytest.raises(UserError, match="--strict: thin-laptop-8gb is modelled with its NPU"):
        run(replace(job, strict=True))
    on_cpu = run(replace(job, runtime="generic-cpu"))
    assert not any("NPU" in note for note in on_cpu.notes)


# ---- C12: mapped weights, two numbers


def test_mapped_and_heap_weights_show_in_different_numbers(heavy: Path, job: RunJob) -> None:
    heap = run(replace(job, model=str(heavy))).memory
    mapped = run(replace(job, model=str(heavy), mapped=True)).memory
    assert (heap.mapped_weights, mapped.mapped_weights) == (False, True)
    assert (heap.peak_private_bytes or 0) - (mapped.peak_private_bytes or 0) > 25_000_000
    assert (mapped.peak_mapped_bytes or 0) - (heap.peak_mapped_bytes or 0) > 15_000_000


def test_below_the_working_set_the_clock_reads_the_weights_again_for_every_token(
    heavy: Path, job: RunJob
) -> None:
    ample = run(replace(job, model=str(heavy), mapped=True))
    tight = run(replace(job, model=str(heavy), mapped=True, ceiling_bytes=85_000_000))
    weights = tight.sizes["bundle_bytes"]
    storage_Bps = load_device("thin-laptop-8gb").storage_read_Bps
    assert storage_Bps is not None
    extra_s = (tight.decode.device_s - ample.decode.device_s) / tight.decode.steps
    assert extra_s == pytest.approx(weights / storage_Bps, rel=0.02)
    (memory,) = [report for report in tight.guards if report.guard == "memory"]
    assert memory.findings[0].reason == "paging"


# ---- C42: truncated models


@pytest.mark.parametrize(
    ("file", "share"), [("model.onnx", 0.6), ("model.onnx", 0.0), ("model.onnx.data", 0.5)]
)
def test_a_truncated_model_is_refused_with_its_name(
    tmp_path: Path, job: RunJob, file: str, share: float
) -> None:
    broken = write_scripted_bundle(tmp_path / "broken", RIGHT)
    os.truncate(broken / file, int((broken / file).stat().st_size * share))
    with pytest.raises(UserError, match=r"model\.onnx"):
        run(replace(job, model=str(broken)))


def test_bytes_too_many_are_a_note(tmp_path: Path, job: RunJob) -> None:
    padded = write_scripted_bundle(tmp_path / "padded", RIGHT)
    with (padded / "model.onnx.data").open("ab") as stream:
        stream.write(b"\0" * 16)
    result = run(replace(job, model=str(padded)))
    assert result.status == "ok"
    assert any("16" in note and "model.onnx.data" in note for note in result.notes)


# ---- C43: output over input


@pytest.mark.parametrize("link", [False, True])
def test_the_transcript_is_never_written_over(tmp_path: Path, model: Path, link: bool) -> None:
    out = tmp_path / "out"
    out.mkdir()
    given = out / "summary.txt"
    given.write_text(TRANSCRIPT)
    named = tmp_path / "meeting.txt"
    if link:
        named.symlink_to(given)
    code = run_command(
        [
            *("run", str(named if link else given), "--device", "rpi5", "--model", str(model)),
            *("--out", str(out), "--json", "--quiet"),
        ]
    )
    assert code == 2
    assert given.read_text() == TRANSCRIPT


def test_a_disk_that_is_full_is_named_and_the_text_is_still_printed(
    tmp_path: Path, job: RunJob, model: Path
) -> None:
    (tmp_path / "t.txt").write_text(TRANSCRIPT)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "seatrial", "run", str(tmp_path / "t.txt"), "--device", "rpi5"),
            *("--model", str(model), "--out", str(job.out), "--json", "--quiet", "--threads", "1"),
        ],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)),
        capture_output=True,
        check=False,
        timeout=120,
    )
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert document["summary"] == RIGHT
    assert any("summary.txt: File too large" in note for note in document["notes"])
    assert list(job.out.iterdir()) == []


# ---- the stand-in


def test_a_stand_in_is_timed_and_weighed_as_the_model_meant(job: RunJob, config: Path) -> None:
    result = run(replace(job, stand_in=config, ceiling_bytes=64_000_000_000))
    cost = model_cost(read_architecture(config), weights="fp32", kv="fp32")
    device, runtime = load_device("thin-laptop-8gb"), load_runtime("reference")
    prompt = result.prefill.tokens
    steps = [decode_seconds(cost, device, runtime, prompt + step) for step in range(result.decode.steps)]
    assert result.decode.device_s == pytest.approx(sum(steps), rel=1e-9)
    assert result.prefill.device_s == pytest.approx(prefill_seconds(cost, device, runtime, prompt), rel=0.01)
    document = result.to_json()
    assert document["stand_in"]
    assert document["memory"]["stand_in"]["weights_bytes"] == pytest.approx(cost.weight_bytes)
    assert document["decode"]["weight_bytes_per_token"] == round(cost.weight_bytes_per_token)


def test_a_stand_in_is_labelled_for_people(
    job: RunJob, config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.txt").write_text(TRANSCRIPT)
    arguments = ["run", str(tmp_path / "t.txt"), "--device", "thin-laptop-8gb", "--model", str(job.model)]
    assert run_command([*arguments, "--stand-in", str(config), "--out", str(job.out), "--quiet"]) == 0
    assert "STAND-IN" in capsys.readouterr().out


def test_a_stand_in_that_does_not_fit_is_foreseen(job: RunJob, config: Path) -> None:
    """Three billion fp32 parameters are 12.9 GB; the device leaves 6 GB, and mapping is what remains."""
    result = run(replace(job, stand_in=config))
    (memory,) = [report for report in result.guards if report.guard == "memory"]
    assert str(memory.verdict) == "warn"
    assert result.fallbacks[0].action == "mapped weights"


def test_ballast_really_takes_the_memory(job: RunJob, tmp_path: Path) -> None:
    small = {
        **CONFIG,
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_hidden_layers": 2,
        "vocab_size": 32768,
    }
    small |= {"num_attention_heads": 4, "num_key_value_heads": 2}
    (tmp_path / "config.json").write_text(json.dumps(small))
    asked = replace(job, stand_in=tmp_path / "config.json", device="rpi5", runtime="generic-cpu")
    light, heavy = run(asked), run(replace(asked, ballast=True))
    assert heavy.memory.stand_in is not None
    ballast = heavy.memory.stand_in["ballast_bytes"]
    assert ballast > 20_000_000
    grown = (heavy.memory.peak_private_bytes or 0) - (light.memory.peak_private_bytes or 0)
    assert grown > 0.8 * ballast
    with pytest.raises(UserError, match="--stand-in"):
        run(replace(job, ballast=True))


# ---- formats


def test_formats_that_do_not_go_together_are_refused_in_one_line(job: RunJob) -> None:
    for changes, message in [
        ({"weights": "int3"}, "no weight format 'int3'"),
        ({"kv": "fp64"}, "no KV format 'fp64'"),
    ]:
        with pytest.raises(UserError, match=message):
            run(replace(job, **changes))  # type: ignore[arg-type]
    assert (run(job).weights, run(job).kv) == ("fp32", "fp32")


# ---- a bandwidth that changes


def test_a_dip_in_the_bandwidth_shows_in_the_tokens_it_covers(job: RunJob, tmp_path: Path) -> None:
    steady = run(replace(job, bandwidth_Bps=1e9))
    (tmp_path / "trace.txt").write_text("0 1GB/s\n1000 500MB/s\n")
    same = run(replace(job, bandwidth_trace=tmp_path / "trace.txt"))
    assert same.decode.device_s == pytest.approx(steady.decode.device_s, rel=1e-9)
    middle_s = steady.prefill.device_s + steady.decode.device_s / 2
    (tmp_path / "trace.txt").write_text(f"0 1GB/s\n{middle_s} 100MB/s\n")
    dipped = run(replace(job, bandwidth_trace=tmp_path / "trace.txt"))
    # Half of the bytes at a tenth of the rate: 0.5 + 0.5 x 10.
    assert dipped.decode.device_s == pytest.approx(5.5 * steady.decode.device_s, rel=0.02)
    with pytest.raises(UserError, match="not both"):
        run(replace(job, bandwidth_trace=tmp_path / "trace.txt", bandwidth_Bps=1e9))
