"""Traditional and simplified characters, place for place, so that spans stay."""

from __future__ import annotations

import re

from seatrial.guards.names.lac_files import traditional_to_simplified

HAN = re.compile(r"[\u3400-\u9fff]")


def simplified(text: str) -> str:
    """`text` with traditional characters replaced one by one."""
    return text.translate(traditional_to_simplified()) if HAN.search(text) else text
