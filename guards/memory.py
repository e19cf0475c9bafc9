"""The memory guard: which of a few ways to run fits under a ceiling, decided from bytes alone.

Private bytes (weights on the heap, KV, activations, the engine) must fit; mapped weights are file pages
that the system may drop, so they need not, but below private + mapped a dense model is read from storage
again for every token. It does not know how a way is carried out, nor where the bytes come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.guards.verdict import Finding, GuardReport, Verdict


@dataclass(frozen=True)
class MemoryNeed:
    """Bytes at the peak, by what they are for. `mapped`: the weights are file pages, not private memory."""

    weights_bytes: float
    kv_bytes: float
    activation_bytes: float
    runtime_bytes: float
    mapped: bool = False

    @property
    def private_bytes(self) -> float:
        own = self.kv_bytes + self.activation_bytes + self.runtime_bytes
        return own if self.mapped else own + self.weights_bytes

    @property
    def mapped_bytes(self) -> float:
        return self.weights_bytes if self.mapped else 0.0

    @property
    def working_set_bytes(self) -> float:
        """What must be resident to run without reading from storage again."""
        return self.private_bytes + self.mapped_bytes


@dataclass(frozen=True)
class Way:
    """One way to run: the action that leads to it ("" for what was asked) and what it needs."""

    action: str
    need: MemoryNeed


@dataclass(frozen=True)
class MemoryDecision:
    """`chosen` is an index into the ways. `paged_bytes` are read from storage for every token."""

    chosen: int
    report: GuardReport
    paged_bytes: float = 0.0


def decide(ways: Sequence[Way], ceiling_bytes: float) -> MemoryDecision:
    """The first way whose private bytes fit; the last one, with verdict fail, when none does.

    Raises ValueError when there is no way at all.
    """
    if not ways:
        raise ValueError("there must be at least one way to run")
    fitting = [place for place, way in enumerate(ways) if way.need.private_bytes <= ceiling_bytes]
    chosen = fitting[0] if fitting else len(ways) - 1
    findings = [_too_much(way, ceiling_bytes, Verdict.WARN) for way in ways[:chosen]]
    need = ways[chosen].need
    if not fitting:
        findings.append(_too_much(ways[chosen], ceiling_bytes, Verdict.FAIL))
    paged = paged_bytes(need, ceiling_bytes)
    if paged and fitting:
        findings.append(_cliff(ways[chosen]))
    verdict = Verdict.FAIL if not fitting else Verdict.WARN if findings else Verdict.OK
    return MemoryDecision(chosen, GuardReport("memory", verdict, tuple(findings)), paged)


def paged_bytes(need: MemoryNeed, ceiling_bytes: float) -> float:
    """Bytes read from storage per pass: nothing while the working set fits, else all of the mapped weights.

    A dense model is read in the same order for every token; an LRU cache that is too small by one page then
    misses every one of them.
    """
    return need.mapped_bytes if need.working_set_bytes > ceiling_bytes else 0.0


def would_fit_bytes(ways: Sequence[Way]) -> float:
    """The smallest ceiling under which one of the ways runs."""
    return min(way.need.private_bytes for way in ways)


def _too_much(way: Way, ceiling_bytes: float, verdict: Verdict) -> Finding:
    need = way.need
    named = way.action or "as asked"
    return _finding(
        verdict,
        "does not fit",
        need.private_bytes,
        f"{named}: {need.private_bytes / 1e6:.0f} MB of private memory (weights "
        f"{0 if need.mapped else need.weights_bytes / 1e6:.0f}, KV {need.kv_bytes / 1e6:.0f}, activations "
        f"{need.activation_bytes / 1e6:.0f}, engine {need.runtime_bytes / 1e6:.0f}) against a ceiling of "
        f"{ceiling_bytes / 1e6:.0f} MB",
    )


def _cliff(way: Way) -> Finding:
    need = way.need
    return _finding(
        Verdict.WARN,
        "paging",
        need.working_set_bytes,
        f"{way.action or 'as asked'}: private memory fits, but with {need.mapped_bytes / 1e6:.0f} MB of "
        f"mapped weights {need.working_set_bytes / 1e6:.0f} MB are needed: the weights are read from storage "
        "again for every token",
    )


def _finding(verdict: Verdict, reason: str, value: float, detail: str) -> Finding:
    return Finding("memory", "", (0, 0), "memory", verdict, reason, f"{value:.0f}", "B", None, detail)
