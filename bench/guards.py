"""Number and name guards on labelled data: `python bench/guards.py --data DIR`.

DIR holds files of the form named in `guard_numbers.py` and `guard_names.py`; a set whose file is absent is
left out. Prints, per set, our guard beside the trivial rule and the rule that flags everything.
"""

from __future__ import annotations

import argparse
import sys
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import guard_names
import guard_numbers
from guard_scores import table_lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="a folder with the labelled .jsonl files")
    arguments = parser.parse_args()
    rows = chain(guard_numbers.evaluate(arguments.data), guard_names.evaluate(arguments.data))
    for line in table_lines(rows):
        print(line, flush=True)


if __name__ == "__main__":
    main()
