"""Many plans at once give what one plan at a time gives."""

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.devices.device import load_device
from seatrial.devices.runtime import load_runtime, runtime_names
from seatrial.errors import UserError
from seatrial.export.architecture import architecture_of_config
from seatrial.simulate.batch import plan_many
from seatrial.simulate.cost import model_cost
from seatrial.simulate.plan import Job, plan

CONFIG = {
    "model_type": "gemma3_text",
    "num_hidden_layers": 12,
    "hidden_size": 640,
    "num_attention_heads": 4,
    "num_key_value_heads": 1,
    "head_dim": 256,
    "intermediate_size": 2048,
    "vocab_size": 262144,
    "sliding_window": 512,
    "sliding_window_pattern": 6,
}
MODEL = architecture_of_config(CONFIG, name="test")
LAPTOP = load_device("thin-laptop-8gb")


@settings(max_examples=60, deadline=None)
@given(
    runtime=st.sampled_from(runtime_names()),
    jobs=st.lists(st.tuples(st.integers(1, 9000), st.integers(1, 900)), min_size=1, max_size=5),
    kv=st.sampled_from(["fp16", "int8", "int8-per-token"]),
)
def test_many_plans_are_the_single_ones(runtime: str, jobs: list[tuple[int, int]], kv: str) -> None:
    engine = load_runtime(runtime)
    cost = model_cost(MODEL, weights="int4", kv=kv)
    prompts, tokens = zip(*jobs, strict=True)
    many = plan_many(cost, LAPTOP, engine, prompt_tokens=prompts, max_tokens=tokens)
    for index, (prompt, summary) in enumerate(jobs):
        one = plan(MODEL, LAPTOP, engine, Job(prompt, summary, weights="int4", kv=kv))
        assert many.prefill_s[index] == pytest.approx(one.prefill_s.mid, rel=1e-9)
        assert many.decode_s_per_token[index] == pytest.approx(one.decode_s.mid, rel=1e-9)
        assert many.total_s[index] == pytest.approx(one.total_s.mid, rel=1e-9)
        assert many.total_low_s[index] == pytest.approx(one.total_s.low, rel=1e-9)
        assert many.total_high_s[index] == pytest.approx(one.total_s.high, rel=1e-9)
        assert many.peak_bytes[index] == pytest.approx(one.memory.peak_bytes, rel=1e-9)
        assert many.fits[index] == one.fits


def test_lengths_and_bandwidths_broadcast() -> None:
    cost = model_cost(MODEL)
    many = plan_many(
        cost,
        LAPTOP,
        load_runtime("reference"),
        prompt_tokens=np.arange(100, 400, 100)[:, None],
        max_tokens=50,
        bandwidth=[25e9, 50e9],
    )
    assert many.total_s.shape == (3, 2)
    assert (many.total_s[:, 0] > many.total_s[:, 1]).all()


@pytest.mark.parametrize("field", ["prompt_tokens", "max_tokens"])
def test_lengths_below_one_are_refused(field: str) -> None:
    lengths = {"prompt_tokens": [10, 20], "max_tokens": [10, 20]} | {field: [5, 0]}
    with pytest.raises(UserError):
        plan_many(model_cost(MODEL), LAPTOP, load_runtime("reference"), **lengths)


def test_a_runtime_without_compute_term_needs_no_compute_figure() -> None:
    bare = attrs.evolve(LAPTOP, compute={})
    many = plan_many(model_cost(MODEL), bare, load_runtime("reference"), prompt_tokens=[100], max_tokens=[10])
    assert np.isfinite(many.total_s).all()
