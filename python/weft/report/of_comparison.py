"""The report of a comparison, or of a single run."""

from typing import TYPE_CHECKING

import polars as pl

from weft.footnotes import as_sentences, footnotes
from weft.metrics import FCT_PART_METRICS, MORE_METRICS, bin_metrics, has_only_long_lived, shown_metrics
from weft.port_classes import class_table
from weft.quantity import plain
from weft.report import collectives, faults, over_time, replay
from weft.report.cells import cell, flow_columns, size_steps
from weft.report.page import ResultsPage
from weft.report.payload import curve_points, payload
from weft.report.picture import picture
from weft.report.reason import reason_view
from weft.report.sizes import sizes_of
from weft.report.tables import Cell, Head, Row, Table, metric_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from weft.comparison import Comparison
    from weft.footnotes import as_sentences, footnotes
from weft.metrics import Metric

__all__ = ["render"]


def render(comparison: "Comparison") -> str:
    """Return the page as text."""
    labels = list(comparison.groups)
    shown = shown_metrics(run.summary for run in comparison.runs)
    summary, tables = _table(comparison, shown), _more_tables(comparison)
    starred = any(cell.best for table in (summary, *tables.values()) for row in table.rows for cell in row.cells)
    bins = [metric for place, _ in enumerate(comparison.size_bins) for metric in bin_metrics(place)]
    columns = [shown, bins, FCT_PART_METRICS, MORE_METRICS]
    legend = footnotes(((metrics, comparison.estimates_of(metrics).values()) for metrics in columns), empty=False)
    data = _payload(comparison)
    verdict, first = comparison.verdict, comparison.runs[0]
    page = ResultsPage(
        title=f"Weft: {', '.join(labels)}",
        kind="comparison of load balancers" if len(labels) > 1 else "one load balancer",
        heading=" · ".join(labels),
        subtitle=_subtitle(comparison),
        data=data,
        more_scripts=(
            *(collectives.SCRIPTS if data["critical"] else ()),
            *(("over-time", *replay.SCRIPTS) if data["time"] else ()),
        ),
    )
    return page.render(
        "comparison.html",
        description=comparison.description,
        picture=picture(first.links, faults.marks(comparison.faults, first.summary.faults)),
        faults=faults.view(comparison),
        drops=faults.drops_table(comparison),
        collectives=collectives.view(comparison),
        pausing=any(run.summary.lossless is not None and run.summary.lossless.pauses for run in comparison.runs),
        waiting=comparison.has_collectives,
        goodput=has_only_long_lived(run.summary for run in comparison.runs),
        verdict=verdict.sentences if verdict is not None else (),
        reason=reason_view(verdict.reason) if verdict is not None and verdict.reason is not None else None,
        summary=summary,
        tables=tables,
        seeds=comparison.samples,
        legend=as_sentences([*(["green: best in its column"] if starred else []), *legend]),
        notes=comparison.notes,
        over_time=over_time.view(comparison),
        command=comparison.command,
        specs=[(f"{label}, seed {runs[0].summary.seed}", runs[0].spec) for label, runs in comparison.groups.items()],
    )


def _payload(comparison: "Comparison") -> "dict[str, Any]":
    sizes = sizes_of(comparison.runs[0].summary)
    # Every variant had the same flows, so the first one's sizes are those of all.
    frames = {
        label: pl.concat([flow_columns(run.flows, run.summary.simulated_us) for run in runs])
        for label, runs in comparison.groups.items()
    }
    steps = size_steps([next(iter(frames.values()))])
    points = curve_points(len(frames), len(sizes))
    cells = [cell(summaries, frames[label], sizes, steps, points) for label, summaries in comparison.summaries.items()]
    return payload(
        frames,
        sizes,
        [{"at": [], "cells": cells}],
        faults=faults.payload(comparison),
        critical=collectives.payload(comparison),
        time=over_time.curves(comparison),
        replay=replay.payload(comparison),
    )


def _subtitle(comparison: "Comparison") -> str:
    first = comparison.runs[0].summary
    seeds = [run.summary.seed for run in next(iter(comparison.groups.values()))]
    listed = ", ".join(map(str, seeds)) if len(seeds) <= 8 else f"{len(seeds)} seeds"
    same = "each, the same for every scheme" if len(comparison.groups) > 1 else "each"
    return f"{first.flows:,} flows {same}; seed{'s' * (len(seeds) > 1)} {listed}"


def _more_tables(comparison: "Comparison") -> "dict[str, Table]":
    found = {f"Flows of {sizes}": bin_metrics(place) for place, sizes in enumerate(comparison.size_bins)}
    found["Parts of the mean completion time"] = FCT_PART_METRICS
    found["Reordering, duplicates, throughput, deadlines, state"] = MORE_METRICS
    tables = {title: _table(comparison, metrics) for title, metrics in found.items()}
    if (classes := _classes(comparison)) is not None:
        tables["Classes of the ports of switches"] = classes
    programs = _programs(comparison)
    return tables | {"Programs": programs} if programs.rows else tables


def _classes(comparison: "Comparison") -> "Table | None":
    """A row a variant and class of ports; None unless there are several classes."""
    found = class_table(comparison.groups)
    if found is None:
        return None
    rows = []
    for label, title, values, texts in found.rows:
        cells = []
        for value, text in zip(values, texts, strict=True):
            mean, _, spread = text.partition(" ± ")
            cells.append(Cell("" if value is None else repr(value.mean), mean, spread))
        rows.append(Row((title,), label, cells))
    return Table([Head("class"), Head("scheme"), *(Head(*head) for head in found.heads)], rows)


def _programs(comparison: "Comparison") -> "Table":
    """A row a program of each run: how it ended."""
    rows = []
    for label, runs in comparison.groups.items():
        for run in runs:
            for one in run.programs.iter_rows(named=True):
                times = [None if one[key] is None else one[key] / 1000.0 for key in ("start_us", "end_us")]
                code = "" if one["exit_code"] is None else str(one["exit_code"])
                cells = [Cell(one["outcome"], one["outcome"], ""), Cell(code, code, "")]
                cells += [Cell("", "-", "") if time is None else Cell(repr(time), plain(time), "") for time in times]
                fields = (str(run.summary.seed), str(one["program"]), str(one["host"]), one["command"])
                rows.append(Row(fields, label, cells))
    heads = [Head("seed"), Head("program"), Head("host"), Head("command"), Head("scheme")]
    return Table([*heads, Head("outcome"), Head("exit code"), Head("from", "ms"), Head("to", "ms")], rows)


def _table(comparison: "Comparison", metrics: "Sequence[Metric]") -> "Table":
    found = comparison.estimates_of(metrics)
    return metric_table({(label,): row for label, row in found.items()}, metrics, apart=comparison.references)
