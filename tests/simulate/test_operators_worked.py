"""Operators against worked numbers: each graph is priced by shape, and evaluated where a value is stated.

The numbers come from the reference scenario's own arithmetic. Two of them correct their source: an FFN 8 ->
32 -> 8 has 40 biases (not 16), and a SwiGLU block has three matrices (two were counted).
"""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from seatrial.simulate.operator_table import OperatorTable, operator_table
from seatrial.simulate.operators import Call, attention, flops, im2col

FLOAT = TensorProto.FLOAT
CONTRIB = "com.microsoft"


def weight(name: str, *shape: int, values: object = None) -> onnx.TensorProto:
    array = np.zeros(shape, np.float32) if values is None else np.array(values, np.float32)
    return numpy_helper.from_array(array, name)


def declared(name: str, *shape: int) -> onnx.TensorProto:
    """A weight of which only the shape is written: the table never reads its data."""
    tensor = TensorProto(name=name, data_type=FLOAT, dims=shape, data_location=TensorProto.EXTERNAL)
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "elsewhere.data"
    return tensor


def model(nodes: list, inputs: dict, outputs: list[str], weights: list) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, None) for name in outputs],
        initializer=weights,
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def table(folder: Path, made: onnx.ModelProto, **dims: int) -> OperatorTable:
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return operator_table(path, dims)


def run(made: onnx.ModelProto, **inputs: object) -> list:
    return ReferenceEvaluator(made).run(None, {name: np.array(value) for name, value in inputs.items()})


def linear(width: int, out: int, *, tokens: int, bias: bool = True, shared: bool = False) -> onnx.ModelProto:
    make = weight if shared else declared
    weights = [make("w", out, width), *([make("b", out)] if bias else [])]
    node = helper.make_node("Gemm", ["x", *(w.name for w in weights)], ["y"], transB=1)
    return model([node], {"x": (FLOAT, [tokens, width])}, ["y"], weights)


def feed_forward(width: int, inner: int, *, bias: bool) -> onnx.ModelProto:
    weights = [declared("w1", width, inner), declared("w2", inner, width)]
    weights += [declared("b1", inner), declared("b2", width)] if bias else []
    nodes = [
        helper.make_node("Gemm", ["x", "w1", *(["b1"] if bias else [])], ["h"]),
        helper.make_node("Gelu", ["h"], ["a"]),
        helper.make_node("Gemm", ["a", "w2", *(["b2"] if bias else [])], ["y"]),
    ]
    return model(nodes, {"x": (FLOAT, [1, width])}, ["y"], weights)


@pytest.mark.parametrize(
    ("width", "inner", "bias", "parameters"),
    [
        pytest.param(4096, 16384, False, 134_217_728, id="wide"),
        pytest.param(8, 32, True, 552, id="small, 40 of them biases"),
    ],
)
def test_feed_forward_parameters(tmp_path: Path, width: int, inner: int, bias: bool, parameters: int) -> None:
    rows = table(tmp_path, feed_forward(width, inner, bias=bias))
    assert rows.subtotals()["total"]["parameters"] == parameters


def test_thirty_two_feed_forwards(tmp_path: Path) -> None:
    rows = table(tmp_path, feed_forward(4096, 16384, bias=False))
    assert 32 * rows.subtotals()["total"]["parameters"] == 4_294_967_296


def test_share_of_the_biases_in_a_feed_forward(tmp_path: Path) -> None:
    with_bias = table(tmp_path, feed_forward(4096, 16384, bias=True)).subtotals()["total"]["parameters"]
    without = table(tmp_path, feed_forward(4096, 16384, bias=False)).subtotals()["total"]["parameters"]
    assert (with_bias - without) / without == pytest.approx(0.0001526, rel=1e-3)


def test_a_linear_layer_computes_w_x_plus_b() -> None:
    made = linear(3, 2, tokens=1, shared=True)
    made.graph.initializer[0].CopyFrom(weight("w", values=[[1, 0, -1], [0.5, 1, 0]]))
    made.graph.initializer[1].CopyFrom(weight("b", values=[0, 0.5]))
    assert run(made, x=np.array([[1, 2, 3]], np.float32))[0].tolist() == [[-2.0, 3.0]]


