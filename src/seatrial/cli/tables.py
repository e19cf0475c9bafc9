"""Consoles for tables: the terminal's width, and room enough for whole words where nobody watches."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PIPE_WIDTH = 160


def wide_console() -> Console:
    """A console on stdout that does not cut a table to 80 columns when it goes into a file or a pipe."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(width=PIPE_WIDTH, highlight=False)
