"""Weights that stay file pages: run a bundle from a mapped file, without a packed copy on the heap.

A float graph runs from its own data file when the kernels are told not to repack. Quantized kernels need
their packing (20 times slower without), so it is done once and saved: onnxruntime writes the optimized
graph with the packed weights beside it, and opening that file maps them. The file belongs to this version
of onnxruntime and this kind of CPU, both of which are in its name.

Saving needs the weights on the heap once; whoever runs under a memory ceiling calls `prepare_mapped`
before. Opening packs one matrix at a time on the heap and lets go of it (see head_pieces.py).
"""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

import onnx
import onnxruntime as ort

from seatrial.export.bundle import Bundle
from seatrial.export.cache import cache_folder
from seatrial.export.files import sha256_of, writing_folder
from seatrial.export.float_prefill import with_float_attention
from seatrial.export.head_pieces import split_head
from seatrial.export.runtime import open_session, session_options
from seatrial.export.session_graph import DecoderGraph, load_graph, read_decoder

_NAME = "model.onnx"
_PACKED_KERNELS = {"MatMulNBits", "GatherBlockQuantized"}
_INLINE_BYTES = "1024"


def needs_packing(graph: DecoderGraph) -> bool:
    """Whether the graph has kernels that are of no use without their packing."""
    return any(node.op_type in _PACKED_KERNELS for node in graph.model.graph.node)


def prepare_mapped(bundle: Bundle) -> Path | None:
    """Save the packed form of `bundle` in the cache; its graph file, or None where none is needed."""
    graph = read_decoder(bundle.model_path)
    return _saved(graph, bundle) if needs_packing(graph) else None


def open_mapped(graph: DecoderGraph, options: ort.SessionOptions, bundle: Bundle) -> ort.InferenceSession:
    """An onnxruntime session whose weights are mapped, not copied."""
    if not needs_packing(graph):
        options.add_session_config_entry("session.disable_prepacking", "1")
        return open_session(graph.model.SerializeToString(), options, graph.folder)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    saved = _saved(graph, bundle)
    return open_session(str(saved), options, saved.parent)


def open_float_prefill(bundle: Bundle, threads: int) -> ort.InferenceSession:
    """The session that reads prompts into an int8 cache with float attention, on mapped weights.

    It shares the packed file with a mapped session of the same bundle, so its weights cost no memory of
    their own.
    """
    graph, options = read_decoder(bundle.model_path), session_options(threads)
    if not needs_packing(graph):
        options.add_session_config_entry("session.disable_prepacking", "1")
        return open_session(with_float_attention(graph.model).SerializeToString(), options, graph.folder)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    saved = _saved(graph, bundle)
    return open_session(with_float_attention(load_graph(saved)).SerializeToString(), options, saved.parent)


def _saved(graph: DecoderGraph, bundle: Bundle) -> Path:
    """The packed file, made when it is not in the cache yet."""
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    split_head(model)
    folder = cache_folder() / "prepacked" / _key(model, bundle)
    if (folder / _NAME).is_file():
        return folder / _NAME
    with writing_folder(folder, needed_bytes=2 * bundle.weight_bytes) as partial:
        options = session_options(threads=1)
        options.optimized_model_filepath = str(partial / _NAME)
        for key, value in {
            "session.save_external_prepacked_constant_initializers": "1",
            "session.optimized_model_external_initializers_file_name": f"{_NAME}.data",
            "session.optimized_model_external_initializers_min_size_in_bytes": _INLINE_BYTES,
        }.items():
            options.add_session_config_entry(key, value)
        open_session(model.SerializeToString(), options, graph.folder)
    return folder / _NAME


def _key(model: onnx.ModelProto, bundle: Bundle) -> str:
    """Name of the packed form: source, version and CPU; another one of these makes another file."""
    digest = hashlib.sha256(model.SerializeToString(deterministic=True))
    for file in bundle.data_files:
        told = bundle.info.get("files", {}).get(file.name, {}).get("sha256")
        digest.update((told or sha256_of(file)).encode())
    digest.update(f"{ort.__version__} {platform.machine()} {_cpu_features()}".encode())
    return f"{bundle.folder.resolve().name}-{_cpu_kind()}-{digest.hexdigest()[:16]}"


def _cpu_kind() -> str:
    """The machine and the strongest feature that chooses a packing, for people who look at the folder."""
    features = set(_cpu_features().lower().replace(":", " ").split())
    known = ("amx_int8", "avx512_vnni", "avx_vnni", "avx512f", "avx2", "i8mm", "sve", "asimddp", "asimd")
    strongest = next((name for name in known if name in features), "generic")
    return f"{platform.machine() or 'unknown'}-{strongest}"


def _cpu_features() -> str:
    """The kernel's list of CPU features, or the processor's name where there is none."""
    listing = Path("/proc/cpuinfo")
    if listing.is_file():
        for line in listing.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith(("flags", "features")):
                return line
    return platform.processor()
