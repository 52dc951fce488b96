"""The report of a sweep: what came out at every point, against the fields that were swept."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import polars as pl

from weft.metrics import METRICS, MORE_METRICS
from weft.report import sections
from weft.report.cells import FLOW_COLUMNS, cell, size_steps
from weft.report.page import SCRIPTS, Page
from weft.report.payload import curve_points, payload
from weft.report.sizes import sizes_of
from weft.report.tables import metric_table, scrolling, sizes_note
from weft.schemas import empty_table

if TYPE_CHECKING:
    from weft.sweeps import Point, Sweep

__all__ = ["render_sweep"]

_CONTENDER = "balancer"
"""The field whose values are drawn as contenders, if it was swept."""
_ONE = "all runs"
_MOST_FAILURES = 50


def render_sweep(sweep: "Sweep") -> str:
    """Return the page as text."""
    data = _payload(sweep)
    fields = data["fields"]
    swept = [key for key in sweep.swept if key != "run.seed"]
    against = [_against(fields)] if any(len(field["values"]) > 1 for field in fields) else []
    parts = [
        _failures(sweep),
        sections.controls(data["sizes"], fields),
        *against,
        sections.fct(),
        sections.curves(),
        sections.why(),
        sections.overhead(),
        _table(sweep),
        _reproduce(sweep),
    ]
    return Page(
        title=f"Weft: {sweep.path.name}",
        kind="sweep",
        heading=" × ".join(swept) or "One point",
        subtitle=_subtitle(sweep),
        sections=parts,
        data=data,
        scripts=(*SCRIPTS, "against") if against else SCRIPTS,
    ).render()


def _payload(sweep: "Sweep") -> dict[str, Any]:
    labels = list(sweep.swept.get(_CONTENDER, (_ONE,)))
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
            place = labels.index(point.labels.get(_CONTENDER, _ONE))
            cells[place] = cell(point.runs, flows[id(point)], sizes, steps, count)
    found = [{"at": list(at), "cells": cells} for at, cells in points.items()]
    return payload(labels, sizes, found, fields, time=None, replay=None)


def _fields(sweep: "Sweep") -> list[dict[str, Any]]:
    """The swept fields but contenders and seed; `numbers` if all values are."""
    found = []
    for key, values in sweep.swept.items():
        if key not in (_CONTENDER, "run.seed"):
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
    return (sweep.table_at("flows", point) if point.runs else empty_table("flows")).select(FLOW_COLUMNS)


def _subtitle(sweep: "Sweep") -> str:
    seeds = len(sweep.swept.get("run.seed", ("",)))
    failed = f"; {len(sweep.failed)} failed" if sweep.failed else ""
    return f"{len(sweep.runs)} runs at {len(sweep.points)} points, {seeds} seed{'s' * (seeds > 1)} each{failed}"


def _against(fields: Sequence[Mapping[str, Any]]) -> str:
    choices = []
    wide = {str(place): field["title"] for place, field in enumerate(fields) if len(field["values"]) > 1}
    if len(wide) > 1:
        choices.append(sections.choice("x", "Against", wide, wrapping=True))
    choices.append(sections.choice("quantity", "Quantity", {"fct": "completion time", "slowdown": "slowdown"}))
    choices.append(
        sections.choice("statistic", "Statistic", {"mean": "mean", "p50": "median", "p99": "99th percentile"})
    )
    choices.append(sections.choice("scale", "Scale", {"linear": "linear", "log": "logarithmic"}))
    title = f"Against {next(iter(wide.values()))}" if len(wide) == 1 else "Against a swept field"
    return sections.section(
        "against",
        title,
        sections.chart("against"),
        choices=choices,
        note="Of the flow sizes chosen above; other swept fields have the values chosen there. Whiskers, where there "
        "are several seeds, are 95 % confidence intervals.",
    )


def _failures(sweep: "Sweep") -> str:
    if not sweep.failed:
        return ""
    rows = "".join(
        f"<li><b>{escape(', '.join(f'{key} = {value}' for key, value in run.labels.items()))}</b>: "
        f"{escape(run.error or '')}</li>"
        for run in sweep.failed[:_MOST_FAILURES]
    )
    more = len(sweep.failed) - _MOST_FAILURES
    rest = f"<li>and {more} more</li>" if more > 0 else ""
    return sections.section("failures", f"{len(sweep.failed)} runs failed", f'<ul class="failures">{rows}{rest}</ul>')


def _table(sweep: "Sweep") -> str:
    heads = [key for key in sweep.swept if key not in (_CONTENDER, "run.seed")]
    rows = {
        (*(point.labels[key] for key in heads), point.labels.get(_CONTENDER, _ONE)): point.estimates
        for point in sweep.points
    }
    note = f"Means over the seeds with their 95 % confidence intervals. {sizes_note()} Choose a heading to sort."
    more = "Reordering, duplicates, throughput, deadlines, state"
    names = (*heads, "scheme")
    body = (
        f"{scrolling(metric_table(rows, METRICS, names, best=False), 'All points')}"
        f'<p class="note">{escape(note)}</p><details><summary>{more}</summary>'
        f"{scrolling(metric_table(rows, MORE_METRICS, names, best=False), more)}</details>"
    )
    return sections.section("points", "All points", body)


def _reproduce(sweep: "Sweep") -> str:
    text = (
        "<p>The directory holds every run's resolved spec, in <code>provenance/</code>. With the spec of the sweep, "
        "the same command gives the same results, to the last digit, on any machine; what is there is not run "
        "again.</p>"
    )
    values = "".join(
        f"<dt><code>{escape(key)}</code></dt><dd>{escape(', '.join(values))}</dd>"
        for key, values in sweep.swept.items()
    )
    return sections.section("reproduce", "What was swept", f"<dl>{values}</dl>{text}")
