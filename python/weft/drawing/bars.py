"""Groups of bars, a bar a variant, with bars of confidence over the seeds."""

from typing import TYPE_CHECKING

from weft.drawing.axes import empty, tick_groups, value_axis, whiskers
from weft.drawing.view import PanelView, estimates, places, scaled_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GROUP_WIDTH", "draw_bars", "slots"]

GROUP_WIDTH = 0.84


def draw_bars(axes: "Axes", view: PanelView) -> None:
    """Draw a panel: a group for each point of x and each measure; one group alone has variants for ticks."""
    found = estimates(view)
    if not found:
        empty(axes)
        return
    own = places(view)
    groups = [(place.label, measure) for place in own for measure in view.measures]
    label, divisor = scaled_label(view.y, [value.mean for value in found.values()])
    lone = len(groups) == 1
    width, offsets = (0.66, [0.0] * len(view.variants)) if lone else slots(len(view.variants))
    for turn, variant in enumerate(view.variants):
        there = [
            (turn if lone else column, value)
            for column, (x, measure) in enumerate(groups)
            if (value := found.get((variant, measure, x))) is not None
        ]
        values = [value for _, value in there]
        axes.bar(
            [column + offsets[turn] for column, _ in there],
            [value.mean / divisor for value in values],
            width=width,
            yerr=whiskers(values, divisor, log=view.y.log),
            color=view.looks[variant].colour,
            hatch=view.looks[variant].hatch,
            edgecolor="white",
            linewidth=0.4,
            error_kw={"elinewidth": 0.8, "capsize": 1.5, "ecolor": "#222222"},
        )
    value_axis(axes, list(found.values()), divisor, log=view.y.log, from_zero=True)
    if view.relative:
        axes.axhline(1.0, color="#999999", linewidth=0.8, zorder=0.5)
    if lone:
        tick_groups(axes, [view.name(variant) for variant in view.variants])
    else:
        tick_groups(axes, _group_labels(groups, places=len(own), measures=len(view.measures)))
        for column in range(1, len(groups)):
            axes.axvline(column - 0.5, color="#dddddd", linewidth=0.6)
    axes.set_xlabel(view.x.label)
    axes.set_ylabel(label)


def slots(variants: int) -> tuple[float, list[float]]:
    """Width of a bar, and the offset of each variant's from the middle of its group."""
    width = GROUP_WIDTH / max(variants, 1)
    return width, [(turn - (variants - 1) / 2.0) * width for turn in range(variants)]


def _group_labels(groups: list[tuple[str, str]], *, places: int, measures: int) -> list[str]:
    if measures == 1:
        return [x for x, _ in groups]
    if places == 1:
        return [measure for _, measure in groups]
    return [f"{x}, {measure}" for x, measure in groups]