def test_a_linear_layer_of_one_token_and_of_many(tmp_path: Path) -> None:
    one = table(tmp_path, linear(768, 3072, tokens=1)).rows[0]
    assert one.parameters == 2_362_368
    assert one.parts is not None
    assert one.parts["products"] == 4_718_592
    assert one.parts["bias"] == 3072
    many = table(tmp_path, linear(768, 3072, tokens=128, bias=False)).rows[0]
    assert many.flops == 603_979_776


def test_a_square_projection(tmp_path: Path) -> None:
    row = table(tmp_path, linear(4096, 4096, tokens=1, bias=False)).rows[0]
    assert row.parameters == 16_777_216
    assert row.stored_bytes / 2 == 33_554_432
    assert 4 * row.stored_bytes / 2 == 128 * 2**20


@pytest.mark.parametrize(("tokens", "expected", "tolerance"), [(1, 0.99951, 1e-4), (256, 227.6, 1e-3)])
def test_intensity_of_a_half_precision_product(
    tmp_path: Path, tokens: int, expected: float, tolerance: float
) -> None:
    made = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        {"x": (TensorProto.FLOAT16, [tokens, 4096])},
        ["y"],
        [
            helper.make_tensor(
                "w", TensorProto.FLOAT16, [4096, 4096], np.zeros((4096, 4096), np.float16).tobytes(), True
            )
        ],
    )
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    assert table(tmp_path, made).rows[0].intensity == pytest.approx(expected, rel=tolerance)


def test_twelve_d_squared_per_block(tmp_path: Path) -> None:
    """Four square projections and a feed-forward of four times the width: 12 D^2 a layer, 2 FLOPs a
    parameter.
    """
    projections = 4 * table(tmp_path, linear(4096, 4096, tokens=1, bias=False)).rows[0].parameters
    inner = table(tmp_path, feed_forward(4096, 16384, bias=False))
    parameters = 32 * (projections + inner.subtotals()["matmul"]["parameters"])
    assert parameters == 6_442_450_944
    assert 2 * parameters == 12_884_901_888


def test_seven_billion_in_three_parts(tmp_path: Path) -> None:
    inner = 32 * table(tmp_path, feed_forward(4096, 16384, bias=False)).subtotals()["matmul"]["parameters"]
    projections = 32 * 4 * table(tmp_path, linear(4096, 4096, tokens=1, bias=False)).rows[0].parameters
    rows = table(tmp_path, lookup(32_000, 4096)).rows[0].parameters
    assert (inner, projections, rows) == (4_294_967_296, 2_147_483_648, 131_072_000)
    assert inner + projections + rows == 6_573_522_944


def lookup(vocabulary: int, width: int) -> onnx.ModelProto:
    node = helper.make_node("Gather", ["table", "ids"], ["y"])
    return model([node], {"ids": (TensorProto.INT64, [1, 1])}, ["y"], [declared("table", vocabulary, width)])


def test_a_lookup_computes_nothing_and_reads_one_row(tmp_path: Path) -> None:
    row = table(tmp_path, lookup(32_000, 4096)).rows[0]
    assert row.flops == 0
    assert row.weight_bytes == 4096 * 4
    assert row.stored_bytes == 131_072_000 * 4


def test_a_swiglu_block_has_three_matrices(tmp_path: Path) -> None:
    width, inner = 4096, round(8 / 3 * 4096)
    names = ("gate", "up", "down")
    weights = [declared("gate", width, inner), declared("up", width, inner), declared("down", inner, width)]
    nodes = [
        helper.make_node("MatMul", ["x", "gate"], ["g"]),
        helper.make_node("MatMul", ["x", "up"], ["u"]),
        helper.make_node("Sigmoid", ["g"], ["s"]),
        helper.make_node("Mul", ["g", "s"], ["a"]),
        helper.make_node("Mul", ["a", "u"], ["m"]),
        helper.make_node("MatMul", ["m", "down"], ["y"]),
    ]
    sums = table(tmp_path, model(nodes, {"x": (FLOAT, [1, width])}, ["y"], weights)).subtotals()
    assert sums["matmul"]["operators"] == len(names)
    assert 32 * sums["matmul"]["parameters"] == pytest.approx(4_294_967_296, rel=1e-4)


