"""From `--weights mixed --target-mb N` or `--target-kl X` to a recipe: sizes from the graph, harm from a
measurement.

Head and embedding keep 8 bits: 4 there cost most for the fewest bytes.
"""

from __future__ import annotations

from dataclasses import replace

import onnx

from seatrial.errors import UserError
from seatrial.export.bundle import Bundle
from seatrial.export.session_graph import load_graph, tensor_bytes
from seatrial.quantize.mixed import Choice, Group, by_kl, by_size, recipe_of
from seatrial.quantize.recipe import Format, Recipe, recipe_for
from seatrial.quantize.sensitivity import groups_of, measure_sensitivity
from seatrial.quantize.targets import Survey, survey
from seatrial.quantize.tensors import PAGE_BYTES, TensorReader
from seatrial.quantize.weights import Progress, tie_copies

MEGABYTE = 1_000_000


def plan_mixed(
    bundle: Bundle,
    *,
    target_mb: float | None = None,
    target_kl: float | None = None,
    base: Recipe | None = None,
    progress: Progress | None = None,
) -> tuple[Recipe, Choice]:
    """The recipe for a size in MB (graph and data together) or a KL in nats; exactly one must be given."""
    if (target_mb is None) == (target_kl is None):
        raise UserError("mixed weights need one target: --target-mb for a size or --target-kl for a loss")
    base = base or recipe_for("int4")
    low, high = base.body, replace(base.body, bits=8, algorithm=_eight_bit_algorithm(base.body))
    groups, fixed_bytes = _groups(bundle, base, low, high, progress)
    if target_mb is not None:
        choice = by_size(groups, int(target_mb * MEGABYTE) - fixed_bytes)
    else:
        choice = by_kl(groups, float(target_kl or 0.0))
    return recipe_of(choice, base, high), choice


def _eight_bit_algorithm(body: Format) -> str:
    """Eight bits are near enough without a search; the search would cost time and nothing else."""
    return "rtn" if body.algorithm in ("hqq", "gptq") else body.algorithm


def _groups(
    bundle: Bundle, base: Recipe, low: Format, high: Format, progress: Progress | None
) -> tuple[list[Group], int]:
    """Groups of the body, and the bytes that no choice changes."""
    model = load_graph(bundle.model_path)
    found = survey(model)
    tie_copies(found, TensorReader(model, bundle.folder))
    sensitivity = measure_sensitivity(bundle, low, balanced=base.balanced, progress=progress)
    groups = []
    for name, targets in groups_of(found).items():
        if name == "head":
            continue
        sizes = [sum(f.bytes_for(t.rows, t.width) for t in targets) for f in (low, high)]
        groups.append(Group(name, sizes[0], sizes[1], sensitivity.kl[name]))
    return groups, _fixed_bytes(model, found, base.head)


def _fixed_bytes(model: onnx.ModelProto, found: Survey, head: Format) -> int:
    """Head, embedding, everything that stays float, the graph itself and the padding to pages."""
    # A head that was a copy of the embedding is no longer read, whatever the graph still says.
    body = {t.weight for t in found.targets if t.group != "head"} | {t.node.input[1] for t in found.targets}
    heads = {(t.weight, t.rows, t.width) for t in found.targets if t.group == "head"}
    shared = heads | {(table.weight, table.rows, table.width) for table in found.tables}
    outer = {name for name, _, _ in shared}
    floats = sum(tensor_bytes(t) for t in model.graph.initializer if t.name not in body | outer)
    graph = model.ByteSize()
    padding = PAGE_BYTES * 2 * len(found.targets)
    return sum(head.bytes_for(rows, width) for _, rows, width in shared) + floats + graph + padding
