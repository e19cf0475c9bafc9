"""Writing that either finishes or leaves nothing: temporary names, renames, space told beforehand.

Folders and single files only; it does not know what a bundle contains.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from seatrial.errors import UserError

_BLOCK = 1 << 22
# Our temporary folders carry the writer's process id, so that a later run can tell a dead one's leftovers.
_PARTIAL = ".partial-"


@contextmanager
def writing_folder(out: Path, *, sources: Iterable[Path] = (), needed_bytes: int = 0) -> Iterator[Path]:
    """A temporary folder beside `out` that takes its place on success and vanishes on failure or Ctrl-C.

    Raises UserError when `out` is one of `sources` (also through a link) or lies around or inside one, when
    the disk has fewer than `needed_bytes` free, or when it fills up while writing.
    """
    out = out.absolute()
    refuse_overlap(out, sources)
    make_parent(out)
    _clear_leftovers(out)
    require_space(out.parent, needed_bytes)
    temporary = out.with_name(f".{out.name}{_PARTIAL}{os.getpid()}")
    temporary.mkdir()
    try:
        yield temporary
        _swap_in(temporary, out)
    except OSError as error:
        raise disk_error(error, out) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def refuse_overlap(out: Path, sources: Iterable[Path]) -> None:
    """Raise UserError when writing to `out` would touch one of `sources`."""
    target = out.resolve()
    for source in sources:
        real = source.resolve()
        if target == real or (real in target.parents and real.is_dir()) or target in real.parents:
            raise UserError(
                f"the output {out} is the input {source} or overlaps it; name another output folder"
            )


def require_space(folder: Path, needed_bytes: int) -> None:
    """Raise UserError when `folder`'s disk has fewer than `needed_bytes` free."""
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise UserError(
            f"{folder} has {free:,} bytes free and {needed_bytes:,} bytes are needed; "
            "free some space or name an output on another disk"
        )


def disk_error(error: OSError, path: Path) -> UserError:
    """The one line for a failed write, naming the path and the system's reason."""
    code = errno.errorcode.get(error.errno or 0, "")
    if not code and "requested and" in str(error):  # numpy's short write carries no number
        code = "ENOSPC, or EFBIG under a file size limit"
    reason = f"{error.strerror or error} ({code or 'unknown error'})"
    return UserError(f"cannot write {error.filename or path}: {reason}; nothing was left behind")


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file, remembered within the process while its size and time stay the same."""
    stat = path.stat()
    return _sha256(path.resolve(), stat.st_size, stat.st_mtime_ns)


@lru_cache(maxsize=256)
def _sha256(path: Path, _size: int, _mtime_ns: int) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def make_parent(out: Path) -> None:
    """Make the folder that `out` will stand in. Raises UserError when `out` is in use by something else."""
    if out.is_file():
        raise UserError(f"the output {out} is a file; name a folder")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise disk_error(error, out.parent) from error
    if out.is_dir() and any(out.iterdir()) and not (out / "model.onnx").exists():
        raise UserError(
            f"the output folder {out} holds other files; name a new folder or an older bundle to replace"
        )


def _clear_leftovers(out: Path) -> None:
    """Remove temporary folders of writers that are no longer alive."""
    for folder in out.parent.glob(f".{out.name}{_PARTIAL}*"):
        writer = folder.name.rsplit("-", 1)[1]
        if not writer.isdigit() or int(writer) == os.getpid() or not _alive(int(writer)):
            shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    import psutil

    return bool(psutil.pid_exists(pid))


def _swap_in(temporary: Path, out: Path) -> None:
    """Put the finished folder in place; an older one goes out in the same step where the system can do that.

    Two renames leave a moment in which a killed process has left neither folder under the name.
    """
    if not out.exists():
        temporary.rename(out)
        return
    if _exchange(temporary, out):
        return  # the older one now has the temporary name and is removed with it
    old = out.with_name(f".{out.name}.replaced-{os.getpid()}")
    out.rename(old)
    try:
        temporary.rename(out)
    except OSError:
        old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step (Linux `renameat2`, macOS `renamex_np`); False where that cannot be done."""
    import ctypes

    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if hasattr(libc, "renameat2"):
            here = -100  # AT_FDCWD; both paths are absolute
            return bool(libc.renameat2(here, os.fsencode(one), here, os.fsencode(other), 2) == 0)
        if hasattr(libc, "renamex_np"):
            return bool(libc.renamex_np(os.fsencode(one), os.fsencode(other), 2) == 0)
    except (OSError, TypeError):  # no C library to ask, as on Windows
        return False
    return False