GELU_FORMS = {
    "exact": [("Gelu", ["x"], "y", {})],
    "tanh": [("Gelu", ["x"], "y", {"approximate": "tanh"})],
    "sigmoid": [("Mul", ["x", "k"], "s", {}), ("Sigmoid", ["s"], "g", {}), ("Mul", ["x", "g"], "y", {})],
}


def gelu(form: str, size: int = 1) -> onnx.ModelProto:
    nodes = [
        helper.make_node(op, inputs, [out], **attributes) for op, inputs, out, attributes in GELU_FORMS[form]
    ]
    weights = [weight("k", values=1.702)] if form == "sigmoid" else []
    return model(nodes, {"x": (FLOAT, [size])}, ["y"], weights)


@pytest.mark.parametrize(
    ("form", "x", "expected", "tolerance"),
    [
        ("exact", -0.4, -0.1378, 2e-3),
        ("exact", 0.1, 0.0540, 2e-3),
        ("exact", -1.0, -0.158655, 1e-5),
        ("tanh", -1.0, -0.158808, 1e-5),
        ("sigmoid", -1.0, -0.1542, 1e-3),
    ],
)
def test_the_forms_of_gelu_that_are_priced(form: str, x: float, expected: float, tolerance: float) -> None:
    assert run(gelu(form), x=np.array([x], np.float32))[0][0] == pytest.approx(expected, rel=tolerance)


@pytest.mark.parametrize(("form", "steps"), [("exact", 5), ("tanh", 9), ("sigmoid", 6)])
def test_a_gelu_costs_the_steps_of_its_form(tmp_path: Path, form: str, steps: int) -> None:
    assert table(tmp_path, gelu(form, 100)).subtotals()["total"]["flops"] == 100 * steps


def test_the_order_of_a_projection_and_its_activation() -> None:
    """gelu(W x) cancels where W gelu(x) keeps firing."""
    sum_first = [helper.make_node("MatMul", ["w", "x"], ["h"]), helper.make_node("Gelu", ["h"], ["y"])]
    gelu_first = [helper.make_node("Gelu", ["x"], ["h"]), helper.make_node("MatMul", ["w", "h"], ["y"])]
    weights = [weight("w", values=[[1, 1]])]
    results = [
        run(model(nodes, {"x": (FLOAT, [2])}, ["y"], weights), x=np.array([1, -1], np.float32))[0][0]
        for nodes in (sum_first, gelu_first)
    ]
    assert results[0] == 0
    assert results[1] == pytest.approx(0.6827, rel=1e-3)


def test_softmax_takes_the_maximum_away(tmp_path: Path) -> None:
    made = model([helper.make_node("Softmax", ["x"], ["y"])], {"x": (FLOAT, [3])}, ["y"], [])
    values = run(made, x=np.array([12, 0, 0], np.float32))[0]
    assert values == pytest.approx([0.99998771, 6.1441e-6, 6.1441e-6], rel=1e-4)
    assert table(tmp_path, made).rows[0].flops == 15


def test_a_scale_before_a_norm_is_hidden_by_it() -> None:
    """Relative difference of RMSNorm(x / 2) and RMSNorm(x) at eps 1e-5: 1.5 eps."""
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["q"]),
        helper.make_node("ReduceMean", ["q", "axis"], ["m"], keepdims=1),
        helper.make_node("Add", ["m", "eps"], ["e"]),
        helper.make_node("Sqrt", ["e"], ["r"]),
        helper.make_node("Div", ["x", "r"], ["y"]),
    ]
    weights = [
        numpy_helper.from_array(np.array([-1]), "axis"),
        numpy_helper.from_array(np.array(1e-5), "eps"),
    ]
    made = model(nodes, {"x": (TensorProto.DOUBLE, [4])}, ["y"], weights)
    x = np.array([1.0, -1.0, 1.0, 1.0])
    whole, half = run(made, x=x)[0], run(made, x=x / 2)[0]
    assert abs(half / whole - 1) == pytest.approx([1.5e-5] * 4, rel=0.05)


