"""Lines over a varied field, a line a contender, with bars of confidence over the seeds."""

import math
from typing import TYPE_CHECKING

from weft.papers.drawing.axes import empty, positions, tick_places, value_axis, whiskers
from weft.papers.drawing.view import PanelView, estimates, places, scaled_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MEASURE_DASHES", "draw_lines"]

MEASURE_DASHES = ("solid", "dashed", "dotted", "dashdot")
"""Lines of a second, third, ... measure of one contender."""


def draw_lines(axes: "Axes", view: PanelView) -> None:
    """Draw a panel. A missing value leaves a gap."""
    found = estimates(view)
    if not found:
        empty(axes)
        return
    own = places(view)
    where = positions(own, log=view.x.log)
    label, divisor = scaled_label(view.y, [value.mean for value in found.values()])
    if view.relative:
        axes.axhline(1.0, color="#999999", linewidth=0.8)
    for contender in view.contenders:
        look = view.looks[contender]
        for order, measure in enumerate(view.measures):
            values = [found.get((contender, measure, place.label)) for place in own]
            if not any(values):
                continue
            axes.errorbar(
                list(where) if where is not None else list(range(len(own))),
                [math.nan if value is None else value.mean / divisor for value in values],
                yerr=whiskers(values, divisor, log=view.y.log),
                color=look.colour,
                linestyle=look.dash if len(view.measures) == 1 else MEASURE_DASHES[order % len(MEASURE_DASHES)],
                marker=look.marker,
                markersize=4.5,
                markeredgecolor="white",
                markeredgewidth=0.5,
                capsize=2.0,
                elinewidth=1.0,
            )
    value_axis(axes, list(found.values()), divisor, log=view.y.log, from_zero=not view.relative)
    tick_places(axes, own, where, log=view.x.log)
    axes.set_xlabel(view.x.label)
    axes.set_ylabel(label)
