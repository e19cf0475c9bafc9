"""The measured tables of docs/quantization.md, for the embedded model.

    python bench/quantize_page.py curve        # size, damage and speed of ten settings
    python bench/quantize_page.py split        # what of int8's damage comes from where, and what was tried
    python bench/quantize_page.py algorithms   # round-to-nearest, k_quant, HQQ, GPTQ: time, size, damage

Each prints its table and puts it into the page; `--dry` only prints. Speeds are those of the moment: read
them as ratios within a table. KL in nats and the share of equal top tokens, against the float bundle, on
text that nothing was calibrated on; "both" counts every token of the two languages once.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from seatrial.export.bundle import Bundle, open_bundle
from seatrial.export.session import Session
from seatrial.export.session_graph import load_graph
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.agreement import ROWS, kl_rows, log_softmax
from seatrial.quantize.bundle import quantize_bundle
from seatrial.quantize.curve import Point, curve
from seatrial.quantize.recipe import Recipe, recipe_for
from seatrial.quantize.texts import LANGUAGES, evaluation_text
from seatrial.simulate.prepare import ensure_bundle

PAGE = Path(__file__).resolve().parents[1] / "docs" / "quantization.md"
END = "<!-- end of table -->"
MARGINS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 1.0)


@dataclass(frozen=True)
class Read:
    """What a candidate said at every token of one language, beside the float bundle."""

    kl: NDArray[np.float64]
    same: NDArray[np.bool_]
    margin: NDArray[np.float32]  # of the float bundle: best less second best probability


class Yardstick:
    """The float bundle, read once for every candidate."""

    def __init__(self, bundle: Bundle) -> None:
        tokenizer = Tokenizer.load(bundle.folder)
        self.ids = {language: tokenizer.encode(evaluation_text(language)) for language in LANGUAGES}
        self.capacity = max(map(len, self.ids.values()))
        with Session(bundle, capacity=self.capacity, weights="mapped") as session:
            self.logits = {language: session.score(ids, chunk=ROWS) for language, ids in self.ids.items()}

    def read(self, candidate: Bundle) -> dict[str, Read]:
        with Session(candidate, capacity=self.capacity, prefill="direct") as session:
            return {language: self._read(session, language) for language in LANGUAGES}

    def _read(self, session: Session, language: str) -> Read:
        parts, at = [], 0
        for rows in session.score_chunks(self.ids[language], chunk=ROWS):
            wanted = self.logits[language][at : at + len(rows)]
            best = np.partition(np.exp(log_softmax(wanted)), -2, axis=-1)[:, -2:]
            same = wanted.argmax(-1) == rows.argmax(-1)
            parts.append((kl_rows(wanted, rows), same, best[:, 1] - best[:, 0]))
            at += len(rows)
        kl, same, margin = (np.concatenate(part) for part in zip(*parts, strict=True))
        return Read(kl, same, margin)


def row(name: str, found: dict[str, Read], *more: str) -> str:
    """One line of a table: KL and same top tokens of each language and of both."""
    reads = [*found.values()]
    both = [np.concatenate([getattr(read, part) for read in reads]) for part in ("kl", "same")]
    columns = [(read.kl, read.same) for read in reads] + [(both[0], both[1])]
    cells = [f"{kl.mean():.4f} | {same.mean():.3f}" for kl, same in columns]
    return f"| {' | '.join([name, *more, *cells])} |"


def head(*names: str) -> list[str]:
    columns = [f"{figure} {which}" for which in (*LANGUAGES, "both") for figure in ("KL", "top")]
    return [f"| {' | '.join([*names, *columns])} |", "|---" * (len(names) + len(columns)) + "|"]


def curve_table(fp32: Bundle, scratch: Path) -> list[str]:
    """Ten settings, smallest first, with an int8 cache."""
    points = curve(fp32, kv="int8", folder=scratch, progress=_say)
    print(json.dumps([point.to_json() for point in points], indent=1), file=sys.stderr)
    lines = ["| setting | MB | KL en | KL zh | top en | top zh | tokens/s |", "|---|---|---|---|---|---|---|"]
    return lines + [_curve_row(point) for point in points]


def _curve_row(point: Point) -> str:
    en, zh = (point.agreement[language] for language in LANGUAGES)
    return (
        f"| {point.name} | {point.size_bytes / 1e6:.1f} | {en.kl:.4f} | {zh.kl:.4f} | {en.same_top1:.3f} "
        f"| {zh.same_top1:.3f} | {point.tokens_per_s:.0f} |"
    )


def split_table(fp32: Bundle, scratch: Path) -> list[str]:
    """Weights, activations and cache alone; balancing; block sizes; then where the flips lie."""
    yardstick, int8 = Yardstick(fp32), recipe_for("int8")
    uneven = replace(int8, balanced=False)
    settings: list[tuple[str, Recipe | None, str, int]] = [
        ("int8 KV cache alone", None, "int8", 4),
        ("int8 weights alone, not balanced", uneven, "fp32", 1),
        ("and activations, not balanced", uneven, "fp32", 4),
        ("int8 weights alone, balanced", int8, "fp32", 1),
        ("and activations, balanced", int8, "fp32", 4),
        ("and cache, not balanced", uneven, "int8", 4),
        ("**and cache, balanced (default)**", int8, "int8", 4),
        ("the same, zero points", recipe_for("int8", symmetric=False), "int8", 4),
        ("the same, blocks of 16", recipe_for("int8", block=16), "int8", 4),
        ("the same, blocks of 64", recipe_for("int8", block=64), "int8", 4),
        ("the same, blocks of 128", recipe_for("int8", block=128), "int8", 4),
    ]
    lines = [*head("setting"), row("float, other packing", yardstick.read(fp32))]
    default: dict[str, Read] = {}
    for place, (name, recipe, kv, level) in enumerate(settings):
        made = _made(fp32, scratch / str(place), recipe, kv)
        _set_level(made, level)
        found = yardstick.read(made)
        default = found if "default" in name else default
        lines.append(row(name, found))
        print(lines[-1], file=sys.stderr)
    return [*lines, "", *_by_margin(default)]


def _made(fp32: Bundle, out: Path, recipe: Recipe | None, kv: str) -> Bundle:
    weights = "fp32" if recipe is None else "int8" if recipe.body.bits == 8 else "int4"
    result = quantize_bundle(fp32, out, weights=weights, kv=kv, recipe=recipe)
    if result.failed:
        raise SystemExit(f"{out.name} failed its checks: {[c for c in result.checks if c.verdict != 'ok']}")
    return open_bundle(out, check_hashes=False)


def _set_level(bundle: Bundle, level: int) -> None:
    """Level 1 multiplies rounded weights with float activations, 4 rounds these too."""
    model = load_graph(bundle.model_path)
    for node in model.graph.node:
        for attribute in node.attribute:
            if attribute.name == "accuracy_level":
                attribute.i = level
    bundle.model_path.write_bytes(model.SerializeToString())


def _by_margin(found: dict[str, Read]) -> list[str]:
    """Where top tokens change: by how far the float model's first choice was ahead."""
    lines = [
        "| margin of the float model | tokens en | same top en | tokens zh | same top zh |",
        "|---" * 5 + "|",
    ]
    for low, high in pairwise(MARGINS):
        cells = []
        for read in found.values():
            inside = (read.margin >= low) & (read.margin < high)
            cells.append(f"{inside.sum()} | {read.same[inside].mean():.3f}")
        lines.append(f"| {low:g} to {high:g} | {' | '.join(cells)} |")
    return lines


