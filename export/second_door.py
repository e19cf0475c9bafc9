"""optimum's exporter, for models that do not go through transformers' attention interface.

Mixture-of-experts decoders, models with attention of their own, encoders and encoder-decoder models. What
is lost is said: no attention node, so no int8 KV cache and no packed projections. The result is compared
with torch like any other. It knows no architecture; optimum does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from seatrial.errors import UserError
from seatrial.export.bundle import read_json
from seatrial.export.load import first_line
from seatrial.export.other_kernels import OtherKernels
from seatrial.export.parity import Check, token_gaps, token_limits
from seatrial.export.quiet import quiet
from seatrial.export.runner import open_session

LOST = (
    "exported by optimum: no attention node, so no int8 KV cache, no packed projections, and slower decoding"
)
_LENGTHS = (1, 4, 5, 17)


def is_decoder(folder: Path) -> bool:
    """Does the config name a decoder that makes text? Without `architectures` it is taken for one."""
    config = read_json(folder / "config.json")
    names = [str(name) for name in config.get("architectures") or []]
    if config.get("is_encoder_decoder"):
        return False
    return not names or any(name.endswith(("CausalLM", "LMHeadModel")) for name in names)


def export_decoder(folder: Path, out: Path) -> None:
    """`model.onnx` with KV cache, by optimum. Raises UserError when optimum cannot either."""
    _main_export(folder, out, "text-generation-with-past")
    if not (out / "model.onnx").is_file():
        raise UserError(f"optimum wrote no single model.onnx for {folder}")


def export_other(folder: Path, out: Path) -> list[Check]:
    """An encoder or encoder-decoder model, with its parity against torch."""
    config = read_json(folder / "config.json")
    task = "text2text-generation" if config.get("is_encoder_decoder") else "feature-extraction"
    _main_export(folder, out, task)
    return _compare_encoder(
        folder, out, int(config.get("vocab_size") or 1000), bool(config.get("is_encoder_decoder"))
    )


def _main_export(folder: Path, out: Path, task: str) -> None:
    from optimum.exporters.onnx import main_export

    try:
        with quiet():
            main_export(
                str(folder),
                output=out,
                task=task,
                framework="pt",
                do_validation=False,
                local_files_only=True,
                trust_remote_code=False,
            )
    except (
        ValueError,
        OSError,
        KeyError,
        RuntimeError,
        TypeError,
        NotImplementedError,
        AttributeError,
    ) as error:
        raise UserError(
            f"{folder}: neither door takes this model; optimum says: {first_line(error)}"
        ) from error


def _compare_encoder(folder: Path, out: Path, vocabulary: int, encoder_decoder: bool) -> list[Check]:
    """The encoder's hidden state at several lengths; the decoder of a pair is checked through its logits."""
    from transformers import AutoModel, AutoModelForSeq2SeqLM

    kind = AutoModelForSeq2SeqLM if encoder_decoder else AutoModel
    with quiet():
        model: Any = kind.from_pretrained(
            folder,
            dtype=torch.float32,
            local_files_only=True,
            use_safetensors=True,
            attn_implementation="eager",
        ).eval()
    encoder = model.get_encoder() if encoder_decoder else model
    session = open_session(
        (out / ("encoder_model.onnx" if encoder_decoder else "model.onnx")).read_bytes(), out
    )
    rng = np.random.default_rng(5)
    checks = []
    for length in _LENGTHS:
        ids = rng.integers(3, vocabulary, (1, length))
        checks.append(_compare(encoder, session, ids, f"encoder output, {length} tokens"))
        if encoder_decoder:
            checks.append(_compare_pair(model, out, ids, f"logits, {length} tokens"))
    return checks


def _compare(model: Any, session: Any, ids: np.ndarray, name: str) -> Check:
    mask = np.ones_like(ids)
    feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    wanted_names = {value.name for value in session.get_inputs()}
    found = session.run(None, {k: v for k, v in feeds.items() if k in wanted_names})[0]
    given = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)}
    with torch.no_grad():
        wanted = model(**given).last_hidden_state.numpy()
        with OtherKernels(3 / 7):
            other = model(**given).last_hidden_state.numpy()
    return _check(name, found, wanted, other)


def _compare_pair(model: Any, out: Path, ids: np.ndarray, name: str) -> Check:
    from optimum.onnxruntime import ORTModelForSeq2SeqLM

    with quiet():
        runtime = ORTModelForSeq2SeqLM.from_pretrained(out, use_cache=False)
    given = {"input_ids": torch.from_numpy(ids), "decoder_input_ids": torch.from_numpy(ids[:, :3])}
    with torch.no_grad():
        wanted = model(**given).logits.numpy()
        found = runtime(**given, attention_mask=torch.ones_like(given["input_ids"])).logits.numpy()
        with OtherKernels(3 / 7):
            other = model(**given).logits.numpy()
    return _check(name, found, wanted, other)


def _check(name: str, found: np.ndarray, wanted: np.ndarray, other: np.ndarray) -> Check:
    gaps = token_gaps(found, wanted)
    limits = token_limits(np.abs(wanted).max(-1), token_gaps(other, wanted))
    worst = int(np.argmax(gaps / limits))
    figure, limit = float(gaps.flat[worst]), float(limits.flat[worst])
    return Check(name, "ok" if figure <= limit else "fail", figure, limit)
