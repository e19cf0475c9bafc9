"""What GPTQ needs to know of a model: second moments of the inputs of every matmul, over calibration text.

The graph runs with those inputs as further outputs. Only their sums of outer products are kept, as float32,
which for a model of hidden size 576 and 30 layers is 400 MB: GPTQ is the one algorithm that does not stay
near the size of a single matrix.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import NDArray

from seatrial.export.bundle import Bundle
from seatrial.export.runtime import open_session, session_options
from seatrial.export.session import usable_cpus
from seatrial.export.session_graph import load_graph
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.reading import empty_inputs
from seatrial.quantize.targets import survey
from seatrial.quantize.texts import LANGUAGES, calibration_text

# Read in pieces of this length: their activations are in memory all at once.
PIECE, PIECES = 128, 4


def second_moments(bundle: Bundle, threads: int | None = None) -> dict[str, NDArray[np.float32]]:
    """sum(x x^T), (K, K), by the name of a matmul's input."""
    model = load_graph(bundle.model_path)
    wanted = sorted({t.node.input[0] for t in survey(model).targets if t.group != "head"})
    present = {output.name for output in model.graph.output}
    for name in wanted:
        if name not in present:
            model.graph.output.append(onnx.ValueInfoProto(name=name))
    options = session_options(threads or usable_cpus())
    options.add_session_config_entry("session.disable_prepacking", "1")
    engine = open_session(model.SerializeToString(), options, bundle.folder)
    moments: dict[str, NDArray[np.float32]] = {}
    for ids in _pieces(bundle):
        for name, values in zip(wanted, engine.run(wanted, empty_inputs(engine, ids)), strict=True):
            rows = values.reshape(-1, values.shape[-1]).astype(np.float32, copy=False)
            moments[name] = moments.get(name, np.float32(0)) + rows.T @ rows
    return moments


def balanced_moments(
    moments: Mapping[str, NDArray[np.float32]], factors: Mapping[str, NDArray[np.float64]]
) -> dict[str, NDArray[np.float32]]:
    """The moments of inputs that were divided by `factors` (K,)."""
    return {
        name: (values / np.outer(factors[name], factors[name])).astype(np.float32)
        if name in factors
        else values
        for name, values in moments.items()
    }


def _pieces(bundle: Bundle) -> list[list[int]]:
    tokenizer = Tokenizer.load(bundle.folder)
    texts = [tokenizer.encode(calibration_text(language)) for language in LANGUAGES]
    return [ids[at : at + PIECE] for ids in texts for at in range(0, min(len(ids), PIECE * PIECES), PIECE)]
