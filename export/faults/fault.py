"""A named fault: what kind, where, how sure, and what a reader of the model's answers would notice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fault:
    """`kind` is one of `symptoms.KINDS`; `place` a layer with a module or `embedding`, `head`, `graph`.

    `unexplained` is how much of the allowed distance is left when the fault is put into the torch model on
    purpose: below 1 the fault explains everything that was seen.
    """

    kind: str
    place: str
    detail: str
    unexplained: float | None = None

    def to_json(self) -> dict[str, Any]:
        from seatrial.export.faults.symptoms import measure_of, symptom_of

        return {
            "kind": self.kind,
            "place": self.place,
            "detail": self.detail,
            "unexplained": self.unexplained,
            "symptom": symptom_of(self.kind),
            "measure": measure_of(self.kind),
        }
