"""Folders as other exporters leave them, made from a tiny bundle: graph, data, settings, a tokenizer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import onnx
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

TEMPLATE = "{% for m in messages %}<s>{{ m.content }}</s>{% endfor %}"


def as_genai_builder_leaves(bundle: Path, folder: Path, *, int4: bool = False) -> Path:
    """The form of onnxruntime-genai's builder: the width of a head is a name and not a figure, settings are
    in genai_config.json alone, int4 weights are packed by onnxruntime's own quantizer.
    """
    folder.mkdir()
    model = onnx.load(bundle / "model.onnx")
    for value in (*model.graph.input, *model.graph.output):
        dims = value.type.tensor_type.shape.dim
        if value.name.startswith(("past_key_values.", "present.")):
            dims[3].ClearField("dim_value")
            dims[3].dim_param = "kv_cache_dim"
    if int4:
        quantizer = MatMulNBitsQuantizer(model, block_size=32, is_symmetric=True, accuracy_level=4)
        quantizer.process()
        model = quantizer.model.model
    onnx.save(model, folder / "model.onnx", save_as_external_data=True, location="model.onnx.data")
    shutil.copyfile(bundle / "genai_config.json", folder / "genai_config.json")
    write_tokenizer(folder)
    return folder


def write_tokenizer(folder: Path) -> None:
    """Bytes as tokens, with the begin and end that the tiny models' configs name (1 and 2)."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = {"<pad>": 0, "<s>": 1, "</s>": 2} | {char: 3 + place for place, char in enumerate(alphabet)}
    tokenizer = Tokenizer(models.BPE(words, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in ("<pad>", "<s>", "</s>")])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"chat_template": TEMPLATE, "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
