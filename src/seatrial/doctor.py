"""What this machine and installation can do, one line each with the remedy: behind `seatrial doctor`.

It looks, opens no model and needs no network. Only `clean_cache` changes anything.
"""

from __future__ import annotations

import importlib.metadata as metadata
import os
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import UserError

OK, WARN, FAIL = "ok", "warn", "fail"

# The extra's packages; without them everything but `export` works.
EXPORT_EXTRA = ("torch", "transformers", "optimum", "optimum-onnx", "onnxscript", "accelerate")

# What the rooms keep in the cache folder. SEATRIAL_CACHE may name a folder that holds other things as well.
CACHED = ("bundles", "damage", "embedded", "prepacked", "sensitivity")

# Room for the embedded model: source, fp32 bundle, two quantized ones and the prepacked copies.
WANTED_FREE_BYTES = 3_000_000_000


@dataclass(frozen=True)
class Line:
    """One thing looked at: `status` is ok, warn or fail; `remedy` is empty when nothing needs doing."""

    name: str
    status: str
    detail: str
    remedy: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def examine() -> list[Line]:
    """Everything that is looked at, in the order in which it is shown."""
    return [
        python_line(),
        *requirement_lines(),
        extra_line(),
        onnxruntime_line(),
        ceiling_line(),
        cache_line(),
    ]


def python_line() -> Line:
    version = ".".join(map(str, sys.version_info[:3]))
    return Line("python", OK, f"{version} at {sys.executable}")


def requirement_lines() -> list[Line]:
    """Declared requirements that are missing or outside the range that was tried."""
    problems = []
    for text in metadata.requires("seatrial") or []:
        line = _requirement_line(text)
        if line is not None:
            problems.append(line)
    return problems or [Line("packages", OK, f"all {len(_core_requirements())} requirements are in range")]


def _core_requirements() -> list[str]:
    return [text for text in metadata.requires("seatrial") or [] if "extra ==" not in text]


def _requirement_line(text: str) -> Line | None:
    from packaging.requirements import Requirement

    requirement = Requirement(text)
    optional = "extra ==" in text
    if requirement.marker and not requirement.marker.evaluate({"extra": "export"}):
        return None
    try:
        installed = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        if optional:
            return None
        return Line(
            requirement.name,
            FAIL,
            "not installed",
            f'pip install "{requirement.name}{requirement.specifier}"',
        )
    if requirement.specifier.contains(installed, prereleases=True):
        return None
    wanted = f"{requirement.name}{requirement.specifier}"
    return Line(
        requirement.name,
        WARN,
        f"{installed} was not tried; the range is {requirement.specifier}",
        f'pip install "{wanted}"',
    )


def extra_line() -> Line:
    """Whether `seatrial export` can work."""
    missing = [name for name in EXPORT_EXTRA if not _installed(name)]
    if not missing:
        return Line(
            "export extra",
            OK,
            f"torch {metadata.version('torch')}, transformers {metadata.version('transformers')}",
        )
    return Line(
        "export extra", WARN, f"not installed: {', '.join(missing)}; finished bundles run without it",
        'pip install "seatrial[export]" to export models',
    )  # fmt: skip


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


def onnxruntime_line() -> Line:
    """Two distributions that install the same `onnxruntime` module overwrite each other silently."""
    names = (
        "onnxruntime",
        "onnxruntime-gpu",
        "onnxruntime-directml",
        "onnxruntime-openvino",
        "onnxruntime-qnn",
    )
    found = [name for name in names if _installed(name)]
    if len(found) > 1:
        remedy = f"pip uninstall {' '.join(found)}, then install one of them"
        return Line("onnxruntime", FAIL, f"{' and '.join(found)} overwrite each other's files", remedy)
    if not found:
        return Line("onnxruntime", FAIL, "not installed", 'pip install "onnxruntime>=1.27"')
    return Line("onnxruntime", OK, f"{found[0]} {metadata.version(found[0])}")


def ceiling_line() -> Line:
    """The memory ceiling that a run would get here; a group is really made and removed."""
    from seatrial.simulate.ceiling import host_memory, open_ceiling

    host = host_memory()
    with open_ceiling(host.bytes) as ceiling:
        detail = (
            f"{ceiling.mechanism}; this machine lets a process have {host.bytes / 1e9:.1f} GB ({host.source})"
        )
        if ceiling.mechanism.startswith("cgroup"):
            return Line("memory ceiling", OK, detail)
        reasons = "; ".join(ceiling.notes)
    return Line(
        "memory ceiling", WARN, f"{detail}; {reasons}",
        "run as root or with a delegated cgroup (systemd-run --user --scope) to have it enforced",
    )  # fmt: skip


def cache_line() -> Line:
    """Where models and bundles are kept, how much they take, and what is free beside them."""
    from seatrial.export.cache import cache_folder

    try:
        folder = cache_folder()
    except UserError as error:
        return Line("cache", FAIL, str(error), "set SEATRIAL_CACHE to a writable folder")
    free = shutil.disk_usage(folder).free
    detail = f"{folder}: {folder_bytes(folder) / 1e9:.2f} GB used, {free / 1e9:.1f} GB free"
    if not os.access(folder, os.W_OK):
        return Line("cache", FAIL, f"{detail}; not writable", "set SEATRIAL_CACHE to a writable folder")
    if free < WANTED_FREE_BYTES:
        remedy = "free some space, or empty the cache with seatrial doctor --clean"
        return Line("cache", WARN, f"{detail}; {WANTED_FREE_BYTES / 1e9:.0f} GB are wanted", remedy)
    return Line("cache", OK, detail)


def folder_bytes(folder: Path) -> int:
    """Bytes of the regular files below `folder`; links are not followed."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def clean_cache() -> int:
    """Removes what seatrial keeps in the cache folder, nothing else there, and returns the bytes freed.

    Raises UserError when a file cannot be removed; what could be removed before it is gone.
    """
    from seatrial.export.cache import cache_folder

    folders = [cache_folder() / name for name in CACHED]
    freed = sum(folder_bytes(folder) for folder in folders if not folder.is_symlink())
    for folder in folders:
        try:
            if folder.is_symlink():
                folder.unlink()
            elif folder.is_dir():
                shutil.rmtree(folder)
        except OSError as error:
            raise UserError(f"cannot remove {folder}: {error.strerror}; remove it by hand") from error
    return freed
