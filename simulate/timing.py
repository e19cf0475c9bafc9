"""A model on a device as passes for the clock: each chunk of a prompt, each decoded token.

The same terms as `predict`, but along a bandwidth curve and with the position in it: at a constant bandwidth
both agree. Pure; the caller owns the clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from seatrial.devices.device import Device
from seatrial.devices.runtime import Runtime
from seatrial.simulate.clock import BandwidthCurve, Work
from seatrial.simulate.cost import ModelCost
from seatrial.simulate.predict import decode_terms, effective_ops

CHUNK_TOKENS = 512


@dataclass(frozen=True)
class Timing:
    """One model in its formats on one device. `paged_bytes`: read from storage again in every pass."""

    cost: ModelCost
    device: Device
    runtime: Runtime
    curve: BandwidthCurve
    paged_bytes: float = 0.0

    def prefill_work(self, tokens: int, past: int) -> Work:
        """A chunk of `tokens` after `past`."""
        cost, prefill = self.cost, self.runtime.prefill
        ops = effective_ops(self.device, self.runtime)
        attention_ops = ops * prefill.attention_efficiency / prefill.efficiency
        attention = cost.attention_flops(tokens, past)
        compute_s = (cost.prefill_flops(tokens, past) - attention) / ops + attention / attention_ops
        moved = self.runtime.decode.weight_factor * cost.weight_bytes_per_prefill_pass
        return Work(moved, compute_s, prefill.chunk_s, self.paged_bytes)

    def decode_work(self, context: int) -> Work:
        """One token after `context` tokens."""
        decode = self.runtime.decode
        moved = decode.weight_factor * self.cost.weight_bytes_per_token
        moved += decode.kv_factor * self.cost.kv_read_bytes(context)
        # Compute and overhead are added to the bytes' time, as `predict` does.
        terms = decode_terms(self.cost, self.device, self.runtime, context)
        return Work(moved, 0.0, terms["compute"] + terms["overhead"], self.paged_bytes)

    def seconds(self, work: Work, start_s: float) -> float:
        return work.seconds(self.curve, self.device.storage_read_Bps, start_s)

    def prefill_s(self, tokens: int, past: int, start_s: float, chunk: int = CHUNK_TOKENS) -> list[float]:
        """Device seconds of each chunk of a prompt that begins at `start_s`."""
        steps: list[float] = []
        for first in range(0, tokens, chunk):
            size = min(chunk, tokens - first)
            steps.append(self.seconds(self.prefill_work(size, past + first), start_s + sum(steps)))
        return steps

    def decode_s(self, context: int, tokens: int, start_s: float) -> list[float]:
        """Device seconds of each of `tokens` steps, the first after `context` tokens."""
        steps, now_s = [], start_s
        for index in range(tokens):
            step_s = self.seconds(self.decode_work(context + index), now_s)
            steps.append(step_s)
            now_s += step_s
        return steps

    def tokens_within(self, context: int, tokens: int, start_s: float, deadline_s: float) -> int:
        """How many of `tokens` steps end by `deadline_s`."""
        now_s = start_s
        for index, step_s in enumerate(self.decode_s(context, tokens, start_s)):
            now_s += step_s
            if now_s > deadline_s:
                return index
        return tokens
