"""The operator table of whole graphs: shapes by inference, bytes by kind, LoRA pairs, what is unknown."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, defs, helper, numpy_helper

from seatrial.devices.device import load_device
from seatrial.errors import UserError
from seatrial.simulate.contrib_shapes import RULES, contrib_schemas
from seatrial.simulate.operator_table import operator_table

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
CONTRIB = "com.microsoft"


def weight(name: str, *shape: int, kind: type = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.zeros(shape, kind), name)


def save(folder: Path, nodes: list, inputs: dict, outputs: list[str], weights: list) -> Path:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        initializer=weights,
    )
    opsets = [
        helper.make_opsetid("", 20),
        helper.make_opsetid(CONTRIB, 1),
        helper.make_opsetid("some.where", 1),
    ]
    path = folder / "model.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())
    return path


def sentence(folder: Path) -> Path:
    """A lookup, learned positions by a Range over the shape, a norm, a block-quantized product."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"], name="embed"),
        helper.make_node("Shape", ["ids"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["length"]),
        helper.make_node("Range", ["zero", "length", "step"], ["positions"]),
        helper.make_node("Gather", ["learned", "positions"], ["p"], name="learned positions"),
        helper.make_node("Add", ["e", "p"], ["x"]),
        helper.make_node("SimplifiedLayerNormalization", ["x", "g"], ["n"], axis=-1, name="norm"),
        helper.make_node(
            "MatMulNBits",
            ["n", "b", "scales", "zeros"],
            ["y"],
            domain=CONTRIB,
            N=48,
            K=64,
            bits=4,
            block_size=32,
        ),
    ]
    weights = [
        weight("table", 100, 64),
        weight("learned", 32, 64),
        weight("g", 64),
        weight("b", 48, 2, 16, kind=np.uint8),
        weight("scales", 48 * 2),
        weight("zeros", 48, kind=np.uint8),
        *(numpy_helper.from_array(np.array(n), name) for name, n in (("zero", 0), ("one", 1), ("step", 1))),
    ]
    return save(folder, nodes, {"ids": (INT64, ["batch", "sequence"])}, ["y"], weights)


def test_shapes_follow_the_given_dimensions(tmp_path: Path) -> None:
    rows = {row.name: row for row in operator_table(sentence(tmp_path), {"batch": 2, "sequence": 5}).rows}
    assert rows["embed"].output == (2, 5, 64)
    assert rows["learned positions"].output == (5, 64)
    assert rows["learned positions"].weight_bytes == 5 * 64 * 4
    assert rows["norm"].flops == 4 * 2 * 5 * 64


def test_quantized_weights_count_scales_and_zero_points(tmp_path: Path) -> None:
    row = operator_table(sentence(tmp_path), {"batch": 2, "sequence": 5}).rows[-1]
    assert row.op == "MatMulNBits"
    assert row.flops == 2 * 2 * 5 * 64 * 48
    assert row.parameters == 64 * 48
    assert row.weight_bytes == 48 * 2 * 16 + 48 * 2 * 4 + 48


def test_subtotals_are_sums_of_rows(tmp_path: Path) -> None:
    table = operator_table(sentence(tmp_path), {"batch": 2, "sequence": 5})
    sums = table.subtotals()
    kinds = [kind for kind in sums if kind != "total"]
    for name in ("flops", "weight_bytes", "load_bytes", "store_bytes", "parameters"):
        assert sums["total"][name] == sum(sums[kind][name] for kind in kinds)
        assert sums["total"][name] == sum(getattr(row, name) for row in table.rows)


def test_what_binds_on_a_device(tmp_path: Path) -> None:
    table = operator_table(sentence(tmp_path), {"batch": 1, "sequence": 1})
    assert table.rows[-1].bound(load_device("rpi5"), "cpu") == "bandwidth"
    assert table.rows[-1].bound(load_device("rpi5"), "npu") == "unknown"
    many = operator_table(sentence(tmp_path), {"batch": 4000, "sequence": 32})
    assert many.rows[-1].bound(load_device("rpi5"), "cpu") == "compute"


def test_dimensions_that_were_not_given_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--dim sequence=N"):
        operator_table(sentence(tmp_path), {"batch": 1})
    with pytest.raises(UserError, match="batch, sequence"):
        operator_table(sentence(tmp_path), {"batch": 1, "sequence": 1, "width": 3})


