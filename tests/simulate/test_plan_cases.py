"""Plans: published failures of other calculators with their right values, and what every plan must keep."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.devices.device import Device, device_names, load_device, with_measured_bandwidth
from seatrial.devices.runtime import Runtime, load_runtime, runtime_names
from seatrial.devices.units import parse_bytes
from seatrial.errors import UserError
from seatrial.export.architecture import Architecture, Layer, architecture_of_config
from seatrial.simulate.cost import ModelCost, model_cost
from seatrial.simulate.fallbacks import clears, with_fallbacks
from seatrial.simulate.plan import Job, plan
from seatrial.simulate.predict import (
    bandwidth_Bps,
    cliff_seconds,
    decode_seconds,
    decode_total_seconds,
    prefill_seconds,
)

GROUPED = {
    "model_type": "llama",
    "num_hidden_layers": 28,
    "hidden_size": 3072,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
    "max_position_embeddings": 131072,
}
MODEL = architecture_of_config(GROUPED, name="grouped-3b")
LAPTOP = load_device("thin-laptop-8gb")
REFERENCE = load_runtime("reference")


def plain_runtime(factor: float = 1.0, **memory: object) -> Runtime:
    """The reference engine with one factor for weights and KV, and nothing else in a step."""
    decode = attrs.evolve(REFERENCE.decode, weight_factor=factor, kv_factor=factor)
    return attrs.evolve(REFERENCE, decode=decode, memory=attrs.evolve(REFERENCE.memory, **memory))


def bare_cost(weight_bytes: float, active_bytes: float, kv_bytes: float, flops: float = 0.0) -> ModelCost:
    """A model of so many bytes: `kv_bytes` are read at a context of one token."""
    cost = model_cost(MODEL, weights="int4", kv="int8")
    group = attrs.evolve(
        cost.groups[0], layers=1, stored_layers=1, elements=kv_bytes, flops_per_context_token=0
    )
    return attrs.evolve(
        cost,
        weight_bytes=weight_bytes,
        weight_bytes_per_token=active_bytes,
        weight_bytes_per_prefill_pass=weight_bytes,
        groups=(group,),
        matmul_flops_per_token=flops,
        head_flops_per_token=0.0,
    )


def test_experts_fit_by_their_total_and_run_by_the_active_ones() -> None:
    """16e9 parameters, 2.7e9 active, 4.5 bits, 8e9 bytes of memory, 32.5e9 bytes/s."""
    cost = bare_cost(16e9 * 4.5 / 8, 2.7e9 * 4.5 / 8, 0.0)
    device = with_measured_bandwidth(LAPTOP, 32.5e9)
    assert cost.weight_bytes == 9.0e9
    assert cost.weight_bytes > parse_bytes("8GB")
    assert cost.weight_bytes_per_token == 1_518_750_000
    assert decode_seconds(cost, device, plain_runtime(), 0) == pytest.approx(0.0467, rel=1e-3)


def test_a_sparse_plan_says_that_paging_has_no_such_bound() -> None:
    sparse = {**GROUPED, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
    made = plan(architecture_of_config(sparse, name="moe"), LAPTOP, REFERENCE, Job())
    assert any("experts" in note and "paged" in note for note in made.notes)
    assert made.memory.weights_bytes > 3 * made.cost.weight_bytes_per_token


@pytest.mark.parametrize(
    ("factor", "kv_bytes", "milliseconds"),
    [(1.0, 0.0, 30.0), (1 / 0.65, 0.0, 46.2), (1 / 0.65, 0.688e9, 67.3), (1 / 0.65, 1.376e9, 88.5)],
)
def test_decode_counts_kv_and_effective_bandwidth(
    factor: float, kv_bytes: float, milliseconds: float
) -> None:
    cost = bare_cost(1.5e9, 1.5e9, kv_bytes)
    assert decode_seconds(cost, LAPTOP, plain_runtime(factor), 1) * 1e3 == pytest.approx(
        milliseconds, abs=0.06
    )


def test_four_hundred_tokens_with_and_without_the_cache() -> None:
    runtime = plain_runtime(1 / 0.65)
    without = 400 * decode_seconds(bare_cost(1.5e9, 1.5e9, 0.0), LAPTOP, runtime, 1)
    within = 400 * decode_seconds(bare_cost(1.5e9, 1.5e9, 1.376e9), LAPTOP, runtime, 1)
    assert without == pytest.approx(18.5, abs=0.05)
    assert within == pytest.approx(35.4, abs=0.05)


def test_the_plan_shows_which_terms_are_in() -> None:
    terms = plan(MODEL, LAPTOP, REFERENCE, Job()).to_json()["terms"]
    assert terms["weight_bytes_per_token"] > 0
    assert terms["kv_bytes_per_token"] == 114_688 * 4400
    assert terms["weight_factor"] == pytest.approx(1 / 0.65, rel=1e-3)


def test_a_measurement_above_nominal_is_refused() -> None:
    with pytest.raises(UserError, match="nominal"):
        with_measured_bandwidth(LAPTOP, 51e9)


def test_a_device_tells_how_its_bandwidth_was_measured() -> None:
    assert load_device("rpi5").measured_kind == "read"
    assert load_device("amd-395").measured_kind == "copy"
    assert load_device("thin-laptop-8gb").measured_kind is None


def test_a_measured_bandwidth_takes_the_place_of_the_nominal_one() -> None:
    measured = with_measured_bandwidth(LAPTOP, 32e9)
    cost = bare_cost(1.5e9, 1.5e9, 0.0)
    assert decode_seconds(cost, measured, plain_runtime(1 / 0.65), 0) == pytest.approx(1.5e9 / 32e9)


def test_prefill_by_the_stated_effective_compute() -> None:
    """4,200 tokens through 3e9 parameters are 2.52e13 FLOPs: 3.15 s at 8 TOPS, not 1.26 s at 20."""
    cost = bare_cost(1.5e9, 1.5e9, 0.0, flops=2 * 3e9)
    assert cost.prefill_flops(4200) == 2.52e13
    assert prefill_seconds(cost, LAPTOP, REFERENCE, 4200) == pytest.approx(3.15, rel=1e-6)


def test_a_runtime_on_another_processor_does_not_use_the_npu() -> None:
    cost = bare_cost(1.5e9, 1.5e9, 0.0, flops=2 * 3e9)
    on_cpu = prefill_seconds(cost, LAPTOP, load_runtime("llama-cpp-cpu"), 4200)
    assert on_cpu > 10 * 3.15


@pytest.mark.parametrize(("limit", "kv_bytes"), [(None, 15_032_385_536), (4600, 527_564_800)])
def test_a_runtime_that_reserves_by_limit_takes_it_all(limit: int | None, kv_bytes: int) -> None:
    runtime = plain_runtime(kv_reserve="limit")
    made = plan(MODEL, LAPTOP, runtime, Job(limit_tokens=limit, kv="fp16"))
    assert made.memory.kv_bytes == kv_bytes
    assert any("no length limit" in note for note in made.notes) == (limit is None)


def test_caches_that_are_not_shared_exist_twice() -> None:
    runtime = plain_runtime(kv_copies=2)
    assert plan(MODEL, LAPTOP, runtime, Job(kv="fp16")).memory.kv_bytes == 2 * 527_564_800


def test_a_context_past_training_is_told() -> None:
    short = architecture_of_config({**GROUPED, "max_position_embeddings": 4096}, name="short")
    made = plan(short, LAPTOP, REFERENCE, Job(prompt_tokens=4200, max_tokens=400))
    assert any("4600" in note and "4096" in note for note in made.notes)


def test_the_window_that_is_modelled_is_told() -> None:
    windowed = architecture_of_config({**GROUPED, "model_type": "mistral", "sliding_window": 1024}, name="w")
    full = plan(windowed, LAPTOP, plain_runtime(kv_layout="full"), Job())
    kept = plan(windowed, LAPTOP, plain_runtime(kv_layout="windowed"), Job())
    assert any("full length" in note for note in full.notes)
    assert any("only the window" in note for note in kept.notes)
    assert full.memory.kv_bytes == pytest.approx(kept.memory.kv_bytes * 4600 / 1024)


def test_memory_of_the_scenario_at_eight_bits() -> None:
    """3e9 + 1,445,068,800 + 1.5e9 bytes do not fit an 8 GB machine with a browser open."""
    cost = bare_cost(3e9, 3e9, 0.0)
    total = cost.weight_bytes + 1_445_068_800 + 1.5e9
    assert total == 5_945_068_800
    assert total > LAPTOP.available_bytes(other_programs_bytes=parse_bytes("3GB"))


def test_past_the_ceiling_a_mapped_dense_model_is_read_again_for_every_token() -> None:
    """1.6e9 bytes from a drive of 2e9 bytes/s: 0.8 s per token, every token."""
    assert cliff_seconds(bare_cost(1.6e9, 1.6e9, 0.0), LAPTOP) == pytest.approx(0.8)
    made = plan(MODEL, LAPTOP, REFERENCE, Job(ceiling_bytes=parse_bytes("2GB"), mapped_weights=True))
    assert not made.fits
    assert made.bound_decode == "storage"
    assert made.decode_s.low > plan(MODEL, LAPTOP, REFERENCE, Job()).decode_s.high


def test_available_memory_leaves_out_the_system_and_other_programs() -> None:
    made = plan(MODEL, LAPTOP, REFERENCE, Job(other_programs_bytes=parse_bytes("3GB")))
    assert made.available_bytes == 3_000_000_000
    assert plan(MODEL, LAPTOP, REFERENCE, Job(ceiling_bytes=10**9)).available_bytes == 10**9


def test_every_device_plans_with_its_runtime() -> None:
    for name in device_names():
        device = load_device(name)
        made = plan(MODEL, device, load_runtime(device.runtime), Job())
        assert 0 < made.total_s.low <= made.total_s.mid <= made.total_s.high < float("inf"), name


def test_every_runtime_plans_on_the_reference() -> None:
    for name in runtime_names():
        made = plan(MODEL, LAPTOP, load_runtime(name), Job())
        assert 0 < made.total_s.mid < float("inf"), name


def test_the_document_has_the_agreed_fields() -> None:
    document = plan(MODEL, LAPTOP, REFERENCE, Job()).to_json()
    assert {"device", "runtime", "model", "job", "memory", "time", "bound", "fallbacks", "notes"} <= set(
        document
    )
    assert set(document["job"]) == {"prompt_tokens", "max_tokens"}
    assert {
        "weights_bytes",
        "kv_bytes",
        "activation_bytes",
        "runtime_bytes",
        "peak_bytes",
        "available_bytes",
        "fits",
    } == set(document["memory"])
    for name in ("prefill_s", "decode_ms_per_token", "total_s"):
        assert set(document["time"][name]) == {"low", "mid", "high"}
    memory = document["memory"]
    parts = sum(memory[f"{part}_bytes"] for part in ("weights", "kv", "activation", "runtime"))
    assert memory["peak_bytes"] == pytest.approx(parts, abs=4)


@pytest.mark.parametrize("limits", [{"deadline_s": 20.0}, {"ceiling_bytes": 3 * 10**9}, {"deadline_s": 12.0}])
def test_a_fallback_really_clears_the_limit(limits: dict) -> None:
    job = Job(**limits)
    made = with_fallbacks(MODEL, LAPTOP, REFERENCE, plan(MODEL, LAPTOP, REFERENCE, job))
    assert not clears(made)
    assert made.fallbacks
    for fallback in made.fallbacks:
        fields = {
            name: fallback[name]
            for name in ("max_tokens", "prompt_tokens", "weights", "kv", "mapped_weights")
        }
        assert clears(plan(MODEL, LAPTOP, REFERENCE, attrs.evolve(job, **fields))), fallback["action"]


def test_a_shortened_summary_is_the_longest_that_clears() -> None:
    job = Job(deadline_s=20.0, kv="int8", weights="int4")
    made = with_fallbacks(MODEL, LAPTOP, REFERENCE, plan(MODEL, LAPTOP, REFERENCE, job))
    longest = made.fallbacks[0]["max_tokens"]
    assert clears(plan(MODEL, LAPTOP, REFERENCE, attrs.evolve(job, max_tokens=longest)))
    assert not clears(plan(MODEL, LAPTOP, REFERENCE, attrs.evolve(job, max_tokens=longest + 1)))


def test_a_plan_that_keeps_its_limits_gives_nothing_up() -> None:
    made = plan(MODEL, LAPTOP, REFERENCE, Job(deadline_s=600.0))
    assert with_fallbacks(MODEL, LAPTOP, REFERENCE, made).fallbacks == ()


def test_a_hopeless_deadline_is_told() -> None:
    made = plan(MODEL, load_device("rpi5"), load_runtime("llama-cpp-cpu"), Job(deadline_s=0.5))
    done = with_fallbacks(MODEL, load_device("rpi5"), load_runtime("llama-cpp-cpu"), made)
    assert done.fallbacks[0]["action"] == "none"


def test_heat_slows_only_where_it_was_measured() -> None:
    air, metal = load_device("apple-m4-air"), load_runtime("llama-cpp-metal")
    cool, hot = (plan(MODEL, air, metal, Job(sustained=flag)) for flag in (False, True))
    assert hot.prefill_s.mid == pytest.approx(cool.prefill_s.mid / 0.737)
    assert hot.decode_s.mid == pytest.approx(cool.decode_s.mid / 0.857)
    unknown = plan(MODEL, LAPTOP, REFERENCE, Job(sustained=True))
    assert any("sustained" in note for note in unknown.notes)


def slow_total(cost: ModelCost, device: Device, runtime: Runtime, context: int, tokens: int) -> float:
    return sum(decode_seconds(cost, device, runtime, context + index) for index in range(tokens))


@settings(max_examples=40, deadline=None)
@given(context=st.integers(1, 3000), tokens=st.integers(1, 300), window=st.integers(1, 3500))
def test_a_summary_takes_the_sum_of_its_steps(context: int, tokens: int, window: int) -> None:
    layers = tuple(
        attrs.evolve(layer, window=window if index % 2 else None) for index, layer in enumerate(MODEL.layers)
    )
    cost = model_cost(attrs.evolve(MODEL, layers=layers))
    expected = slow_total(cost, LAPTOP, REFERENCE, context, tokens)
    assert decode_total_seconds(cost, LAPTOP, REFERENCE, context, tokens) == pytest.approx(expected, rel=1e-9)


@settings(deadline=None)
@given(prompt=st.integers(1, 20_000), summary=st.integers(1, 4000))
def test_longer_jobs_never_take_less(prompt: int, summary: int) -> None:
    job = Job(prompt_tokens=prompt, max_tokens=summary)
    made = plan(MODEL, LAPTOP, REFERENCE, job)
    for field in ("prompt_tokens", "max_tokens"):
        longer = plan(MODEL, LAPTOP, REFERENCE, attrs.evolve(job, **{field: getattr(job, field) + 1}))
        assert longer.total_s.mid > made.total_s.mid
        assert longer.memory.peak_bytes > made.memory.peak_bytes


@pytest.mark.parametrize("fields", [{"prompt_tokens": 0}, {"max_tokens": -1}, {"limit_tokens": 100}])
def test_an_impossible_job_is_refused(fields: dict) -> None:
    with pytest.raises(UserError):
        Job(**fields)


def test_layers_without_windows_are_of_one_kind() -> None:
    assert {layer.kind for layer in MODEL.layers} == {"full"}
    assert isinstance(MODEL, Architecture)
    assert isinstance(MODEL.layers[0], Layer)
    assert bandwidth_Bps(LAPTOP, REFERENCE) == 50e9
