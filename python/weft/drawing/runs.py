"""Figures of runs by the fields in which they differ: what a comparison and a sweep draw."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.curves import cumulative
from weft.drawing.asked import SIZE, Asked, Fields, read_asked, size_reading
from weft.drawing.names import column_unit, column_words, field_names, metric_unit, number_of, value_words
from weft.drawing.view import POOLED, Axis, DrawnUnit, PanelView, curve_schema, estimates, row_schema
from weft.flows import counted
from weft.lead import bound_words
from weft.metrics import over_runs
from weft.palette import looks
from weft.samples import distinct
from weft.summary import BINS, Summary

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["Group", "RunsToDraw", "draw_runs", "views_of_runs"]

_TITLE_OF_SIZES = "flow size"


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that differ in their seeds alone."""

    labels: Mapping[str, str]
    """The value of each field, as text."""
    runs: Sequence[Summary]
    """Those that did not fail."""


@dataclass(frozen=True, slots=True)
class RunsToDraw:
    """All that figures may show."""

    fields: Fields
    groups: Sequence[Group]
    flows: Callable[[Group], "pl.DataFrame"]
    """Reads the flows of all runs of a group."""


def draw_runs(source: RunsToDraw, asked: Asked) -> "Figure":
    """Draw a figure that was asked for."""
    from weft.drawing.figure import compose

    views = views_of_runs(source, asked)
    return compose(views, _note(source, asked), alike=len(views) > 1)


def draw_in_words(source: RunsToDraw, figure: str) -> "Figure":
    """Draw a figure that is asked for in words; `SpecError` names the nearest right one for what there is not."""
    (asked,) = read_asked([figure], source.fields)
    return draw_runs(source, asked)


def views_of_runs(source: RunsToDraw, asked: Asked) -> list[PanelView]:
    """Make a panel for each combination of the values of the fields that the figure does not name."""
    beside = source.fields.beside(asked.over, asked.by)
    names = field_names(source.fields.values)
    views = []
    for place, values in enumerate(product(*(source.fields.values[key] for key in beside))):
        wanted = dict(zip(beside, values, strict=True))
        own = [group for group in source.groups if all(group.labels[key] == label for key, label in wanted.items())]
        title = ", ".join(f"{names[key]} = {value_words(label)}" for key, label in wanted.items())
        views.append(_view(source, asked, own, place, title))
    variants = list(dict.fromkeys(variant for view in views for variant in view.variants))
    found = looks(variants)
    largest = max((_largest(view) for view in views), default=0.0)
    return [
        replace(
            view,
            looks=found,
            x=replace(view.x, up_to=largest if asked.metric is None else 0.0),
            y=replace(view.y, up_to=largest if asked.metric is not None else 0.0),
        )
        for view in views
    ]


def _view(source: RunsToDraw, asked: Asked, groups: Sequence[Group], place: int, title: str) -> PanelView:
    import polars as pl

    names = field_names(source.fields.values)
    variants = source.fields.values[asked.by] if asked.by is not None else [""]
    called = {label: label for label in variants}
    if asked.by is not None and asked.by != source.fields.variant:
        called = {label: f"{names[asked.by]} = {value_words(label)}" for label in variants}
    rows = list(_rows(source.fields, asked, groups, place)) if asked.metric is not None else []
    curves = list(_curves(source, asked, groups, place)) if asked.column is not None else []
    plot, x, y = _axes(source.fields, asked)
    return PanelView(
        title=title,
        plot=plot,
        x=x,
        y=y,
        variants=variants,
        names=called,
        looks={},
        measures=[""],
        rows=pl.DataFrame(rows, schema=row_schema(), orient="row"),
        curves=pl.DataFrame(curves, schema=curve_schema(), orient="row"),
    )


def _axes(fields: Fields, asked: Asked) -> tuple[str, Axis, Axis]:
    """Kind of plot, and its axes."""
    if asked.column is not None:
        unit: DrawnUnit = column_unit(asked.column)
        log = unit in ("us", "bytes", "ratio")
        return "cdf", Axis(column_words(asked.column).replace("fct", "FCT"), log, unit), Axis("share of flows")
    assert asked.metric is not None
    y = Axis(asked.metric.title, unit=metric_unit(asked.metric))
    if asked.over == SIZE:
        return "bars", Axis(_TITLE_OF_SIZES), replace(y, log=y.unit == "us")
    if asked.over is None:
        return "bars", Axis(""), y
    x = Axis(field_names(fields.values)[asked.over])
    return ("lines" if fields.is_numeric(asked.over) else "bars"), x, y


