"""seatrial: dry-run a small language model on a device before you ship it."""

__version__ = "0.1.0"
