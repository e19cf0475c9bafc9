"""The run's clock and the plan use one set of formulas: at a constant bandwidth they agree."""

import pytest

from seatrial.devices.device import device_names, load_device
from seatrial.devices.runtime import load_runtime
from seatrial.export.architecture import architecture_of_config
from seatrial.simulate.clock import BandwidthCurve
from seatrial.simulate.cost import model_cost
from seatrial.simulate.predict import bandwidth_Bps, decode_total_seconds, prefill_seconds
from seatrial.simulate.timing import Timing

CONFIG = {
    "model_type": "llama",
    "num_hidden_layers": 16,
    "hidden_size": 2048,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 8192,
    "vocab_size": 128256,
    "tie_word_embeddings": True,
}


@pytest.mark.parametrize("name", device_names())
def test_clock_and_plan_agree(name: str) -> None:
    device = load_device(name)
    runtime = load_runtime(device.runtime)
    cost = model_cost(architecture_of_config(CONFIG, name="test"), weights="int4", kv="int8")
    timing = Timing(cost, device, runtime, BandwidthCurve.constant(bandwidth_Bps(device, runtime)))
    decoded = sum(timing.decode_s(1000, 100, 0.0))
    assert decoded == pytest.approx(decode_total_seconds(cost, device, runtime, 1000, 100), rel=1e-9)
    prompt = sum(timing.prefill_s(1024, 0, 0.0))
    # The clock closes every chunk of a prompt, the plan the prompt as a whole; the head is counted per chunk.
    assert prompt == pytest.approx(prefill_seconds(cost, device, runtime, 1024), rel=0.02)
