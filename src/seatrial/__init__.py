"""seatrial: dry-run a small language model on a device before you ship it.

The functions behind the commands. Each name is loaded when it is first used, so that `import seatrial` and
the light commands pull in nothing:

    import seatrial

    device = seatrial.load_device("thin-laptop-8gb")
    result = seatrial.check(summary, source)      # every figure and name, no model
    result.verdict                                # "ok", "warn" or "fail"

docs/python.md has an example of each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.devices.device import Device, load_device
    from seatrial.devices.runtime import Runtime, load_runtime
    from seatrial.errors import UserError
    from seatrial.export.architecture import Architecture, read_architecture
    from seatrial.export.bundle import Bundle, open_bundle
    from seatrial.guards.check import CheckResult, check
    from seatrial.guards.extract import Extract, extract
    from seatrial.guards.verdict import Finding, Verdict
    from seatrial.quantize.damage.documents import Document
    from seatrial.quantize.damage.report import DamageReport
    from seatrial.quantize.damage.run import Settings as DamageSettings
    from seatrial.quantize.damage.run import measure_damage as damage
    from seatrial.simulate.job import RunJob, RunResult
    from seatrial.simulate.plan import Job, Plan, plan
    from seatrial.simulate.run import run

__version__ = "0.1.0"

# Name -> module, with the name that it has there where that is another one.
_HOMES = {
    "Architecture": "seatrial.export.architecture",
    "Bundle": "seatrial.export.bundle",
    "CheckResult": "seatrial.guards.check",
    "DamageReport": "seatrial.quantize.damage.report",
    "DamageSettings": "seatrial.quantize.damage.run:Settings",
    "Device": "seatrial.devices.device",
    "Document": "seatrial.quantize.damage.documents",
    "Extract": "seatrial.guards.extract",
    "Finding": "seatrial.guards.verdict",
    "Job": "seatrial.simulate.plan",
    "Plan": "seatrial.simulate.plan",
    "RunJob": "seatrial.simulate.job",
    "RunResult": "seatrial.simulate.job",
    "Runtime": "seatrial.devices.runtime",
    "UserError": "seatrial.errors",
    "Verdict": "seatrial.guards.verdict",
    "check": "seatrial.guards.check",
    "damage": "seatrial.quantize.damage.run:measure_damage",
    "extract": "seatrial.guards.extract",
    "load_device": "seatrial.devices.device",
    "load_runtime": "seatrial.devices.runtime",
    "open_bundle": "seatrial.export.bundle",
    "plan": "seatrial.simulate.plan",
    "read_architecture": "seatrial.export.architecture",
    "run": "seatrial.simulate.run",
}

__all__ = [
    "Architecture",
    "Bundle",
    "CheckResult",
    "DamageReport",
    "DamageSettings",
    "Device",
    "Document",
    "Extract",
    "Finding",
    "Job",
    "Plan",
    "RunJob",
    "RunResult",
    "Runtime",
    "UserError",
    "Verdict",
    "check",
    "damage",
    "extract",
    "load_device",
    "load_runtime",
    "open_bundle",
    "plan",
    "read_architecture",
    "run",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'seatrial' has no attribute {name!r}")
    home, _, other = _HOMES[name].partition(":")
    return getattr(import_module(home), other or name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
