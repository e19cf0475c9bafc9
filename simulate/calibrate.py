"""Steps a bundle on this machine at two contexts and makes a runtime of what came out.

The bundle runs in a process of its own, so that its memory is seen apart. A straight line in the context is
all that is fitted per pair of formats; what several pairs share (the time that no byte explains) comes from
all of them. The KV buffers are filled by moving the length: the kernels' work does not depend on what stands
in them.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from seatrial.devices.device import Device
from seatrial.errors import UserError
from seatrial.export.architecture import read_architecture
from seatrial.simulate.cost import ModelCost, model_cost
from seatrial.simulate.formats import KV

if TYPE_CHECKING:
    from seatrial.export.session import Session

CONTEXTS = (128, 4096)
PROMPT = 512
# Many short turns: what disturbs the machine for a while then disturbs every context alike.
ROUNDS = 30
STEPS = 2
# The line is straight to a few per cent on contexts in between, and a machine does not repeat itself better.
SPREAD = 1.12
MEMORY_FIELDS = ("imported_bytes", "loaded_bytes", "cache_bytes", "peak_bytes", "far_peak_bytes")


@attrs.frozen
class Calibration:
    """One bundle on this machine: median seconds by context and of prompts, private bytes.

    Memory: after the imports, with the bundle open, and at a prompt's end with an empty and with a long past;
    `cache_bytes` are the buffers', filled before the prompts.
    """

    weights: str
    kv: str
    step_s: dict[int, float]
    prompt_s: dict[int, float]
    noise: float
    imported_bytes: int
    loaded_bytes: int
    cache_bytes: int
    peak_bytes: int
    far_peak_bytes: int
    cost: ModelCost

    @property
    def slope_s(self) -> float:
        """Seconds that one more token of context adds to a step."""
        low, high = min(self.step_s), max(self.step_s)
        return (self.step_s[high] - self.step_s[low]) / (high - low)

    @property
    def start_s(self) -> float:
        """Seconds of a step without any context."""
        return self.step_s[min(self.step_s)] - self.slope_s * min(self.step_s)


def calibrate(folder: Path, *, contexts: Sequence[int] = CONTEXTS, timeout_s: float = 300.0) -> Calibration:
    """Steps the bundle in `folder` in a child process.

    Raises:
        UserError: no bundle there, too short for the contexts, or the child failed (its last line is told).
    """
    from seatrial.export.bundle import open_bundle
    from seatrial.export.session_graph import read_decoder

    bundle = open_bundle(folder, check_hashes=False)
    architecture = read_architecture(bundle.folder)
    usable = [context for context in contexts if context + STEPS < (architecture.max_positions or 1 << 30)]
    if len(usable) < 2:
        raise UserError(f"{folder}: two contexts below {architecture.max_positions} positions are needed")
    command = [sys.executable, "-m", "seatrial.simulate.calibrate", str(bundle.folder), *map(str, usable)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise UserError(f"{folder}: calibration failed: {lines[-1]}")
    measured = json.loads(done.stdout)
    kv = {"float32": "fp32", "float16": "fp16"}.get(bundle.kv.dtype, bundle.kv.dtype)
    weights = str(bundle.info.get("weights") or "fp32")
    cost = model_cost(architecture, weights="stored", kv=kv if kv in KV else "fp32")
    read_bytes = float(read_decoder(bundle.model_path).weight_bytes_per_token)
    cost = attrs.evolve(
        cost,
        weight_bytes=float(bundle.weight_bytes),
        weight_bytes_per_token=read_bytes,
        weight_bytes_per_prefill_pass=read_bytes,
    )
    return Calibration(
        weights=weights,
        kv=kv,
        step_s={int(context): seconds for context, seconds in measured["step_s"].items()},
        prompt_s={int(past): seconds for past, seconds in measured["prompt_s"].items()},
        noise=measured["noise"],
        **{field: measured[field] for field in MEMORY_FIELDS},
        cost=cost,
    )


def measured_runtime(
    device: Device, found: Sequence[Calibration], *, date: str, ops: float
) -> dict[str, Any]:
    """The table of a runtime from calibrations on `device`, whose measured bandwidth and compute its factors
    divide.
    """
    rate = device.bandwidth_Bps
    factor, step_s = shared_terms([(one.cost.weight_bytes_per_token / rate, one.start_s) for one in found])
    activation = statistics.median(_activation_factor(one) for one in found)
    pairs = {f"{one.weights}/{one.kv}": _pair(one, rate, step_s, ops, activation) for one in found}
    first = next(iter(pairs.values()))
    return {
        "name": "this project's engine (onnxruntime), measured",
        "processor": "cpu",
        "kind": "measured",
        "weights": found[0].weights,
        "kv": found[0].kv,
        "decode": {
            "weight_factor": factor,
            "kv_factor": statistics.median(pair["kv_factor"] for pair in pairs.values()),
            "compute_factor": 0.0,
            "layer_s": 0.0,
            "step_s": step_s,
            "low": 1 / SPREAD,
            "high": SPREAD,
            "measured_share": 1.0,
        },
        "prefill": {
            "efficiency": first["efficiency"],
            "attention_efficiency": first["attention_efficiency"],
            "chunk_tokens": PROMPT,
            "chunk_s": 0.0,
            "low": 1 / SPREAD,
            "high": SPREAD,
            "ops_per_Bps": ops / rate,
            "fallback_low": 1 / SPREAD,
            "fallback_high": SPREAD,
        },
        "memory": {
            "runtime": f"{round(statistics.median(one.imported_bytes for one in found))}B",
            "weight_peak_factor": statistics.median(pair["weight_peak_factor"] for pair in pairs.values()),
            "activation_factor": activation,
            "prompt_bytes_per_token": statistics.median(
                one["prompt_bytes_per_token"] for one in pairs.values()
            ),
            "kv_layout": "full",
            "kv_reserve": "used",
        },
        "fit": {
            "date": date,
            "data": "stepped on this machine",
            "decode_rows": sum(len(one.step_s) for one in found),
            "decode_chips": 1,
            "prefill_rows": sum(len(one.prompt_s) for one in found),
            "prefill_chips": 1,
            "note": f"slowest tenth of the steps over the median: {max(one.noise for one in found):.2f}",
        },
        "formats": pairs,
    }


def shared_terms(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Factor and constant of `seconds = factor x (bytes / rate) + constant`, neither negative.

    With one point, or points that would make the constant negative, everything is the bytes'.
    """
    x, y = [point[0] for point in points], [point[1] for point in points]
    if len(points) > 1 and max(x) > min(x):
        slope, constant = statistics.linear_regression(x, y)
        if slope > 0 and constant > 0 and constant < min(y):
            return slope, constant
    return sum(y) / sum(x), 0.0


