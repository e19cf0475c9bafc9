"""A progress line on stderr for steps that tell what they do and how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_AVERAGED_S = 600
Report = Callable[[str, float | None], None]  # what is going on, and the share done in [0, 1] where known


def _silent(_what: str, _share: float | None) -> None:
    """Progress that nobody wants to see."""


@contextmanager
def stage_progress(quiet: bool = False) -> Iterator[Report]:
    """A function to report progress with; one bar with its time left per stage, none when `quiet`."""
    if quiet:
        yield _silent
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskID,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    # The speed is averaged over minutes: steps of one stage may differ tenfold, and take turns.
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, speed_estimate_period=_AVERAGED_S) as bars:
        tasks: dict[str, TaskID] = {}

        def report(what: str, share: float | None) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=None if share is None else 1.0)
            bars.update(tasks[what], total=None if share is None else 1.0, completed=share or 0.0)

        yield report
