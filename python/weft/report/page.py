"""Pages from the templates in `templates/`: HTML is written there alone, and every text that comes in is escaped.

A template that names what it was not given is an error, not an empty place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from weft import _core
from weft.report.cells import STATISTICS

__all__ = ["ResultsPage", "render_template"]

_SCRIPTS = ("base", "controls", "table", "fct", "curves", "why", "overhead", "downloads")
"""The scripts of every page of results, in this order; the last one of a page, `main`, starts it."""
_QUANTITIES: Mapping[str, str] = {"fct": "completion time", "slowdown": "slowdown"}


@dataclass(frozen=True, slots=True)
class ResultsPage:
    """The report of a comparison or of a sweep, as plain texts and numbers."""

    title: str
    kind: str
    """Kind of the report, in a few words."""
    heading: str
    subtitle: str
    data: Mapping[str, Any]
    """Data that the scripts read."""
    more_scripts: Sequence[str] = ()
    """Those that this kind of report needs besides the ones of every page."""

    def render(self, template: str, **values: Any) -> str:
        """Return the page as text; `values` are what this template alone needs."""
        return render_template(
            template,
            title=self.title,
            kind=self.kind,
            heading=self.heading,
            subtitle=self.subtitle,
            data=self.data,
            scripts=(*_SCRIPTS, *self.more_scripts, "main"),
            quantities=_QUANTITIES,
            statistics=STATISTICS,
            **values,
        )


def render_template(template: str, **values: Any) -> str:
    """Return the text of a page; a template of `templates/` with its values."""
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    """The one environment of all pages."""
    found = Environment(
        loader=PackageLoader("weft.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
    # `tojson` leaves no character that could end a script element or open a comment.
    found.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    found.globals |= {"asset": _asset, "version": _core.version()}
    return found


def _asset(name: str) -> Markup:
    """A file of this package as it is: a style or a script, which no data is ever put into."""
    return Markup(resources.files("weft.report").joinpath(name).read_text(encoding="utf-8"))
