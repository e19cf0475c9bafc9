"""Every file operation of one costly job fails, or the process dies before it, without the job again for
each: at every operation a fork meets the fault and goes its way, the original waits and goes on.

    python fault_in_fork.py export WORK_FOLDER [--every N] [--again all|one]

What the fork did to the files is taken back before the original goes on: deleted ones return with their inode
(a hard link kept it), changed ones with their bytes, open files with their positions. A fault is an operation
that fails (`fail`), a SIGKILL in front of it (`kill`), or a limit on the size of every file written from
there on (`size`), which native writers meet too. Prints one JSON line per fault and, at the end, one per kind
of leftovers from which the same job was begun again. For jobs without threads of their own: a fork has none.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import json
import os
import re
import resource
import shutil
import signal
import sys
import time
from pathlib import Path

from nth_operation import JOBS, counted_path, is_writing, prepare, put_old_one_back, state

SIZES = (0, 1, 1000, 20_000, 200_000)
PATIENCE_S = 600.0


class Tree:
    """The files below a folder at one moment, to be put back."""

    def __init__(self, folder: Path, backup: Path) -> None:
        self.folder, self.backup = folder, backup
        backup.mkdir(parents=True)
        self.folders = [path for path in folder.rglob("*") if path.is_dir() and not path.is_symlink()]
        self.files: dict[Path, bytes] = {}
        for path in folder.rglob("*"):
            if path.is_file():
                self.files[path] = path.read_bytes()
                os.link(path, backup / str(len(self.files) - 1))
        self.positions = {fd: os.lseek(fd, 0, os.SEEK_CUR) for fd in self._open_files()}

    def _open_files(self) -> list[int]:
        below = []
        for entry in Path("/proc/self/fd").iterdir():
            try:
                target = str(entry.readlink())
            except FileNotFoundError:  # the listing's own descriptor
                continue
            if target.startswith(f"{self.folder}/") and Path(target).is_file():
                below.append(int(entry.name))
        return below

    def put_back(self) -> None:
        for path in sorted(self.folder.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink() and path not in self.folders:
                shutil.rmtree(path)
            elif path.exists() and not path.is_dir() and path not in self.files:
                path.unlink()
        for path in self.folders:
            path.mkdir(exist_ok=True)
        for number, (path, content) in enumerate(self.files.items()):
            kept = self.backup / str(number)
            if not path.exists() or not path.samefile(kept):
                path.unlink(missing_ok=True)
                os.link(kept, path)
            if path.read_bytes() != content:
                with path.open("r+b") as file:
                    file.truncate(0)
                    file.write(content)
        for descriptor, position in self.positions.items():
            os.lseek(descriptor, position, os.SEEK_SET)
        shutil.rmtree(self.backup)


class Forker:
    """An audit hook that forks a copy of the process for each fault at each operation below a folder."""

    def __init__(self, name: str, work: Path, every: int) -> None:
        self.name, self.work, self.every = name, work, every
        self.seen, self.armed, self.server = 0, False, os.getpid()
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.armed or counted_path(event, arguments, str(self.work)) is None:
            return
        self.seen += 1
        if (self.seen - 1) % self.every:
            return
        self.armed = False
        faults: list[tuple[str, int]] = [("fail", 0), ("kill", 0)]
        faults += [("size", size) for size in SIZES] if is_writing(event, arguments) else []
        for how, size in faults:
            if self._meet(how, size, event, arguments):
                return  # a fork, which meets one fault only
        self.armed = True

    def _meet(self, how: str, size: int, event: str, arguments: tuple[object, ...]) -> bool:
        """True on the side of the fork, which goes on with the job; the other side has seen it end."""
        tree = Tree(self.work, self.work.parent / f"{self.work.name}-backup")
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            act(how, size, str(arguments[0]))
            return True
        code = wait(pid)
        row = {"how": how, "at": self.seen, "what": event, "size": size, "code": code}
        keep_leftovers(self.work)
        print(json.dumps({**row, **state(self.name, self.work)}), flush=True)
        tree.put_back()
        return False


def act(how: str, size: int, path: str) -> None:
    """In the fork: the fault itself."""
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "size":
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        return
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


def wait(pid: int) -> int:
    """The exit code of a fork, negative for a signal; a hang ends the sweep."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            raise SystemExit("a fork hangs")
        time.sleep(0.002)


def leftovers(work: Path) -> list[Path]:
    """What lies at the target and beside it."""
    return sorted([*work.glob("target"), *work.glob(".target*")])


def keep_leftovers(work: Path) -> None:
    """A copy of each kind of leftovers (names and sizes, whoever wrote them), for `begin_again`."""
    shape = [
        (re.sub(r"\d+", "N", str(path.relative_to(work))), path.stat().st_size)
        for top in leftovers(work)
        for path in sorted([top, *top.rglob("*")])
    ]
    kept = work.parent / f"{work.name}-leftovers" / f"{hash(str(shape)):x}"
    if not kept.exists():
        kept.mkdir(parents=True)
        for top in leftovers(work):
            shutil.copytree(top, kept / top.name)


def begin_again(name: str, work: Path, how_many: str) -> None:
    """The same job, undisturbed, from each kind of leftovers (or the fullest): it must work."""
    kinds = sorted((work.parent / f"{work.name}-leftovers").iterdir(), key=_files_below)
    for kind in kinds if how_many == "all" else kinds[-1:]:
        for top in leftovers(work):
            shutil.rmtree(top)
        for top in kind.iterdir():
            shutil.copytree(top, work / top.name)
        pid = os.fork()
        if pid == 0:
            os._exit(outcome(name, work))
        row = {"how": "again", "from": sorted(top.name for top in kind.iterdir()), "code": wait(pid)}
        print(json.dumps({**row, **state(name, work)}), flush=True)


def _files_below(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


def outcome(name: str, work: Path) -> int:
    """0: done; 1: a clean failure; 3: anything else, which is printed."""
    from seatrial.errors import UserError

    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere):
        try:
            JOBS[name](work)
        except (UserError, OSError):
            return 1
        except BaseException as error:  # the waiting side only learns the code, so say it here
            print(json.dumps({"surprise": f"{type(error).__name__}: {error}"}), flush=True)
            return 3
    return 0


def serve(name: str, work: Path, every: int) -> int:
    """The job once, with a fork for each fault; its forks end here too."""
    forker = Forker(name, work, every)
    forker.armed = True
    code = outcome(name, work)
    forker.armed = False
    if os.getpid() != forker.server:
        sys.stdout.flush()
        os._exit(code)
    print(json.dumps({"how": "none", "at": forker.seen, "code": code, **state(name, work)}), flush=True)
    return code


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("work", type=Path)
    parser.add_argument("--every", type=int, default=1, help="only the first, the (1 + N)-th, ...")
    parser.add_argument("--again", choices=("all", "one"), default="all")
    options = parser.parse_args()
    prepare(options.job, options.work)
    put_old_one_back(options.job, options.work)
    pid = os.fork()
    if pid == 0:
        code = serve(options.job, options.work, options.every)
        sys.stdout.flush()
        os._exit(code)
    os.waitpid(pid, 0)
    begin_again(options.job, options.work, options.again)


if __name__ == "__main__":
    main()