def test_a_convolution_by_im2col(tmp_path: Path) -> None:
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], strides=[1, 1])
    made = model([node], {"x": (FLOAT, [1, 3, 32, 32])}, ["y"], [weight("w", 64, 3, 3, 3)])
    row = table(tmp_path, made).rows[0]
    assert row.output == (1, 64, 32, 32)
    assert row.flops == 3_538_944
    assert row.note == "im2col 1024 x 27"
    call = Call("Conv", ((1, 3, 32, 32), (64, 3, 3, 3)), ((1, 64, 32, 32),), {})
    assert im2col(call) == (32 * 32, 3 * 3 * 3)


def test_attention_of_one_new_token() -> None:
    """4,200 tokens of context, 24 query heads of 128: grouping the KV heads changes bytes, not FLOPs."""
    assert attention(1, 4199, 24, 128, 128)["products"] == 51_609_600


def test_attention_of_a_whole_prompt() -> None:
    full = 28 * attention(4200, 0, 24, 128, 128, causal=False)["products"]
    causal = 28 * attention(4200, 0, 24, 128, 128)["products"]
    assert full == 6_069_288_960_000
    # Half a square leaves half the diagonal out: T (T + 1) / 2 pairs, not T^2 / 2.
    assert causal == 3_034_644_480_000 * 4201 / 4200
    assert full / 2.52e13 == pytest.approx(0.24, abs=0.005)
    assert causal / 2.52e13 == pytest.approx(0.12, abs=0.005)


@pytest.mark.parametrize("kv_heads", [24, 8, 1])
def test_grouped_attention_in_a_graph(tmp_path: Path, kv_heads: int) -> None:
    caches = {f"past_key_values.0.{part}": (FLOAT, [1, kv_heads, "past", 128]) for part in ("key", "value")}
    node = helper.make_node(
        "GroupQueryAttention",
        ["q", "k", "v", *caches, "lengths", "total"],
        ["y", "present.0.key", "present.0.value"],
        domain=CONTRIB,
        num_heads=24,
        kv_num_heads=kv_heads,
    )
    inputs = {
        "q": (FLOAT, [1, 1, 3072]),
        "k": (FLOAT, [1, 1, kv_heads * 128]),
        "v": (FLOAT, [1, 1, kv_heads * 128]),
    }
    inputs |= caches | {"lengths": (TensorProto.INT32, [1]), "total": (TensorProto.INT32, [1])}
    row = table(
        tmp_path, model([node], inputs, ["y", "present.0.key", "present.0.value"], []), past=4199
    ).rows[0]
    assert row.parts is not None
    assert row.parts["products"] == 51_609_600
    assert row.kv_load_bytes == 2 * kv_heads * 4199 * 128 * 4
    assert row.kv_store_bytes == 2 * kv_heads * 128 * 4


def test_a_recurrent_layer_multiplies_input_and_state_with_every_gate() -> None:
    """GRU of two directions, 20 steps, batch 3, 8 in, 16 hidden: three gates."""
    call = Call("GRU", ((20, 3, 8), (2, 48, 8), (2, 48, 16)), ((20, 2, 3, 16),), {})
    parts = flops(call)
    assert parts is not None
    assert parts["products"] == 2 * 20 * 3 * 2 * 48 * (8 + 16)


def test_operators_that_compute_nothing() -> None:
    for op in ("Dropout", "Identity", "Reshape", "Gather", "Transpose"):
        assert flops(Call(op, ((8, 8),), ((8, 8),), {})) == {}
    assert flops(Call("SomethingNew", ((8, 8),), ((8, 8),), {})) is None