def _pair(one: Calibration, rate: float, step_s: float, ops: float, activation: float) -> dict[str, float]:
    cost = one.cost
    kv_per_token = cost.kv_read_bytes(1.0) / rate
    efficiency, attention = _prompt_efficiencies(one, ops)
    rest = one.peak_bytes - one.imported_bytes - activation * cost.activation_bytes(PROMPT)
    rest -= one.cache_bytes
    far = max(one.prompt_s)
    return {
        "weight_factor": max(1e-6, (one.start_s - step_s) / (cost.weight_bytes_per_token / rate)),
        "kv_factor": max(1e-6, one.slope_s / kv_per_token),
        "efficiency": efficiency,
        "attention_efficiency": attention,
        "weight_peak_factor": max(1e-6, rest / cost.weight_bytes),
        "prompt_bytes_per_token": max(0.0, (one.far_peak_bytes - one.peak_bytes) / far),
    }


def _prompt_efficiencies(one: Calibration, ops: float) -> tuple[float, float]:
    """Shares of `ops` that matrices and attention reach, from a prompt at an empty and at a long past."""
    cost, (near, far) = one.cost, (min(one.prompt_s), max(one.prompt_s))
    more_flops = cost.attention_flops(PROMPT, far) - cost.attention_flops(PROMPT, near)
    more_s = one.prompt_s[far] - one.prompt_s[near]
    attention = more_flops / (more_s * ops) if more_s > 0 and more_flops > 0 else 1.0
    own = cost.attention_flops(PROMPT, near)
    left = one.prompt_s[near] - own / (attention * ops)
    matrices = (cost.prefill_flops(PROMPT) - cost.attention_flops(PROMPT)) / ops
    return matrices / max(left, 0.1 * one.prompt_s[near]), attention


