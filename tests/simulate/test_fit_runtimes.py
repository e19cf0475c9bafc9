"""Fitting runtimes: known coefficients come back, intervals cover machines that were left out, files read
back."""

import csv
import math
import random
from pathlib import Path

import attrs
import numpy as np
import pytest

from seatrial.devices.runtime import runtime_from_table
from seatrial.errors import UserError
from seatrial.simulate.fit import fit, fit_levels, left_out_errors, ops_ratios, table_of
from seatrial.simulate.measured import (
    COLUMNS,
    Row,
    chip_facts,
    engine_of,
    model_shape,
    read_throughput,
)
from seatrial.simulate.runtimes import depth_ratios, peak_memory, runtime_id, runtime_tables

TRUE = {"a": 1.25, "c": 0.8, "b": 1.2e-4, "e": 0.55}


def rows_of(chips: int, *, noise: float, engine: str = "llama-cpp-metal", seed: int = 3) -> list[Row]:
    """Rows of invented chips that follow known coefficients, each chip with an error of its own."""
    dice, rows = random.Random(seed), []
    for chip in range(chips):
        bandwidth, ops = dice.uniform(50e9, 900e9), dice.uniform(2e12, 40e12)
        own = math.exp(dice.gauss(0, noise))
        for params, layers in ((1.1e9, 22), (3.2e9, 28), (6.7e9, 32)):
            for bits in (4.5, 8.5, 16):
                weights = params * bits / 8
                base = Row(
                    device=f"chip {chip}",
                    chip=f"chip {chip}",
                    vendor="apple",
                    device_class="laptop",
                    engine=engine,
                    processor="gpu",
                    metric="tg",
                    firm=True,
                    tokens=1,
                    seconds=0.0,
                    params=params,
                    layers=layers,
                    weight_bytes=weights,
                    kv_bytes=0.0,
                    attention_flops=0.0,
                    bandwidth_Bps=bandwidth,
                    ops=ops,
                )
                step = TRUE["a"] * weights / bandwidth + TRUE["c"] * 2 * params / ops + TRUE["b"] * layers
                rows.append(attrs.evolve(base, seconds=step * own))
                prompt = 512 * 2 * params / (TRUE["e"] * ops)
                rows.append(attrs.evolve(base, metric="pp", tokens=512, seconds=prompt * own))
    return rows


def test_known_coefficients_come_back() -> None:
    rows = rows_of(12, noise=0.0)
    table = table_of([row for row in rows if row.metric == "tg"], ops_ratios(rows))
    levels = fit_levels("tg", table)
    a, c, b = np.exp(levels["gpu", "llama-cpp-metal", "apple"])
    assert a == pytest.approx(TRUE["a"], rel=0.03)
    assert c == pytest.approx(TRUE["c"], rel=0.15)
    assert b == pytest.approx(TRUE["b"], rel=0.1)


def test_a_perfect_fit_predicts_chips_it_never_saw() -> None:
    rows = rows_of(12, noise=0.0)
    for metric in ("tg", "pp"):
        table = table_of([row for row in rows if row.metric == metric], ops_ratios(rows))
        assert np.median([abs(error) for _, error in left_out_errors(metric, table)]) < 0.02


def test_intervals_cover_about_nine_tenths_of_new_chips() -> None:
    fitted = fit(rows_of(30, noise=0.12, seed=1))
    inside = []
    for row in rows_of(150, noise=0.12, seed=2):
        low, high = fitted.interval(row)
        assert low < fitted.seconds(row) < high
        inside.append(low <= row.seconds <= high)
    assert 0.85 <= np.mean(inside) <= 0.98


def test_one_wild_chip_does_not_carry_the_fit_away() -> None:
    rows = rows_of(12, noise=0.02)
    wild = [attrs.evolve(row, seconds=row.seconds * 6) if row.chip == "chip 0" else row for row in rows]
    calm = [row for row in rows if row.chip != "chip 0"]
    fitted = fit(wild)
    errors = [abs(fitted.seconds(row) / row.seconds - 1) for row in calm]
    assert np.median(errors) < 0.05


