"""QALL's Fig. 3: the traffic of ports against the occupancy and the dequeue interval of their queues.

The observations of `weft fit qall` in ten classes of either, with the mean and two percentiles of the traffic; and both
correlations.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.papers.declared import FigureSpec, Measure, PanelSpec, Paper
from weft.papers.drawing import draw_panels
from weft.papers.measured import FigureData
from weft.papers.reading_papers import value_number
from weft.papers.special import SpecialContext
from weft.papers.special.observing import observing, runs_used
from weft.papers.special.tidy import figure_data
from weft.percentiles import percentile

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from weft.fitting import Vector

__all__ = ["DRAWN", "classes", "draw", "make"]

_OCCUPANCY = tuple(share / 10 for share in range(1, 11))
"""Upper ends of classes, as shares of a full queue; the first begins at 0."""
_INTERVAL_MS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Upper ends of classes: a full packet takes 0.03 ms, and intervals are counted up to 10 ms at most."""
_US_PER_MS = 1e3
_FEWEST = 20
"""Fewer observations than that in a class have no percentile."""

_TRAFFIC, _PEARSON = "egress traffic", "Pearson correlation with egress traffic"
_SHARE = (Measure(label=_TRAFFIC, unit="share"),)

DRAWN = (
    PanelSpec("(a) Queue occupancy", "", "lines", _SHARE, x_label="share of the buffer, up to", y_label=_TRAFFIC),
    PanelSpec("(b) Dequeue time interval", "", "lines", _SHARE, x_label="ms, up to", y_label=_TRAFFIC, x_scale="log"),
    PanelSpec("(c) Correlation", "", "bars", (Measure(label=_PEARSON, unit="ratio"),), y_label="Pearson correlation"),
)


def make(context: SpecialContext) -> FigureData:
    """Observe, and put the observations into classes."""
    return figure_data(_rows(context), runs_used(context))


def draw(paper: Paper, figure: FigureSpec, data: FigureData, note: str) -> "Figure":
    """Draw the classes of both, and the correlations."""
    return draw_panels(paper, DRAWN, data, note)


def classes(of: "Vector", traffic: "Vector", ends: Sequence[float]) -> list[tuple[float, dict[str, float]]]:
    """Return the upper end of each class with enough observations, and the mean and percentiles of its traffic."""
    import polars as pl

    place = np.searchsorted(ends, of, side="left")
    found = []
    for number, end in enumerate(ends):
        own = traffic[place == number]
        if len(own) >= _FEWEST:
            low, high = (percentile(pl.Series(own), share) or 0.0 for share in (0.05, 0.95))
            statistics = {"95th percentile": high, "mean": float(own.mean()), "5th percentile": low}
            found.append((end, statistics))
    return found


def _rows(context: SpecialContext) -> Iterator[tuple[Any, ...]]:
    what = observing(context)
    longest_ms = (value_number(what.time_constant) or 0.0) / _US_PER_MS
    for seed, observations in what.observed().items():
        axes = ((observations.occupancy, _OCCUPANCY), (longest_ms * observations.interval, _INTERVAL_MS))
        for panel, (column, ends) in enumerate(axes):
            for end, statistics in classes(column, observations.traffic, ends):
                for name, value in statistics.items():
                    yield (panel, name, f"{end:g}", end, seed, _TRAFFIC, value)
    for seed, report in what.reports().items():
        yield (2, "occupancy", "", None, seed, _PEARSON, report.occupancy_correlation)
        yield (2, "interval", "", None, seed, _PEARSON, report.interval_correlation)
