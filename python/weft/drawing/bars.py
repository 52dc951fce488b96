"""Groups of bars, a bar a contender, with bars of confidence over the seeds."""

from typing import TYPE_CHECKING

from weft.drawing.axes import empty, tick_groups, value_axis, whiskers
from weft.drawing.view import PanelView, estimates, places, scaled_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["GROUP_WIDTH", "draw_bars", "slots"]

GROUP_WIDTH = 0.84


def draw_bars(axes: "Axes", view: PanelView) -> None:
    """Draw a panel: a group for each point of x and each measure; one group alone has contenders for ticks."""
    found = estimates(view)
    if not found:
        empty(axes)
        return
    own = places(view)
    groups = [(place.label, measure) for place in own for measure in view.measures]
    label, divisor = scaled_label(view.y, [value.mean for value in found.values()])
    lone = len(groups) == 1
    width, offsets = (0.66, [0.0] * len(view.contenders)) if lone else slots(len(view.contenders))
    for turn, contender in enumerate(view.contenders):
        there = [
            (turn if lone else column, value)
            for column, (x, measure) in enumerate(groups)
            if (value := found.get((contender, measure, x))) is not None
        ]
        values = [value for _, value in there]
        axes.bar(
            [column + offsets[turn] for column, _ in there],
            [value.mean / divisor for value in values],
            width=width,
            yerr=whiskers(values, divisor, log=view.y.log),
            color=view.looks[contender].colour,
            hatch=view.looks[contender].hatch,
            edgecolor="white",
            linewidth=0.4,
            error_kw={"elinewidth": 0.8, "capsize": 1.5, "ecolor": "#222222"},
        )
    value_axis(axes, list(found.values()), divisor, log=view.y.log, from_zero=True)
    if view.relative:
        axes.axhline(1.0, color="#999999", linewidth=0.8, zorder=0.5)
    if lone:
        tick_groups(axes, [view.name(contender) for contender in view.contenders])
    else:
        tick_groups(axes, _group_labels(groups, places=len(own), measures=len(view.measures)))
        for column in range(1, len(groups)):
            axes.axvline(column - 0.5, color="#dddddd", linewidth=0.6)
    axes.set_xlabel(view.x.label)
    axes.set_ylabel(label)


def slots(contenders: int) -> tuple[float, list[float]]:
    """Width of a bar, and the offset of each contender's from the middle of its group."""
    width = GROUP_WIDTH / max(contenders, 1)
    return width, [(turn - (contenders - 1) / 2.0) * width for turn in range(contenders)]


def _group_labels(groups: list[tuple[str, str]], *, places: int, measures: int) -> list[str]:
    if measures == 1:
        return [x for x, _ in groups]
    if places == 1:
        return [measure for _, measure in groups]
    return [f"{x}, {measure}" for x, measure in groups]
