"""Decode and prefill speed against llama.cpp and onnxruntime-genai: same model, same threads, alternating.

    python bench/decode.py --threads 2 --rounds 5
    python bench/decode.py --llama-python PATH   # a Python that has a natively built llama-cpp-python
    python bench/decode.py --genai FOLDER        # int4, by `python -m onnxruntime_genai.models.builder`

The true peer is a native build of llama.cpp (`CMAKE_ARGS="-DGGML_NATIVE=ON" pip install --no-binary :all:
llama-cpp-python`) with flash attention, the better of fp16 and q8_0 KV at each context; a prompt is read with
fp16, since a q8_0 cache makes that much slower. Without a native build the xllamacpp wheel stands in, an AVX2
build that flatters everyone else; the output says which it was. Ratios are medians over rounds of
theirs / ours within a round; a round in which the bandwidth probe moved is dropped.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

WORKER = Path(__file__).with_name("decode_worker.py")
STEPS = 24
PROBE_MOVED = 0.25
# Never the better one for a prompt, and asking it again would double the time of a round.
SLOW_PREFILL = "llama.cpp q8_0"


@dataclass
class Worker:
    """An engine in its own process."""

    name: str
    process: subprocess.Popen[str]
    about: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def start(
        cls, name: str, kind: str, path: str, arguments: argparse.Namespace, python: str = sys.executable
    ) -> Worker:
        clock = "cpu" if arguments.cpu_time else "wall"
        process = subprocess.Popen(
            [python, str(WORKER), kind, path, str(arguments.threads), clock],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        worker = cls(name, process)
        worker.about = worker._line()["about"]
        return worker

    def ask(self, do: str, tokens: int = 0) -> float:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, "tokens": tokens}) + "\n")
        self.process.stdin.flush()
        return float(self._line()["seconds"])

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit(f"{self.name} ended with {self.process.wait()}: run its worker by hand")
            if line.startswith("{"):
                return json.loads(line)

    def stop(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()


class Probe:
    """Read bandwidth right now, in bytes/s: sums over arrays larger than the caches."""

    def __init__(self, threads: int, megabytes: int = 96) -> None:
        self.parts = [np.ones(megabytes * 250_000, np.float32) for _ in range(threads)]

    def measure(self) -> float:
        runs = [threading.Thread(target=lambda part=part: part.sum()) for part in self.parts]
        started = time.perf_counter()
        for run in runs:
            run.start()
        for run in runs:
            run.join()
        return sum(part.nbytes for part in self.parts) / (time.perf_counter() - started)


def measure(
    workers: list[Worker], contexts: list[int], prefills: list[int], rounds: int, probe: Probe
) -> list[dict]:
    """One dict a round: {"probe": B/s, ("decode", context): {name: seconds a token}, ("prefill", n): ...}."""
    found = []
    for number in range(rounds):
        one: dict[Any, Any] = {"probe": [probe.measure()]}
        order = workers if number % 2 == 0 else workers[::-1]
        for tokens in prefills:
            for worker in order:
                if worker.name == SLOW_PREFILL:
                    continue
                worker.ask("reset")
                seconds = worker.ask("read", tokens) / tokens
                one.setdefault(("prefill", tokens), {})[worker.name] = seconds
            one["probe"].append(probe.measure())
        for worker in order:
            worker.ask("reset")
        at = 0
        for context in contexts:
            for worker in order:
                worker.ask("read", context - at)
            for worker in order:
                worker.ask("step", 4)
                one.setdefault(("decode", context), {})[worker.name] = worker.ask("step", STEPS) / STEPS
            at = context
            one["probe"].append(probe.measure())
        slow, fast = (edge(one["probe"]) / 1e9 for edge in (min, max))
        print(f"round {number + 1} of {rounds}: probe {slow:.1f} to {fast:.1f} GB/s", file=sys.stderr)
        found.append(one)
    return found


def steady(rounds: list[dict]) -> list[dict]:
    """Rounds whose slowest probe is near the median of all; all of them when the box never rests."""
    middle = statistics.median(min(one["probe"]) for one in rounds)
    kept = [one for one in rounds if abs(min(one["probe"]) / middle - 1) <= PROBE_MOVED]
    return kept if len(kept) >= 3 else rounds


def better(seconds: dict[str, float], names: list[str]) -> float:
    """The fastest of the peers that are one engine with different settings."""
    return min(seconds[name] for name in names if name in seconds)


def report(rounds: list[dict], ours: list[Worker], peers: dict[str, list[str]]) -> dict[str, Any]:
    """Medians in tokens/s, achieved GB/s of ours, and ratios against each peer."""
    kept = steady(rounds)
    table: dict[str, Any] = {"rounds": len(rounds), "kept": len(kept), "cells": []}
    for key in [key for key in kept[0] if key != "probe"]:
        what, size = key
        for worker in ours:
            mine = [one[key][worker.name] for one in kept]
            cell: dict[str, Any] = {"what": what, "tokens": size, "bundle": worker.name}
            cell["tokens_per_s"] = 1 / statistics.median(mine)
            if what == "decode":
                read = worker.about["weight_bytes"] + size * worker.about["kv_bytes_per_position"]
                cell["GB_per_s"] = read / statistics.median(mine) / 1e9
            for peer, names in peers.items():
                theirs = [better(one[key], names) for one in kept]
                cell[peer] = {
                    "tokens_per_s": 1 / statistics.median(theirs),
                    "ratio": statistics.median(t / m for t, m in zip(theirs, mine, strict=True)),
                }
            table["cells"].append(cell)
    return table


def show(table: dict[str, Any], peers: list[str]) -> None:
    """The table for people."""
    print(f"{table['kept']} of {table['rounds']} rounds kept")
    print(f"{'':24}{'bundle':14}{'tok/s':>8}{'GB/s':>7}" + "".join(f"{peer:>22}" for peer in peers))
    for cell in table["cells"]:
        rate = f"{cell['GB_per_s']:7.1f}" if "GB_per_s" in cell else " " * 7
        others = "".join(f"{cell[p]['tokens_per_s']:12.0f} ({cell[p]['ratio']:.2f}x)" for p in peers)
        name = f"{cell['what']} @ {cell['tokens']}"
        print(f"{name:24}{cell['bundle']:14}{cell['tokens_per_s']:8.0f}{rate}  {others}")


def llama_workers(arguments: argparse.Namespace, gguf: Path) -> list[Worker]:
    """Native llama.cpp with both kinds of KV, or the wheel."""
    python = arguments.llama_python or sys.executable
    probe = subprocess.run([python, "-c", "import llama_cpp"], capture_output=True, check=False)
    if probe.returncode == 0:
        kinds = [("llama.cpp f16", "f16"), (SLOW_PREFILL, "q8_0")]
        return [Worker.start(n, "llama_cpp", f"{gguf}:{k}", arguments, python) for n, k in kinds]
    print("no llama_cpp in that Python: the xllamacpp wheel (AVX2 only) stands in", file=sys.stderr)
    return [Worker.start("xllamacpp", "xllamacpp", f"{gguf}:f16", arguments)]


def our_workers(arguments: argparse.Namespace) -> list[Worker]:
    """The bundles named on the command line, or the embedded model in the usual formats."""
    from seatrial.simulate.prepare import ensure_bundle

    folders = {path.name: path for path in arguments.bundle}
    if not folders:
        wanted = [("int4", "int8"), ("int4", "fp32"), ("int8", "int8")]
        folders = {f"{w}+{kv} KV": ensure_bundle(None, weights=w, kv=kv).folder for w, kv in wanted}
    return [Worker.start(name, "seatrial", str(path), arguments) for name, path in folders.items()]


def numbers(text: str) -> list[int]:
    return sorted(int(part) for part in text.split(","))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--bundle", type=Path, action="append", default=[], help="a quantized bundle; may be repeated"
    )
    parser.add_argument("--gguf", type=Path, help="the same model as GGUF; the embedded one by default")
    parser.add_argument("--llama-python", help="Python that has llama_cpp")
    parser.add_argument("--genai", type=Path, help="folder of an onnxruntime-genai int4 build")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--cpu-time", action="store_true", help="CPU seconds, for a busy machine; --threads 1"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--contexts", type=numbers, default=[128, 512, 2048, 4096])
    parser.add_argument("--prefills", type=numbers, default=[512, 4096])
    parser.add_argument("--json", type=Path, help="write the figures there")
    arguments = parser.parse_args()
    from seatrial.export.embedded import fetch_embedded

    gguf = arguments.gguf or fetch_embedded()
    ours, llama = our_workers(arguments), llama_workers(arguments, gguf)
    genai = [Worker.start("genai", "genai", str(arguments.genai), arguments)] if arguments.genai else []
    peers = {"llama.cpp": [w.name for w in llama], **({"genai": ["genai"]} if genai else {})}
    for worker in [*llama, *genai]:
        print(f"{worker.name}: {worker.about.get('version')} {worker.about.get('features', '')}")
    workers = [*ours, *llama, *genai]
    rounds = measure(
        workers, arguments.contexts, arguments.prefills, arguments.rounds, Probe(arguments.threads)
    )
    table = report(rounds, ours, peers)
    show(table, list(peers))
    if arguments.json:
        arguments.json.write_text(json.dumps(table, indent=2), encoding="utf-8")
    for worker in workers:
        worker.stop()


if __name__ == "__main__":
    main()
