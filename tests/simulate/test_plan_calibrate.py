"""A runtime from stepping bundles: known machines come back, and a real bundle is stepped on this one."""

import pytest

from seatrial.devices.device import device_from_table
from seatrial.devices.runtime import runtime_from_table
from seatrial.errors import UserError
from seatrial.export.architecture import architecture_of_config
from seatrial.export.bundle import Bundle
from seatrial.simulate.calibrate import PROMPT, Calibration, calibrate, measured_runtime, shared_terms
from seatrial.simulate.cost import model_cost
from seatrial.simulate.predict import decode_seconds, memory_use, prefill_seconds

CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 30,
    "hidden_size": 576,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "intermediate_size": 1536,
    "vocab_size": 49152,
    "tie_word_embeddings": True,
}
DEVICE = device_from_table(
    "here",
    {
        "name": "here",
        "vendor": "none",
        "chip": "none",
        "class": "desktop",
        "confidence": "measured",
        "runtime": "measured",
        "memory": {"total": "16GB", "source": "test"},
        "system": {"reserved": "1GB", "source": "test"},
        "bandwidth": {"measured": {"value": "40GB/s", "kind": "read", "source": "test"}},
        "compute": {"cpu": {"nominal": "300GFLOPS", "precision": "fp32", "source": "test"}},
    },
)


def made_up(weights: str, kv: str) -> Calibration:
    """A machine of 47 GB/s for weights, 26 GB/s for KV, 2.2 ms a step, 100 and 30 GFLOPS in a prompt."""
    cost = model_cost(architecture_of_config(CONFIG, name="test"), weights=weights, kv=kv)
    steps = {
        context: 0.0022 + cost.weight_bytes_per_token / 47e9 + cost.kv_read_bytes(context) / 26e9
        for context in (128, 4096)
    }
    prompts = {}
    for past in (0, 3584):
        attention = cost.attention_flops(PROMPT, past)
        prompts[past] = (cost.prefill_flops(PROMPT, past) - attention) / 100e9 + attention / 30e9
    return Calibration(
        weights=weights,
        kv=kv,
        step_s=steps,
        prompt_s=prompts,
        noise=1.05,
        imported_bytes=40_000_000,
        loaded_bytes=40_000_000 + round(1.2 * cost.weight_bytes),
        cache_bytes=round(cost.kv_stored(4096).total),
        peak_bytes=round(60_000_000 + 1.2 * cost.weight_bytes + cost.kv_stored(4096).total),
        far_peak_bytes=round(60_000_000 + 1.2 * cost.weight_bytes + cost.kv_stored(4096).total),
        cost=cost,
    )


PAIRS = [("fp32", "fp32"), ("int8", "fp32"), ("int4", "fp32"), ("int4", "int8")]


def test_a_known_machine_comes_back() -> None:
    found = [made_up(*pair) for pair in PAIRS]
    runtime = runtime_from_table("mine", measured_runtime(DEVICE, found, date="2026-01-02", ops=300e9))
    assert runtime.decode.step_s == pytest.approx(0.0022, rel=1e-6)
    assert runtime.decode.weight_factor == pytest.approx(40 / 47, rel=1e-6)
    assert runtime.decode.kv_factor == pytest.approx(40 / 26, rel=1e-6)
    for one in found:
        own = runtime.for_formats(one.weights, one.kv)
        for context in (256, 512, 1024, 2048, 4000):
            expected = (
                0.0022 + one.cost.weight_bytes_per_token / 47e9 + one.cost.kv_read_bytes(context) / 26e9
            )
            assert decode_seconds(one.cost, DEVICE, own, context) == pytest.approx(expected, rel=1e-9)
        assert prefill_seconds(one.cost, DEVICE, own, PROMPT) == pytest.approx(one.prompt_s[0], rel=1e-6)
        need = memory_use(one.cost, own, tokens=4096, limit=None, prompt_tokens=PROMPT)
        assert need.peak_bytes == pytest.approx(one.peak_bytes, rel=0.01)


def test_a_pair_that_was_not_stepped_has_the_general_factors() -> None:
    table = measured_runtime(DEVICE, [made_up("int4", "fp32")], date="2026-01-02", ops=300e9)
    runtime = runtime_from_table("mine", table)
    assert runtime.for_formats("int8", "int8") is runtime
    assert set(runtime.formats) == {"int4/fp32"}


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([(0.001, 0.004), (0.003, 0.008)], (2.0, 0.002)),
        ([(0.001, 0.004)], (4.0, 0.0)),
        ([(0.001, 0.001), (0.003, 0.009)], (2.5, 0.0)),
        ([(0.001, 0.004), (0.001, 0.006)], (5.0, 0.0)),
    ],
)
def test_what_several_pairs_share(points: list[tuple[float, float]], expected: tuple[float, float]) -> None:
    assert shared_terms(points) == pytest.approx(expected)


def test_a_real_bundle_is_stepped_on_this_machine(int4_bundle: Bundle) -> None:
    found = calibrate(int4_bundle.folder, contexts=(64, 512 + PROMPT))
    assert (found.weights, found.kv) == ("int4", "int8")
    assert set(found.step_s) == {64, 512 + PROMPT}
    assert all(0 < seconds < 60 for seconds in (*found.step_s.values(), *found.prompt_s.values()))
    assert found.imported_bytes < found.loaded_bytes <= found.peak_bytes
    runtime = runtime_from_table("here", measured_runtime(DEVICE, [found], date="2026-01-02", ops=300e9))
    own = runtime.for_formats("int4", "int8")
    for context, seconds in found.step_s.items():
        assert decode_seconds(found.cost, DEVICE, own, context) == pytest.approx(seconds, rel=1e-6)


def test_contexts_beyond_the_model_are_refused(int4_bundle: Bundle) -> None:
    with pytest.raises(UserError, match="positions"):
        calibrate(int4_bundle.folder, contexts=(128, 1 << 20))
