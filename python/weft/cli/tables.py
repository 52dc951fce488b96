"""Tables on the terminal."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET
from rich.console import Console
from rich.table import Table

from weft.cli.console import Text
from weft.cli.layout import new_table, stacked
from weft.cli.waits import print_classes, print_pause_tree
from weft.collectives import (
    collective_metrics,
    collective_sentences,
    collective_tables,
    collectives_of,
    has_collectives,
    schedule_sentences,
)
from weft.comparison import Comparison
from weft.footnotes import footnotes
from weft.load_sharing import LoadSharing
from weft.metrics import Metric, best_labels, bin_metrics, over_runs, shown_metrics
from weft.phases import phase_metrics, reaction_sentences
from weft.quantity import estimate_text, percent, plain, unit_and_scale
from weft.statistics import Estimate, estimate
from weft.summary import Summary
from weft.summary_words import deadlock_words, summary_lines, summary_table
from weft.untrusted import one_line

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from weft.simulation import Result

__all__ = [
    "in_parts",
    "is_informative",
    "print_comparison",
    "print_load_sharing",
    "print_programs",
    "print_summary",
]


_ONLY_IF_ANY = frozenset({"unfinished", "trimmed_packets", "dropped_packets", "retransmissions"})
"""Columns that say something if there is anything in them."""


def print_comparison(
    console: Console, comparison: Comparison, metrics: Sequence[Metric] | None = None, *, load_sharing: bool = False
) -> None:
    """Print what was run, the tables, in parts if they are too wide, one for each range of sizes, and the verdict.

    Where flows wait for each other, their own completion times are printed if columns are asked for alone.
    """
    console.print(comparison.description)
    tables: list[Sequence[Metric]] = []
    if comparison.phases:
        tables.append(_telling(comparison, phase_metrics(comparison.phases)))
    if comparison.has_collectives:
        for sentence in schedule_sentences(comparison.summaries):
            console.print(sentence)
        tables += _print_collectives(console, comparison)
    legend = []
    if metrics is not None or not comparison.has_collectives:
        tables += _print_flows(console, comparison, metrics or shown_metrics(run.summary for run in comparison.runs))
    else:
        legend.append("flows wait for each other, so their own times say little: --columns shows them")
    found = [(columns, comparison.estimates_of(columns)) for columns in tables]
    if any(best_labels(rows, metric, comparison.references) for columns, rows in found for metric in columns):
        legend.insert(0, "* best in its column")
    legend += footnotes((columns, rows.values()) for columns, rows in found)
    if legend:
        console.print("; ".join(legend), style="dim")
    for note in comparison.notes:
        console.print(f"note: {note}")
    _print_phases(console, comparison)
    print_classes(console, comparison.groups)
    if load_sharing and comparison.load_sharing:
        console.print(_load_sharing_table(comparison))
    if comparison.verdict is not None:
        console.print()
        for sentence in comparison.verdict.sentences:
            console.print(sentence)
        for sentence in collective_sentences(comparison.summaries):
            console.print(sentence)
    for label, runs in comparison.groups.items():
        for run in runs:
            _print_deadlock(console, run.summary, f"{label}, seed {run.summary.seed}: ", run.path)


def _print_flows(console: Console, comparison: Comparison, metrics: Sequence[Metric]) -> list[Sequence[Metric]]:
    """Print the completion times of flows, all of them and those of each range of sizes; return the columns."""
    tables = [metrics]
    for part in _parts(console, comparison, metrics):
        console.print(part)
    for place, sizes in enumerate(comparison.size_bins):
        flows = max(run.summary.size_bins[place].flows for run in comparison.runs)
        console.print(Text(f"flows of {sizes} ({flows:,})", style="bold"))
        tables.append(_telling(comparison, bin_metrics(place)))
        for part in _parts(console, comparison, tables[-1]):
            console.print(part)
    return tables


def _print_collectives(console: Console, comparison: Comparison) -> list[Sequence[Metric]]:
    """Print a table for each kind of collective, and of the packets of whole runs; return their columns."""
    tables: list[Sequence[Metric]] = []
    for title, metrics in collective_tables(comparison.summaries, comparison.line_rate_mbps):
        console.print(Text(title, style="bold"))
        tables.append(_telling(comparison, metrics))
        for part in _parts(console, comparison, tables[-1]):
            console.print(part)
    return tables


def _print_deadlock(console: Console, summary: Summary, whose: str = "", path: "Path | None" = None) -> None:
    """Print one red line if a run ended by a deadlock, and where its picture is if the run was written."""
    if summary.lossless is not None and summary.lossless.deadlock:
        console.print(Text(f"{whose}{deadlock_words(summary.lossless.deadlock)}", style="red"))
        # What another command ran may be in a store, which has no pictures.
        if path is not None and (picture := path / "figures" / "deadlock.svg").is_file():
            console.print(f"its picture: {picture}")


def _print_phases(console: Console, comparison: Comparison) -> None:
    """Print what faults did: a table of before, during and after, and when each scheme had moved away."""
    if comparison.phases:
        flows = [
            f"{one.flows:,} start {name}"
            for name in comparison.phases
            if (one := comparison.runs[0].summary.phase(name)) is not None
        ]
        console.print(Text(f"before, during and after the faults: of the flows, {', '.join(flows)}", style="bold"))
        for part in _parts(console, comparison, _telling(comparison, phase_metrics(comparison.phases))):
            console.print(part)
    for sentence in reaction_sentences(comparison.faults, comparison.summaries):
        console.print(sentence)


def _telling(comparison: Comparison, metrics: Sequence[Metric]) -> list[Metric]:
    """Leave out the columns that say nothing: how many flows (the heading does), no value, none unfinished or lost."""
    rows = comparison.estimates_of(metrics).values()
    return [
        metric
        for metric in metrics
        if metric.key != "flows" and is_informative(metric, [row[metric.key] for row in rows])
    ]


def is_informative(metric: Metric, values: Iterable[Estimate | None]) -> bool:
    """Whether a column says something: it has a value, and is not of what nowhere was lost or left unfinished."""
    means = [value.mean for value in values if value is not None]
    may_be_zero = metric.key not in _ONLY_IF_ANY and not metric.key.endswith("_lost_packets")
    return bool(means) and (may_be_zero or any(means))


def _parts(console: Console, comparison: Comparison, metrics: Sequence[Metric]) -> list[Table]:
    return in_parts(console, metrics, lambda columns: _comparison_table(comparison, columns))


def in_parts(console: Console, metrics: Sequence[Metric], make: Callable[[Sequence[Metric]], Table]) -> list[Table]:
    """Lay out the columns in as few tables as fit the console's width; `make` makes a table of some of them."""
    unbounded = console.options.update(max_width=10_000)
    parts: list[Table] = []
    columns = list(metrics)
    while columns:
        taken = len(columns)
        table = make(columns)
        while taken > 1 and console.measure(table, options=unbounded).maximum > console.width:
            taken -= 1
            table = make(columns[:taken])
        parts.append(table)
        columns = columns[taken:]
    return parts


