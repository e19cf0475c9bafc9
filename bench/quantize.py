"""The quantization step itself: seconds and private peak memory.

    python bench/quantize.py [BUNDLE]     # the embedded model as fp32 by default

The step runs as a command in a child whose memory is watched; the limit of 1.2 times the float weights is
printed beside it.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from watch import watch

from seatrial.export.bundle import Bundle, open_bundle
from seatrial.simulate.prepare import ensure_bundle

CODE = "import sys; from seatrial.cli import main; main(sys.argv[1:])"


def step_of_quantization(bundle: Bundle, weights: str) -> None:
    """Time and memory of `seatrial quantize` as a command, from start to exit."""
    with tempfile.TemporaryDirectory() as scratch:
        out = str(Path(scratch) / "out")
        seen = watch(["-c", CODE, "quantize", str(bundle.folder), out, "--weights", weights, "--quiet"])
        print(seen.output)
    limit = 1.2 * bundle.weight_bytes
    print(
        f"{weights}: {seen.seconds:.1f} s, private peak {seen.private_bytes / 1e6:.0f} MB "
        f"(limit {limit / 1e6:.0f} MB), mapped {seen.mapped_bytes / 1e6:.0f} MB\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bundle", nargs="?", type=Path)
    arguments = parser.parse_args()
    bundle = open_bundle(arguments.bundle) if arguments.bundle else ensure_bundle(None, weights="fp32")
    for weights in ("int4", "int8"):
        step_of_quantization(bundle, weights)


if __name__ == "__main__":
    main()
