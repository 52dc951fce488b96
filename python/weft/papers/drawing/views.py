"""From a declared panel and the figure's data to what a plot is given."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

from weft import palette
from weft.drawing.names import column_unit, column_words, last_part, metric_unit
from weft.drawing.view import Axis, DrawnUnit, PanelView
from weft.metrics import ALL_METRICS, bin_metrics
from weft.papers.declared import Measure, PanelSpec, Paper
from weft.papers.measured import FigureData

if TYPE_CHECKING:
    import polars as pl

__all__ = ["field_name", "panel_views", "unit_of"]

_SIDE_BY_SIDE = ("bins", "metrics")


def panel_views(paper: Paper, panels: Sequence[PanelSpec], data: FigureData) -> list[PanelView]:
    """Give each panel its own rows, its axes, and looks that a variant keeps through the figure."""
    import polars as pl

    views = [
        _view(paper, panel, *(frame.filter(pl.col("panel") == place) for frame in (data.rows, data.curves)))
        for place, panel in enumerate(panels)
    ]
    looks = palette.looks(variant for view in views for variant in view.variants)
    return [replace(view, looks=looks) for view in views]


def unit_of(measure: Measure) -> DrawnUnit:
    """Unit of the values of a measure: declared, of its metric, or told by the end of its column's name."""
    if measure.unit in get_args(DrawnUnit):
        return measure.unit  # type: ignore[return-value]
    if measure.metric is not None:
        known = ALL_METRICS if measure.bin is None else bin_metrics(measure.bin)
        return metric_unit(next(metric for metric in known if metric.key == measure.metric))
    if measure.statistic in ("share", "count"):
        return measure.statistic  # type: ignore[return-value]
    return column_unit(measure.column or "")


def _view(paper: Paper, panel: PanelSpec, rows: "pl.DataFrame", curves: "pl.DataFrame") -> PanelView:
    import polars as pl

    variants = panel.variants or tuple(
        pl.concat([rows.get_column("variant"), curves.get_column("variant")]).unique(maintain_order=True)
    )
    measures = rows.get_column("measure").unique(maintain_order=True).to_list()
    x, y = _axes(panel)
    if panel.plot == "lines" and panel.x in _SIDE_BY_SIDE:
        rows = rows.with_columns(
            pl.col("measure").alias("x"), pl.lit(None, pl.Float64).alias("x_number"), pl.lit("").alias("measure")
        )
        measures = [""]
    return PanelView(
        title=panel.title,
        plot=panel.plot,
        x=x,
        y=y,
        variants=variants,
        names={variant: paper.label(variant) for variant in variants},
        looks={},
        measures=measures,
        rows=rows,
        curves=curves,
        relative=panel.relative_to is not None,
        units=tuple(map(unit_of, panel.measures)),
    )


def _axes(panel: PanelSpec) -> tuple[Axis, Axis]:
    """The axes as they are drawn: those of values have a unit, unless they are divided by others."""
    relative = panel.relative_to is not None
    units = {unit_of(measure) for measure in panel.measures}
    unit: DrawnUnit = "ratio" if relative or len(units) != 1 else next(iter(units))
    named = panel.measures[0].column or panel.measures[0].metric or "" if panel.measures else ""
    log = panel.x_scale == "log", panel.y_scale == "log"
    if panel.plot == "cdf":
        return Axis(panel.x_label or column_words(named), log[0], unit), Axis(
            panel.y_label or "share of values", log[1]
        )
    x_label = panel.x_label if panel.x_label is not None else field_name(panel.x)
    y = Axis(panel.y_label or column_words(named), log[1], unit)
    if panel.plot == "over-time":
        return Axis(panel.x_label or "time", log[0], "us"), y
    return Axis(x_label, log[0]), y


def field_name(name: str | None) -> str:
    """The last part of a field's name; nothing where measures stand side by side."""
    return "" if name is None or name in _SIDE_BY_SIDE else last_part(name)
