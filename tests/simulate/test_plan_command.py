"""The commands of planning, from the command line to the printed document."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from seatrial.cli import run_command
from seatrial.devices.device import device_names, load_device
from seatrial.devices.runtime import load_runtime, runtime_names

CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 28,
    "hidden_size": 3072,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
    "max_position_embeddings": 131072,
}


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "three-billion" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    return str(path)


def document(capfdbinary: pytest.CaptureFixture[bytes], *arguments: str) -> Any:
    assert run_command([*arguments, "--json"]) == 0
    out, err = capfdbinary.readouterr()
    assert err == b""
    return json.loads(out)


def test_a_plan(capfdbinary: pytest.CaptureFixture[bytes], config: str) -> None:
    made = document(
        capfdbinary, "plan", "--model", config, "--device", "rpi5", "--kv", "fp16", "--weights", "int4"
    )
    assert (made["device"], made["runtime"], made["model"]) == ("rpi5", "llama-cpp-cpu", "three-billion")
    assert made["job"] == {"prompt_tokens": 4200, "max_tokens": 400}
    assert made["memory"]["kv_bytes"] == 527_564_800
    assert made["memory"]["fits"]


def test_all_devices_sorted_by_total(capfdbinary: pytest.CaptureFixture[bytes], config: str) -> None:
    plans = document(capfdbinary, "plan", "--model", config, "--device", "all")["plans"]
    totals = [made["time"]["total_s"]["mid"] for made in plans]
    assert totals == sorted(totals)
    assert {made["device"] for made in plans} == set(device_names())


def test_limits_bring_fallbacks(capfdbinary: pytest.CaptureFixture[bytes], config: str) -> None:
    limits = ("--deadline", "20s", "--other-programs", "3GB", "--ceiling", "2.95GB")
    made = document(capfdbinary, "plan", "--model", config, "--device", "thin-laptop-8gb", *limits)
    assert made["memory"]["available_bytes"] == 2_950_000_000
    assert not made["memory"]["fits"]
    assert made["fallbacks"][0]["total_s"]["mid"] <= 20
    assert made["fallbacks"][0]["peak_bytes"] <= 2_950_000_000


def test_a_measured_bandwidth_changes_the_summarys_length(
    capfdbinary: pytest.CaptureFixture[bytes], config: str
) -> None:
    common = ("plan", "--model", config, "--device", "thin-laptop-8gb")
    slow = document(capfdbinary, *common, "--measured-bandwidth", "20GB/s")["budget"]
    fast = document(capfdbinary, *common, "--measured-bandwidth", "45GB/s")["budget"]
    assert slow["max_tokens"] < 300 < fast["max_tokens"] == 400
    due = document(capfdbinary, *common, "--measured-bandwidth", "45GB/s", "--deadline", "10s")["budget"]
    assert due["limit_s"] == 10
    assert due["max_tokens"] < 400


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--measured-bandwidth", "60GB/s"), "nominal"),
        (("--weights", "int3"), "int4"),
        (("--kv", "int2"), "int8"),
        (("--runtime", "lama"), "llama-cpp"),
        (("--deadline", "20"), "20s"),
        (("--prompt-tokens", "0"), "prompt_tokens"),
        (("--limit-tokens", "100"), "4600"),
    ],
)
def test_bad_input_is_one_line_and_two(
    capsys: pytest.CaptureFixture[str], config: str, arguments: tuple[str, ...], told: str
) -> None:
    assert run_command(["plan", "--model", config, "--device", "thin-laptop-8gb", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert told in printed.err
    assert printed.err.count("\n") == 1


def test_a_name_that_is_no_hub_id_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["plan", "--model", "no such model"]) == 2
    assert "hub id" in capsys.readouterr().err


def test_human_tables_name_what_counts(capsys: pytest.CaptureFixture[str], config: str) -> None:
    assert (
        run_command(["plan", "--model", config, "--device", "thin-laptop-8gb", "--other-programs", "4GB"])
        == 0
    )
    shown = capsys.readouterr().out
    for word in ("DOES NOT FIT", "prefill", "per token", "available", "note:"):
        assert word in shown
    assert run_command(["plan", "--model", config, "--device", "all"]) == 0
    assert "thin-laptop-8gb" in capsys.readouterr().out


def test_devices_and_runtimes(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    listed = document(capfdbinary, "devices", "list")["devices"]
    assert [device["id"] for device in listed] == list(device_names())
    shown = document(capfdbinary, "devices", "show", "rpi5:nvme-gen3")
    assert shown["storage_read_Bps"] == 780e6
    assert "storage" in shown["sources"]
    runtimes = document(capfdbinary, "devices", "runtimes")["runtimes"]
    assert [runtime["id"] for runtime in runtimes] == list(runtime_names())


def graph(folder: Path) -> str:
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    made = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        initializer=[numpy_helper.from_array(np.zeros((64, 32), np.float32), "w")],
    )
    path = folder / "model.onnx"
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)
    return str(path)


def test_operators(capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    made = document(capfdbinary, "ops", graph(tmp_path), "--dim", "batch=10", "--device", "rpi5")
    (row,) = made["operators"]
    assert (row["flops"], row["output"], row["bound"]) == (2 * 10 * 64 * 32, [10, 32], "bandwidth")
    assert made["subtotals"]["total"]["weight_bytes"] == 64 * 32 * 4


@pytest.mark.parametrize("arguments", [(), ("--dim", "batch"), ("--dim", "batch=x"), ("--dim", "width=3")])
def test_operators_need_their_dimensions(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    assert run_command(["ops", graph(tmp_path), *arguments]) == 2
    assert "--dim" in capsys.readouterr().err


def test_measuring_writes_a_device_that_plans(
    capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path, config: str
) -> None:
    out = tmp_path / "here.toml"
    made = document(capfdbinary, "devices", "measure", "--out", str(out), "--no-bundle", "--quiet")
    assert made["memory_source"]
    device = load_device(out)
    assert device.measured_kind == "read"
    assert device.nominal_bandwidth_Bps is None
    planned = document(capfdbinary, "plan", "--model", config, "--device", str(out))
    assert planned["time"]["total_s"]["mid"] > 0
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["here.toml"]


def test_a_log_becomes_a_runtime(capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path) -> None:
    line = {"model_type": "llama 3B", "model_n_params": 3_200_000_000, "model_size": 2_000_000_000}
    lines = [
        line | {"n_prompt": 0, "n_gen": 128, "avg_ts": 60.0},
        line | {"n_prompt": 512, "n_gen": 0, "avg_ts": 400.0},
    ]
    log, out = tmp_path / "bench.json", tmp_path / "mine.toml"
    log.write_text(json.dumps(lines), encoding="utf-8")
    made = document(capfdbinary, "devices", "fit", str(log), "--device", "apple-m4-pro", "--out", str(out))
    assert made["mdape_fitted"] < made["mdape_predicted"]
    assert load_runtime(out).fit.decode_rows == 1


def test_planning_loads_no_heavy_package(config: str) -> None:
    """A plan starts without torch, transformers, onnxruntime; nor does it need onnx or numpy."""
    program = (
        "import sys\nfrom seatrial.cli import run_command\n"
        f"code = run_command(['plan', '--model', {config!r}, '--json'])\n"
        "heavy = {'torch', 'transformers', 'onnxruntime', 'optimum', 'onnx', 'numpy', 'huggingface_hub'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stderr.strip() == "[]"
