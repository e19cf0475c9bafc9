"""Figures of whole figures and names, of cells of the breakdown, and what the number guard would catch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.quantize.damage.classes import CLASSES
from seatrial.quantize.damage.escapes import Outcome
from seatrial.quantize.damage.figures import Floats, of_several, rate_of
from seatrial.quantize.damage.tally import ITEM_METRICS, Tally, breakdown_cells
from seatrial.quantize.stats import Interval, mcnemar, wilson


@dataclass(frozen=True)
class ItemFigures:
    """Whole figures and names of one class: any wrong token is harm; NLL per digit, else per character."""

    items: int
    right: int  # by the reference
    harmed: int
    harm: Interval  # of those the reference has right (Wilson)
    repaired: int
    mcnemar_p: float
    nll_per_size: float
    nll_delta_per_size: Interval

    def to_json(self) -> dict[str, Any]:
        return {
            "n": self.items,
            "right_in_reference": self.right,
            "harmed": self.harmed,
            "harm": self.harm.to_json(),
            "repaired": self.repaired,
            "mcnemar_p": self.mcnemar_p,
            "nll_per_digit_or_character": self.nll_per_size,
            "nll_delta_per_digit_or_character": self.nll_delta_per_size.to_json(),
        }


def item_figures(found: Tally, language: int | None = None) -> dict[str, ItemFigures]:
    """Figures of whole items by class, of one language or of both; classes without items are left out."""
    chosen = slice(None) if language is None else slice(language, language + 1)
    totals, draws = found.items.totals[chosen].sum(0), found.items.draws[:, chosen].sum(1)
    return {
        name: _one_item(totals[place], draws[:, place], sum(found.sizes[chosen]))
        for place, name in enumerate(CLASSES)
        if totals[place, 0] > 0
    }


def _one_item(totals: Floats, draws: Floats, documents: int) -> ItemFigures:
    items, right, harmed, repaired = (int(figure) for figure in totals[:4])
    size, nll, delta = (ITEM_METRICS.index(name) for name in ("size", "nll", "delta"))
    per_size = rate_of(totals[delta], totals[size], draws[:, delta], draws[:, size])
    return ItemFigures(
        items=items,
        right=right,
        harmed=harmed,
        harm=wilson(harmed, right),
        repaired=repaired,
        mcnemar_p=mcnemar(harmed, repaired),
        nll_per_size=float(totals[nll] / totals[size]),
        nll_delta_per_size=of_several(per_size, documents),
    )


def breakdown_figures(found: Tally) -> list[dict[str, Any]]:
    """KL and harm by position in the item, its length, and whether it could be copied; a row per cell."""
    rows = []
    for cell, (kind, value) in enumerate(breakdown_cells()):
        for place, name in enumerate(CLASSES):
            totals, draws = found.breakdown.totals[cell, place], found.breakdown.draws[:, cell, place]
            if totals[0]:
                rows.append(
                    {
                        "class": name,
                        "by": kind,
                        "value": value,
                        "n": int(totals[0]),
                        "kl": rate_of(totals[1], totals[0], draws[:, 1], draws[:, 0]).to_json(),
                        "harm": rate_of(totals[3], totals[0], draws[:, 3], draws[:, 0]).to_json(),
                    }
                )
    return rows


def guard_figures(outcomes: Sequence[int]) -> dict[str, Any]:
    """Of damaged figures: what the number guard catches and what escapes it, counts and shares."""
    counts = {outcome.name.lower(): int(outcomes[outcome]) for outcome in Outcome if outcome}
    wrong = sum(count for name, count in counts.items() if name != "same_value")
    return {
        "damaged": wrong,
        **counts,
        "caught_share": wilson(counts["caught"], wrong).to_json(),
        "escaped_share": wilson(counts["escaped"], wrong).to_json(),
        "no_figure_share": wilson(counts["no_figure"], wrong).to_json(),
    }
