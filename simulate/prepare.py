"""The bundle of a run: found in the cache, or exported and quantized into it, once.

A bundle is kept under a key of the source's content and of the versions that made it. A lock per bundle
lets a second run wait for the first instead of doing the work twice; it belongs to the process, so a
killed run leaves none behind. Writing is atomic (`export.bundle.writing_bundle`). What a run does with
the bundle is not known.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from seatrial.errors import UserError
from seatrial.export.bundle import INFO, Bundle, open_bundle
from seatrial.export.cache import cache_folder
from seatrial.export.source import Source, resolve
from seatrial.quantize.recipe import GENERATION

Progress = Callable[[str, float | None], None]

WEIGHTS = ("int4", "int8", "mixed", "fp32")
KV = ("fp32", "int8")
_MAKERS = ("seatrial", "onnx", "onnxruntime", "torch", "transformers", "onnxscript")


class PreparationFailed(Exception):
    """Export or quantization ended with a failed check: not bad input, not a bundle to run either."""


def ensure_bundle(
    model: str | Path | None = None,
    weights: str | None = "int4",
    kv: str | None = "fp32",
    progress: Progress | None = None,
    cache: Path | None = None,
) -> Bundle:
    """A checked bundle of `model` in these formats; exported and quantized into the cache when missing.

    With `weights` None a bundle is taken as it is, and other models get int4 weights.
    Raises `UserError` for unknown formats and everything `resolve` refuses, `PreparationFailed` when a
    check of export or quantization fails.
    """
    check_formats(weights, kv)
    source = resolve(model, progress=progress, cache=cache)
    if weights is None and source.kind in ("bundle", "onnx"):
        kv = None
    return bundle_of(source, weights, kv, progress, cache)


def bundle_of(
    source: Source,
    weights: str | None,
    kv: str | None,
    progress: Progress | None = None,
    cache: Path | None = None,
) -> Bundle:
    """`ensure_bundle` for a source that was resolved already; None is a bundle's own format."""
    if source.kind in ("bundle", "onnx"):
        given = open_bundle(source.path)
        own_weights, own_kv = formats_of(given)
        wanted = (weights or own_weights, kv or own_kv)
        if wanted == (own_weights, own_kv):
            return given
        return _quantized(given, _folder(source, cache), *wanted, progress)
    weights, kv = weights or "int4", kv or "fp32"
    folder = _folder(source, cache)
    exported = _made(folder / "fp32", lambda out: _export(source, out, progress), progress)
    if (weights, kv) == ("fp32", "fp32"):
        return exported
    return _quantized(exported, folder, weights, kv, progress)


def formats_of(bundle: Bundle) -> tuple[str, str]:
    """(weights, kv) as `seatrial.json` says; folders made by others: what the graph shows."""
    return bundle.weights, {"float32": "fp32", "float16": "fp16"}.get(bundle.kv.dtype, bundle.kv.dtype)


def check_formats(weights: str | None, kv: str | None) -> None:
    """Raises `UserError` for a format that is not known."""
    if weights is not None and weights not in WEIGHTS:
        raise UserError(f"no weight format {weights!r}: one of {', '.join(WEIGHTS)}")
    if kv is not None and kv not in KV:
        raise UserError(f"no KV format {kv!r}: one of {', '.join(KV)}")


def _quantized(fp32: Bundle, folder: Path, weights: str, kv: str, progress: Progress | None) -> Bundle:
    own_weights, own_kv = formats_of(fp32)
    if own_weights not in ("fp32", "fp16") or own_kv not in ("fp32", "fp16"):
        raise UserError(
            f"{fp32.folder} is quantized already ({own_weights} weights, {own_kv} KV): give the model "
            "it was made from, or drop --weights and --kv to run it as it is"
        )
    made = folder / f"{weights}-kv-{kv}.{GENERATION}"
    return _made(made, lambda out: _quantize(fp32, out, weights, kv, progress), progress)


def _made(folder: Path, make: Callable[[Path], Any], progress: Progress | None = None) -> Bundle:
    """The bundle in `folder`, made under a lock when it is not there."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not (folder / INFO).is_file():
        with _locked(folder.with_name(folder.name + ".lock"), progress):
            # Another run may have made it while this one waited.
            if not (folder / INFO).is_file():
                make(folder)
    return open_bundle(folder)


@contextlib.contextmanager
def _locked(file: Path, progress: Progress | None) -> Iterator[None]:
    """Holds the lock of a bundle; says so where another process has it, since making one takes a while."""
    lock = FileLock(file)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if progress:
            progress(f"waiting for another run that is making {file.stem}", None)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _export(source: Source, out: Path, progress: Progress | None) -> None:
    from seatrial.export.to_onnx import export_bundle

    result = export_bundle(source, out, progress=progress)
    _refuse_failed(result.checks, f"export of {source.name}")


def _quantize(fp32: Bundle, out: Path, weights: str, kv: str, progress: Progress | None) -> None:
    from seatrial.quantize.bundle import quantize_bundle

    result = quantize_bundle(fp32, out, weights=weights, kv=kv, progress=progress)
    _refuse_failed(result.checks, f"quantization of {fp32.folder.name}")


def _refuse_failed(checks: Any, what: str) -> None:
    failed = [check for check in checks if str(check.verdict) == "fail"]
    if failed:
        told = "; ".join(f"{check.name} {check.figure} (limit {check.limit})" for check in failed)
        raise PreparationFailed(f"{what} failed its checks: {told}")


def _folder(source: Source, cache: Path | None) -> Path:
    safe = re.sub(r"[^\w.-]+", "-", source.name)[:60]
    return (cache or cache_folder()) / "bundles" / f"{safe}-{_key(source)}"


def _key(source: Source) -> str:
    """16 hex digits over the source's content and the versions that shape the bundle."""
    digest = hashlib.sha256(b"bundle 1\n")
    for name in _MAKERS:
        digest.update(f"{name} {_version(name)}\n".encode())
    digest.update((source.sha256 or _content_mark(source.path)).encode())
    return digest.hexdigest()[:16]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def _content_mark(path: Path) -> str:
    """Changes when a file is replaced: names, sizes, times (hashing a folder of 6 GB takes a minute)."""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    rows = [
        f"{file.relative_to(path.parent)} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in files
    ]
    return hashlib.sha256("\n".join([str(path.resolve()), *rows]).encode()).hexdigest()
