"""A figure from its panels: the grid, one legend above it, one note below."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from weft.drawing.bars import draw_bars
from weft.drawing.boxes import draw_boxes
from weft.drawing.cdf import draw_cdf
from weft.drawing.lines import MEASURE_DASHES, draw_lines
from weft.drawing.over_time import draw_over_time
from weft.drawing.table import ROW_IN, draw_table
from weft.drawing.view import PanelView
from weft.figures import new_figure, note_below, save_all

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["PLOTS", "compose", "write"]

PLOTS: Mapping[str, Callable[["Axes", PanelView], None]] = {
    "lines": draw_lines,
    "bars": draw_bars,
    "cdf": draw_cdf,
    "box": draw_boxes,
    "over-time": draw_over_time,
    "table": draw_table,
}
"""How each kind of plot is drawn, by the name that a declaration uses."""

_WIDE_IN = 7.2
_ALONE_IN = 4.6
_PANEL_IN = 2.35
_LEGEND_ROW_IN = 0.19
_TITLE_CHARACTERS = 44
_LETTER_IN = 0.075
"""Width of a letter of the legend, in inches."""
_SAMPLE_LETTERS = 7
"""Room that a sample of a line and the space beside it take, in letters."""


def compose(panels: Sequence[PanelView], note: str, *, alike: bool = False) -> Figure:
    """Draw the panels in two columns (one panel alone), a legend above and a note in small letters below.

    Panels that are `alike`, which show the same at other settings, get the same limits.
    """
    columns = min(len(panels), 2)
    if len(panels) > 1 and all(view.plot == "table" for view in panels):
        columns = 1
    rows = -(-len(panels) // columns)
    width = _WIDE_IN if columns == 2 or panels[0].plot == "table" else _ALONE_IN
    heights = [max(_height(view) for view in panels[row * columns : (row + 1) * columns]) for row in range(rows)]
    entries = _legend(panels)
    in_a_row = _legend_columns(list(entries), width) if entries else 1
    # Two rows of a legend fit; the axes do not pay for more.
    more_rows = max(-(-len(entries) // in_a_row) - 2, 0)
    with new_figure(width, sum(heights) + 0.25 * bool(entries) + _LEGEND_ROW_IN * more_rows) as figure:
        grid = list(figure.subplots(rows, columns, squeeze=False, height_ratios=heights).flat)
        for axes, view in zip(grid, panels, strict=False):
            PLOTS[view.plot](axes, view)
            axes.set_title(textwrap.fill(view.title, _TITLE_CHARACTERS))
        for axes in grid[len(panels) :]:
            axes.set_axis_off()
        if alike:
            _same_limits(grid[: len(panels)])
        if entries:
            figure.legend(
                handles=list(entries.values()),
                labels=list(entries),
                loc="outside upper center",
                ncols=in_a_row,
                handlelength=2.0,
                columnspacing=1.4,
            )
        if note:
            note_below(figure, note)
    return figure


def write(figure: Figure, directory: Path, name: str = "figure") -> list[Path]:
    """Write a figure as PNG, PDF and SVG; the bytes depend on nothing but the figure."""
    return save_all(figure, directory, name)


def _same_limits(grid: Sequence["Axes"]) -> None:
    """Give all axes that show something the widest limits of any."""
    shown = [axes for axes in grid if axes.has_data()]
    for limits, choose in (("get_xlim", "set_xlim"), ("get_ylim", "set_ylim")):
        pairs = [getattr(axes, limits)() for axes in shown]
        for axes in shown:
            getattr(axes, choose)(min(low for low, _ in pairs), max(high for _, high in pairs))


def _height(view: PanelView) -> float:
    if view.plot == "table":
        return 0.45 + ROW_IN * (len(view.variants) + 1)
    return _PANEL_IN


def _legend(panels: Sequence[PanelView]) -> dict[str, "Artist"]:
    """A sample for each variant of any panel, and for each measure where lines show several.

    Tables name their rows, and so do the ticks of bars and boxes that stand alone.
    """
    from matplotlib.lines import Line2D

    handles: dict[str, Artist] = {}
    told = [view for view in panels if view.plot != "table"]
    for view in told:
        for variant in view.variants:
            if view.name(variant) and view.name(variant) not in handles:
                handles[view.name(variant)] = _sample(view, variant)
    for view in told:
        if view.plot == "lines" and len(view.measures) > 1:
            for order, measure in enumerate(view.measures):
                dash = MEASURE_DASHES[order % len(MEASURE_DASHES)]
                plain: dict[str, Any] = {"color": "#333333", "linestyle": dash}
                handles.setdefault(measure, Line2D([], [], **plain))
    return handles


def _sample(view: PanelView, variant: str) -> "Artist":
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    look = view.looks[variant]
    if view.plot in ("bars", "box"):
        hatch = look.hatch if view.plot == "bars" else ""
        return Patch(facecolor=look.colour, hatch=hatch, edgecolor="white", linewidth=0.4)
    style: dict[str, Any] = {"color": look.colour, "linestyle": look.dash, "marker": look.marker}
    return Line2D([], [], markersize=5.0, markeredgecolor="white", markeredgewidth=0.5, **style)


def _legend_columns(labels: Sequence[str], width: float) -> int:
    """Columns that fit: all in one row, if they do, or else in rows of about the same length."""
    room = int(width / _LETTER_IN)
    if sum(map(len, labels)) + _SAMPLE_LETTERS * len(labels) <= room:
        return len(labels)
    fitting = max(room // (max(map(len, labels)) + _SAMPLE_LETTERS), 1)
    rows = -(-len(labels) // fitting)
    return -(-len(labels) // rows)
