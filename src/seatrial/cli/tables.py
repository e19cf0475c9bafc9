"""Consoles for tables: the terminal's width, and room enough for whole words where nobody watches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

PIPE_WIDTH = 160
NARROW = 100  # below this many columns a table leaves out what another command tells


def wide_console() -> Console:
    """A console on stdout that does not cut a table to 80 columns when it goes into a file or a pipe."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(width=PIPE_WIDTH, highlight=False)


def table_of_names(console: Console, *columns: str, droppable: str) -> tuple[Table, bool]:
    """A table whose first column is never cut, since a name is there to be copied.

    On a narrow console the column `droppable` is left out; the second value says whether it is there.
    """
    from rich.table import Table

    wide = console.width >= NARROW
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for place, name in enumerate(columns):
        if wide or name != droppable:
            table.add_column(name, no_wrap=place == 0, overflow="fold")
    return table, wide