def _comparison_table(comparison: Comparison, metrics: Sequence[Metric]) -> Table:
    estimates = comparison.estimates_of(metrics)
    cells: dict[str, list[Text]] = {label: [] for label in estimates}
    titles = ["scheme"]
    for metric in metrics:
        values = [value.mean for row in estimates.values() if (value := row[metric.key])]
        unit, scale = unit_and_scale(metric.unit, values)
        titles.append(stacked(metric.title, unit))
        best = best_labels(estimates, metric, comparison.references)
        for label, row in estimates.items():
            text = estimate_text(row[metric.key], metric.unit, scale)
            cells[label].append(Text(f"{text}*", style="bold") if label in best else Text(f"{text} "))
    table = new_table(*titles, left=("scheme",))
    for column in table.columns:
        column.no_wrap = True
    for label, texts in cells.items():
        table.add_row(Text(label), *texts)
    return table


def print_summary(console: Console, result: "Result") -> None:
    """Print the statistics of one run."""
    summary = result.summary
    titles, rows = summary_table(summary)
    table = _rows_table(titles, rows)
    if console.measure(table, options=console.options.update(max_width=10_000)).maximum > console.width:
        table = _rows_table([titles[0], *(title.replace(" ", "\n") for title in titles[1:])], rows)
    console.print(table)
    for line in summary_lines(summary):
        console.print(line)
    print_pause_tree(console, result)
    print_classes(console, {summary.label: [result]})
    _print_own_collectives(console, summary, result.line_rate_mbps)
    _print_deadlock(console, summary, path=result.path)
    for warning in summary.warnings:
        # A deadlock has its own line.
        if summary.lossless is None or not summary.lossless.deadlock or not warning.startswith("deadlock"):
            console.print(f"warning: {warning}")
    console.print(_speed_line(summary), style="dim")