def algorithms_table(fp32: Bundle, scratch: Path) -> list[str]:
    """int4 bodies with an 8-bit head and a float cache, each algorithm once."""
    yardstick = Yardstick(fp32)
    lines = head("setting", "s", "MB")
    settings = [
        ("rtn", True),
        ("rtn", False),
        ("gptq", True),
        ("gptq", False),
        ("k_quant", False),
        ("hqq", False),
    ]
    for algorithm, symmetric in settings:
        recipe = recipe_for("int4", algorithm=algorithm, symmetric=symmetric)
        started = time.perf_counter()
        out = scratch / f"{algorithm}-{symmetric}"
        result = quantize_bundle(fp32, out, weights="int4", kv="fp32", recipe=recipe, floor=0.0)
        spent_s = time.perf_counter() - started - result.seconds["measuring"]
        zeros = "symmetric" if symmetric else "zero points"
        name = f"{algorithm}, {'float zero points' if algorithm == 'hqq' else zeros}"
        megabytes = result.sizes["quantized"] / 1e6
        found = yardstick.read(open_bundle(out, check_hashes=False))
        lines.append(row(name, found, f"{spent_s:.1f}", f"{megabytes:.1f}"))
        print(lines[-1], file=sys.stderr)
    return lines


def _say(what: str, _share: float | None) -> None:
    if what.startswith("measured"):
        print(what, file=sys.stderr)


def into_page(what: str, lines: Sequence[str]) -> None:
    """Replace the table between its markers."""
    begin = f"<!-- table: python bench/quantize_page.py {what} -->"
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(begin)
    PAGE.write_text(
        f"{before}{begin}\n\n{chr(10).join(lines)}\n\n{END}{rest.split(END, 1)[1]}", encoding="utf-8"
    )


def main() -> None:
    tables: dict[str, Callable[[Bundle, Path], list[str]]] = {
        "curve": curve_table,
        "split": split_table,
        "algorithms": algorithms_table,
    }
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=list(tables))
    parser.add_argument("--dry", action="store_true", help="print only")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        lines = tables[arguments.what](ensure_bundle(None, weights="fp32"), Path(scratch))
    print("\n".join(lines))
    if not arguments.dry:
        into_page(arguments.what, lines)


if __name__ == "__main__":
    main()
