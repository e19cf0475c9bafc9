"""What a quantization did and how well it went: plain data, the same for people and for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.quantize.agreement import Agreement

OK, FAIL = "ok", "fail"


@dataclass(frozen=True)
class Check:
    """One check with its figure and limit."""

    name: str
    verdict: str  # "ok" | "fail"
    figure: float
    limit: float
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "verdict": self.verdict,
            "figure": self.figure,
            "limit": self.limit,
            "detail": self.detail,
        }


def at_least(name: str, figure: float, limit: float, detail: str = "") -> Check:
    """A check that `figure` reaches `limit`."""
    return Check(name, OK if figure >= limit else FAIL, figure, limit, detail)


def at_most(name: str, figure: float, limit: float, detail: str = "") -> Check:
    """A check that `figure` stays within `limit`."""
    return Check(name, OK if figure <= limit else FAIL, figure, limit, detail)


@dataclass(frozen=True)
class QuantizeResult:
    """A quantized bundle, or the checks that kept it from being written (`failed`)."""

    out: Path
    weights: str
    kv: str
    matmuls: int
    of: int
    weight_bytes_share: float
    refused: Mapping[str, str]
    formats: Mapping[str, int]
    tied: bool
    sizes: Mapping[str, int]
    agreement: Mapping[str, Agreement]
    provenance: str
    checks: tuple[Check, ...]
    kv_cache: Mapping[str, Any] = field(default_factory=dict)
    balanced_inputs: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        return any(check.verdict == FAIL for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """The fields of `seatrial.json` that a quantization adds, and of `seatrial quantize --json`."""
        return {
            "weights": self.weights,
            "kv": self.kv,
            "quantized": {
                "matmuls": self.matmuls,
                "of": self.of,
                "weight_bytes_share": self.weight_bytes_share,
                "refused": dict(self.refused),
                "formats": dict(self.formats),
                "tied": self.tied,
            },
            "balanced_inputs": self.balanced_inputs,
            "kv_cache": dict(self.kv_cache),
            "sizes": dict(self.sizes),
            "agreement": {language: found.to_json() for language, found in self.agreement.items()},
            "reference": {"provenance": self.provenance},
            "checks": [check.to_json() for check in self.checks],
            "seconds": dict(self.seconds),
            "warnings": list(self.warnings),
        }
