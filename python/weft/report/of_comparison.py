"""The report of a comparison, or of a single run."""

from html import escape
from typing import TYPE_CHECKING

import polars as pl

from weft.metrics import METRICS, MORE_METRICS, bin_metrics
from weft.report import over_time, replay, sections
from weft.report.cells import FLOW_COLUMNS, cell, size_steps
from weft.report.page import SCRIPTS, Page
from weft.report.payload import curve_points, payload
from weft.report.sizes import sizes_of
from weft.report.tables import metric_table, scrolling, sizes_note

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from weft.comparison import Comparison
    from weft.metrics import Metric

__all__ = ["render"]


def render(comparison: "Comparison") -> str:
    """Return the page as text."""
    labels = list(comparison.groups)
    data = _payload(comparison)
    parts = [
        f'<section id="verdict" aria-label="Verdict">{_verdict(comparison)}</section>',
        _summary(comparison),
        sections.controls(data["sizes"]),
        sections.fct(),
        sections.curves(),
        sections.why(),
        sections.overhead(),
        over_time.section(comparison),
        replay.section(comparison),
        _reproduce(comparison),
    ]
    return Page(
        title=f"Weft: {', '.join(labels)}",
        kind="comparison of load balancers" if len(labels) > 1 else "one load balancer",
        heading=" · ".join(labels),
        subtitle=_subtitle(comparison),
        sections=parts,
        data=data,
        scripts=(*SCRIPTS, *(("over-time", *replay.SCRIPTS) if data["time"] else ())),
    ).render()


def _payload(comparison: "Comparison") -> "dict[str, Any]":
    sizes = sizes_of(comparison.runs[0].summary)
    # Every contender had the same flows, so the first one's sizes are those of all.
    frames = {
        label: pl.concat([run.flows.select(FLOW_COLUMNS) for run in runs]) for label, runs in comparison.groups.items()
    }
    steps = size_steps([next(iter(frames.values()))])
    points = curve_points(len(frames), len(sizes))
    cells = [cell(summaries, frames[label], sizes, steps, points) for label, summaries in comparison.summaries.items()]
    return payload(
        frames,
        sizes,
        [{"at": [], "cells": cells}],
        time=over_time.curves(comparison),
        replay=replay.payload(comparison),
    )


def _subtitle(comparison: "Comparison") -> str:
    first = comparison.runs[0].summary
    seeds = [run.summary.seed for run in next(iter(comparison.groups.values()))]
    listed = ", ".join(map(str, seeds)) if len(seeds) <= 8 else f"{len(seeds)} seeds"
    same = "each, the same for every scheme" if len(comparison.groups) > 1 else "each"
    return f"{first.flows:,} flows {same}; seed{'s' * (len(seeds) > 1)} {listed}"


def _verdict(comparison: "Comparison") -> str:
    verdict = comparison.verdict
    if verdict is None:
        return "<p>No flow finished, so there is nothing to compare.</p>"
    first, *rest = (escape(sentence) for sentence in verdict.sentences)
    return f'<p class="lead">{first}</p>' + "".join(f"<p>{sentence}</p>" for sentence in rest)


def _summary(comparison: "Comparison") -> str:
    tables = [(f"Flows of {sizes}", bin_metrics(place)) for place, sizes in enumerate(comparison.size_bins)]
    tables.append(("Reordering, duplicates, throughput, deadlines, state", MORE_METRICS))
    more = "".join(
        f"<details><summary>{escape(title)}</summary>{scrolling(_table(comparison, metrics), title)}</details>"
        for title, metrics in tables
    )
    seeds = max(len(runs) for runs in comparison.groups.values())
    interval = f" ± is the half-width of the 95 % confidence interval over {seeds} seeds." if seeds > 1 else ""
    note = f"Green: best in its column. {sizes_note()} Lower is better.{interval} Choose a heading to sort."
    body = f'{scrolling(_table(comparison, METRICS), "Summary")}<p class="note">{escape(note)}</p>{more}'
    return sections.section("summary", "Summary", body)


def _table(comparison: "Comparison", metrics: "Sequence[Metric]") -> str:
    return metric_table({(label,): row for label, row in comparison.estimates_of(metrics).items()}, metrics)


def _reproduce(comparison: "Comparison") -> str:
    lines = []
    if comparison.command:
        lines.append(f"<p>The whole comparison:</p><pre><code>{escape(comparison.command)}</code></pre>")
    lines.append(
        "<p>One run of it: save its spec, which holds every setting and the seed, and run it. The same spec and "
        "the same version give the same result, to the last digit, on any machine.</p>"
        "<pre><code>weft run spec.toml --out again</code></pre><h3>Specs, fully resolved</h3>"
    )
    found = [(f"{label}, seed {runs[0].summary.seed}", runs[0].spec) for label, runs in comparison.groups.items()]
    return sections.section("reproduce", "How to reproduce", "".join(lines) + sections.specs(found))
