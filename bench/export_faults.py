"""Runs the suite of faults and writes docs/faults.md, or tries every fault in every family.

    python bench/export_faults.py --write          the table of the documentation
    python bench/export_faults.py --all --seed 7   every fault in every family, with other places

The tiny models are those of the tests.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "export"))

from tiny_exports import make_all  # noqa: E402
from tiny_models import FAMILIES  # noqa: E402
from verifying import Verifier, draw  # noqa: E402

from seatrial.export.faults.mutations.suite import SUITE  # noqa: E402
from seatrial.export.faults.table import DOCUMENT, Row, place_fault, render  # noqa: E402

TABLE_SEED = 20  # the one that the tests use


def main() -> None:
    """Parse, run, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="write docs/faults.md")
    parser.add_argument(
        "--all", action="store_true", help="every fault in every family that has a place for it"
    )
    parser.add_argument("--seed", type=int, default=TABLE_SEED)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        verifier = Verifier(make_all(Path(folder)))
        rows = _every(verifier, asked.seed) if asked.all else _drawn(verifier, asked.seed)
    _summary(rows)
    if asked.write:
        (ROOT / DOCUMENT).parent.mkdir(exist_ok=True)
        (ROOT / DOCUMENT).write_text(render(rows), encoding="utf-8")


def _drawn(verifier: Verifier, seed: int) -> list[Row]:
    return [
        place_fault(verifier, list(FAMILIES), number, draw(entry[0], seed))
        for number, entry in enumerate(SUITE)
    ]


def _every(verifier: Verifier, seed: int) -> list[Row]:
    rows = []
    for family in FAMILIES:
        alarms = verifier(family).faults
        print(f"{family}: clean, {len(alarms)} false alarms", flush=True)
        for number, entry in enumerate(SUITE):
            try:
                rows.append(place_fault(verifier, [family], number, draw(entry[0] + family, seed)))
            except LookupError:
                continue
            if not rows[-1].named:
                print(f"  {rows[-1]}", flush=True)
    return rows


def _summary(rows: list[Row]) -> None:
    detected, named = sum(row.detected for row in rows), sum(row.named for row in rows)
    print(
        f"{len(rows)} faults: {detected} detected, "
        f"{named} named with kind and place ({named / len(rows):.1%})"
    )


if __name__ == "__main__":
    main()
