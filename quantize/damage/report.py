"""What a damage run found: one object for the table, the page and JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seatrial.quantize.damage.figures import ClassFigures
from seatrial.quantize.damage.item_figures import ItemFigures
from seatrial.quantize.damage.noise import Noise
from seatrial.quantize.damage.verdicts import Limit, passes


@dataclass(frozen=True)
class BundleHeading:
    """Which bundle this was: folder's name, formats, and what its weights say of their past."""

    name: str
    weights: str
    kv: str
    provenance: str

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "weights": self.weights, "kv": self.kv, "provenance": self.provenance}


@dataclass(frozen=True)
class DamageReport:
    """A finished measurement. Classes are over all languages; `languages` holds them one by one."""

    reference: BundleHeading
    candidate: BundleHeading
    documents: Mapping[str, int]
    tokens: int
    noise: Mapping[str, Sequence[Noise]]  # "reference", "candidate"
    floor: float
    classes: Mapping[str, ClassFigures]
    languages: Mapping[str, Mapping[str, ClassFigures]]
    items: Mapping[str, ItemFigures]
    item_languages: Mapping[str, Mapping[str, ItemFigures]]
    breakdown: Sequence[Mapping[str, Any]]
    guard: Mapping[str, Any]
    probes: Mapping[str, Any] | None = None
    factorial: Sequence[Mapping[str, Any]] | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The document of `seatrial damage --json`."""
        return {
            "reference": self.reference.to_json(),
            "candidate": self.candidate.to_json(),
            "documents": dict(self.documents),
            "tokens": self.tokens,
            "noise_floor": {
                "kl": self.floor,
                **{whose: [found.to_json() for found in noise] for whose, noise in self.noise.items()},
            },
            "classes": {name: found.to_json() for name, found in self.classes.items()},
            "languages": {
                language: {
                    "classes": {name: found.to_json() for name, found in classes.items()},
                    "items": {name: found.to_json() for name, found in self.item_languages[language].items()},
                }
                for language, classes in self.languages.items()
            },
            "items": {name: found.to_json() for name, found in self.items.items()},
            "breakdown": [dict(row) for row in self.breakdown],
            "guard": dict(self.guard),
            "probes": None if self.probes is None else dict(self.probes),
            "factorial": None if self.factorial is None else [dict(row) for row in self.factorial],
            "minimum_detectable": self.minimum_detectable(),
            "settings": dict(self.settings),
            "seconds": dict(self.seconds),
            "warnings": list(self.warnings),
        }

    def minimum_detectable(self) -> dict[str, Any]:
        """What the run would have shown at a power of 80 %.

        `classes`: the smallest excess over other tokens (0.3: 30 %); `copies`: the smallest change of the
        copy rate, None without probes.
        """
        compared = {name: found.compared for name, found in self.classes.items()}
        return {
            "classes": {name: c.detectable for name, c in compared.items() if c is not None},
            "copies": None if self.probes is None else self.probes["all"]["minimum_detectable"],
        }

    def judge(self, limits: Sequence[Limit]) -> list[tuple[Limit, bool | None]]:
        """Each limit with True (kept), False (passed by the whole interval) or None (cannot tell)."""
        found = []
        for limit in limits:
            figures = self.classes[limit.label]
            found.append((limit, passes(limit, figures.figure(limit.figure), figures.enough)))
        return found