def test_an_engine_seen_once_stays_near_its_kind_and_an_unseen_one_is_wide() -> None:
    rows = rows_of(12, noise=0.05) + rows_of(8, noise=0.05, engine="llama-cpp-cuda", seed=9)
    slow = attrs.evolve(rows[0], engine="new-engine", chip="odd", seconds=rows[0].seconds * 3)
    fitted = fit([*rows, slow])
    assert rows[0].seconds * 1.1 < fitted.seconds(slow) < slow.seconds
    known = fitted.half_width("tg", ("gpu", "llama-cpp-metal", "apple"))
    unseen = fitted.half_width("tg", ("gpu", "never-seen", "apple"))
    assert unseen > 2 * known


def test_a_chip_without_compute_gets_the_usual_proportion() -> None:
    rows = rows_of(12, noise=0.0)
    blind = attrs.evolve(rows[0], ops=None)
    fitted = fit(rows)
    assert 0 < fitted.seconds(blind) < math.inf


def write_csv(path: Path, columns: tuple[str, ...], records: list[dict]) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(records)
    return path


LINE = {
    "device": "Apple M9 (20c GPU)",
    "chip": "Apple M9",
    "nominal_bandwidth_GBps": "300",
    "backend": "llama.cpp Metal",
    "processor": "gpu",
    "model": "LLaMA 2 7B",
    "params": "6738415616",
    "weight_bytes": "3825065984",
    "prompt_tokens": "0",
    "metric": "tg",
    "tok_per_s": "50",
    "device_class": "laptop",
    "firm": "yes",
}


def test_a_measurement_file_becomes_rows(tmp_path: Path) -> None:
    prompt = LINE | {"metric": "pp", "prompt_tokens": "512", "tok_per_s": "1024"}
    blank = LINE | {"nominal_bandwidth_GBps": ""}
    rows = read_throughput(write_csv(tmp_path / "t.csv", COLUMNS, [LINE, prompt, blank]))
    assert [(row.metric, row.tokens, row.seconds) for row in rows] == [("tg", 1, 0.02), ("pp", 512, 0.5)]
    assert rows[0].layers == 32
    # A decode row of llama-bench: 128 tokens from an empty cache, 64 on average, 32 layers of 4,096 in fp16.
    assert rows[0].kv_bytes == 2 * 32 * 4096 * 2 * 64
    assert rows[0].vendor == "apple"


def test_files_that_are_no_measurements_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="tok_per_s"):
        read_throughput(write_csv(tmp_path / "t.csv", COLUMNS[:5], [{"device": "x"}]))
    with pytest.raises(UserError, match="cannot be read"):
        read_throughput(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("device", "processor", "vendor", "ops"),
    [
        ("RTX 4070", "gpu", "nvidia", 58.3e12),
        ("RTX 4070 Ti", "gpu", "nvidia", 80.2e12),
        ("RTX 4070 Ti SUPER", "gpu", "nvidia", 88.2e12),
        ("Apple M4 Pro (16c GPU)", "gpu", "apple", 16 * 426e9),
        ("Apple M1 Max (24c GPU)", "gpu", "apple", 24 * 327e9),
        ("Raspberry Pi 5 16GB", "cpu", "broadcom", 154e9),
        ("RTX 40700", "gpu", "nvidia", None),
        ("Ryzen 3 1200", "cpu", "amd", None),
    ],
)
def test_facts_of_a_chip(device: str, processor: str, vendor: str, ops: float | None) -> None:
    found = chip_facts(device, device, processor)
    assert found[0] == vendor
    assert found[1] == (pytest.approx(ops) if ops is not None else None)


@pytest.mark.parametrize(
    ("backend", "processor", "vendor", "engine"),
    [
        ("llama.cpp Vulkan RADV", "gpu", "amd", "llama-cpp-vulkan"),
        ("ollama/llama.cpp", "gpu", "nvidia", "llama-cpp-cuda"),
        ("ollama/llama.cpp", "cpu", "broadcom", "llama-cpp-cpu"),
        ("LM Studio", "gpu", "apple", "llama-cpp-metal"),
        ("OpenVINO GenAI", "npu", "intel", "openvino-npu"),
        ("something else", "npu", "amd", "other-npu"),
    ],
)
def test_the_engine_behind_a_label(backend: str, processor: str, vendor: str, engine: str) -> None:
    assert engine_of(backend, processor, vendor) == engine


