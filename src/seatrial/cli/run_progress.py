"""What `seatrial run` shows while it works, on stderr: stages, a bar for prompt and summary, the draft.

On a terminal the draft runs above the bar and is printed once more, dimmed, when it is whole; elsewhere
(a log) only plain lines are written. The clocks are the device's (virtual) and this machine's.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.text import Text

from seatrial.simulate.job import Hooks, Silent

_DRAFT_LINES = 6


def told(quiet: bool) -> Progress | Quiet:
    """The hooks for `--quiet` or not."""
    return Quiet() if quiet else Progress(Console(stderr=True, highlight=False))


class Quiet(Silent):
    """Tells nothing, but can be used as a context like `Progress`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


class Progress(Hooks):
    """Stages, bars and the draft on one console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._bars: Bars | None = None
        self._draft = ""
        self._task_name = ""
        self._task = 0
        self._host_s = self._device_s = 0.0
        self._stage = ""

    def stage(self, text: str, share: float | None = None) -> None:
        if share is not None:
            self._advance(text, share, 1.0, f"{share:4.0%}")
            return
        if text != self._stage:
            self._finish()
            self._stage = text
            self._console.print(Text(f"· {text}", style="dim"))

    def note(self, text: str) -> None:
        self._finish()
        self._console.print(Text(f"! {text}", style="yellow"))

    def prefill(self, done: int, of: int, host_s: float, device_s: float) -> None:
        rate = done / host_s if host_s > 0 else 0.0
        told = f"{done}/{of} tok  {rate:5.0f} tok/s  host {host_s:5.1f} s  device {device_s:6.2f} s"
        self._advance("reading", done, of, told)

    def token(self, piece: str, index: int, of: int, host_s: float, device_s: float) -> None:
        if index == 1:
            self._finish()
            self._draft, self._host_s, self._device_s = "", 0.0, 0.0
        self._draft += piece
        self._host_s += host_s
        self._device_s += device_s
        rate = index / self._host_s if self._host_s > 0 else 0.0
        told = (
            f"{index}/{of} tok  {rate:5.0f} tok/s  host {self._host_s:5.1f} s  device {self._device_s:6.2f} s"
        )
        self._advance("writing", index, of, told)

    def _advance(self, name: str, done: float, of: float, told: str) -> None:
        if not self._console.is_terminal:
            self._plain(name, told)
            return
        if self._live is None or name != self._task_name:
            self._finish()
            self._begin(name, of)
        assert self._bars is not None
        assert self._live is not None
        self._bars.update(self._task, completed=done, total=of, told=told)  # type: ignore[arg-type]
        self._live.update(self._view())

    def _plain(self, name: str, told: str) -> None:
        """In a log a bar is one line, written when the next thing begins."""
        if name != self._task_name and not self._draft:
            self._finish()
        self._task_name, self._last = name, told

    def _begin(self, name: str, of: float) -> None:
        self._task_name = name
        self._bars = Bars(
            TextColumn("{task.description:<8}"),
            BarColumn(bar_width=8),
            TextColumn("{task.fields[told]}"),
            TimeRemainingColumn(compact=True),
            console=self._console,
            speed_estimate_period=120,
        )
        self._task = self._bars.add_task(name, total=of, told="")
        self._live = Live(self._view(), console=self._console, transient=True, refresh_per_second=8)
        self._live.start()

    def _view(self) -> Group:
        assert self._bars is not None
        lines = Text(self._draft, style="dim").wrap(self._console, max(20, self._console.width))
        return Group(*lines[-_DRAFT_LINES:], self._bars)

    def _finish(self) -> None:
        """Closes the bar: its last state stays as one line, the draft as text."""
        name, told = self._task_name, getattr(self, "_last", "")
        if self._live is not None and self._bars is not None:
            told = str(self._bars.tasks[0].fields["told"])
            self._live.stop()
        self._live = self._bars = None
        self._task_name, self._last = "", ""
        if self._draft:
            self._console.print(Text(self._draft.strip(), style="dim"))
            self._draft = ""
        if name and told:
            self._console.print(Text(f"  {name:<8} {told}", style="dim"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finish()
