"""Exports the embedded model by three exporters in one run: seconds, memory, size, nodes, decode speed.

    python bench/export.py [--rounds 5]

Each exporter is a process of its own, from the same Hugging Face folder (fp32 safetensors); ours also from
the GGUF file that `seatrial export embedded` takes. Peak memory is what the process and its children hold
at the same time, mapped weights included and a shared page once (proportional set size, sampled ten times a
second). Decode is measured in alternating rounds by one engine; compare ratios of one run only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_DEQUANTIZE = """
import sys
from pathlib import Path
from seatrial.export.load import load_torch
from seatrial.export.source import resolve
source = resolve(None)
loaded = load_torch(source, Path(sys.argv[1]))
from transformers import AutoTokenizer
AutoTokenizer.from_pretrained(source.path.parent, gguf_file=source.path.name).save_pretrained(loaded.folder)
"""
_EXPORTERS = {
    "seatrial": """
import sys
from seatrial.cli import run_command
sys.exit(run_command(["export", sys.argv[1], sys.argv[2], "--quiet", "--exporter", "attention"]))
""",
    "optimum": """
import sys
from optimum.exporters.onnx import main_export
task = "text-generation-with-past"
main_export(sys.argv[1], sys.argv[2], task=task, do_validation=False, local_files_only=True)
""",
    "genai builder": """
import runpy, sys
source, out = sys.argv[1:]
sys.argv = ["builder", "-i", source, "-o", out, "-p", "fp32", "-e", "cpu", "-c", out + "-cache"]
runpy.run_module("onnxruntime_genai.models.builder", run_name="__main__")
""",
}
_GGUF = "seatrial, GGUF"
_MEASURED = """
import json, sys, time
code, sys.argv = sys.argv[1], sys.argv[1:]
start = time.perf_counter()
try:
    exec(compile(code, "exporter", "exec"), {"__name__": "__main__"})
except SystemExit as done:
    if done.code:
        raise
print("MEASURED " + json.dumps({"seconds": time.perf_counter() - start}))
"""
_CONTEXT, _TOKENS = 128, 32
_EVERY_S = 0.1


def run_exporter(python: str, code: str, source: str, out: Path) -> dict[str, float] | str:
    """Seconds and peak bytes of one exporter in a process of its own; the reason where it cannot run."""
    command = [python, "-c", _MEASURED, code, source, str(out)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=out.parent
    )
    with ThreadPoolExecutor(1) as pool:
        peak = pool.submit(peak_bytes, process)
        told, complaint = process.communicate()
        measured = peak.result()
    line = next((line for line in told.splitlines() if line.startswith("MEASURED ")), None)
    if process.returncode or line is None:
        return (complaint.strip().splitlines() or ["no reason given"])[-1]
    return {**json.loads(line.removeprefix("MEASURED ")), **measured}


def peak_bytes(process: subprocess.Popen[str]) -> dict[str, float]:
    """The most that a process and its children held together, and the private part of that moment."""
    peak = {"peak_bytes": 0.0, "private_bytes": 0.0}
    while process.poll() is None:
        found = [_held(pid) for pid in _tree(process.pid)]
        total, private = (float(sum(part)) for part in zip(*found, strict=True)) if found else (0.0, 0.0)
        if total > peak["peak_bytes"]:
            peak = {"peak_bytes": total, "private_bytes": private}
        time.sleep(_EVERY_S)
    return peak


def _tree(pid: int) -> list[int]:
    """A process and everything that it started; those that have ended are left out."""
    found = [pid]
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in file.read_text().split():
                found += _tree(int(child))
    return found


def _held(pid: int) -> tuple[int, int]:
    """Bytes of one process, a shared page counted by its share; and those in no file."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:  # it ended a moment ago
        return 0, 0
    sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
    return sizes.get("Pss", 0), sizes.get("Pss_Anon", 0)