def _rows(fields: Fields, asked: Asked, groups: Sequence[Group], place: int) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each run, and each range of sizes if it is by size, in the order of `row_schema`."""
    assert asked.metric is not None
    numeric = asked.over is not None and asked.over != SIZE and fields.is_numeric(asked.over)
    for group in groups:
        variant = group.labels[asked.by] if asked.by is not None else ""
        for run in distinct(group.runs):
            if asked.over == SIZE:
                read = size_reading(asked.metric)
                for title, one in _sizes(run).items():
                    value = read(one)
                    is_open = value is None and asked.metric.bound is not None and one.without_completion
                    yield (place, variant, title, None, run.seed, "", math.nan if is_open else value)
                continue
            label = value_words(group.labels[asked.over]) if asked.over is not None else ""
            quantity = number_of(label) if numeric else None
            number = None if quantity is None else quantity[1]
            yield (place, variant, label, number, run.seed, "", asked.metric.known(run))


def _sizes(run: Summary) -> Mapping[str, Any]:
    """Return the ranges of sizes that the spec asked for, or else the usual ones that have flows, by title."""
    if run.size_bins:
        return {one.label: one for one in run.size_bins}
    return {BINS[name]: one for name, one in run.bins.items() if name != "all" and one.flows}


def _curves(source: RunsToDraw, asked: Asked, groups: Sequence[Group], place: int) -> Iterator[tuple[Any, ...]]:
    """Yield the points of distributions, of all seeds together, in the order of `curve_schema`."""
    assert asked.column is not None
    for group in groups:
        variant = group.labels[asked.by] if asked.by is not None else ""
        if not group.runs:
            continue
        column = counted(source.flows(group)).get_column(asked.column)
        values = column.drop_nulls().to_numpy().astype(np.float64)
        # Unfinished flows are flows: their curve ends below 1.
        for position, point in enumerate(zip(*cumulative(values, total=len(column)), strict=True)):
            yield (place, variant, "", POOLED, position, *point)


def _largest(view: PanelView) -> float:
    if view.plot == "cdf":
        values = view.curves.get_column("value").to_list()
    else:
        values = [one.mean for one in estimates(view).values()]
    return max((abs(value) for value in values if math.isfinite(value)), default=0.0)


def _open(source: RunsToDraw, asked: Asked) -> str:
    """Say what is not drawn since unfinished flows leave it open."""
    metric = asked.metric
    if metric is None or metric.bound is None:
        return ""
    if asked.over == SIZE:
        return " What they leave open is not drawn."
    found = [(group, one) for group in source.groups if (one := over_runs(metric, group.runs)) is not None and one.sign]
    named = [f"{', '.join(map(value_words, group.labels.values()))} {bound_words(one, metric)}" for group, one in found]
    more = f" and {len(named) - _MOST_OPEN} more" if len(named) > _MOST_OPEN else ""
    return f" Not drawn, since they leave it open: {'; '.join(named[:_MOST_OPEN])}{more}." if named else ""


_MOST_OPEN = 6


def _note(source: RunsToDraw, asked: Asked) -> str:
    """Say on how much the figure rests."""
    runs = [run for group in source.groups for run in group.runs]
    seeds = {run.seed for run in runs}
    flows = sorted({run.flows for run in runs})
    parts = []
    if flows:
        parts.append(f"{flows[0]:,} flows" if len(flows) == 1 else f"{flows[0]:,} to {flows[-1]:,} flows")
    parts.append(f"{len(seeds):,} seed{'s' * (len(seeds) != 1)}")
    several = any(len(group.runs) > 1 for group in source.groups)
    spread = " Flows of all seeds together." if asked.metric is None else " Bars of confidence: 95 % over seeds."
    unfinished = sum(run.without_completion for run in runs)
    left = (
        "" if not unfinished or asked.metric is None else f" {unfinished:,} flows did not finish.{_open(source, asked)}"
    )
    return ", ".join(parts) + "." + (spread if several else "") + left
