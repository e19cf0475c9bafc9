"""The page put together: each result becomes a section, several get a comparison before them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from markupsafe import Markup

from seatrial.report.charts import Words
from seatrial.report.load import Result
from seatrial.report.sections import comparison, section
from seatrial.report.words import speaker


def render(results: Sequence[Result], language: str) -> str:
    """The whole HTML document. Raises UserError as `speaker` and `draw` do."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    say = speaker(language)
    environment = Environment(
        loader=PackageLoader("seatrial.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja").render(
        say=say,
        term=say.term,
        style=_asset("report.css"),
        script=_asset("report.js"),
        comparison=comparison(results, say) if len(results) > 1 else None,
        sections=[section(result, f"r{index}", say) for index, result in enumerate(results)],
        headline=_headline(results, say),
    )


def _asset(name: str) -> Markup:
    """A file of this package, put into the page as it is."""
    return Markup(files("seatrial.report").joinpath(name).read_text(encoding="utf-8"))


def _headline(results: Sequence[Result], say: Words) -> str:
    return results[0].name if len(results) == 1 else f"{say('compare')}: {len(results)}"