def test_the_beginning_of_a_name_will_do_and_sums_follow(tmp_path: Path) -> None:
    inputs = {
        "x": (FLOAT, ["batch_size", "sequence_length", 8]),
        "mask": (FLOAT, ["batch_size", "past_sequence_length + sequence_length"]),
        "c": (FLOAT, ["batch_size", "past_sequence_length"]),
    }
    nodes = [helper.make_node("Identity", [name], [f"{name}2"]) for name in inputs]
    path = save(tmp_path, nodes, inputs, ["x2", "mask2", "c2"], [])
    rows = operator_table(path, {"batch": 1, "seq": 3, "past": 4}).rows
    assert [row.output for row in rows] == [(1, 3, 8), (1, 7), (1, 4)]
    empty = operator_table(path, {"batch": 1, "seq": 3})
    assert empty.rows[1].output == (1, 3)
    assert any("past_sequence_length" in note for note in empty.notes)


def lora(folder: Path, *, rank: int, base: bool) -> Path:
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["d"], name="down"),
        helper.make_node("Mul", ["d", "scale"], ["s"]),
        helper.make_node("MatMul", ["s", "u"], ["l"], name="up"),
        helper.make_node("MatMul", ["x", "w"], ["h"], name="base"),
        helper.make_node("Add", ["h", "l"], ["y"]),
    ]
    weights = [weight("a", 64, rank), weight("u", rank, 96), weight("w", 64, 96), weight("scale", 1)]
    if not base:
        nodes[3:] = [helper.make_node("Relu", ["l"], ["y"])]
    return save(folder, nodes, {"x": (FLOAT, [1, 5, 64])}, ["y"], weights)


def test_lora_pairs_are_told_with_what_merging_saves(tmp_path: Path) -> None:
    table = operator_table(lora(tmp_path, rank=8, base=True), {})
    kinds = {row.name: row.kind for row in table.rows}
    assert (kinds["down"], kinds["up"], kinds["base"]) == ("lora", "lora", "matmul")
    saved = 2 * 5 * (64 * 8 + 8 * 96)
    assert table.subtotals()["lora"]["flops"] == saved
    assert any("1 LoRA pairs" in note and f"{saved:.4g} FLOPs" in note for note in table.notes)


@pytest.mark.parametrize(("rank", "base"), [(8, False), (48, True)])
def test_other_pairs_of_products_are_not_lora(tmp_path: Path, rank: int, base: bool) -> None:
    table = operator_table(lora(tmp_path, rank=rank, base=base), {})
    assert not any(row.kind == "lora" for row in table.rows)


def test_a_shared_table_is_stored_once_and_read_by_both(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"]),
        helper.make_node("Transpose", ["table"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["e", "t"], ["y"]),
    ]
    path = save(tmp_path, nodes, {"ids": (INT64, [1, 2])}, ["y"], [weight("table", 100, 16)])
    sums = operator_table(path, {}).subtotals()["total"]
    assert sums["stored_bytes"] == 100 * 16 * 4
    assert sums["parameters"] == 1600


def test_unknown_operators_leave_a_lower_bound_and_say_so(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Mystery", ["r"], ["m"], domain="some.where", name="mystery"),
        helper.make_node("Relu", ["m"], ["y"], name="after"),
    ]
    table = operator_table(save(tmp_path, nodes, {"x": (FLOAT, [4, 4])}, ["y"], []), {})
    assert [row.flops for row in table.rows] == [16, None, None]
    assert any("mystery" in note and "lower bound" in note for note in table.notes)


def test_batch_norm_and_convolution_after_inference(tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], group=2),
        helper.make_node("BatchNormalization", ["c", "s", "o", "m", "v"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("Dropout", ["r"], ["y"]),
    ]
    weights = [weight("w", 8, 2, 3, 3), weight("b", 8), *(weight(name, 8) for name in "somv")]
    rows = operator_table(save(tmp_path, nodes, {"x": (FLOAT, [1, 4, 6, 6])}, ["y"], weights), {}).rows
    out = 8 * 6 * 6
    assert [row.flops for row in rows] == [2 * out * 2 * 9 + out, 2 * out, out, 0]
    assert rows[3].moved_bytes == 0
    assert rows[3].note == "identity at inference"


def test_the_lent_schemas_are_taken_back() -> None:
    before = {(rule.name, rule.domain): defs.has(rule.name, rule.domain) for rule in RULES}
    with contrib_schemas():
        assert all(defs.has(rule.name, rule.domain) for rule in RULES)
    assert {(rule.name, rule.domain): defs.has(rule.name, rule.domain) for rule in RULES} == before


@pytest.mark.parametrize("content", [b"", b"not onnx at all"])
def test_files_that_are_no_graph_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(UserError):
        operator_table(tmp_path, {})


def test_a_folder_without_a_graph_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"model\.onnx"):
        operator_table(tmp_path, {})
    with pytest.raises(UserError, match="no such file"):
        operator_table(tmp_path / "nowhere.onnx", {})
