"""The quantized cache: scales that come from calibration, what an outlier channel costs, and the two
prefills.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tiny_decoder import VOCABULARY, tiny_bundle

from seatrial.errors import UserError
from seatrial.export.bundle import open_bundle
from seatrial.export.session import Session
from seatrial.export.session_graph import load_graph
from seatrial.quantize.kv_cache import clipped, peaks_of, quantize_cache, scales_from, share_clipped
from seatrial.quantize.tensors import TensorReader

pytestmark = pytest.mark.usefixtures("own_cache")

IDS = np.random.default_rng(3).integers(0, VOCABULARY, 100).tolist()
OUTLIER = np.array([0.02, 0.03, 0.01, 60.0], np.float32)


def in_and_out(values, scale):
    """What a cache with this scale gives back."""
    return np.clip(np.rint(values / scale), -128, 127) * scale


def test_an_outlier_channel_ruins_one_scale_for_all_but_not_one_per_channel():
    row = OUTLIER * [1, -1, 1, 1]
    peaks = {"k": OUTLIER[None]}
    tensor = scales_from(peaks, bits=8, granularity="tensor", headroom=1.0)
    channel = scales_from(peaks, bits=8, headroom=1.0)
    np.testing.assert_allclose(in_and_out(row, tensor.scales["k"]), [0, 0, 0, 60], atol=1e-5)
    np.testing.assert_allclose(in_and_out(row, 1.0), [0, 0, 0, 60])
    assert tensor.warnings and "median channel" in tensor.warnings[0] and not channel.warnings
    steps = channel.scales["k"][0, 0, 0]
    assert (np.abs(in_and_out(row, steps) - row) <= steps / 2 + 1e-9).all()


@given(
    peak=hnp.arrays(np.float32, (2, 8), elements=st.floats(0.0009765625, 1000, width=32)),
    headroom=st.floats(1.0, 3.0),
    bits=st.sampled_from([4, 8]),
)
def test_values_up_to_the_headroom_come_back_within_half_a_step(peak, headroom, bits):
    scales = scales_from({"k": peak}, bits=bits, headroom=headroom).scales["k"][0, :, 0]
    assert (scales > 0).all()
    values = peak * headroom
    assert (np.abs(np.rint(values / scales)) <= 2 ** (bits - 1) - 1).all()
    assert (np.abs(in_and_out(values, scales) - values) <= scales / 2 * 1.001).all()


@pytest.mark.parametrize("peak", [np.zeros((2, 4)), np.full((2, 4), np.nan), np.full((2, 4), np.inf)])
def test_no_scale_is_made_up(peak):
    with pytest.raises(UserError, match="nothing usable in k"):
        scales_from({"k": peak.astype(np.float32)}, bits=8)


def test_a_silent_channel_gets_a_step_too():
    peak = np.array([[0.0, 2.0]], np.float32)
    assert (scales_from({"k": peak}, bits=8).scales["k"] > 0).all()


def with_cache(bundle, folder, kv_bits=8, granularity="channel"):
    """`bundle` with a quantized cache and float weights, so that only the cache differs."""
    model = load_graph(bundle.model_path)
    with Session(bundle, capacity=128, threads=1) as session:
        peaks = peaks_of(session, [IDS])
    changed = quantize_cache(model, scales_from(peaks, bits=kv_bits, granularity=granularity))
    assert changed == 2
    folder.mkdir()
    for file in bundle.folder.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return open_bundle(folder)


@pytest.fixture(scope="module")
def int8(tiny, tmp_path_factory):
    return with_cache(tiny, tmp_path_factory.mktemp("int8") / "bundle")


def test_the_cache_holds_what_the_float_model_would_have_stored(tiny, int8):
    with Session(tiny, capacity=128, threads=1) as plain, Session(int8, capacity=128, threads=1) as coded:
        plain.prefill(IDS)
        coded.prefill(IDS)
        reader = TensorReader(load_graph(int8.model_path), int8.folder)
        assert coded.kv_allocated_bytes * 4 == plain.kv_allocated_bytes
        for name, rows in coded.kv_rows().items():
            scale = reader.read(f"{name}.scale")
            assert rows.dtype == np.int8
            error = np.abs(rows * scale - plain.kv_rows()[name])
            assert (error <= scale * 0.51).all(), (name, error.max())


@pytest.mark.parametrize("weights", ["heap", "mapped"])
def test_prefill_in_float_fills_the_same_cache_as_the_node_itself(int8, weights):
    """In one piece both write what the float model has; in pieces they differ by the rounding of the past."""
    with (
        Session(int8, capacity=128, threads=1, prefill="direct") as direct,
        Session(int8, capacity=128, threads=1, weights=weights) as quick,
    ):
        for session in (direct, quick):
            session.prefill(IDS[:64], chunk=32)
        for name, rows in direct.kv_rows().items():
            difference = np.abs(rows.astype(int) - quick.kv_rows()[name])
            assert difference.max() <= 4 and difference.mean() < 0.5, (name, difference.max())
        one, other = direct.step(7), quick.step(7)
        assert np.abs(one - other).max() < 0.15 * np.abs(one).max()


def test_reading_goes_on_where_a_float_prefill_ended(int8):
    with Session(int8, capacity=128, threads=1) as session:
        session.prefill(IDS[:40])
        session.step(IDS[40])
        whole = session.prefill(IDS[41:80])
        assert session.length == 80
        session.truncate(41)
        again = session.prefill(IDS[41:80], chunk=17)
    # Rows of the same piece attend in float, rows of earlier pieces rounded.
    assert np.abs(whole - again).max() < 0.1 * np.abs(whole).max()


def test_int4_cache_packs_two_values_in_a_byte(tiny, tmp_path):
    coded = with_cache(tiny, tmp_path / "bundle", kv_bits=4)
    with Session(tiny, capacity=128, threads=1) as plain, Session(coded, capacity=128, threads=1) as session:
        wanted, found = plain.prefill(IDS), session.prefill(IDS)
        assert session.kv_allocated_bytes * 8 == plain.kv_allocated_bytes
        assert np.corrcoef(wanted, found)[0, 1] > 0.9


def test_per_tensor_scales_run_too(tiny, tmp_path):
    coded = with_cache(tiny, tmp_path / "bundle", granularity="tensor")
    with Session(tiny, capacity=128, threads=1) as plain, Session(coded, capacity=128, threads=1) as session:
        assert np.corrcoef(plain.prefill(IDS), session.prefill(IDS))[0, 1] > 0.99


def test_clipping_is_counted_while_running(int8):
    with Session(int8, capacity=128, threads=1) as session:
        assert share_clipped(session) == 0.0
        session.prefill(IDS[:50])
        ends = sum(clipped(rows, 8) for rows in session.kv_rows().values())
        assert share_clipped(session) == ends / (2 * 2 * 2 * 32 * 50) < 0.01


def test_values_at_the_ends_are_counted():
    assert clipped(np.array([127, -127, -128, 126, 0], np.int8), 8) == 3
    assert clipped(np.array([0x0F, 0x71, 0x88], np.uint8), 4) == 2


def test_a_graph_without_the_attention_node_is_refused(tmp_path):
    bundle = tiny_bundle(tmp_path / "bundle", grouped=False)
    names = [v.name for v in load_graph(bundle.model_path).graph.input if v.name.startswith("past")]
    scales = scales_from(dict.fromkeys(names, np.ones((2, 32), np.float32)), bits=8)
    with pytest.raises(UserError, match="GroupQueryAttention"):
        quantize_cache(onnx.load(bundle.model_path), scales)
