"""What commands print: one strict JSON document on stdout, or rich text; everything else on stderr."""

from __future__ import annotations

import json
import math
import sys
from typing import Any


def print_error(message: str) -> None:
    """One line on stderr."""
    print(f"seatrial: {message}", file=sys.stderr)


def strict(value: Any) -> Any:
    """`value` with non-finite floats as None: NaN and Infinity are not JSON.

    Whoever reports such a figure adds the reason beside it.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    return value


def print_json(document: Any) -> None:
    """One strict JSON document on stdout, as UTF-8 whatever the locale."""
    text = json.dumps(strict(document), ensure_ascii=False, indent=2, allow_nan=False)
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()