def _activation_factor(one: Calibration) -> float:
    """Private bytes that a prompt adds, over the formula's, the filled cache taken away."""
    added = one.peak_bytes - one.loaded_bytes - one.cache_bytes
    return max(0.1, added / one.cost.activation_bytes(PROMPT))


def step_here(folder: Path, contexts: Sequence[int]) -> dict[str, Any]:
    """What the child does: opens the bundle, reads prompts, decodes at each context in turn, watches its
    memory.
    """
    from seatrial.export.bundle import open_bundle
    from seatrial.export.session import Session

    imported, far = private_bytes(), max(contexts) - PROMPT
    with Session(open_bundle(folder, check_hashes=False), capacity=max(contexts) + STEPS + 1) as session:
        loaded = private_bytes()
        fill_cache(session)
        prompt = [(17 * index) % 1000 + 5 for index in range(PROMPT)]
        prompt_s: dict[int, list[float]] = {0: [], far: []}
        peaks = {}
        for turn in range(3):
            for past, seconds in prompt_s.items():
                session.length = past
                if turn:
                    seconds.append(_timed(lambda: session.prefill(prompt)))
                else:
                    # Watched, not timed. The near prompt comes first: what the far one adds is its past's.
                    peaks[past] = peak_during(lambda: session.prefill(prompt))
        steps, session_bytes = _steps_in_turn(session, contexts), session.kv_allocated_bytes
    ratios = [sorted(values)[int(0.9 * len(values))] / statistics.median(values) for values in steps.values()]
    return {
        "step_s": {context: statistics.median(values) for context, values in steps.items()},
        "prompt_s": {past: min(values) for past, values in prompt_s.items()},
        "noise": max(ratios),
        "imported_bytes": imported,
        "loaded_bytes": loaded,
        "cache_bytes": session_bytes,
        "peak_bytes": peaks[0],
        "far_peak_bytes": peaks[far],
    }


def fill_cache(session: Session) -> None:
    """Writes something into every row: untouched pages are all one page of zeros, which costs nothing to
    read.
    """
    session.length = session.capacity
    for rows in session.kv_rows().values():
        rows[...] = 1
    session.length = 0


def _steps_in_turn(session: Session, contexts: Sequence[int]) -> dict[int, list[float]]:
    """Seconds of single steps, the contexts taking turns in a changing order; the first turn warms up."""
    order, shuffle = list(contexts), random.Random(5)
    steps: dict[int, list[float]] = {context: [] for context in contexts}
    for turn in range(ROUNDS + 1):
        shuffle.shuffle(order)
        for context in order:
            session.length = context
            seconds = [_timed(lambda: session.step(11)) for _ in range(STEPS)]
            if turn:
                steps[context] += seconds
    return steps


def peak_during(work: Callable[[], object]) -> int:
    """Largest private memory of this process while `work` runs, looked at every two milliseconds."""
    done, seen = threading.Event(), [private_bytes()]

    def watch() -> None:
        while not done.wait(0.002):
            seen.append(private_bytes())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        work()
    finally:
        done.set()
        watcher.join()
    return max([*seen, private_bytes()])


def private_bytes() -> int:
    """Resident memory of this process that is not file pages."""
    import psutil

    from seatrial.simulate.memory_watch import read_use

    return read_use(psutil.Process()).private_bytes


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    """The child: one JSON document on stdout."""
    parser = argparse.ArgumentParser(description="Steps a bundle at contexts; one JSON document on stdout.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("contexts", type=int, nargs="+")
    options = parser.parse_args()
    print(json.dumps(step_here(options.folder, options.contexts)))


def as_mapping(one: Calibration) -> Mapping[str, Any]:
    """The measured figures for a report."""
    return {
        "weights": one.weights,
        "kv": one.kv,
        "step_ms": {context: seconds * 1e3 for context, seconds in one.step_s.items()},
        "prompt_s": one.prompt_s,
        "peak_private_bytes": one.peak_bytes,
        "noise": one.noise,
    }


if __name__ == "__main__":
    main()