def test_shapes_of_named_and_of_unnamed_models() -> None:
    assert model_shape("Meta-Llama-3.1-8B-Instruct-Q4_K_M", 8e9).kv_width == 1024
    assert model_shape("Qwen2.5-14B-Instruct", 14.7e9).layers == 48
    unnamed = model_shape("nobody knows it", 7e9)
    assert 24 <= unnamed.layers <= 40


def test_depth_and_peak_tables(tmp_path: Path) -> None:
    """KV bytes that cost half of what weight bytes do, and a peak of 1.1 weights + 500 MiB, come back."""
    per_token, weights, start = 2 * 32 * 4096 * 2, 7e9 * 4.5 / 8, 0.02
    depths = []
    for depth in (512, 1024, 2048, 4096):
        step = start + 0.5 * start / weights * per_token * depth / 2
        common = {"device": "x", "model": "LLaMA 2 7B", "depth_or_N": depth}
        tg = {"metric": "tg_N_from_empty", "tok_per_s": 1 / step}
        depths.append(common | tg | {"backend": "llama.cpp-x fa"})
        depths.append(common | tg | {"backend": "llama.cpp-x no-fa", "tok_per_s": 1 / (4 * step - 3 * start)})
        depths.append(
            common | {"backend": "llama.cpp-x fa", "metric": "pp_N_from_empty", "tok_per_s": 900 - depth / 40}
        )
    columns = ("device", "backend", "model", "depth_or_N", "metric", "tok_per_s")
    ratios = depth_ratios(write_csv(tmp_path / "depth.csv", columns, depths))
    assert ratios.kv["gpu"] == pytest.approx(0.5, rel=1e-6)
    assert ratios.kv_without_flash == pytest.approx(2.0, rel=1e-6)
    assert 0 < ratios.attention < 1
    peaks = [
        {"runtime": "RKLLM", "weights_MiB": w, "peak_MiB": 1.1 * w + 500} for w in (500, 1000, 2000, 4000)
    ]
    found = peak_memory(write_csv(tmp_path / "peak.csv", ("runtime", "weights_MiB", "peak_MiB"), peaks))[
        "rkllm"
    ]
    assert found.factor == pytest.approx(1.1, abs=0.01)
    assert found.fixed_bytes == pytest.approx(500 * 2**20, rel=0.03)


def test_written_runtimes_read_back(tmp_path: Path) -> None:
    rows = rows_of(6, noise=0.05)
    rows += [
        attrs.evolve(row, processor=kind, engine=f"some-{kind}")
        for kind in ("cpu", "npu")
        for row in rows[:18]
    ]
    depth_file = write_csv(
        tmp_path / "depth.csv",
        ("device", "backend", "model", "depth_or_N", "metric", "tok_per_s"),
        [
            {
                "backend": backend,
                "model": "LLaMA 3.1 8B",
                "depth_or_N": n,
                "metric": metric,
                "tok_per_s": 2e4 / (n + 500),
            }
            for backend, metric in (
                ("CPU x", "tg_at_depth"),
                ("NPU x", "tg_at_depth"),
                ("iGPU x", "tg_at_depth"),
                ("llama.cpp fa", "pp_N_from_empty"),
                ("llama.cpp no-fa", "tg_N_from_empty"),
            )
            for n in (512, 1024, 2048, 4096)
        ],
    )
    tables = runtime_tables(rows, fit(rows), depth_ratios(depth_file), {}, date="2026-01-02")
    assert {"llama-cpp-metal", "some-cpu", "some-npu", "generic-cpu", "generic-gpu", "generic-npu"} == set(
        tables
    )
    for name, table in tables.items():
        runtime = runtime_from_table(name, table)
        assert runtime.fit.date == "2026-01-02"
        assert runtime.decode.spread.low < 1 < runtime.decode.spread.high
    assert tables["llama-cpp-metal"]["fit"]["decode_chips"] == 6
    wide, narrow = tables["generic-gpu"]["decode"], tables["llama-cpp-metal"]["decode"]
    assert wide["high"] >= narrow["high"]


def test_names_of_runtimes() -> None:
    assert runtime_id(("gpu", "llama-cpp-vulkan", "amd")) == "llama-cpp-vulkan-amd"
    assert runtime_id(("gpu", "llama-cpp-cuda", "nvidia-server")) == "llama-cpp-cuda-server"
    assert runtime_id(("cpu", "llama-cpp-cpu")) == "llama-cpp-cpu"
