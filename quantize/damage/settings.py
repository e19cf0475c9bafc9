"""How to measure, and what can be known of it beforehand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seatrial.errors import UserError
from seatrial.export.bundle import Bundle
from seatrial.export.tokenizer import Tokenizer
from seatrial.quantize.damage.documents import Document
from seatrial.quantize.damage.factorial import check_experiment
from seatrial.quantize.damage.forced import WINDOW
from seatrial.quantize.probes.run import ProbePlan
from seatrial.quantize.stats import DRAWS


@dataclass(frozen=True)
class Settings:
    """How to measure. `probes` None leaves the copy probes out; `work` None takes the user's cache folder.

    `window`: tokens that are read from an empty cache at a time; `draws`: of the bootstrap; `threads`: None
    for all; `noise`: measure the noise floor first. `factorial`: also one part at a time; where the
    candidate has no parts that the reference could take, that is an error, or with `factorial_optional` a
    warning in the report.
    """

    window: int = WINDOW
    draws: int = DRAWS
    seed: int = 0
    threads: int | None = None
    noise: bool = True
    probes: ProbePlan | None = None
    factorial: bool = False
    factorial_optional: bool = False
    work: Path | None = None

    def told(self) -> dict[str, Any]:
        """What a report says of them."""
        return {
            "window": self.window,
            "draws": self.draws,
            "seed": self.seed,
            "level": 0.95,
            "probes": None if self.probes is None else self.probes.name,
        }


def checked(
    reference: Bundle,
    candidate: Bundle,
    documents: Sequence[Document],
    tokenizer: Tokenizer,
    settings: Settings,
) -> tuple[Settings, tuple[str, ...]]:
    """What can be known before hours of measuring: settings that will work, and warnings."""
    warnings = []
    if settings.factorial:
        try:
            check_experiment(reference, candidate)
        except UserError as error:
            if not settings.factorial_optional:
                raise
            settings = replace(settings, factorial=False)
            warnings.append(f"one part at a time was left out: {error}")
    longer = sum(tokenizer.count(document.text) > settings.window for document in documents)
    if longer:
        warnings.append(
            f"{longer} of {len(documents)} documents are longer than the window of {settings.window} tokens: "
            "what stands in an earlier window cannot be copied, whatever is called copyable; raise --window"
        )
    return settings, tuple(warnings)
