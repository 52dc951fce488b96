"""The report of a sweep: what came out at every point, against the fields that were swept."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from weft.faults import faults_of
from weft.footnotes import as_sentences, footnotes
from weft.metrics import FCT_PART_METRICS, METRICS, MORE_METRICS, OF_COLLECTIVES, estimates
from weft.phases import fault_metrics
from weft.quantity import plural
from weft.report.cells import cell, flow_columns, size_steps, waited
from weft.report.faults import marks
from weft.report.page import ResultsPage
from weft.report.payload import curve_points, payload
from weft.report.picture import Picture, picture
from weft.report.sizes import sizes_of
from weft.report.tables import metric_table
from weft.schemas import empty_table
from weft.sweeps.grid import SEED
from weft.sweeps.result import fields_of

if TYPE_CHECKING:
    from weft.metrics import Metric
    from weft.report.tables import Table
    from weft.sweeps import Point, Sweep

__all__ = ["render_sweep"]

_WAITED = [metric for metric in OF_COLLECTIVES if metric.unit == "us"]
"""Metrics of collectives that are drawn."""
_ONE = "all runs"
_MOST_FAILURES = 50


def render_sweep(sweep: "Sweep") -> str:
    """Return the page as text."""
    data = _payload(sweep)
    against = {str(place): field["title"] for place, field in enumerate(data["fields"]) if len(field["values"]) > 1}
    more = _more_metrics(sweep)
    legend = [
        (metrics, [estimates(point.runs, metrics) for point in sweep.points])
        for metrics in (sweep.shown_metrics, *more.values())
    ]
    page = ResultsPage(
        title=f"Weft: {sweep.path.name}",
        kind="sweep",
        heading=" × ".join(key for key in sweep.swept if key != SEED) or "One point",
        subtitle=_subtitle(sweep),
        data=data,
        more_scripts=("against",) if against else (),
    )
    return page.render(
        "sweep.html",
        description=sweep.description,
        picture=_picture(sweep),
        verdict=sweep.verdict.sentences if sweep.verdict is not None else (),
        failed=sweep.failed,
        most_failures=_MOST_FAILURES,
        against=against,
        collectives=data["collectives"],
        summary=_table(sweep, sweep.shown_metrics),
        tables={title: _table(sweep, metrics) for title, metrics in more.items()},
        legend=as_sentences(footnotes(legend, empty=False)),
        notes=sweep.notes,
        swept=sweep.swept,
        command=sweep.command,
    )


def _more_metrics(sweep: "Sweep") -> "dict[str, Sequence[Metric]]":
    """Return the metrics that the first table leaves out: also those of flows, if they wait for each other."""
    faults = {"Before, during and after the faults": fault_metrics(sweep.phases)} if sweep.phases else {}
    flows = {"Flows": METRICS} if sweep.has_collectives else {}
    parts = {"Parts of the mean completion time": FCT_PART_METRICS}
    return {**faults, **flows, **parts, "Reordering, duplicates, throughput, deadlines, state": MORE_METRICS}


def _picture(sweep: "Sweep") -> Picture | None:
    """Draw the fabric, if all points have the same one and the links of some run are there."""
    fabrics = [spec["fabric"] for spec in sweep.specs]
    point = next((point for point in sweep.points if point.runs), None)
    if point is None or not fabrics or any(fabric != fabrics[0] for fabric in fabrics):
        return None
    if next((sweep.path / "links").rglob("*.parquet"), None) is None:
        return None
    links = sweep.table_at("links", point).unique("link", keep="first", maintain_order=True)
    return picture(links, marks(faults_of(fabrics[0]), point.runs[0].faults))


def _payload(sweep: "Sweep") -> dict[str, Any]:
    variant = _variant(sweep)
    labels = list(sweep.swept.get(variant, (_ONE,)))
    fields = _fields(sweep)
    runs = [run.summary for run in sweep.runs if run.summary is not None]
    sizes = sizes_of(runs[0]) if runs else ()
    flows = {id(point): _flows(sweep, point) for point in sweep.points}
    steps = size_steps(list(flows.values()))
    count = curve_points(len(sweep.points), max(len(sizes), 1))
    points: dict[tuple[int, ...], list[Any]] = {}
    for point in sweep.points:
        at = tuple(field["values"].index(point.labels[field["key"]]) for field in fields)
        cells = points.setdefault(at, [None] * len(labels))
        if point.runs:
            place = labels.index(point.labels.get(variant, _ONE))
            collectives = waited(point.runs, _WAITED) if sweep.has_collectives else {}
            cells[place] = {**cell(point.runs, flows[id(point)], sizes, steps, count), "collectives": collectives}
    found = [{"at": list(at), "cells": cells} for at, cells in points.items()]
    titles = {metric.key: metric.title for metric in _WAITED} if sweep.has_collectives else {}
    return payload(labels, sizes, found, fields, time=None, replay=None, collectives=titles)


def _variant(sweep: "Sweep") -> str:
    """Return the field whose values are drawn as variants; one that is not there if none was swept."""
    return fields_of(sweep.swept).variant or ""


def _fields(sweep: "Sweep") -> list[dict[str, Any]]:
    """The swept fields but variants and seed; `numbers` if all values are."""
    found = []
    variant = _variant(sweep)
    for key, values in sweep.swept.items():
        if key not in (variant, SEED):
            numbers = [_number(value) for value in values]
            found.append(
                {
                    "key": key,
                    "title": key,
                    "values": list(values),
                    "numbers": None if None in numbers else numbers,
                }
            )
    return found


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) != float("inf") and value == value else None


def _flows(sweep: "Sweep", point: "Point") -> pl.DataFrame:
    """The flows of a point's runs, of all seeds."""
    if not point.runs:
        return flow_columns(empty_table("flows"), 0.0)
    flows, ends = sweep.table_at("flows", point), {run.seed: run.simulated_us for run in point.runs}
    return flow_columns(
        flows, pl.col(SEED).replace_strict(ends) if SEED in flows.columns else point.runs[0].simulated_us
    )


def _subtitle(sweep: "Sweep") -> str:
    seeds = len(sweep.swept.get(SEED, ("",)))
    failed = f"; {len(sweep.failed)} failed" if sweep.failed else ""
    runs, points = plural(len(sweep.runs), "run"), plural(len(sweep.points), "point")
    return f"{runs} at {points}, {plural(seeds, 'seed')} each{failed}"


def _table(sweep: "Sweep", metrics: "Sequence[Metric]") -> "Table":
    variant = _variant(sweep)
    heads = [key for key in sweep.swept if key not in (variant, SEED)]
    rows = {
        (*(point.labels[key] for key in heads), point.labels.get(variant, _ONE)): estimates(point.runs, metrics)
        for point in sweep.points
    }
    return metric_table(rows, metrics, (*heads, "scheme"), best=False)
