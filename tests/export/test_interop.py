"""Bundles run in other engines, and folders of other exporters are opened and verified here."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnxruntime_genai as og
import pytest
import torch
from tiny_exports import Made

from seatrial.export.bundle import open_bundle
from seatrial.export.graph_file import read_graph_file
from seatrial.export.load import load_torch
from seatrial.export.quiet import quiet
from seatrial.export.runner import GraphRunner
from seatrial.export.source import resolve
from seatrial.export.verify import verify_bundle

PROMPT, NEW = [5, 77, 310, 12, 900, 41], 12


def torch_greedy(source: Path) -> list[int]:
    model = load_torch(resolve(source), source).model
    with torch.no_grad(), quiet():
        out = model.generate(torch.tensor([PROMPT]), max_new_tokens=NEW, do_sample=False, eos_token_id=None)
    return out[0, len(PROMPT) :].tolist()


def test_optimum_runs_our_bundle(llama: Made) -> None:
    from optimum.onnxruntime import ORTModelForCausalLM

    with quiet():
        model = ORTModelForCausalLM.from_pretrained(llama.bundle, use_io_binding=False)
        out = model.generate(
            input_ids=torch.tensor([PROMPT]),
            attention_mask=torch.ones(1, len(PROMPT), dtype=torch.int64),
            max_new_tokens=NEW,
            do_sample=False,
            eos_token_id=None,
        )
    assert out[0, len(PROMPT) :].tolist() == torch_greedy(llama.source)


def test_genai_runs_our_bundle(llama: Made) -> None:
    model = og.Model(str(llama.bundle))
    settings = og.GeneratorParams(model)
    settings.set_search_options(max_length=len(PROMPT) + NEW, do_sample=False)
    generator = og.Generator(model, settings)
    generator.append_tokens(np.array(PROMPT, dtype=np.int32))
    found = []
    while not generator.is_done() and len(found) < NEW:
        generator.generate_next_token()
        found.append(int(generator.get_next_tokens()[0]))
    expected = torch_greedy(llama.source)
    assert found == expected[: len(found)] and len(found) >= 1


@pytest.fixture(scope="module")
def optimum_folder(families: dict[str, Made], tmp_path_factory: pytest.TempPathFactory) -> Path:
    from optimum.exporters.onnx import main_export

    out = tmp_path_factory.mktemp("optimum")
    task = "text-generation-with-past"
    with quiet():
        main_export(str(families["llama"].source), out, task=task, do_validation=False, local_files_only=True)
    return out


def test_a_folder_of_optimum_is_opened_and_verified(llama: Made, optimum_folder: Path) -> None:
    bundle = open_bundle(optimum_folder)
    assert (bundle.kv.layers, bundle.kv.kv_heads, bundle.kv.head_dim) == (2, 2, 16)
    found = verify_bundle(resolve(llama.source), optimum_folder)
    assert [fault for fault in found.faults if fault.kind != "tied embedding stored twice"] == []


def test_a_folder_in_the_layout_of_the_genai_builder(llama: Made, tmp_path: Path) -> None:
    """Graph, data and genai_config.json, and no config.json: what that builder leaves."""
    for name in ("model.onnx", "model.onnx.data", "genai_config.json"):
        shutil.copyfile(llama.bundle / name, tmp_path / name)
    bundle = open_bundle(tmp_path)
    assert bundle.config["num_key_value_heads"] == 2 and bundle.config["vocab_size"] == 1024
    assert bundle.config["eos_token_id"] == [2]
    ran = GraphRunner(read_graph_file(bundle.model_path)).run(np.array([PROMPT]))
    assert ran.logits.shape == (1, len(PROMPT), 1024)
    assert verify_bundle(resolve(llama.source), tmp_path).faults == []
