"""Makes the n-th file operation of a job fail, or the process die before it, for every n: run as a program.

    python nth_operation.py fail|kill|size quantize|prepack|run WORK_FOLDER

An audit hook sees every open-for-writing, rename, unlink, mkdir and rmdir that Python makes; for native
writers (onnxruntime saves the packed weights itself) and for each write in between, `sizes` lowers the
largest file size instead. Each n is a fork of one warm process, so nothing of one attempt reaches the
next. Prints one JSON line per n: what happened and what state the target was in. Export takes too long for
that: see `fault_in_fork.py`, which uses the jobs and the checks of this module.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from scripted import write_scripted_bundle

TRANSCRIPT = (
    "Anna Lindqvist: Good morning, the budget of the trade fair is $35,000.\nBen Okoro: Fine with me.\n"
)
RIGHT = "The budget of the trade fair is $35,000."
_REMOVALS = {"os.remove", "os.rmdir"}
_EVENTS = {"os.rename", "os.mkdir", "os.truncate", "os.link", "os.symlink", *_REMOVALS}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Injector:
    """Counts file operations below a folder; acts on the n-th."""

    def __init__(self, folder: Path, how: str, at: int) -> None:
        self.folder, self.how, self.at, self.seen, self.armed = str(folder), how, at, 0, False
        sys.addaudithook(self.hook)

    def hook(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.armed or counted_path(event, arguments, self.folder) is None:
            return
        self.seen += 1
        if self.seen != self.at:
            return
        if self.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(arguments[0]))


def counted_path(event: str, arguments: tuple[object, ...], folder: str) -> str | None:
    """The path below `folder` that an audit event writes to, makes, renames or removes; None for others."""
    if not (event in _EVENTS or is_writing(event, arguments)):
        return None
    path = arguments[0] if arguments else None
    if not isinstance(path, str | os.PathLike):
        return None
    text = str(os.fspath(path))
    at = arguments[-1]
    if not text.startswith("/") and event in _REMOVALS and isinstance(at, int) and at >= 0:
        text = f"{os.readlink(f'/proc/self/fd/{at}')}/{text}"  # noqa: PTH115 - a removal inside rmtree
    return text if text.startswith(f"{folder}/") else None


def is_writing(event: str, arguments: tuple[object, ...]) -> bool:
    """Whether the event opens a file for writing."""
    flags = arguments[2] if event == "open" and len(arguments) > 2 else 0
    return isinstance(flags, int) and bool(flags & _WRITING)


def quantize(work: Path) -> None:
    from seatrial.export.bundle import open_bundle
    from seatrial.quantize.bundle import quantize_bundle

    # The scripted model is sure of every token, so its agreement is not the point here: any floor will do.
    quantize_bundle(open_bundle(work / "model"), work / "target", weights="int4", kv="fp32", floor=0.0)


def prepack(work: Path) -> None:
    from seatrial.export.bundle import open_bundle
    from seatrial.export.prepacked import prepare_mapped

    os.environ["SEATRIAL_CACHE"] = str(work / "target")
    prepare_mapped(open_bundle(work / "quantized"))


def run(work: Path) -> None:
    from seatrial.simulate.job import RunJob
    from seatrial.simulate.run import run as carry_out

    job = RunJob(TRANSCRIPT, "rpi5", work / "target", model=str(work / "model"), threads=1, max_tokens=60)
    result = carry_out(job)
    if result.unsaved:
        raise SystemExit(1)


def export(work: Path) -> None:
    from seatrial.export.source import resolve
    from seatrial.export.to_onnx import export_bundle

    export_bundle(resolve(work / "source"), work / "target")


JOBS: dict[str, Callable[[Path], None]] = {
    "quantize": quantize,
    "prepack": prepack,
    "run": run,
    "export": export,
}


def attempt(how: str, name: str, work: Path, at: int) -> dict[str, object]:
    """One fork: the job with its n-th operation failing (or, for `size`, no file above `at` bytes)."""
    pid = os.fork()
    if pid == 0:
        os._exit(_in_fork(how, name, work, at))
    deadline = time.monotonic() + 120
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            raise SystemExit(f"{how} {name} {at} hangs")
        time.sleep(0.005)
    code = os.waitstatus_to_exitcode(status)
    return {"at": at, "code": code, **state(name, work)}


def _in_fork(how: str, name: str, work: Path, at: int) -> int:
    """0: done without reaching the fault; 1: a clean failure; 3: anything else."""
    from seatrial.errors import UserError

    sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115 - the fork ends without closing it
    injector = Injector(work, how, at) if how != "size" else None
    try:
        if injector is not None:
            injector.armed = True
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (at, resource.RLIM_INFINITY))
        JOBS[name](work)
    except (UserError, OSError):
        return 1
    except SystemExit as error:
        return int(error.code or 0)
    except BaseException as error:  # the parent only learns the code, so say it here
        print(json.dumps({"surprise": f"{type(error).__name__}: {error}"}), flush=True)
        return 3
    if injector is not None and injector.seen >= at:
        return 4  # the fault was met and survived: a trace that ended early, say
    return 0


def state(name: str, work: Path) -> dict[str, object]:
    """What lies at the target: nothing, something whole, or something broken; and temporary files."""
    from seatrial.errors import UserError
    from seatrial.export.bundle import open_bundle

    target = work / "target"
    left = sorted(
        str(p.relative_to(work)) for p in work.rglob("*") if ".partial" in p.name or ".part" in p.suffix
    )
    if name in ("quantize", "export"):
        try:
            found = open_bundle(target).info.get("weights", "fp32") if target.exists() else "nothing"
        except UserError as error:
            found = f"broken: {error}"
    elif name == "prepack":
        whole = [
            file for file in target.glob("prepacked/*/model.onnx") if not file.parent.name.startswith(".")
        ]
        found = "whole" if whole else "nothing"
    else:
        summary = target / "summary.txt"
        found = summary.read_text(encoding="utf-8").strip() if summary.exists() else "nothing"
    return {"found": found, "left": left}


def main() -> None:
    how, name, work = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    prepare(name, work)
    steps = range(1, 400) if how != "size" else [0, 1, 100, 1000, 4096, 20000, 100000, 300000]
    for at in steps:
        put_old_one_back(name, work)
        row = attempt(how, name, work, at)
        print(json.dumps(row), flush=True)
        if row["code"] == 0:
            break
    print(json.dumps({"at": "again", **_again(name, work)}), flush=True)


def prepare(name: str, work: Path) -> None:
    """The models that a job starts from, and everything imported that it needs: once, not once per fork."""
    work.mkdir(parents=True, exist_ok=True)
    import seatrial.guards.check
    import seatrial.quantize.bundle
    import seatrial.simulate.run  # noqa: F401

    write_scripted_bundle(work / "model", RIGHT)
    if name != "run":
        _warm_up(work)
    if name == "export":
        _tiny_source(work)


def put_old_one_back(name: str, work: Path) -> None:
    """Before each attempt an older bundle (int8) lies where the new one (int4) is to go."""
    if name in ("quantize", "export"):
        for leftover in [work / "target", *work.glob(".target*")]:
            shutil.rmtree(leftover, ignore_errors=True)
        shutil.copytree(work / "quantized", work / "target")


def _warm_up(work: Path) -> None:
    """A quantized bundle, made in a fork: this process must never start onnxruntime's threads."""
    pid = os.fork()
    if pid == 0:
        from seatrial.export.bundle import open_bundle
        from seatrial.quantize.bundle import quantize_bundle

        quantize_bundle(open_bundle(work / "model"), work / "quantized", weights="int8", kv="fp32", floor=0.0)
        os._exit(0)
    os.waitpid(pid, 0)


def _tiny_source(work: Path) -> None:
    """A tiny random llama with the scripted model's tokenizer, and torch imported once, on one thread."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "export"))
    import torch
    from tiny_models import save

    import seatrial.export.to_onnx  # noqa: F401

    torch.set_num_threads(1)
    save("llama", work / "source")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(work / "model" / name, work / "source" / name)


def _again(name: str, work: Path) -> dict[str, object]:
    """The same job once more, undisturbed: it must work whatever the faults left."""
    pid = os.fork()
    if pid == 0:
        os._exit(_in_fork("fail", name, work, 10**9))
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {"code": code, **state(name, work)}


if __name__ == "__main__":
    main()
