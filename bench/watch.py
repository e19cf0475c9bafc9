"""Private and mapped memory of a child process while it runs: what a benchmark reports beside seconds."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Watched:
    """What a child took: seconds, peak private and mapped bytes, and what it printed."""

    seconds: float
    private_bytes: int
    mapped_bytes: int
    output: str


def watch(arguments: list[str], *, every_s: float = 0.02) -> Watched:
    """Run Python with `arguments` and look at its memory until it ends. Linux only (/proc)."""
    started = time.perf_counter()
    child = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True)
    private = mapped = 0
    while child.poll() is None:
        now = _memory(child.pid)
        private, mapped = max(private, now[0]), max(mapped, now[1])
        time.sleep(every_s)
    output = child.stdout.read() if child.stdout else ""
    if child.returncode:
        raise SystemExit(f"the child ended with {child.returncode}: {' '.join(arguments)}\n{output}")
    return Watched(time.perf_counter() - started, private, mapped, output)


def _memory(pid: int) -> tuple[int, int]:
    """(RssAnon, RssFile) of a process in bytes; zeros once it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0, 0
    fields = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
    return 1024 * int(fields.get("RssAnon", 0)), 1024 * int(fields.get("RssFile", 0))
