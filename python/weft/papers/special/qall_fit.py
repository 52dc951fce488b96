"""QALL's Table I: how well polynomials of each degree tell a port's traffic from its queue, as `weft fit qall` says."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weft.papers.declared import FigureSpec, Measure, PanelSpec, Paper
from weft.papers.drawing import draw_panels
from weft.papers.measured import FigureData
from weft.papers.special import SpecialContext
from weft.papers.special.observing import observing, runs_used
from weft.papers.special.tidy import figure_data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DRAWN", "draw", "make"]

_R2, _MRE = "R²", "MRE"

DRAWN = (PanelSpec("", "", "table", (Measure(label=_R2, unit="ratio"), Measure(label=_MRE, unit="ratio"))),)


def make(context: SpecialContext) -> FigureData:
    """Fit all degrees to each set of observations."""
    return figure_data(_rows(context), runs_used(context))


def draw(paper: Paper, figure: FigureSpec, data: FigureData, note: str) -> "Figure":
    """Draw a table with a row for each degree."""
    return draw_panels(paper, DRAWN, data, note)


def _rows(context: SpecialContext) -> Iterator[tuple[Any, ...]]:
    found = observing(context).reports()
    for place in range(len(next(iter(found.values())).fits)):
        for seed, report in found.items():
            fit = report.fits[place]
            yield (0, f"degree {fit.degree}", "", None, seed, _R2, fit.r2)
            yield (0, f"degree {fit.degree}", "", None, seed, _MRE, fit.mre)
