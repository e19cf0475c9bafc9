"""A runtime from stepping bundles: known machines come back, and a real bundle is stepped on this one."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.devices.device import device_from_table
from seatrial.devices.runtime import Runtime, runtime_from_table
from seatrial.errors import UserError
from seatrial.export.architecture import architecture_of_config
from seatrial.export.bundle import Bundle
from seatrial.simulate.batch import plan_many
from seatrial.simulate.calibrate import Calibration, calibrate, measured_runtime, quickest, shared_terms
from seatrial.simulate.cost import model_cost
from seatrial.simulate.predict import decode_seconds, memory_use, prefill_seconds
from seatrial.simulate.stepping import PROMPT, SHORT_PROMPT, STEPS, undisturbed

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
    held = 40_000_000 + round(1.2 * cost.weight_bytes + cost.kv_stored(4096).total)
    return Calibration(
        weights=weights,
        kv=kv,
        step_s=steps,
        prompt_s=prompts,
        noise=1.05,
        imported_bytes=40_000_000,
        opening_bytes=40_000_000 + round(1.5 * cost.weight_bytes),
        filled_bytes=held,
        cache_bytes=round(cost.kv_stored(4096).total),
        short_peak_bytes=round(held + 1.7 * cost.activation_bytes(SHORT_PROMPT)),
        peak_bytes=round(held + 1.7 * cost.activation_bytes(PROMPT)),
        far_peak_bytes=round(held + 1.7 * cost.activation_bytes(PROMPT) + 900 * 3584),
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
        check_memory(one, own)


def check_memory(one: Calibration, own: Runtime) -> None:
    """A short job's peak is that of opening, a long one's has its cache, its chunk and what came before."""
    for prompt in (16, 64, SHORT_PROMPT, 300, PROMPT, 1000, 4000):
        chunk, tokens = min(prompt, PROMPT), prompt + 96
        running = 40e6 + 1.2 * one.cost.weight_bytes + one.cost.kv_stored(tokens).total
        running += 1.7 * one.cost.activation_bytes(chunk) + 900 * (prompt - chunk)
        expected = max(running, one.opening_bytes)
        need = memory_use(one.cost, own, tokens=tokens, limit=None, prompt_tokens=prompt)
        assert need.peak_bytes == pytest.approx(expected, rel=1e-4)
        many = plan_many(one.cost, DEVICE, own, prompt_tokens=[prompt], max_tokens=[96])
        assert many.peak_bytes[0] == pytest.approx(need.peak_bytes, rel=1e-9)


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
    assert found.imported_bytes < found.filled_bytes <= found.peak_bytes
    assert found.imported_bytes < found.opening_bytes
    runtime = runtime_from_table("here", measured_runtime(DEVICE, [found], date="2026-01-02", ops=300e9))
    own = runtime.for_formats("int4", "int8")
    for context, seconds in found.step_s.items():
        assert decode_seconds(found.cost, DEVICE, own, context) == pytest.approx(seconds, rel=1e-6)


@given(st.lists(st.booleans(), min_size=10, max_size=40).filter(lambda busy: 2 * sum(busy) < len(busy)))
def test_turns_beside_a_busy_program_do_not_count(busy: list[bool]) -> None:
    """Steps of 10 and 20 ms with two per cent of spread; in busy turns everything takes twice as long."""
    steps = {
        context: [
            base * (1 + 0.02 * (step % 2)) * (2 if slow else 1) for slow in busy for step in range(STEPS)
        ]
        for context, base in ((128, 0.010), (4096, 0.020))
    }
    kept = undisturbed(steps)
    quiet = len(busy) - sum(busy)
    assert {context: len(values) for context, values in kept.items()} == {
        128: STEPS * quiet,
        4096: STEPS * quiet,
    }
    assert max(kept[128]) < 0.011
    assert max(kept[4096]) < 0.021


def test_two_visits_give_the_shorter_times_and_the_first_memory() -> None:
    one = made_up("int4", "fp32")
    other = attrs.evolve(
        one, step_s={128: one.step_s[128] / 2, 4096: one.step_s[4096] * 2}, noise=1.01, peak_bytes=1
    )
    both = quickest(one, other)
    assert both.step_s == {128: other.step_s[128], 4096: one.step_s[4096]}
    assert (both.noise, both.peak_bytes) == (1.01, one.peak_bytes)


def test_contexts_beyond_the_model_are_refused(int4_bundle: Bundle) -> None:
    with pytest.raises(UserError, match="positions"):
        calibrate(int4_bundle.folder, contexts=(128, 1 << 20))
