"""A table as a picture: a row a variant, a column a measure or a point of x."""

from typing import TYPE_CHECKING

from weft.drawing.axes import empty
from weft.drawing.view import PanelView, estimates, places, unit_scale
from weft.quantity import number
from weft.statistics import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ROW_IN", "draw_table"]

ROW_IN = 0.18
"""Height of a row, in inches."""


def draw_table(axes: "Axes", view: PanelView) -> None:
    """Draw a panel. A value that is missing is a dash."""
    found = estimates(view)
    axes.set_axis_off()
    axes.grid(visible=False)
    if not found:
        empty(axes)
        return
    own = places(view)
    columns = [(place.label, measure) for place in own for measure in view.measures]
    scales = _scales(view, list(found.items()))
    heads = [
        _head(x, measure, places=len(own), measures=len(view.measures))
        + (f" ({scales[measure][0]})" if scales[measure][0] else "")
        for x, measure in columns
    ]
    table = axes.table(
        cellText=[
            [
                view.name(variant),
                *(_cell(found.get((variant, measure, x)), scales[measure][1]) for x, measure in columns),
            ]
            for variant in view.variants
        ],
        colLabels=["", *heads],
        cellLoc="right",
        loc="upper center",
        edges="horizontal",
    )
    table.auto_set_font_size(False)
    table.set_fontsize(8.0)
    for (row, column), cell in table.get_celld().items():
        cell.set_edgecolor("#cccccc")
        cell.set_linewidth(0.6)
        if row == 0:
            cell.set_text_props(weight="bold")
        if column == 0:
            cell.set_text_props(ha="left")
    table.auto_set_column_width(list(range(len(columns) + 1)))


def _head(x: str, measure: str, *, places: int, measures: int) -> str:
    if places == 1:
        return measure
    return x if measures == 1 else f"{x}, {measure}"


def _scales(view: PanelView, found: list[tuple[tuple[str, str, str], Estimate]]) -> dict[str, tuple[str, float]]:
    """Unit and divisor of each measure."""
    units = dict(zip(view.measures, view.units, strict=False))
    scales = {}
    for measure in view.measures:
        largest = max((abs(value.mean) for (_, own, _), value in found if own == measure), default=0.0)
        unit = "ratio" if view.relative else units.get(measure, view.y.unit)
        scales[measure] = unit_scale(unit, largest)
    return scales


def _cell(value: Estimate | None, divisor: float) -> str:
    if value is None:
        return "-"
    text = number(value.mean / divisor)
    return text if value.half_width is None else f"{text} ± {float(f'{value.half_width / divisor:.2g}'):,g}"
