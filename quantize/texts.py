"""The package's own short texts: some to calibrate on, others to measure with. They share no sentence."""

from __future__ import annotations

from importlib.resources import files

LANGUAGES = ("en", "zh")


def calibration_text(language: str) -> str:
    """Text to set scales with: minutes, prose, a letter, a little code."""
    return _read(f"calibration_{language}.txt")


def evaluation_text(language: str) -> str:
    """Text to measure with; never used for calibration."""
    return _read(f"evaluation_{language}.txt")


def _read(name: str) -> str:
    return files("seatrial.quantize").joinpath(name).read_text(encoding="utf-8")
