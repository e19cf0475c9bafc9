"""Writes docs/scenario.md: the reference laptop's job worked through, beside back-of-envelope numbers.

    python docs/make_scenario.py

Every figure is computed here from the device file, the runtime file and two model shapes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from seatrial.devices.device import load_device
from seatrial.devices.runtime import load_runtime
from seatrial.devices.units import format_bytes, format_time
from seatrial.export.architecture import Architecture, architecture_of_config
from seatrial.simulate.cost import model_cost
from seatrial.simulate.fallbacks import with_fallbacks
from seatrial.simulate.plan import Job, Plan, plan

PAGE = Path(__file__).with_name("scenario.md")
TEMPLATE = Path(__file__).with_name("scenario.template.md")
PROMPT, SUMMARY, BROWSER = 4200, 400, 3_000_000_000
FULL_HEADS = {
    "model_type": "llama",
    "num_hidden_layers": 28,
    "hidden_size": 3072,
    "num_attention_heads": 24,
    "num_key_value_heads": 24,
    "head_dim": 128,
    "intermediate_size": 7168,
    "vocab_size": 32000,
    "tie_word_embeddings": True,
    "max_position_embeddings": 8192,
}
GROUPED_HEADS = FULL_HEADS | {"num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256}
MODELS = (("full heads", FULL_HEADS), ("grouped heads", GROUPED_HEADS))
# Weights and KV that go together in the worked rows.
FORMATS = (("int4", "fp16"), ("int4", "int8"), ("int8", "fp16"), ("int8", "int8"))


def main() -> None:
    """Writes the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The page's text: the template with its figures."""
    plans = [(name, planned(read(config), weights, kv)) for name, config in MODELS for weights, kv in FORMATS]
    first = plans[0][1]
    figures = figures_of(plans) | {
        "rows": "".join(row(name, made) for name, made in plans),
        "changes": give_up(),
        "runtime": first.runtime.id,
        "factor": first.runtime.decode.weight_factor,
        "available": format_bytes(first.available_bytes),
        "attention_share": attention_share(),
    }
    return TEMPLATE.read_text(encoding="utf-8").format(**figures)


def read(config: dict[str, object]) -> Architecture:
    """The shape of one of the two models."""
    return architecture_of_config(config, name="3B")


def planned(architecture: Architecture, weights: str, kv: str, deadline_s: float | None = None) -> Plan:
    """The job on the reference laptop with the browser open."""
    device, runtime = load_device("thin-laptop-8gb"), load_runtime("reference")
    job = Job(PROMPT, SUMMARY, weights=weights, kv=kv, other_programs_bytes=BROWSER, deadline_s=deadline_s)
    return with_fallbacks(architecture, device, runtime, plan(architecture, device, runtime, job))


def row(name: str, made: Plan) -> str:
    """One line of the worked table."""
    cells = (
        name,
        made.cost.weights,
        made.cost.kv.name,
        format_bytes(made.memory.weights_bytes),
        format_bytes(made.memory.kv_bytes),
        format_bytes(made.memory.peak_bytes),
        "yes" if made.fits else "**no**",
        format_time(made.prefill_s.mid),
        format_time(made.decode_s.mid),
        format_time(made.total_s.mid),
        f"{format_time(made.total_s.low)} - {format_time(made.total_s.high)}",
    )
    return "| " + " | ".join(cells) + " |\n"


def attention_share() -> str:
    """Attention's FLOPs over those of 3e9 parameters, for the prompt and full heads."""
    cost = model_cost(read(FULL_HEADS))
    return f"{cost.attention_flops(PROMPT) / (2 * 3e9 * PROMPT):.0%}"


def figures_of(plans: list[tuple[str, Plan]]) -> dict[str, Any]:
    """Figures behind the reasons."""
    by_key = {(name, made.cost.weights, made.cost.kv.name): made for name, made in plans}
    full, full_int8 = by_key["full heads", "int4", "fp16"], by_key["full heads", "int4", "int8"]
    grouped, grouped_int8 = by_key["grouped heads", "int4", "fp16"], by_key["grouped heads", "int4", "int8"]
    middle = PROMPT + SUMMARY / 2
    kv = [made.cost.kv_read_bytes(middle) for made in (full, full_int8, grouped, grouped_int8)]
    factor = full.runtime.decode.kv_factor / full.device.bandwidth_Bps
    fitting = [
        f"{name} with {made.cost.weights} weights and {made.cost.kv.name} KV"
        for name, made in plans
        if made.fits
    ]
    nominal_ms = full.cost.weight_bytes_per_token / full.device.bandwidth_Bps * 1e3
    return {
        "full_params": read(FULL_HEADS).params / 1e9,
        "grouped_params": read(GROUPED_HEADS).params / 1e9,
        "nominal_ms": nominal_ms,
        "effective_ms": nominal_ms / 0.65,
        "full_kv": format_bytes(kv[0]),
        "full_kv_int8": format_bytes(kv[1]),
        "grouped_kv": format_bytes(kv[2]),
        "grouped_kv_int8": format_bytes(kv[3]),
        "full_kv_ms": kv[0] * factor * 1e3,
        "grouped_kv_int8_ms": kv[3] * factor * 1e3,
        "fit_sentence": f"With the browser open these fit: {'; '.join(fitting) or 'none'}.",
    }


def give_up() -> str:
    """The smallest changes that clear memory and a deadline."""
    made = planned(read(GROUPED_HEADS), "int4", "fp16", deadline_s=20.0)
    cells = [
        (entry["action"], format_time(entry["total_s"]["mid"]), format_bytes(entry["peak_bytes"]))
        for entry in made.fallbacks
    ]
    lines = ["| " + " | ".join(line) + " |\n" for line in cells]
    roomy = attrs.evolve(made.job, other_programs_bytes=0, deadline_s=None)
    alone = plan(read(GROUPED_HEADS), made.device, made.runtime, roomy)
    closing = (
        f"\nWith the browser closed it fits as it is ({format_bytes(alone.memory.peak_bytes)} of "
        f"{format_bytes(alone.available_bytes)}) and takes {format_time(alone.total_s.mid)}.\n"
    )
    return "".join(lines) + closing


if __name__ == "__main__":
    main()