def _rows_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = new_table(*titles, left=titles[:1])
    for row in rows:
        table.add_row(*row)
    return table


def _print_own_collectives(console: Console, summary: Summary, line_rate_mbps: float | None) -> None:
    """Print a row for each kind of collective of a run, and where the time on critical paths went, if it has any."""
    groups = {summary.label: [summary]}
    if not has_collectives(groups):
        return
    for sentence in schedule_sentences(groups):
        console.print(sentence)
    kinds = collectives_of(groups)
    columns = [collective_metrics(named, line_rate_mbps) for named in kinds]
    shown = [place for place, metric in enumerate(columns[0]) if any(_read(row[place], summary) for row in columns)]
    units = [unit_and_scale(columns[0][place].unit, [_read(row[place], summary) for row in columns]) for place in shown]
    titles = [stacked(columns[0][place].title, unit) for place, (unit, _) in zip(shown, units, strict=True)]
    table = new_table("collective", stacked("number", ""), *titles, left=("collective",))
    for named, row in zip(kinds, columns, strict=True):
        one = named.of(summary)
        cells = [
            estimate_text(over_runs(row[place], [summary]), row[place].unit, scale)
            for place, (_, scale) in zip(shown, units, strict=True)
        ]
        table.add_row(Text(named.title), f"{one.count if one else 0:,}", *map(Text, cells))
    console.print(table)
    for sentence in collective_sentences(groups):
        console.print(sentence)


def _read(metric: Metric, summary: Summary) -> float:
    found = over_runs(metric, [summary])
    return 0.0 if found is None else found.mean


def _load_sharing_table(comparison: Comparison) -> Table:
    """Lay out how evenly uplinks shared the load: means over the seeds."""
    table = new_table("load sharing accuracy", "mean (%)", "p50 (%)", "p99 (%)", "slots", "with an idle uplink",
        left=("load sharing accuracy",),
    )  # fmt: skip
    for label, shares in comparison.load_sharing.items():
        cells = []
        for name in ("mean", "p50", "p99"):
            values = [value for one in shares if (value := getattr(one, name)) is not None]
            cells.append(estimate_text(estimate(values), "share", 1.0) if values else "-")
        counts = (f"{sum(one.slots for one in shares):,}", f"{sum(one.idle for one in shares):,}")
        table.add_row(Text(label), *cells, *counts)
    return table


def print_load_sharing(console: Console, shares: LoadSharing) -> None:
    """Print how evenly uplinks shared the load in one run."""
    accuracy = (
        "no slot in which all uplinks of a leaf sent"
        if shares.mean is None or shares.p99 is None
        else f"mean {percent(shares.mean)}, p99 {percent(shares.p99)} over {shares.slots:,} slots"
    )
    console.print(f"load sharing accuracy of uplinks: {accuracy}, {shares.idle:,} with an idle uplink")


def print_programs(console: Console, programs: "pl.DataFrame") -> None:
    """Print how each program of the traffic ended, a line each, with the last line that it wrote."""
    table = new_table("program", "host", "command", "outcome", "from (ms)", "to (ms)", "its last line",
        left=("command", "outcome", "its last line"),
    )  # fmt: skip
    for row in programs.iter_rows(named=True):
        ends = (None if row[key] is None else row[key] / 1000.0 for key in ("start_us", "end_us"))
        code = "" if not row["exit_code"] else f" with {row['exit_code']}"
        said = (row["output"].strip() or row["errors"].strip()).splitlines()
        words = (row["command"], f"{row['outcome']}{code}", *map(_cell, ends), said[-1] if said else "")
        table.add_row(str(row["program"]), str(row["host"]), *(Text(_short(one_line(word))) for word in words))
    console.print(table)


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _cell(value: float | None) -> str:
    return "-" if value is None else plain(value)


def _speed_line(summary: Summary) -> str:
    hops, speed = f"{summary.packet_hops:,} packet-hops", summary.packet_hops_per_cpu_s
    if summary.cpu_s is UNSET:
        return hops
    rate = "" if speed is UNSET or speed is None else f", {plain(speed / 1e6)} million per CPU-second"
    return f"{hops} in {summary.cpu_s:.2f} CPU-seconds{rate}"
