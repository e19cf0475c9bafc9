"""A function in a process of its own, whose memory is the system's again when it ends.

A trace leaves hundreds of megabytes in allocators that do not give them back, and a comparison maps the
weights once more; one after the other in processes that end, they do not add up. Arguments and result go
through files, progress through the child's standard output.
"""

from __future__ import annotations

import importlib
import json
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from seatrial.errors import UserError
from seatrial.export.embedded import Progress

T = TypeVar("T")
_STAGE = "stage "


def call_apart(function: Callable[..., T], *arguments: Any, say: Progress | None = None) -> T:
    """`function(*arguments, say=...)` in a child: a module's own function, and arguments that pickle.

    Raises the function's own UserError or OSError, RuntimeError when the child dies of anything else.
    """
    with tempfile.TemporaryDirectory() as work:
        given, result, told = (Path(work) / name for name in ("given", "result", "told"))
        with given.open("wb") as stream:
            pickle.dump((function.__module__, function.__qualname__, arguments), stream)
        code = _run([sys.executable, "-m", __name__, str(given), str(result)], told, say)
        if code or not result.is_file():
            said = told.read_text(encoding="utf-8", errors="replace").strip()[-2000:]
            raise RuntimeError(f"{function.__qualname__} ended with {code} in its own process: {said}")
        with result.open("rb") as stream:
            outcome, value = pickle.load(stream)  # written by our own child a moment ago
    if outcome == "raised":
        raise value
    return value


def _run(command: Sequence[str], told: Path, say: Progress | None) -> int:
    """Run the child and pass its progress on; its code. It does not outlive an interruption."""
    with told.open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        try:
            for line in process.stdout or ():
                if say is not None and line.startswith(_STAGE):
                    say(*json.loads(line.removeprefix(_STAGE)))
            return process.wait()
        finally:
            process.kill()
            process.wait()


def main(arguments: Sequence[str]) -> int:
    """The child."""
    given, result = map(Path, arguments)
    with given.open("rb") as stream:  # written by our own parent a moment ago
        module, name, values = pickle.load(stream)
    out = sys.stdout

    def say(message: str, share: float | None) -> None:
        print(_STAGE + json.dumps([message, share]), file=out, flush=True)

    outcome: tuple[str, Any]
    try:
        outcome = "done", getattr(importlib.import_module(module), name)(*values, say=say)
    except UserError as error:
        # One that is made from more than its message does not go through a file.
        kind = UserError if "__init__" in vars(type(error)) else type(error)
        outcome = "raised", kind(str(error))
    except OSError as error:  # a full disk is for the parent to tell
        outcome = "raised", error
    with result.open("wb") as written:
        pickle.dump(outcome, written)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