def folder_figures(folder: Path) -> dict[str, int]:
    """Bytes of graph and data, and nodes of the graph."""
    from seatrial.export.bundle import find_graph
    from seatrial.export.graph_file import count_nodes

    files = [file for file in folder.iterdir() if ".onnx" in file.name]
    return {"bytes": sum(file.stat().st_size for file in files), "nodes": count_nodes(find_graph(folder))}


def decode_ms(folders: dict[str, Path], rounds: int) -> dict[str, float]:
    """Median milliseconds per token after 128 tokens of context, alternating between the folders."""
    from seatrial.export.bundle import open_bundle
    from seatrial.export.session import Session

    times: dict[str, list[float]] = {name: [] for name in folders}
    prompt = [100 + index for index in range(_CONTEXT)]
    sessions = {
        name: Session(open_bundle(folder), capacity=_CONTEXT + _TOKENS + 1, threads=2)
        for name, folder in folders.items()
    }
    for _ in range(rounds):
        for name, session in sessions.items():
            session.reset()
            token = int(session.prefill(prompt).argmax())
            start = time.perf_counter()
            for _ in range(_TOKENS):
                token = int(session.step(token).argmax())
            times[name].append((time.perf_counter() - start) / _TOKENS * 1e3)
    return {name: statistics.median(found) for name, found in times.items()}


def main() -> None:
    """Export three times, measure, print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    # Its builder wants a newer transformers than optimum allows, so it may live in an environment of its own.
    parser.add_argument(
        "--genai-python", default=sys.executable, help="Python that has onnxruntime-genai's builder"
    )
    parser.add_argument("--json", type=Path, help="write the figures here")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        subprocess.run([sys.executable, "-c", _DEQUANTIZE, work], check=True, capture_output=True)
        source = Path(work) / "dequantized"
        weights = sum(file.stat().st_size for file in source.glob("*.safetensors"))
        folders: dict[str, Path] = {}
        rows: dict[str, dict[str, float]] = {}
        for name, code, given in _jobs(source):
            out = Path(work) / name.replace(" ", "-").replace(",", "")
            python = asked.genai_python if name == "genai builder" else sys.executable
            measured = run_exporter(python, code, given, out)
            if isinstance(measured, str):
                print(f"{name} cannot run here: {measured}")
                continue
            folders[name], rows[name] = out, measured | folder_figures(out)
            print(name, rows[name], file=sys.stderr, flush=True)
        decode = decode_ms({name: out for name, out in folders.items() if name != _GGUF}, asked.rounds)
    for name, ms in decode.items():
        rows[name]["decode_ms"] = ms
    _print(rows, weights)
    if asked.json:
        text = json.dumps({"weights_bytes": weights, "rows": rows}, indent=2)
        asked.json.write_text(text + "\n", encoding="utf-8")


def _jobs(source: Path) -> list[tuple[str, str, str]]:
    """Name, code and input of every export."""
    found = [(name, code, str(source)) for name, code in _EXPORTERS.items()]
    return [*found, (_GGUF, _EXPORTERS["seatrial"], "embedded")]


def _print(rows: dict[str, dict[str, float]], weights: int) -> None:
    print(f"fp32 weights: {weights / 1e6:.0f} MB; decode at {_CONTEXT} tokens, ratio to optimum")
    print("exporter        seconds  peak MB  private  x weights  file MB  nodes  decode")
    for name, row in rows.items():
        peak, private = row["peak_bytes"], row["private_bytes"]
        ms = row.get("decode_ms")
        speed = f"{rows['optimum']['decode_ms'] / ms:6.2f}x" if ms else "     -"
        print(
            f"{name:14} {row['seconds']:8.1f} {peak / 1e6:8.0f} {private / 1e6:8.0f} {peak / weights:10.2f} "
            f"{row['bytes'] / 1e6:8.0f} {row['nodes']:6.0f} {speed}"
        )


if __name__ == "__main__":
    main()
