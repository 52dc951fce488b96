"""Curves over time, a curve a variant."""

from typing import TYPE_CHECKING

from weft.drawing.axes import empty, set_log
from weft.drawing.cdf import drawn_curves
from weft.drawing.view import PanelView, scaled_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_over_time"]


def draw_over_time(axes: "Axes", view: PanelView) -> None:
    """Draw a panel: time along x, the measure along y."""
    curves = drawn_curves(view)
    times = [value for _, _, one in curves for value in one.get_column("value").to_list()]
    values = [value for _, _, one in curves for value in one.get_column("share").to_list()]
    if not values:
        empty(axes)
        return
    x_label, x_divisor = scaled_label(view.x, times)
    y_label, y_divisor = scaled_label(view.y, values)
    for variant, dash, one in curves:
        look = view.looks[variant]
        axes.plot(
            (one.get_column("value") / x_divisor).to_list(),
            (one.get_column("share") / y_divisor).to_list(),
            color=look.colour,
            linestyle=look.dash if dash is None else dash,
            marker=look.marker,
            markevery=max(one.height // 8, 1),
            markersize=4.5,
            markeredgecolor="white",
            markeredgewidth=0.5,
            linewidth=1.2,
        )
    if max(times) > 0.0:
        axes.set_xlim(0.0, max(times) / x_divisor * 1.02)
    if view.y.log and max(values) > 0.0:
        set_log(axes, [value / y_divisor for value in values], "y")
    elif min(values) >= 0.0:
        axes.set_ylim(bottom=0.0)
        if max(values) == 0.0:
            axes.set_ylim(top=1.0)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
