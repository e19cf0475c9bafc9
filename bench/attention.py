"""One token over a long cache: onnxruntime's two attention kernels, tiled and whole, int8 and float cache.

    python bench/attention.py [--threads 2] [--contexts 128,512,2048,4096]

A graph of one GroupQueryAttention node with the embedded model's heads runs over 30 layers' buffers in turn,
so that a cache is read from memory and not from the processor. The two kernels alternate; printed are medians
of milliseconds for the 30 layers and the ratio tiled / whole. This is what `untiled_attention` in
export/runtime.py decides by: whole where the ratio is above 1 for the kind of cache.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from seatrial.export.runtime import untiled_attention

HEADS, KV_HEADS, HEAD_DIM, LAYERS, CAPACITY = 9, 3, 64, 30, 4608
SCALE = 0.02


def attention_graph(cache: str) -> bytes:
    """A model of one attention node over packed q/k/v; `cache` is "int8" (a scale per channel) or "float"."""
    kind = TensorProto.INT8 if cache == "int8" else TensorProto.FLOAT
    shape = [1, KV_HEADS, CAPACITY, HEAD_DIM]
    width = (HEADS + 2 * KV_HEADS) * HEAD_DIM
    inputs = [
        helper.make_tensor_value_info("qkv", TensorProto.FLOAT, [1, 1, width]),
        helper.make_tensor_value_info("past_key", kind, shape),
        helper.make_tensor_value_info("past_value", kind, shape),
        helper.make_tensor_value_info("last", TensorProto.INT32, [1]),
        helper.make_tensor_value_info("total", TensorProto.INT32, [1]),
    ]
    outputs = [
        helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 1, HEADS * HEAD_DIM]),
        helper.make_tensor_value_info("key", kind, shape),
        helper.make_tensor_value_info("value", kind, shape),
    ]
    names = ["qkv", "", "", "past_key", "past_value", "last", "total"]
    attributes: dict[str, Any] = {"num_heads": HEADS, "kv_num_heads": KV_HEADS}
    weights = []
    if cache == "int8":
        scales = np.full((1, KV_HEADS, 1, HEAD_DIM), SCALE, np.float32)
        weights = [numpy_helper.from_array(scales, "scale")]
        names += [""] * 5 + ["scale", "scale"]
        attributes |= {
            "k_quant_type": "PER_CHANNEL",
            "v_quant_type": "PER_CHANNEL",
            "kv_cache_bit_width": 8,
        }
    node = helper.make_node(
        "GroupQueryAttention", names, ["out", "key", "value"], domain="com.microsoft", **attributes
    )
    graph = helper.make_graph([node], "attention", inputs, outputs, weights)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return model.SerializeToString()


def open_both(cache: str, threads: int) -> dict[str, ort.InferenceSession]:
    """The same graph opened with each kernel."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    model, providers = attention_graph(cache), ["CPUExecutionProvider"]
    tiled = ort.InferenceSession(model, options, providers=providers)
    with untiled_attention():
        whole = ort.InferenceSession(model, options, providers=providers)
    return {"tiled": tiled, "whole": whole}


def bindings(
    session: ort.InferenceSession, caches: list[list[ort.OrtValue]], query: ort.OrtValue, context: int
) -> list[Any]:
    """One binding per layer, each over its own buffers."""
    last, total = (ort.OrtValue.ortvalue_from_numpy(np.array([n], np.int32)) for n in (context, context + 1))
    made = []
    for key, value in caches:
        binding = session.io_binding()
        given = {"qkv": query, "past_key": key, "past_value": value, "last": last, "total": total}
        for name, held in given.items():
            binding.bind_ortvalue_input(name, held)
        binding.bind_output("out")
        binding.bind_ortvalue_output("key", key)
        binding.bind_ortvalue_output("value", value)
        made.append(binding)
    return made


def layers_ms(session: ort.InferenceSession, layers: list[Any]) -> float:
    """Milliseconds of one token over all layers."""
    started = time.perf_counter()
    for binding in layers:
        session.run_with_iobinding(binding)
    return (time.perf_counter() - started) * 1e3


def measure(cache: str, threads: int, contexts: list[int], rounds: int) -> None:
    """Print one line per context."""
    random = np.random.default_rng(0)
    shape = (1, KV_HEADS, CAPACITY, HEAD_DIM)
    kind = np.int8 if cache == "int8" else np.float32
    caches = [
        [ort.OrtValue.ortvalue_from_numpy((random.standard_normal(shape) * 30).astype(kind)) for _ in "kv"]
        for _ in range(LAYERS)
    ]
    width = (HEADS + 2 * KV_HEADS) * HEAD_DIM
    query = ort.OrtValue.ortvalue_from_numpy(random.standard_normal((1, 1, width)).astype(np.float32))
    sessions = open_both(cache, threads)
    for context in contexts:
        layers = {name: bindings(session, caches, query, context) for name, session in sessions.items()}
        found: dict[str, list[float]] = {name: [] for name in sessions}
        for _ in range(rounds):
            for name, session in sessions.items():
                found[name].append(layers_ms(session, layers[name]))
        tiled, whole = (statistics.median(found[name]) for name in ("tiled", "whole"))
        print(f"{cache:6}{context:8}{tiled:10.2f} ms{whole:10.2f} ms{tiled / whole:8.2f}x", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--contexts", default="128,512,2048,4096")
    parser.add_argument("--rounds", type=int, default=20)
    asked = parser.parse_args()
    contexts = [int(part) for part in asked.contexts.split(",")]
    # An environment that has the switch already would make both sessions the same.
    os.environ.pop("ORT_GQA_DISABLE_FLASH_ATTENTION", None)
    print(f"onnxruntime {ort.__version__}, {asked.threads} threads, {LAYERS} layers")
    print(f"{'cache':6}{'context':>8}{'tiled':>13}{'whole':>13}{'ratio':>9}")
    for cache in ("int8", "float"):
        measure(cache, asked.threads, contexts, asked.rounds)


if __name__ == "__main__":
    main()
