"""Lines over a varied field, a line a variant, with bars of confidence over the seeds."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft.drawing.axes import empty, positions, tick_places, value_axis, whiskers
from weft.drawing.view import PanelView, estimates, places, scaled_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["MEASURE_DASHES", "draw_lines"]

_APART = 0.007
"""Distance between the points of two variants at the same place, as a share of the axis."""

MEASURE_DASHES = ("solid", "dashed", "dotted", "dashdot")
"""Lines of a second, third, ... measure of one variant."""


def draw_lines(axes: "Axes", view: PanelView) -> None:
    """Draw a panel. A missing value leaves a gap."""
    found = estimates(view)
    if not found:
        empty(axes)
        return
    own = places(view)
    where = positions(own, log=view.x.log)
    stands, log = (list(range(len(own))), False) if where is None else (where, view.x.log)
    label, divisor = scaled_label(view.y, [value.mean for value in found.values()])
    if view.relative:
        axes.axhline(1.0, color="#999999", linewidth=0.8)
    for turn, variant in enumerate(view.variants):
        look = view.looks[variant]
        for order, measure in enumerate(view.measures):
            values = [found.get((variant, measure, place.label)) for place in own]
            if not any(values):
                continue
            drawn = axes.errorbar(
                _set_apart(stands, turn - (len(view.variants) - 1) / 2.0, log=log),
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
            # Seeds may differ a lot in their flows: their bars must not hide the lines.
            for part in (*drawn[1], *drawn[2]):
                part.set_alpha(0.5)
    value_axis(axes, list(found.values()), divisor, log=view.y.log, from_zero=not view.relative, points=True)
    tick_places(axes, own, where, log=view.x.log)
    axes.set_xlabel(view.x.label)
    axes.set_ylabel(label)


def _set_apart(where: Sequence[float], places: float, *, log: bool) -> list[float]:
    """Move points a little along the axis, so that bars of confidence do not hide each other."""
    low, high = min(where), max(where)
    if low == high:
        return list(where)
    if log:
        return [x * (high / low) ** (_APART * places) for x in where]
    return [x + _APART * places * (high - low) for x in where]
