"""Where downloaded and derived files are kept between runs.

Pure paths: it creates the folder and nothing else, and knows no model.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from seatrial.errors import UserError

VARIABLE = "SEATRIAL_CACHE"


def cache_folder() -> Path:
    """The cache folder, created when missing: $SEATRIAL_CACHE, else `seatrial` in the user's cache folder.

    Raises UserError when it cannot be made.
    """
    named = os.environ.get(VARIABLE)
    folder = Path(named).expanduser().absolute() if named else _user_cache() / "seatrial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"cannot make the cache folder {folder}: {error.strerror}; set {VARIABLE} to a writable folder"
        ) from error
    return folder


def _user_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
