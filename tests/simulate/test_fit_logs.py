"""Somebody's own log: llama-bench's formats and our traces move the runtime towards what was measured."""

import csv
import io
import json
from pathlib import Path

import pytest

from seatrial.devices.device import load_device
from seatrial.devices.runtime import load_runtime, runtime_from_table
from seatrial.errors import UserError
from seatrial.export.architecture import architecture_of_config
from seatrial.simulate.logs import fit_log, read_log

DEVICE, RUNTIME = load_device("apple-m4-pro"), load_runtime("llama-cpp-metal")


def bench_lines(factor: float) -> list[dict]:
    """llama-bench lines of three models, `factor` times slower than a plain 230 GB/s and 4 TFLOPS."""
    lines = []
    for name, params, size in (
        ("llama 1B Q4_K", 1.24e9, 8.1e8),
        ("llama 3B Q4_K", 3.2e9, 2e9),
        ("llama 8B Q4_K", 8e9, 4.9e9),
    ):
        common = {"model_type": name, "model_n_params": int(params), "model_size": int(size), "n_depth": 0}
        decode = {"n_prompt": 0, "n_gen": 128, "avg_ts": 1 / (factor * (size / 230e9 + 1e-3))}
        prompt = {"n_prompt": 512, "n_gen": 0, "avg_ts": 4e12 / (factor * 2 * params)}
        lines += [common | decode, common | prompt]
    return lines


def as_csv(lines: list[dict]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(lines[0]))
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue()


FORMS = {
    "json": lambda lines: json.dumps(lines),
    "jsonl": lambda lines: "\n".join(map(json.dumps, lines)) + "\n",
    "csv": as_csv,
    "csv with a byte order mark": lambda lines: "\ufeff" + as_csv(lines),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_llama_bench_is_read(tmp_path: Path, form: str) -> None:
    (tmp_path / "log").write_text(FORMS[form](bench_lines(1.0)), encoding="utf-8")
    rows = read_log(tmp_path / "log", DEVICE, RUNTIME, None)
    assert [row.metric for row in rows] == ["tg", "pp"] * 3
    assert rows[1].seconds == pytest.approx(512 * 2 * 1.24e9 / 4e12)


@pytest.mark.parametrize("factor", [0.8, 1.0, 1.6])
def test_a_log_moves_the_runtime_to_what_was_measured(tmp_path: Path, factor: float) -> None:
    (tmp_path / "log.json").write_text(json.dumps(bench_lines(factor)), encoding="utf-8")
    rows = read_log(tmp_path / "log.json", DEVICE, RUNTIME, None)
    made = fit_log(rows, DEVICE, RUNTIME, date="2026-01-02", source="a test")
    assert made.error(fitted=True) < 0.08
    assert made.error(fitted=True) <= made.error(fitted=False) + 1e-9
    fitted = runtime_from_table("mine", made.table)
    assert (fitted.fit.decode_rows, fitted.fit.prefill_rows) == (3, 3)
    assert fitted.decode.spread.high < 1.3


def test_a_log_without_prompts_leaves_prefill_alone(tmp_path: Path) -> None:
    lines = [line for line in bench_lines(1.3) if line["n_gen"]]
    (tmp_path / "log.json").write_text(json.dumps(lines), encoding="utf-8")
    rows = read_log(tmp_path / "log.json", DEVICE, RUNTIME, None)
    made = fit_log(rows, DEVICE, RUNTIME, date="2026-01-02", source="a test")
    assert made.table["prefill"]["efficiency"] == pytest.approx(RUNTIME.prefill.efficiency)
    assert made.table["prefill"]["high"] == pytest.approx(RUNTIME.prefill.spread.high)


MODEL = architecture_of_config(
    {
        "model_type": "llama",
        "num_hidden_layers": 8,
        "hidden_size": 512,
        "num_attention_heads": 8,
        "intermediate_size": 1024,
        "vocab_size": 1000,
    },
    name="small",
)


def test_a_trace_of_ours_is_read_with_its_model(tmp_path: Path) -> None:
    rows = [{"event": "trace", "format": 1}, {"event": "prefill", "tokens": 100, "host_s": 0.5}]
    rows += [{"event": "token", "index": index, "host_s": 0.02} for index in range(5)]
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    read = read_log(path, DEVICE, RUNTIME, MODEL)
    # The first token comes with the prompt's last chunk: no step of its own.
    assert [row.metric for row in read] == ["pp", "tg", "tg", "tg", "tg"]
    assert read[-1].kv_bytes == pytest.approx(read[1].kv_bytes * 103 / 100)
    with pytest.raises(UserError, match="--model"):
        read_log(path, DEVICE, RUNTIME, None)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "neither"),
        ("hello, this is no log\n1,2\n", "model_size"),
        ('{"model_size": 1', "broken JSON"),
        ('[{"model_size": 1, "model_n_params": 1, "n_prompt": 0, "n_gen": 0, "avg_ts": 3}]', "no line"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "log").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=told):
        read_log(tmp_path / "log", DEVICE, RUNTIME, None)
