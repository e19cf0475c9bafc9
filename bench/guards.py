"""Number and name guards on labelled data: `python bench/guards.py --data DIR [--speed]`.

DIR holds files of the form named in `guard_numbers.py`, `guard_names.py` and `number_specs.py`; a set whose
file is absent is left out. Prints, per set, our guard beside the trivial rule and the rule that flags
everything, then the agreement of the extractor with published cases by language and kind. `--speed` adds the
time of both guards.
"""

from __future__ import annotations

import argparse
import sys
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import guard_names
import guard_numbers
import guard_speed
import number_specs
from guard_scores import table_lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="a folder with the labelled .jsonl files")
    parser.add_argument(
        "--speed", action="store_true", help="time both guards, and the curve over the length"
    )
    arguments = parser.parse_args()
    if arguments.speed:  # first: the evaluation loads the tagger
        for line in chain(guard_names.speed(), guard_speed.lines()):
            print(line, flush=True)
    rows = chain(guard_numbers.evaluate(arguments.data), guard_names.evaluate(arguments.data))
    for line in table_lines(rows):
        print(line, flush=True)
    for line in number_specs.lines(arguments.data):
        print(line, flush=True)


if __name__ == "__main__":
    main()
